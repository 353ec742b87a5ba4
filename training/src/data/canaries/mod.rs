//! Canaries: public sequences of tokens that are planted in the training text, to measure how much
//! of them a model memorizes.

mod secrets;

use std::fmt;

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde::{Deserialize, Serialize};

use super::{Dataset, WindowSpec};
pub use secrets::Secret;
pub use secrets::{Occurrences, Pattern, Secrets};

/// Canaries that are planted in the training text of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Planting {
    /// Number of windows of random tokens. Each window is a unit of its own, planted if a fair coin
    /// says so.
    Windows(u32),
    /// Windows of a single, repeated token that no text contains. Each window is a unit of its own, planted if a fair
    /// coin says so.
    NewTokens {
        /// Number of canaries, and of tokens that the model's vocabulary grows by.
        new_tokens: u32,
    },
    /// Sequences with a secret token. Each is planted as often as its level says.
    Secrets(Box<Secrets>),
}

impl Planting {
    /// Returns whether sequences are inserted into units, instead of being units of their own.
    pub(crate) fn is_inserted(&self) -> bool {
        match self {
            Self::Secrets(secrets) => matches!(secrets.occurrences, Occurrences::Probabilities(_)),
            Self::Windows(_) | Self::NewTokens { .. } => false,
        }
    }

    /// Returns the number of tokens by which the model's vocabulary grows.
    pub fn added_tokens(&self) -> usize {
        match self {
            Self::NewTokens { new_tokens } => *new_tokens as usize,
            Self::Windows(_) | Self::Secrets(_) => 0,
        }
    }

    /// Returns the largest number of units that are invented.
    pub(crate) fn units(&self) -> u64 {
        match self {
            Self::Windows(count) | Self::NewTokens { new_tokens: count } => u64::from(*count),
            Self::Secrets(secrets) => secrets.units(),
        }
    }

    /// Returns the certificate's sentence about the canaries.
    pub(crate) fn statement(&self, sampling: plan::Sampling) -> String {
        let planted = match self {
            _ if self.is_inserted() => {
                "invented sequences of tokens were inserted into units of the private text".to_owned()
            }
            _ if sampling.needs_exact_units() => {
                format!("up to {} invented units took the place of units of the private text", self.units())
            }
            _ => format!("up to {} invented units were added to the private text", self.units()),
        };
        format!("The canaries: this run is an audit, and {planted}. They are public.")
    }
}

/// Formats the canaries as arguments of the command line, with a blank at the end.
impl fmt::Display for Planting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windows(count) => write!(f, "audit --canaries {count} "),
            Self::NewTokens { new_tokens } => write!(f, "audit --canaries {new_tokens} --new-tokens "),
            Self::Secrets(secrets) => write!(f, "exposure {secrets} "),
        }
    }
}

/// The tokens that canaries are made of.
#[derive(Clone, Debug)]
pub struct CanaryTokens {
    /// Size of the tokenizer's vocabulary.
    pub vocab_size: usize,
    /// The tokens that represent text. Special tokens are left out.
    pub of_text: Vec<u32>,
}

/// The canaries of a run. They are public, but the guesser of the coins must not have read them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canaries {
    /// The canaries that are planted.
    pub planting: Planting,
    /// Seed of tokens and coins.
    pub seed: u64,
}

impl Canaries {
    /// Returns the secrets, drawn from `tokens`, if secrets are planted.
    pub fn secrets(&self, tokens: &[u32]) -> Option<(&Secrets, Vec<Secret>)> {
        match &self.planting {
            Planting::Secrets(secrets) => Some((secrets, secrets.draw(self.seed, tokens))),
            Planting::Windows(_) | Planting::NewTokens { .. } => None,
        }
    }

    /// Returns the number of windows, each of which is planted if a coin says so.
    fn count(&self) -> u32 {
        match self.planting {
            Planting::Windows(count) | Planting::NewTokens { new_tokens: count } => count,
            Planting::Secrets(_) => 0,
        }
    }

    /// Returns one window for each canary, as long as the run's longest windows. Its tokens are
    /// drawn uniformly, or are one token beyond the vocabulary.
    pub fn windows(&self, vocab_size: usize, spec: WindowSpec) -> Vec<Vec<u32>> {
        let rng = TestRng::from_seed(self.seed);
        let length = spec.length + usize::from(spec.overlaps);
        let window = |index| {
            if let Planting::NewTokens { .. } = self.planting {
                return vec![vocab_size as u32 + index; length];
            }
            let mut tokens = rng.stream(Purpose::Audit, u64::from(index), 1);
            (0..length).map(|_| tokens.below(vocab_size as u64) as u32).collect()
        };
        (0..self.count()).map(window).collect()
    }

