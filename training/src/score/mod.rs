//! Scores of generated texts against references: BLEU and chrF, with the same values as sacreBLEU.
//!
//! # References
//! Papineni et al. 2002 (BLEU); Popović 2015 and 2017 (chrF, chrF++); Post 2018, <https://arxiv.org/abs/1804.08771>
//! (signatures), whose program is the oracle of the tests.

mod bleu;
mod chrf;
mod tokenize;

use std::collections::HashMap;
use std::fmt;

pub use bleu::{Bleu, bleu};
pub use chrf::{Chrf, chrf};
use serde::{Deserialize, Serialize};
pub use tokenize::Tokenization;

/// The version of sacreBLEU that the scores equal.
const VERSION: &str = "2.6.0";

/// A score that the command line can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// BLEU of words.
    Bleu,
    /// chrF2: F-score of characters, recall counts twice.
    Chrf,
    /// chrF2++: chrF2 with words and pairs of words.
    ChrfPlusPlus,
}

/// A score with its signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Name of the score in sacreBLEU.
    pub name: String,
    /// Score from 0 to 100.
    pub score: f64,
    /// The settings, as sacreBLEU writes them.
    pub signature: String,
    /// Parts of the score.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, score, signature, details } = self;
        write!(f, "{name}|{signature} = {score:.2}")?;
        if details.is_empty() { Ok(()) } else { write!(f, " {details}") }
    }
}

impl Metric {
    /// Computes the score of hypotheses, each against the reference at its place. BLEU cuts texts into words as
    /// `tokenization` says.
    ///
    /// # Panics
    /// If there are more hypotheses than references or the reverse.
    #[must_use]
    pub fn score<S: AsRef<str>>(
        self,
        hypotheses: &[S],
        references: &[S],
        tokenization: Tokenization,
    ) -> Score {
        assert_eq!(hypotheses.len(), references.len(), "one reference a hypothesis");
        match self {
            Self::Bleu => {
                let bleu = bleu(hypotheses, references, tokenization);
                Score {
                    name: "BLEU".to_owned(),
                    score: bleu.score,
                    signature: bleu.signature(),
                    details: bleu.details(),
                }
            }
            Self::Chrf => Self::of_chrf("chrF2", &chrf(hypotheses, references, 0)),
            Self::ChrfPlusPlus => Self::of_chrf("chrF2++", &chrf(hypotheses, references, 2)),
        }
    }

    fn of_chrf(name: &str, chrf: &Chrf) -> Score {
        Score {
            name: name.to_owned(),
            score: chrf.score,
            signature: chrf.signature(),
            details: String::new(),
        }
    }
}

/// Returns whether a character is white space for Python's `str.split`.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Counts the occurrences of each run of `n` items.
fn ngrams<T: std::hash::Hash + Eq>(items: &[T], n: usize) -> HashMap<&[T], u64> {
    let mut counts = HashMap::new();
    for run in items.windows(n) {
        *counts.entry(run).or_insert(0) += 1;
    }
    counts
}

/// Counts the runs that two texts share. Each run counts as often as it occurs in the text that has
/// it less often.
fn matches<T: std::hash::Hash + Eq>(one: &HashMap<&[T], u64>, other: &HashMap<&[T], u64>) -> u64 {
    one.iter().map(|(run, &count)| other.get(run).map_or(0, |&there| count.min(there))).sum()
}

#[cfg(test)]
mod tests;
