//! Secrets: sequences of random tokens of which one is secret and the others are hints.
//!
//! # References
//! Hoory et al. 2021, section 5.2; the secret sharer of Carlini et al. 2019, <https://arxiv.org/abs/1802.08232>.

use std::fmt;
use std::str::FromStr;

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data::WindowSpec;

/// The secrets that are planted, and their frequencies.
///
/// Each pattern has secrets for each number of occurrences, and some that occur nowhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Places of the hints and the secret in a sequence.
    pub patterns: Vec<Pattern>,
    /// Number of secrets of each pattern and each number of occurrences.
    pub each: u32,
    /// Frequencies of the secrets.
    pub occurrences: Occurrences,
}

/// Frequencies of secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occurrences {
    /// Numbers of additional units that hold a copy of the secret and nothing else.
    Copies(Vec<u32>),
    /// Probabilities with which a unit holds the secret, at a random place.
    Probabilities(Vec<f64>),
}

/// Places of hints (`H`) and the secret (`S`), such as `HHSHH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    /// Number of hints before the secret.
    before: usize,
    /// Number of hints after the secret.
    after: usize,
}

/// Largest number of tokens in a pattern.
const LONGEST: usize = 16;

impl Pattern {
    /// Returns the place of the secret in a sequence.
    pub fn place(self) -> usize {
        self.before
    }

    /// Returns the number of tokens in a sequence.
    pub fn length(self) -> usize {
        self.before + 1 + self.after
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hints_alone = |hints: &str| hints.chars().all(|c| c == 'H');
        match text.split_once('S') {
            Some((before, after))
                if hints_alone(before) && hints_alone(after) && (2..=LONGEST).contains(&text.len()) =>
            {
                Ok(Self { before: before.len(), after: after.len() })
            }
            _ => Err(format!(
                "{text:?} is no pattern; allowed: one S among 1 to {} H, such as HS, HSH or HHSHH",
                LONGEST - 1
            )),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}S{}", "H".repeat(self.before), "H".repeat(self.after))
    }
}

/// A secret among its hints.
#[derive(Clone, Debug, PartialEq)]
pub struct Secret {
    /// Index of the pattern.
    pub pattern: usize,
    /// Index among [`Secrets::levels`].
    pub level: usize,
    /// Hints and secret.
    pub tokens: Vec<u32>,
    /// Place of the secret in `tokens`.
    pub place: usize,
}

impl Secret {
    /// Returns the secret token.
    pub fn secret(&self) -> u32 {
        self.tokens[self.place]
    }

    /// Makes a record that holds the secret with its hints and nothing else, as a unit of its own.
    pub fn record(&self, spec: WindowSpec) -> Vec<u32> {
        let first = if spec.overlaps { vec![spec.bos] } else { Vec::new() };
        [first.as_slice(), &self.tokens, &[spec.eos]].concat()
    }
}

/// The place of a secret in a unit that holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// A uniform number from 0 to 1. A secret of probability p is planted if this number is below
    /// p.
    pub chance: f64,
    /// Number of the unit's tokens before the secret's sequence.
    pub gap: usize,
}

impl Slot {
    /// Returns whether the unit holds a secret that is planted with this probability.
    pub fn holds(&self, probability: f64) -> bool {
        self.chance < probability
    }
}

impl Secrets {
    /// Returns the numbers of copies or the probabilities with which secrets occur. The first level
    /// is 0: its secrets occur nowhere.
    pub fn levels(&self) -> Vec<f64> {
        let planted: Vec<f64> = match &self.occurrences {
            Occurrences::Copies(copies) => copies.iter().copied().map(f64::from).collect(),
            Occurrences::Probabilities(probabilities) => probabilities.clone(),
        };
        std::iter::once(0.0).chain(planted).collect()
    }

    /// Returns the number of units that are added.
    pub(crate) fn units(&self) -> u64 {
        let copies = match &self.occurrences {
            Occurrences::Copies(copies) => copies.iter().copied().map(u64::from).sum(),
            Occurrences::Probabilities(_) => 0,
        };
        copies * self.patterns.len() as u64 * u64::from(self.each)
    }

