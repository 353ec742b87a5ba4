//! Distances between two sets of texts, and the diversity of one set.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// Counts the occurrences of each item, in the order of the items.
pub(super) fn counts<T: Ord>(items: impl Iterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    counts
}

/// Returns the runs of `n` words in all texts.
fn runs(texts: &[Vec<String>], n: usize) -> impl Iterator<Item = &[String]> {
    texts.iter().flat_map(move |text| text.windows(n))
}

/// Returns the Jensen–Shannon divergence of the runs of `n` words of two sets, in bits: 0 for equal shares, 1 for sets
/// that share no run.
pub(super) fn divergence(one: &[Vec<String>], other: &[Vec<String>], n: usize) -> f64 {
    let [p, q] = [one, other].map(|texts| counts(runs(texts, n)));
    let [p_all, q_all] = [&p, &q].map(|counts| counts.values().sum::<u64>() as f64);
    let term = |share: f64, mean: f64| if share > 0.0 { share * (share / mean).log2() } else { 0.0 };
    let mut sum = 0.0;
    for (run, count) in &p {
        let (p, q) = (*count as f64 / p_all, q.get(run).map_or(0.0, |count| *count as f64 / q_all));
        sum += 0.5 * (term(p, 0.5 * (p + q)) + term(q, 0.5 * (p + q)));
    }
    // For runs that only the other set has, the share in the mean is half of their share in that
    // set.
    sum + q
        .iter()
        .filter(|(run, _)| !p.contains_key(*run))
        .map(|(_, count)| 0.5 * *count as f64 / q_all)
        .sum::<f64>()
}

/// Returns the largest difference between the shares of texts of at most L words, over all L.
pub(super) fn length_distance(one: &[Vec<String>], other: &[Vec<String>]) -> f64 {
    let [mut one, mut other] = [one, other].map(|texts| texts.iter().map(Vec::len).collect::<Vec<_>>());
    one.sort_unstable();
    other.sort_unstable();
    let share = |lengths: &[usize], most: usize| {
        lengths.partition_point(|length| *length <= most) as f64 / lengths.len() as f64
    };
    one.iter().chain(&other).map(|most| (share(&one, *most) - share(&other, *most)).abs()).fold(0.0, f64::max)
}

/// Returns half of the sum of differences between the shares of labels.
pub(super) fn total_variation(one: &[String], other: &[String]) -> f64 {
    let [p, q] = [one, other].map(|labels| counts(labels.iter()));
    let labels: BTreeSet<&String> = one.iter().chain(other).collect();
    let share = |count: Option<&u64>, all: usize| count.map_or(0.0, |count| *count as f64 / all as f64);
    let difference =
        |label: &String| (share(p.get(label), one.len()) - share(q.get(label), other.len())).abs();
    0.5 * labels.into_iter().map(difference).sum::<f64>()
}

/// Returns the number of distinct runs of `n` words divided by the number of all runs (Li et al.
/// 2016, <https://arxiv.org/abs/1510.03055>).
pub(super) fn distinct(texts: &[Vec<String>], n: usize) -> f64 {
    let counts = counts(runs(texts, n));
    let all: u64 = counts.values().sum();
    if all == 0 { 0.0 } else { counts.len() as f64 / all as f64 }
}

/// Returns the BLEU of each text against all others, over all texts and without a brevity penalty:
/// 1 if each text occurs twice (Zhu et al. 2018, <https://arxiv.org/abs/1802.01886>).
pub(super) fn self_bleu(texts: &[Vec<String>]) -> f64 {
    let precision = |n: usize| {
        let each: Vec<HashMap<&[String], u64>> = texts.iter().map(|text| counted(text.windows(n))).collect();
        // For each run, its largest count in any text with the index of that text, and the largest count in another
        // text.
        let mut most: HashMap<&[String], [(u64, usize); 2]> = HashMap::new();
        for (at, counts) in each.iter().enumerate() {
            for (run, count) in counts {
                let largest = most.entry(run).or_insert([(0, usize::MAX); 2]);
                if *count > largest[0].0 {
                    *largest = [(*count, at), largest[0]];
                } else if *count > largest[1].0 {
                    largest[1] = (*count, at);
                }
            }
        }
        let of_others = |run: &&[String], at: usize| match most[*run] {
            [(_, text), (second, _)] if text == at => second,
            [(first, _), _] => first,
        };
        let (mut matched, mut all) = (0, 0);
        for (at, counts) in each.iter().enumerate() {
            matched += counts.iter().map(|(run, count)| (*count).min(of_others(run, at))).sum::<u64>();
            all += counts.values().sum::<u64>();
        }
        if all == 0 { 0.0 } else { matched as f64 / all as f64 }
    };
    let precisions: Vec<f64> = (1..=4).map(precision).collect();
    if precisions.contains(&0.0) { 0.0 } else { precisions.iter().map(|p| p.ln() / 4.0).sum::<f64>().exp() }
}

fn counted<T: Hash + Eq>(items: impl Iterator<Item = T>) -> HashMap<T, u64> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<Vec<String>> {
        texts.iter().map(|text| text.split(' ').map(str::to_owned).collect()).collect()
    }

    /// Oracle: `scipy.spatial.distance.jensenshannon(p, q, base=2) ** 2`, and hand counts.
    #[test]
    fn distances_are_those_of_their_definitions() {
        let (one, other) = (texts(&["a a b", "b c"]), texts(&["a b", "d"]));
        // Shares 2/5 2/5 1/5 0 and 1/3 1/3 0 1/3.
        assert!(
            (divergence(&one, &other, 1) - 0.271_044_511_583_565_1).abs() < 1e-12,
            "{}",
            divergence(&one, &other, 1)
        );
        assert_eq!(divergence(&one, &one, 2), 0.0);
        assert_eq!(divergence(&texts(&["a b"]), &texts(&["c d e"]), 2), 1.0);
        assert_eq!(length_distance(&one, &other), 0.5);
        assert_eq!(distinct(&one, 1), 3.0 / 5.0);
        let labels = |list: &[&str]| list.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>();
        assert!((total_variation(&labels(&["a", "a", "b"]), &labels(&["a", "c"])) - 0.5).abs() < 1e-12);
        assert_eq!(self_bleu(&texts(&["a b c d e", "a b c d e"])), 1.0);
        assert_eq!(self_bleu(&texts(&["a b c d e", "f g h i j"])), 0.0);
        // Precisions 10/12, 8/10, 6/8, 4/6: the last words differ.
        let near = self_bleu(&texts(&["a b c d e f", "a b c d e g"]));
        assert!((near - (10.0 / 12.0 * 0.8 * 0.75 * (4.0_f64 / 6.0)).powf(0.25)).abs() < 1e-12, "{near}");
    }
}
