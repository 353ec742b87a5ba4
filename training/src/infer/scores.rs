//! Scores of predicted labels, as scikit-learn computes them.

/// Counts of one label, from which its precision, recall and F1 follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Texts or words for which the label is predicted and true.
    pub hits: u64,
    pub predicted: u64,
    pub actual: u64,
}

impl Counts {
    /// Share of predicted items that are true; 0 if none is predicted.
    pub fn precision(self) -> f64 {
        ratio(self.hits, self.predicted)
    }

    /// Share of true items that are predicted; 0 if none is true.
    pub fn recall(self) -> f64 {
        ratio(self.hits, self.actual)
    }

    /// Harmonic mean of precision and recall; 0 if nothing is predicted or true.
    pub fn f1(self) -> f64 {
        ratio(2 * self.hits, self.predicted + self.actual)
    }

    /// The sum over several labels.
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

/// Counts of each of `labels` labels in pairs of sets: the true and the predicted labels of a text.
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

/// Mean F1 over labels. If a text has one label, those that are neither predicted nor true are left out.
pub(super) fn macro_f1(all: &[Counts], any_number: bool) -> f64 {
    let present = all.iter().filter(|one| any_number || one.predicted + one.actual > 0);
    let (count, sum) = present.fold((0_u64, 0.0), |(count, sum), one| (count + 1, sum + one.f1()));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Matthews' correlation coefficient of texts with one label each (Gorodkin 2004 for more than two labels); 0 if all texts
/// have the same true or the same predicted label.
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
                for (name, got) in scores {
                    let want = case[name].as_f64().unwrap();
                    // The last digit depends on the order of a sum.
                    assert!((got - want).abs() < 1e-15, "{kind} {name}: {got} {want}");
                }
            }
        }
    }
}
