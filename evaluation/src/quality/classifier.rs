//! A classifier of texts: multinomial naive Bayes on words and pairs of words, with one added to each count (McCallum &
//! Nigam 1998).

use std::collections::{BTreeMap, HashMap, HashSet};

#[derive(Default)]
struct OfLabel {
    records: u64,
    features: u64,
    counts: HashMap<String, u64>,
}

/// A trained classifier.
pub(super) struct NaiveBayes {
    labels: BTreeMap<String, OfLabel>,
    records: u64,
    /// All words and pairs of words.
    vocabulary: HashSet<String>,
}

/// Returns the words, and the pairs of neighbouring words.
fn features(words: &[String]) -> impl Iterator<Item = String> {
    words.iter().cloned().chain(words.windows(2).map(|pair| pair.join(" ")))
}

impl NaiveBayes {
    /// Counts the words of records with their labels.
    pub fn train<'a>(records: impl Iterator<Item = (&'a [String], &'a str)>) -> Self {
        let mut trained = Self { labels: BTreeMap::new(), records: 0, vocabulary: HashSet::new() };
        for (words, label) in records {
            trained.records += 1;
            let own = trained.labels.entry(label.to_owned()).or_default();
            own.records += 1;
            for feature in features(words) {
                trained.vocabulary.insert(feature.clone());
                *own.counts.entry(feature).or_insert(0) += 1;
                own.features += 1;
            }
        }
        trained
    }

    /// Returns the likeliest label, and the first by name among equals.
    pub fn label(&self, words: &[String]) -> &str {
        let known: Vec<String> =
            features(words).filter(|feature| self.vocabulary.contains(feature)).collect();
        let size = self.vocabulary.len() as f64;
        let log_likelihood = |own: &OfLabel| {
            let all = own.features as f64 + size;
            let of =
                |feature: &String| ((own.counts.get(feature).copied().unwrap_or(0) + 1) as f64 / all).ln();
            (own.records as f64 / self.records as f64).ln() + known.iter().map(of).sum::<f64>()
        };
        let scored = self.labels.iter().map(|(label, own)| (label.as_str(), log_likelihood(own)));
        let best = scored.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map_or("", |(label, _)| label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: by hand. With one record each of {a, b} and {b}, and a vocabulary of a, b and "a b",
    /// the text "b" has the log likelihoods ln ½ + ln 2/6 and ln ½ + ln 2/4.
    #[test]
    fn the_likeliest_label_wins_and_unknown_words_say_nothing() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (first, second) = (words("a b"), words("b"));
        let trained = NaiveBayes::train([(first.as_slice(), "x"), (second.as_slice(), "y")].into_iter());
        assert_eq!((trained.label(&words("b")), trained.label(&words("a"))), ("y", "x"));
        assert_eq!(trained.label(&words("z")), "x");
        assert_eq!(trained.label(&words("z b")), "y");
    }
}
