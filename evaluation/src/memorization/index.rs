//! Near-duplicates among texts: hashing finds candidates, and the similarity of each candidate decides.
//!
//! # References
//! Broder 1997 (MinHash); Indyk & Motwani 1998 (locality-sensitive hashing); runs of five words as Lee et al. 2021,
//! <https://arxiv.org/abs/2107.06499>, appendix A.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of words of a run.
const RUN: usize = 5;
/// Number of bands in which signatures are compared. With a Jaccard similarity of 0.8, two texts
/// share no band with probability 5e-8; with 0.5, with probability 13 %.
const BANDS: usize = 32;
/// Number of minima in a band.
const BAND_ROWS: usize = 4;

/// An index of texts by their runs of five words.
///
/// # Guarantee
/// A text that is found is similar, because its Jaccard similarity is computed from 64-bit hashes of the runs
/// themselves. A similar text is missed with the probability given at `BANDS`.
#[derive(Debug)]
pub(crate) struct NearDuplicates {
    /// Jaccard similarity from which two texts are near-duplicates.
    similarity: f64,
    texts: Vec<Runs>,
    /// For each band, the texts with each value.
    bands: Vec<HashMap<u64, Vec<usize>>>,
}

/// Hashes of the runs of a text: sorted, each once.
#[derive(Debug)]
struct Runs(Vec<u64>);

impl NearDuplicates {
    /// Indexes texts.
    pub fn new<S: AsRef<str>>(texts: &[S], similarity: f64) -> Self {
        let mut index = Self { similarity, texts: Vec::new(), bands: vec![HashMap::new(); BANDS] };
        for (at, text) in texts.iter().enumerate() {
            let runs = Runs::of(text.as_ref());
            for (band, value) in index.bands.iter_mut().zip(runs.bands()) {
                band.entry(value).or_default().push(at);
            }
            index.texts.push(runs);
        }
        index
    }

    /// Returns whether the index has a near-duplicate of a text, other than the text at index `except`. A text without
    /// words has none.
    pub(crate) fn has_near(&self, text: &str, except: Option<usize>) -> bool {
        let runs = Runs::of(text);
        let mut compared = HashSet::new();
        let candidates = self.bands.iter().zip(runs.bands()).filter_map(|(band, value)| band.get(&value));
        candidates.flatten().any(|&at| {
            Some(at) != except && compared.insert(at) && runs.similarity(&self.texts[at]) >= self.similarity
        })
    }
}

impl Runs {
    fn of(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return Self(Vec::new());
        }
        // A text of fewer words is a single run.
        let mut runs: Vec<u64> = words.windows(RUN.min(words.len())).map(hash).collect();
        runs.sort_unstable();
        runs.dedup();
        Self(runs)
    }

    /// Returns the value of each band of the text's signature; none for a text without words.
    fn bands(&self) -> Vec<u64> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let minimum = |function: u64| {
            // An odd factor and a shift make each function a permutation of the hashes.
            let salt = mix(function.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            self.0.iter().map(|&run| mix(run ^ salt)).min()
        };
        let minima: Vec<Option<u64>> = (1..=(BANDS * BAND_ROWS) as u64).map(minimum).collect();
        minima.chunks_exact(BAND_ROWS).map(hash).collect()
    }

    /// Returns the Jaccard similarity: the share of common runs among the runs of both texts.
    fn similarity(&self, other: &Self) -> f64 {
        let (mut a, mut b, mut shared) = (self.0.iter().peekable(), other.0.iter().peekable(), 0_usize);
        while let (Some(&&left), Some(&&right)) = (a.peek(), b.peek()) {
            shared += usize::from(left == right);
            if left <= right {
                a.next();
            }
            if right <= left {
                b.next();
            }
        }
        shared as f64 / (self.0.len() + other.0.len() - shared) as f64
    }
}

fn hash<T: Hash>(values: &[T]) -> u64 {
    let mut hasher = DefaultHasher::new();
    values.hash(&mut hasher);
    hasher.finish()
}

/// Permutes 64-bit numbers: the finalizer of MurmurHash3.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    use super::*;

    /// Returns 60 words, and copies in which the first `changed` words differ.
    fn texts() -> (Vec<String>, impl Fn(usize, usize) -> String) {
        let mut draws = TestRng::from_seed(9).stream(Purpose::Data, 0, 0);
        let words: Vec<Vec<String>> =
            (0..40).map(|_| (0..60).map(|_| format!("w{}", draws.below(5000))).collect()).collect();
        let changed = words.clone();
        let change = move |text: usize, count: usize| {
            let other = (0..count).map(|at| format!("other{at}"));
            other.chain(changed[text][count..].iter().cloned()).collect::<Vec<_>>().join(" ")
        };
        (words.iter().map(|words| words.join(" ")).collect(), change)
    }

    /// Oracle: of 56 runs, changing the first n words changes n: the similarity is (56 − n)/(56 + n).
    #[test]
    fn near_duplicates_are_those_above_the_similarity() {
        let (texts, change) = texts();
        let index = NearDuplicates::new(&texts, 0.8);
        for (at, text) in texts.iter().enumerate() {
            assert!(!index.has_near(text, Some(at)), "only the text itself is near");
            assert!(index.has_near(text, None));
            // 50/62 = 0.806 and 49/63 = 0.778
            assert!(index.has_near(&change(at, 6), None));
            assert!(!index.has_near(&change(at, 7), None));
        }
    }

    #[test]
    fn copies_and_short_texts_are_found_and_empty_ones_are_near_nothing() {
        let index = NearDuplicates::new(&["a b", "c d e f g h", "a  b\n", "", ""], 0.8);
        assert!(index.has_near("a b", Some(0)) && index.has_near("a b", Some(2)));
        assert!(!index.has_near("a", None) && !index.has_near("b a", None));
        assert!(!index.has_near("c d e f g h", Some(1)));
        assert!(!index.has_near("", None) && !index.has_near(" ", Some(3)));
    }
}
