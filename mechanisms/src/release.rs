//! The methods that release the words of private text, and the division of each method's budget.

use accountant::{DpEvent, vocabulary_release_event};
use serde::{Deserialize, Serialize};

/// The share of a release's μ² that pays for the noisy counts of the released words. The rounds share the rest.
pub const COUNT_SHARE: f64 = 0.25;

/// Largest number of a unit's items that count in a round of a release.
pub const MAX_ITEMS_PER_UNIT: u32 = 4096;

/// How the words of private text are found.
///
/// Every method runs rounds of a thresholded histogram, and all but those of papers end with noisy counts, so all have events of
/// the same form.
/// They differ in how many words the same budget finds. `dp-tokenizer` implements them, one file each.
///
/// ```
/// use mechanisms::ReleaseMethod;
/// let shares = ReleaseMethod::Mad2r.round_shares();
/// assert_eq!(shares, [0.15, 0.6]);
/// assert_eq!(ReleaseMethod::from_name("mad2r"), Some(ReleaseMethod::Mad2r));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseMethod {
    /// DP-SIPS: what a round releases leaves before the next (Swanberg et al. 2023,
    /// <https://arxiv.org/abs/2301.01998>).
    Sips,
    /// Our extension of DP-SIPS: units skip items that the noisy weights so far speak against, and a threshold applies
    /// to the evidence of all rounds together.
    Pooled,
    /// The policy Gaussian: units, one after the other, move the items they hold towards a common target (Gopi et al.
    /// 2020, <https://arxiv.org/abs/2002.09745>, ℓ2-descent).
    Policy,
    /// Our variant of MAD2R: units with few items move weight from items that have more than enough to their others,
    /// and the first round biases the weights of the second (after Chen, Cohen-Addad, Epasto, Zadimoghaddam 2025,
    /// <https://arxiv.org/abs/2502.08878>).
    Mad2r,
    /// One histogram in which each unit of N words adds 1 for each of its distinct words (Hoory et al. 2021, §3.2). Its
    /// threshold has the normal quantile, in place of the printed erf⁻¹.
    #[serde(rename = "hoory-2021")]
    Hoory2021,
    /// One histogram in which each unit of N words adds its word counts (Ponomareva, Bastings, Vassilvitskii 2022, §3.1). Its
    /// threshold has the normal quantile, in place of the printed erf⁻¹.
    #[serde(rename = "ponomareva-2022")]
    Ponomareva2022,
}

/// The facts about a method, stated once.
struct Row {
    name: &'static str,
    label: &'static str,
    summary: &'static str,
    round_shares: &'static [f64],
    count_share: f64,
}

impl ReleaseMethod {
    /// The methods for any unit.
    pub const GENERAL: [Self; 4] = [Self::Sips, Self::Pooled, Self::Policy, Self::Mad2r];

    /// All methods.
    pub const ALL: [Self; 6] =
        [Self::Sips, Self::Pooled, Self::Policy, Self::Mad2r, Self::Hoory2021, Self::Ponomareva2022];

    /// The only table of names, texts and shares. The shares of a row and the share of the counts
    /// sum to 1. Shares grow from round to round: few words pass the first round, and released
    /// words leave before the last one, which can then find rarer words.
    const fn row(self) -> Row {
        match self {
            Self::Sips => Row {
                name: "sips",
                label: "DP-SIPS: three rounds",
                summary: "DP-SIPS: three rounds of thresholded partition selection, then noisy counts of the words found.",
                round_shares: &[0.0625, 0.1875, 0.5],
                count_share: COUNT_SHARE,
            },
            Self::Pooled => Row {
                name: "pooled",
                label: "Pooled: five rounds, their evidence together",
                summary: "DP-SIPS in five rounds that pool their evidence.",
                round_shares: &[0.07, 0.07, 0.14, 0.2, 0.27],
                count_share: COUNT_SHARE,
            },
            Self::Policy => Row {
                name: "policy",
                label: "Policy Gaussian: one round",
                summary: "The policy Gaussian mechanism in one round: each unit adds weight only to words that still need it.",
                round_shares: &[0.75],
                count_share: COUNT_SHARE,
            },
            Self::Mad2r => Row {
                name: "mad2r",
                label: "Our variant of MAD2R: two rounds",
                summary: "Our variant of MAD2R (MaxAdaptiveDegree): two rounds; surplus weight of frequent words moves to rarer ones.",
                round_shares: &[0.15, 0.6],
                count_share: COUNT_SHARE,
            },
            Self::Hoory2021 => Row {
                name: "hoory-2021",
                label: "Hoory et al. 2021: each word once",
                summary: "The word histogram of Hoory et al. 2021, each word once per unit. Needs privacy.unit {\"words\": N}.",
                round_shares: &[1.0],
                count_share: 0.0,
            },
            Self::Ponomareva2022 => Row {
                name: "ponomareva-2022",
                label: "Ponomareva et al. 2022: word counts",
                summary: "The word histogram of Ponomareva et al. 2022, with counts. Needs privacy.unit {\"words\": N}.",
                round_shares: &[1.0],
                count_share: 0.0,
            },
        }
    }

    /// Returns the method's name in a plan and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the method of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns a few words for a list to choose from.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.row().label
    }

    /// Returns a one-sentence summary for help texts and the schema of a plan.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.row().summary
    }

    /// Returns the share of μ² of each round. [`Self::count_share`] is left for the counts.
    #[must_use]
    pub const fn round_shares(self) -> &'static [f64] {
        self.row().round_shares
    }

    /// Returns the share of μ² that pays for noisy counts of the released words; 0 without such counts.
    #[must_use]
    pub const fn count_share(self) -> f64 {
        self.row().count_share
    }

    /// Whether this is the word histogram of a paper, whose units are pieces of N words.
    #[must_use]
    pub const fn is_of_paper(self) -> bool {
        matches!(self, Self::Hoory2021 | Self::Ponomareva2022)
    }

    /// Returns the event of a whole release. `noise_multiplier` is that of the release as a single
    /// Gaussian mechanism.
    #[must_use]
    pub fn event(self, noise_multiplier: f64, threshold_delta: f64) -> DpEvent {
        vocabulary_release_event(noise_multiplier, threshold_delta, self.round_shares(), self.count_share())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ReleaseMethod {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReleaseMethod".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let choice = |method: Self| schemars::json_schema!({"type": "string", "const": method.name(), "description": method.summary()});
        let choices = Self::ALL.map(choice);
        schemars::json_schema!({"description": "The method that releases words.", "oneOf": choices})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_counts_use_the_whole_budget() {
        for method in ReleaseMethod::ALL {
            let total = method.round_shares().iter().sum::<f64>() + method.count_share();
            assert!((total - 1.0).abs() < 1e-12, "{method:?}: {total}");
        }
    }

    #[test]
    fn names_are_those_that_serde_reads() {
        for method in ReleaseMethod::ALL {
            let read = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(method.name());
            assert_eq!(ReleaseMethod::deserialize(read), Ok(method));
        }
    }
}