    /// Draws the secrets, by level, then by pattern. Hints and secrets are drawn uniformly from `tokens`.
    pub(super) fn draw(&self, seed: u64, tokens: &[u32]) -> Vec<Secret> {
        let rng = TestRng::from_seed(seed);
        let mut secrets = Vec::new();
        for level in 0..self.levels().len() {
            for (pattern, &shape) in self.patterns.iter().enumerate() {
                for _ in 0..self.each {
                    let mut draws = rng.stream(Purpose::Audit, secrets.len() as u64, 4);
                    let mut token = |_| tokens[draws.below(tokens.len() as u64) as usize];
                    let tokens = (0..shape.length()).map(&mut token).collect();
                    secrets.push(Secret { pattern, level, tokens, place: shape.before });
                }
            }
        }
        secrets
    }

    /// Returns the units of all copies. Each is a record that holds one secret with its hints.
    pub(super) fn copies(&self, drawn: &[Secret], spec: WindowSpec) -> Vec<Vec<u32>> {
        let levels = self.levels();
        let copies = |secret: &Secret| vec![secret.record(spec); levels[secret.level] as usize];
        drawn.iter().flat_map(copies).collect()
    }

    /// Returns the tokens of a unit with the secrets that are planted in it, and the place at which
    /// the hints of secret `also` begin. That secret is planted in any case.
    pub fn inserted(
        &self,
        drawn: &[Secret],
        slots: &[Slot],
        unit: &[u32],
        also: Option<usize>,
    ) -> (Vec<u32>, usize) {
        let levels = self.levels();
        let is_planted = |at: usize| also == Some(at) || slots[at].holds(levels[drawn[at].level]);
        let mut planted: Vec<usize> = (0..drawn.len()).filter(|&at| is_planted(at)).collect();
        planted.sort_by_key(|&at| slots[at].gap);
        let (mut all, mut place, mut from) = (Vec::new(), 0, 0);
        for at in planted {
            all.extend_from_slice(&unit[from..slots[at].gap]);
            from = slots[at].gap;
            if also == Some(at) {
                place = all.len();
            }
            all.extend_from_slice(&drawn[at].tokens);
        }
        all.extend_from_slice(&unit[from..]);
        (all, place)
    }

    /// Returns the place in a unit with these tokens of each of `count` secrets: before the unit's
    /// last token and, if `spec` puts the end-of-text token before a text, after its first.
    ///
    /// This depends on the unit's own tokens alone: adding or removing another unit changes nothing
    /// here, so a run with secrets keeps the guarantee of the same run without them, though the
    /// seed is public.
    pub fn slots(seed: u64, tokens: &[u32], spec: WindowSpec, count: usize) -> Vec<Slot> {
        let mut hash = Sha256::new();
        tokens.iter().for_each(|token| hash.update(token.to_le_bytes()));
        let digest = hash.finalize();
        let address = digest.iter().take(8).fold(0_u64, |word, &byte| (word << 8) | u64::from(byte));
        let mut draws = TestRng::from_seed(seed).stream(Purpose::Audit, address, 5);
        let first = usize::from(spec.overlaps).min(tokens.len());
        let gaps = (tokens.len() - first).max(1) as u64;
        let mut slot = |_| Slot { chance: draws.uniform(), gap: first + draws.below(gaps) as usize };
        (0..count).map(&mut slot).collect()
    }
}

