//! The file `sweep.json` as a user wrote it.

use std::fmt;

use accountant::Trials;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::PlanError;

/// A `sweep.json`: one plan, the fields to vary, and how the trials are charged.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// The plan file, relative to the sweep file.
    pub plan: String,
    /// The fields that vary, as dotted paths, with the values of each. Settings are all combinations.
    #[serde(default)]
    pub vary: Vary,
    /// How many trials there are, and which of them are published.
    pub trials: SweepTrials,
    /// Upper limit on the ε of the whole sweep, at the plan's δ.
    pub epsilon: f64,
}

/// How many trials a sweep has, and which of them are published.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepTrials {
    /// Every setting is trained, and everything may be published: the trials are composed.
    All(AllTrials),
    /// A secret number of trials, each with a setting drawn at random. Only the best one is published: private selection.
    Best(TrialCount),
}

/// Every setting, several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllTrials {
    /// Runs of each setting, each with randomness of its own.
    pub seeds: u64,
}

/// The distribution of the secret number of trials.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TrialCount {
    /// Poisson: possibly no trial at all.
    Poisson {
        /// Mean number of trials, 1 to 10,000.
        mean: f64,
    },
    /// Truncated negative binomial, from 1 trial on: geometric with shape 1, logarithmic with shape 0.
    TruncatedNegativeBinomial {
        /// η, above −1 and at most 1.
        shape: f64,
        /// γ, from 1e-4 to below 1: the smaller, the more trials.
        stop: f64,
    },
}

impl TrialCount {
    /// Returns the distribution in the accountant's type.
    #[must_use]
    pub fn distribution(self) -> Trials {
        match self {
            Self::Poisson { mean } => Trials::Poisson { mean },
            Self::TruncatedNegativeBinomial { shape, stop } => {
                Trials::TruncatedNegativeBinomial { shape, stop }
            }
        }
    }
}

/// Fields and their values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vary(pub Vec<VaryField>);

/// A field that varies.
#[derive(Clone, Debug, PartialEq)]
pub struct VaryField {
    /// Dotted path in the plan, such as `training.learning_rate.peak`.
    pub path: String,
    /// Its values.
    pub values: Vec<Value>,
}

impl<'de> Deserialize<'de> for Vary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of paths, each with a list of values")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Vary, M::Error> {
                let mut fields: Vec<VaryField> = Vec::new();
                while let Some(path) = map.next_key::<String>()? {
                    if fields.iter().any(|field| field.path == path) {
                        return Err(M::Error::custom(format_args!("vary: {path:?} is given twice")));
                    }
                    fields.push(VaryField { path, values: map.next_value()? });
                }
                Ok(Vary(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl SweepFile {
    /// Reads the text of a `sweep.json`.
    ///
    /// # Errors
    /// [`PlanError::Field`] for text that is not JSON, and for an unknown, missing, repeated or misshapen field.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        serde_json::from_str(text).map_err(|error| {
            let allowed = "{\"plan\": \"plan.json\", \"vary\": {\"training.learning_rate.peak\": [1e-4, 3e-4]}, \"trials\": \
                           {\"all\": {\"seeds\": 3}} or {\"best\": {\"poisson\": {\"mean\": 10}}}, \"epsilon\": 8}";
            PlanError::field("sweep", error.to_string(), allowed, "correct the text at this place")
        })
    }
}
