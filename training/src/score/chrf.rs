//! chrF: the F-score of character runs, in which recall counts twice as much as precision.

use std::hash::Hash;

use super::{VERSION, is_space, matches, ngrams};

/// Largest number of characters of a run.
const CHARACTERS: usize = 6;
/// Weight of recall relative to precision.
const BETA: f64 = 2.0;

/// The chrF of a corpus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chrf {
    /// Score from 0 to 100.
    pub score: f64,
    /// Largest number of words of a run: 0 for chrF2, 2 for chrF2++.
    pub words: usize,
}

/// Counts of runs of one length: those of hypotheses, those of references, and those that both
/// share.
#[derive(Clone, Copy, Default)]
struct Counts {
    hypothesis: u64,
    reference: u64,
    shared: u64,
}

/// Returns the chrF of a corpus, with runs of up to `words` words beside those of characters: 0 for chrF2, 2 for
/// chrF2++.
#[must_use]
pub fn chrf<S: AsRef<str>>(hypotheses: &[S], references: &[S], words: usize) -> Chrf {
    let mut counts = vec![Counts::default(); CHARACTERS + words];
    for (hypothesis, reference) in hypotheses.iter().zip(references) {
        let texts = [hypothesis.as_ref(), reference.as_ref()];
        let characters = texts.map(|text| text.chars().filter(|&c| !is_space(c)).collect::<Vec<char>>());
        let (of_characters, of_words) = counts.split_at_mut(CHARACTERS);
        count(of_characters, &characters);
        count(of_words, &texts.map(self::words));
    }
    Chrf { score: score(&counts), words }
}

/// Adds the runs of one pair of texts.
fn count<T: Hash + Eq>(counts: &mut [Counts], texts: &[Vec<T>; 2]) {
    for (n, counts) in (1..).zip(counts) {
        let [ours, theirs] = texts.each_ref().map(|items| ngrams(items, n));
        // If the reference is too short for any run, the hypothesis's runs do not count.
        counts.hypothesis += if theirs.is_empty() { 0 } else { ours.values().sum() };
        counts.reference += theirs.values().sum::<u64>();
        counts.shared += matches(&ours, &theirs);
    }
}

/// Cuts a text into words, with one punctuation mark at the end, or else at the beginning, cut off.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        let mut characters = word.char_indices();
        match (characters.next(), characters.next_back()) {
            (_, Some((at, last))) if last.is_ascii_punctuation() => words.extend([&word[..at], &word[at..]]),
            (Some((_, first)), Some(_)) if first.is_ascii_punctuation() => {
                words.extend([&word[..1], &word[1..]])
            }
            _ => words.push(word),
        }
    }
    words
}

fn score(counts: &[Counts]) -> f64 {
    let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0);
    for counts in counts.iter().filter(|counts| counts.hypothesis > 0 && counts.reference > 0) {
        precision += counts.shared as f64 / counts.hypothesis as f64;
        recall += counts.shared as f64 / counts.reference as f64;
        orders += 1.0;
    }
    if precision + recall <= 0.0 {
        return 0.0;
    }
    (precision, recall) = (precision / orders, recall / orders);
    let factor = BETA * BETA;
    100.0 * ((1.0 + factor) * precision * recall / (factor * precision + recall))
}

impl Chrf {
    /// Returns the settings, as sacreBLEU writes them.
    #[must_use]
    pub fn signature(&self) -> String {
        format!("nrefs:1|case:mixed|eff:yes|nc:{CHARACTERS}|nw:{}|space:no|version:{VERSION}", self.words)
    }
}
