//! A vocabulary that is released privately apart from any training.

use std::fs;
use std::path::Path;

use accountant::{Bounds, Delta, NeighboringRelation};
use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::{CountOptions, UnitItems};
use dp_tokenizer::release::{ReleaseConfig, release_items};
use mechanisms::{OsRng, PrivacyUnit, ReleaseMethod, Words};

use super::common::Outcome;
use super::corpus::vocabulary_of;

/// Probability that a word of one unit alone is released, and failure probability of ε.
const DELTAS: (f64, f64) = (1e-6, 1e-5);

/// A vocabulary of a text, in `file`.
pub struct Vocabulary {
    pub text: &'static str,
    pub file: String,
    pub noise_multiplier: f64,
}

impl Vocabulary {
    /// Releases the words and writes the vocabulary, unless it is there. Returns ε.
    pub fn write(&self, folder: &Path) -> Outcome<Bounds> {
        let config = ReleaseConfig::new(ReleaseMethod::Pooled, self.noise_multiplier, DELTAS.0)?;
        let path = folder.join(&self.file);
        if !path.exists() {
            let text = Source::files([folder.join(self.text)]);
            let items =
                UnitItems::read(&text, PrivacyUnit::Record, Words::ByClass, &CountOptions::default())?;
            let words = release_items(&items, &config, &OsRng::new()?)?.words;
            fs::write(path, vocabulary_of(&words)?)?;
        }
        let relation = NeighboringRelation::AddOrRemoveOne;
        Ok(accountant::epsilon(&config.event(), Delta::new(DELTAS.1)?, relation)?)
    }
}
