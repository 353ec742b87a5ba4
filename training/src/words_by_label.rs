//! Estimates from released counts how much more often texts with a label contain a word than other texts do.

use crate::token_frequencies::ReleasedWords;

/// A label whose words were counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelWords {
    pub label: String,
    /// Share of the texts that have this label.
    pub share: f64,
    /// For each word, its share among the words of this label's texts, relative to its share among all words. The last
    /// factor is that of the end of a text. Words beyond, which were not found, count as if they had a factor of 1.
    pub factors: Vec<f64>,
}

/// A small count that is added to both sides of each ratio of a found and an expected count.
const PRIOR: f64 = 0.1;

/// Returns the share and word factors of each label. A count that was not released is estimated from what the found
/// ones leave.
pub(crate) fn label_words(words: &ReleasedWords, labels: &[String]) -> Vec<LabelWords> {
    let end = words.words.len();
    let mut found = vec![vec![None; end + 1]; labels.len()];
    for (label, word, count) in &words.by_label {
        if let Some(place) = labels.iter().position(|one| one == label.trim()) {
            found[place][*word] = Some(*count);
        }
    }
    let rarest = found.iter().filter_map(|of| of[end]).fold(f64::INFINITY, f64::min);
    let texts = |of: &Vec<Option<f64>>| of[end].unwrap_or(if rarest.is_finite() { rarest } else { 1.0 });
    let texts: Vec<f64> = found.iter().map(texts).collect();
    let all_texts: f64 = texts.iter().sum();
    let mut counts = vec![vec![0.0; end + 1]; labels.len()];
    for word in 0..=end {
        let of_found: f64 = found.iter().filter_map(|of| of[word]).sum();
        let missing: f64 =
            found.iter().zip(&texts).filter(|(of, _)| of[word].is_none()).map(|(_, n)| n).sum();
        let all = words.words.get(word).map_or(all_texts, |word| word.1);
        let rest = (all - of_found).max(0.0);
        for ((counts, found), texts) in counts.iter_mut().zip(&found).zip(&texts) {
            counts[word] = found[word].unwrap_or(rest * texts / missing);
        }
    }
    let sums: Vec<f64> = counts.iter().map(|of| of.iter().sum()).collect();
    let total: f64 = sums.iter().sum();
    let by_word: Vec<f64> = (0..=end).map(|word| counts.iter().map(|of| of[word]).sum()).collect();
    let of_label = |((label, counts), (sum, texts)): ((&String, &Vec<f64>), (&f64, &f64))| {
        let expected = by_word.iter().map(|of_word| sum / total * of_word);
        let factors =
            counts.iter().zip(expected).map(|(count, expected)| (count + PRIOR) / (expected + PRIOR));
        LabelWords { label: label.clone(), share: texts / all_texts, factors: factors.collect() }
    };
    labels.iter().zip(&counts).zip(sums.iter().zip(&texts)).map(of_label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.01 * b
    }

    /// By hand: 40 and 60 texts; "good" is only in the first, "bad" only in the second where it was found, and "it" in both alike.
    #[test]
    fn a_word_is_as_frequent_beside_a_label_as_the_counts_say() {
        let words =
            ["good", "bad", "it"].map(str::to_owned).into_iter().zip([2000.0, 3000.0, 5000.0]).collect();
        let rows = [("joy", 0, 2000.0), ("anger", 1, 3000.0), ("joy", 3, 400.0), ("anger", 3, 600.0)];
        let by_label = rows.map(|(label, word, count)| (label.to_owned(), word, count)).to_vec();
        let mut released = ReleasedWords::new(words, Vec::new());
        released.by_label = by_label;
        let labels = ["joy", "anger"].map(str::to_owned);
        let [joy, anger] = label_words(&released, &labels).try_into().unwrap();
        assert_eq!((joy.label.as_str(), joy.share, anger.share), ("joy", 0.4, 0.6));
        // Words of joy: 2,000 and 40 % of 5,000, and 400 ends: 4,400 of 11,000.
        assert!(close(joy.factors[0], 2.5) && close(anger.factors[1], 1.0 / 0.6), "{joy:?} {anger:?}");
        assert!(joy.factors[1] < 1e-3 && anger.factors[0] < 1e-3, "{joy:?} {anger:?}");
        assert!([joy.factors[2], anger.factors[2], joy.factors[3]].iter().all(|factor| close(*factor, 1.0)));
    }

    #[test]
    fn labels_that_the_plan_does_not_list_draw_no_texts() {
        let mut words = ReleasedWords::new(vec![("it".to_owned(), 10.0)], Vec::new());
        let labels = ["joy", "anger"].map(str::to_owned);
        let listed = label_words(&words, &labels);
        words.by_label = vec![("secret".to_owned(), 0, 9.0), ("secret".to_owned(), 1, 9.0)];
        assert_eq!(label_words(&words, &labels), listed);
    }

    #[test]
    fn without_counts_labels_are_alike() {
        let words = ReleasedWords::new(vec![("it".to_owned(), 10.0)], Vec::new());
        let labels = ["joy", "anger"].map(str::to_owned);
        for of in label_words(&words, &labels) {
            assert_eq!((of.share, of.factors), (0.5, vec![1.0, 1.0]));
        }
    }
}
