//! The token dataset: units, the windows each owns, and the sample of a step.
//!
//! A unit's text is its tokens in order, with the end-of-text token after each whole record. It is cut into windows as
//! the objective says ([`Cut`]). A window belongs to one unit. For next-token prediction each token is a target in at
//! most one window, and a window begins with the last token of the one before it, which is the same unit's, or with
//! the end-of-text token; for the other objectives windows are disjoint. A unit that takes part
//! in a step contributes exactly one of its windows, so its gradient is clipped once and the step's sensitivity is the
//! clip norm, however long the unit is.
//!
//! The dataset lives in memory alone: no private token is written to the run folder.

mod corpus;
mod sampler;

use dp_tokenizer::Tokenizer;
use mechanisms::{PrivacyRng, Purpose};

pub use corpus::{Part, Units, read_evaluation, read_public_file, read_units};
pub use sampler::Sampler;

use crate::telemetry::Private;

/// How a unit's tokens are cut into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The end-of-text token.
    pub eos: u32,
    /// Tokens of a window that are its own.
    pub length: usize,
    /// Whether a window also has the token before its own, which the first of its own is predicted from.
    pub carries_over: bool,
}

/// Windows of tokens by unit.
pub struct Dataset {
    tokens: Vec<u32>,
    /// Where each unit's tokens begin; one more entry than units.
    starts: Vec<usize>,
    cut: Cut,
}

impl Dataset {
    /// Encodes parts of units, given in any order of units.
    #[must_use]
    pub fn encode(parts: &[Part], tokenizer: &Tokenizer, cut: Cut) -> Self {
        let mut order: Vec<&Part> = parts.iter().collect();
        // Stable: a user's records stay in the corpus's order.
        order.sort_by_key(|part| part.piece.unit);
        let mut dataset = Self { tokens: Vec::new(), starts: Vec::new(), cut };
        let mut unit = None;
        for part in order {
            if unit != Some(part.piece.unit) {
                unit = Some(part.piece.unit);
                dataset.starts.push(dataset.tokens.len());
            }
            let at_start = dataset.starts.last() == Some(&dataset.tokens.len());
            // A user's second record follows the end-of-text token of the first.
            if part.begins_record && at_start && cut.carries_over {
                dataset.tokens.push(cut.eos);
            }
            dataset.tokens.extend(tokenizer.encode(&part.piece.text));
            if part.ends_record {
                dataset.tokens.push(cut.eos);
            }
        }
        dataset.starts.push(dataset.tokens.len());
        dataset
    }

    /// Adds units of one window each.
    pub fn plant(&mut self, windows: &[Vec<u32>]) {
        for window in windows {
            self.tokens.extend(window);
            self.starts.push(self.tokens.len());
        }
    }

    /// Number of units. Private where the text is.
    #[must_use]
    pub fn units(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of windows of a unit.
    #[must_use]
    pub fn windows_of(&self, unit: usize) -> usize {
        let tokens = self.starts[unit + 1] - self.starts[unit];
        tokens.saturating_sub(usize::from(self.cut.carries_over)).div_ceil(self.cut.length)
    }

    /// One window of a unit: at most as many tokens as are its own, and the one carried over.
    #[must_use]
    pub fn window(&self, unit: usize, window: usize) -> &[u32] {
        let tokens = &self.tokens[self.starts[unit]..self.starts[unit + 1]];
        let begin = window * self.cut.length;
        let end = begin + self.cut.length + usize::from(self.cut.carries_over);
        &tokens[begin..end.min(tokens.len())]
    }

    /// Every window, in order.
    #[must_use]
    pub fn all_windows(&self) -> Vec<Vec<u32>> {
        (0..self.units())
            .flat_map(|unit| (0..self.windows_of(unit)).map(move |window| self.window(unit, window).to_vec()))
            .collect()
    }

    /// The lot of a step: one window of each drawn unit, chosen uniformly, beside the unit. It may be empty; its size
    /// is private.
    #[must_use]
    pub fn lot(
        &self,
        drawn: &Private<Vec<u64>>,
        step: u64,
        rng: &impl PrivacyRng,
    ) -> Private<Vec<(u64, Vec<u32>)>> {
        let mut choices = rng.stream(Purpose::Window, step, 0);
        let lot = drawn
            .for_mechanism()
            .iter()
            .filter_map(|&drawn| {
                let unit = drawn as usize;
                let windows = self.windows_of(unit);
                // A unit without a target contributes nothing.
                let window = (windows > 0).then(|| choices.below(windows as u64) as usize)?;
                Some((drawn, self.window(unit, window).to_vec()))
            })
            .collect();
        Private::new(lot)
    }
}

#[cfg(test)]
mod tests;