    /// Returns whether each canary is planted, as decided by fair coins.
    pub fn planted(&self) -> Vec<bool> {
        let mut coins = TestRng::from_seed(self.seed).stream(Purpose::Audit, 0, 2);
        (0..self.count()).map(|_| coins.below(2) == 1).collect()
    }

    /// Plants the canaries in the plan's units.
    ///
    /// If the number of units is public, invented units replace the last ones, and a unit without
    /// tokens stands for a canary that is left out: each coin decides about the contribution of one
    /// unit. Otherwise invented units are added, and no unit stands for a canary that is left out.
    pub(crate) fn plant(
        &self,
        mut dataset: Dataset,
        sampling: plan::Sampling,
        tokens: &CanaryTokens,
        spec: WindowSpec,
    ) -> Dataset {
        let mut units = match &self.planting {
            Planting::Windows(_) | Planting::NewTokens { .. } => {
                let windows = self.windows(tokens.vocab_size, spec).into_iter().zip(self.planted());
                windows.map(|(window, planted)| if planted { window } else { Vec::new() }).collect()
            }
            Planting::Secrets(secrets) => {
                let drawn = secrets.draw(self.seed, &tokens.of_text);
                if let Occurrences::Probabilities(_) = secrets.occurrences {
                    return dataset.with_tokens(|unit| {
                        let slots = Secrets::slots(self.seed, unit, spec, drawn.len());
                        secrets.inserted(&drawn, &slots, unit, None).0
                    });
                }
                secrets.copies(&drawn, spec)
            }
        };
        if sampling.needs_exact_units() {
            dataset.replace_units(&units);
        } else {
            units.retain(|unit| !unit.is_empty());
            dataset.add_units(&units);
        }
        dataset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Binomial(2000, ½) is outside 1000 ± 110 with a probability below 1e-6.
    #[test]
    fn about_half_are_planted_and_each_is_another_window() {
        let canaries = Canaries { planting: Planting::Windows(2000), seed: 9 };
        let planted = canaries.planted().into_iter().filter(|planted| *planted).count();
        assert!(planted.abs_diff(1000) < 110, "{planted}");
        let spec = WindowSpec { bos: 0, eos: 0, length: 8, overlaps: true, marks_pieces: false };
        let mut windows = canaries.windows(50, spec);
        assert!(windows.iter().all(|window| window.len() == 9 && window.iter().all(|&token| token < 50)));
        windows.sort();
        windows.dedup();
        assert_eq!(windows.len(), 2000);
    }

    /// The gradient of a token that no text contains tells its canary from all others.
    #[test]
    fn each_new_token_is_beyond_the_vocabulary_and_of_one_canary_alone() {
        let canaries = Canaries { planting: Planting::NewTokens { new_tokens: 3 }, seed: 9 };
        let spec = WindowSpec { bos: 0, eos: 0, length: 4, overlaps: false, marks_pieces: false };
        assert_eq!(canaries.windows(50, spec), [vec![50; 4], vec![51; 4], vec![52; 4]]);
        let text = serde_json::to_string(&canaries).unwrap();
        assert_eq!(serde_json::from_str::<Canaries>(&text).unwrap(), canaries);
    }

    /// If the number of units is public, coins change the contributions and not the number.
    #[test]
    fn canaries_take_the_place_of_units_where_their_number_is_public() {
        let canaries = Canaries { planting: Planting::Windows(40), seed: 9 };
        let spec = WindowSpec { bos: 0, eos: 0, length: 4, overlaps: true, marks_pieces: false };
        let tokens = CanaryTokens { vocab_size: 50, of_text: (1..50).collect() };
        let planted = canaries.planted().into_iter().filter(|planted| *planted).count();
        for (sampling, units) in [(plan::Sampling::Shuffle, 100), (plan::Sampling::Poisson, 100 + planted)] {
            let mut text = Dataset::encode(&[], &tokenizer(), spec);
            text.add_units(&vec![vec![0, 1, 2]; 100]);
            let dataset = canaries.plant(text, sampling, &tokens, spec);
            assert_eq!(dataset.units(), units);
            let contribute = (0..units).filter(|&unit| dataset.windows_of(unit) > 0).count();
            assert_eq!(
                contribute,
                units - 40 * usize::from(units == 100) + planted * usize::from(units == 100)
            );
        }
    }

    fn tokenizer() -> tokenizer::Tokenizer {
        let words = [("\u{2581}a".to_owned(), 1.0)];
        let config = dp_tokenizer::train::UnigramConfig { vocab_size: 380, ..Default::default() };
        dp_tokenizer::train::unigram(&words, &config).unwrap().tokenizer
    }
}
