//! Scores of predicted labels, as scikit-learn computes them.

use std::collections::BTreeMap;

/// Counts of one label, from which its precision, recall and F1 follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Texts or words for which the label is predicted and true.
    pub hits: u64,
    pub predicted: u64,
    pub actual: u64,
}

impl Counts {
    /// Returns the share of predicted items that are true; 0 if none is predicted.
    pub fn precision(self) -> f64 {
        ratio(self.hits, self.predicted)
    }

    /// Returns the share of true items that are predicted; 0 if none is true.
    pub fn recall(self) -> f64 {
        ratio(self.hits, self.actual)
    }

    /// Returns the harmonic mean of precision and recall; 0 if nothing is predicted or true.
    pub fn f1(self) -> f64 {
        ratio(2 * self.hits, self.predicted + self.actual)
    }

    /// Returns the sum of counts over several labels.
    pub fn total<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        all.into_iter().fold(Self::default(), |sum, one| Self {
            hits: sum.hits + one.hits,
            predicted: sum.predicted + one.predicted,
            actual: sum.actual + one.actual,
        })
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Counts hits and misses of each of `labels` labels in pairs of sets: the true and the predicted labels of a text.
pub(super) fn count(labels: usize, pairs: &[(Vec<u32>, Vec<u32>)]) -> Vec<Counts> {
    let mut all = vec![Counts::default(); labels];
    for (actual, predicted) in pairs {
        actual.iter().for_each(|&label| all[label as usize].actual += 1);
        predicted.iter().for_each(|&label| all[label as usize].predicted += 1);
        let hits = actual.iter().filter(|label| predicted.contains(label));
        hits.for_each(|&label| all[label as usize].hits += 1);
    }
    all
}

/// Returns the mean F1 over labels. If each text has one label, labels that are neither predicted nor true are left
/// out.
pub(super) fn macro_f1(all: &[Counts], any_number: bool) -> f64 {
    let present = all.iter().filter(|one| any_number || one.predicted + one.actual > 0);
    let (count, sum) = present.fold((0_u64, 0.0), |(count, sum), one| (count + 1, sum + one.f1()));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Returns Matthews' correlation coefficient of texts with one label each (Gorodkin 2004 for more than two labels); 0
/// if all texts have the same true or the same predicted label.
pub(super) fn matthews(all: &[Counts]) -> f64 {
    let Counts { hits, predicted: texts, .. } = Counts::total(all);
    let sum = |of: &dyn Fn(&Counts) -> f64| all.iter().map(of).sum::<f64>();
    let (correct, texts) = (hits as f64, texts as f64);
    let both = sum(&|one| one.predicted as f64 * one.actual as f64);
    let predicted = sum(&|one| (one.predicted as f64).powi(2));
    let actual = sum(&|one| (one.actual as f64).powi(2));
    let spread = ((texts * texts - predicted) * (texts * texts - actual)).sqrt();
    if spread > 0.0 { (correct * texts - both) / spread } else { 0.0 }
}

/// Returns the F1 of the second of two labels, which GLUE's tasks take for the positive one. `all` may have further
/// counts, which belong to no label.
pub(super) fn binary_f1(labels: usize, all: &[Counts]) -> Option<f64> {
    (labels == 2).then(|| all[1].f1())
}

/// Returns the accuracy of always predicting the most frequent label, or set of labels.
pub(super) fn majority(pairs: &[(Vec<u32>, Vec<u32>)]) -> f64 {
    let mut sets: BTreeMap<&[u32], u64> = BTreeMap::new();
    pairs.iter().for_each(|(actual, _)| *sets.entry(actual).or_default() += 1);
    ratio(sets.into_values().max().unwrap_or(0), pairs.len() as u64)
}

/// Returns Pearson's correlation coefficient; [`None`] if all values of one kind are equal.
pub(super) fn pearson(one: &[f64], other: &[f64]) -> Option<f64> {
    let centered = |values: &[f64]| -> Vec<f64> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| value - mean).collect()
    };
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let (one, other) = (centered(one), centered(other));
    let scale = norm(&one) * norm(&other);
    let product: f64 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
    (scale > 0.0).then(|| (product / scale).clamp(-1.0, 1.0))
}

/// Returns Spearman's rank correlation coefficient, with mean ranks of equal values.
pub(super) fn spearman(one: &[f64], other: &[f64]) -> Option<f64> {
    pearson(&ranks(one), &ranks(other))
}

/// Returns the rank of each value, from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut ranks, mut first) = (vec![0.0; values.len()], 0);
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = first as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&at| ranks[at] = mean);
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn rows(case: &Value, field: &str) -> Vec<Vec<u32>> {
        let indices = |row: &Value| -> Vec<u32> {
            let bits = row.as_array().unwrap().iter().enumerate();
            bits.filter(|(_, bit)| bit.as_u64() == Some(1)).map(|(label, _)| label as u32).collect()
        };
        let of_text = |value: &Value| match value.as_u64() {
            Some(label) => vec![label as u32],
            None => indices(value),
        };
        case[field].as_array().unwrap().iter().map(of_text).collect()
    }

    /// Oracle: scikit-learn (tests/vectors/scores/make.py), with labels that are never predicted or never true.
    #[test]
    fn scores_equal_those_of_scikit_learn() {
        let file: Value =
            serde_json::from_str(include_str!("../../tests/vectors/scores/expected.json")).unwrap();
        for (kind, any_number) in [("single", false), ("several", true)] {
            for case in file[kind].as_array().unwrap() {
                let pairs: Vec<_> = rows(case, "actual").into_iter().zip(rows(case, "predicted")).collect();
                let counts = count(5, &pairs);
                let mut scores = vec![
                    ("macro_f1", macro_f1(&counts, any_number)),
                    ("micro_f1", Counts::total(&counts).f1()),
                ];
                if !any_number {
                    scores.push(("matthews", matthews(&counts)));
                }
                if case["f1"].is_number() {
                    scores.push(("f1", binary_f1(2, &counts).unwrap()));
                }
                for (name, got) in scores {
                    let want = case[name].as_f64().unwrap();
                    // The last digit depends on the order of a sum.
                    assert!((got - want).abs() < 1e-15, "{kind} {name}: {got} {want}");
                }
            }
        }
    }

    /// Oracle: SciPy (tests/vectors/scores/make.py), with ties, and constant values for which it has NaN.
    #[test]
    fn correlations_equal_those_of_scipy() {
        let file: Value =
            serde_json::from_str(include_str!("../../tests/vectors/scores/expected.json")).unwrap();
        for case in file["numbers"].as_array().unwrap() {
            let values = |field: &str| serde_json::from_value::<Vec<f64>>(case[field].clone()).unwrap();
            let (actual, predicted) = (values("actual"), values("predicted"));
            let scores =
                [("pearson", pearson(&actual, &predicted)), ("spearman", spearman(&actual, &predicted))];
            for (name, got) in scores {
                let want = case[name].as_f64();
                // The order of a sum decides the last digits.
                let equal = got.zip(want).map_or(got == want, |(got, want)| (got - want).abs() < 1e-14);
                assert!(equal, "{name}: {got:?} {want:?}");
            }
        }
    }
}