/// Formats the secrets as options of the command line.
impl fmt::Display for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: Vec<String>| values.join(",");
        let patterns = list(self.patterns.iter().map(Pattern::to_string).collect());
        let (option, values) = match &self.occurrences {
            Occurrences::Copies(copies) => ("copies", list(copies.iter().map(u32::to_string).collect())),
            Occurrences::Probabilities(all) => {
                ("probabilities", list(all.iter().map(f64::to_string).collect()))
            }
        };
        write!(f, "--patterns {patterns} --secrets {} --{option} {values}", self.each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: WindowSpec = WindowSpec { bos: 0, eos: 0, length: 8, overlaps: true, marks_pieces: false };

    fn secrets(occurrences: Occurrences) -> Secrets {
        let patterns = ["HS", "HSH", "HHSHH"].map(|pattern| pattern.parse().unwrap()).to_vec();
        Secrets { patterns, each: 2, occurrences }
    }

    #[test]
    fn a_pattern_has_one_secret_among_its_hints() {
        let pattern: Pattern = "HHSHH".parse().unwrap();
        assert_eq!((pattern.before, pattern.after, pattern.to_string().as_str()), (2, 2, "HHSHH"));
        for bad in ["", "S", "H", "SS", "HSS", "HXS", "hs", "HHHHHHHHHHHHHHHHS"] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_level_has_secrets_of_every_pattern_and_the_first_is_planted_nowhere() {
        let secrets = secrets(Occurrences::Copies(vec![1, 10]));
        let drawn = secrets.draw(1, &[5, 6, 7]);
        assert_eq!(secrets.levels(), [0.0, 1.0, 10.0]);
        assert_eq!((drawn.len(), secrets.units()), (3 * 3 * 2, 11 * 3 * 2));
        for secret in &drawn {
            assert_eq!(secret.tokens.len(), secrets.patterns[secret.pattern].length());
            assert!(secret.place < secret.tokens.len() && secret.tokens.iter().all(|t| (5..8).contains(t)));
        }
        assert_ne!(drawn, secrets.draw(2, &[5, 6, 7]));
    }

    /// The guarantee rests on this property: what is inserted into a unit depends on that unit
    /// alone.
    #[test]
    fn slots_depend_on_the_unit_alone_and_are_uniform() {
        let slots = |tokens: &[u32]| Secrets::slots(3, tokens, SPEC, 4000);
        let (one, other) = (slots(&[9, 1, 2]), slots(&[9, 1, 3]));
        assert_eq!(one, slots(&[9, 1, 2]));
        assert_ne!(one, other);
        assert!(one.iter().all(|slot| (1..=2).contains(&slot.gap)));
        // Binomial(4000, ¼) is outside 1000 ± 135 with a probability below 1e-6.
        let below = one.iter().filter(|slot| slot.chance < 0.25).count();
        assert!(below.abs_diff(1000) < 135, "{below}");
        assert!(Secrets::slots(3, &[], SPEC, 2).iter().all(|slot| slot.gap == 0));
    }

    /// Oracle: by hand, with a unit of three tokens.
    #[test]
    fn secrets_are_inserted_whole_where_their_probability_says() {
        let secrets = secrets(Occurrences::Probabilities(vec![0.5]));
        let secret = |level, tokens: &[u32]| Secret { pattern: 0, level, tokens: tokens.to_vec(), place: 1 };
        let drawn = [secret(1, &[8, 9]), secret(1, &[6, 7]), secret(0, &[4, 5])];
        let slots = [(0.49, 2), (0.51, 1), (0.0, 1)].map(|(chance, gap)| Slot { chance, gap });
        let inserted = |also| secrets.inserted(&drawn, &slots, &[1, 2, 3], also);
        assert_eq!(inserted(None).0, [1, 2, 8, 9, 3]);
        assert_eq!(inserted(Some(0)), (vec![1, 2, 8, 9, 3], 2));
        assert_eq!(inserted(Some(2)), (vec![1, 4, 5, 2, 8, 9, 3], 1));
    }

    #[test]
    fn copies_are_units_of_their_own() {
        let secrets = secrets(Occurrences::Copies(vec![1, 10]));
        let drawn = secrets.draw(1, &[5]);
        let copies = secrets.copies(&drawn, SPEC);
        assert_eq!(copies.len() as u64, secrets.units());
        assert!(copies.iter().all(|copy| copy.len() >= 4 && (copy[0], copy[copy.len() - 1]) == (0, 0)));
    }

    #[test]
    fn the_options_of_the_command_line_are_repeated() {
        let all = secrets(Occurrences::Probabilities(vec![0.01, 0.1]));
        assert_eq!(all.to_string(), "--patterns HS,HSH,HHSHH --secrets 2 --probabilities 0.01,0.1");
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Secrets>(&text).unwrap(), all);
    }
}
