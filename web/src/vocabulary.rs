//! What the page asks the worker that looks at text, and what comes back. The text goes to that worker alone.

use dp_tokenizer::preview::{Preview, PreviewError, Settings};
use dp_tokenizer::release::Method;
use plan::{PlanFile, Tokenizer};
use serde::{Deserialize, Serialize};

use crate::ask::Certified;

/// Largest file taken, bytes.
pub const MOST_BYTES: f64 = 200e6;

/// Bytes that the worker reads at once.
pub const SLICE: usize = 4 << 20;

/// A numbered preview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Errand {
    /// Comes back in every report.
    pub id: u64,
    /// How to cut and release.
    pub settings: Settings,
}

/// How a preview goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// So many bytes are read.
    Read(f64),
    /// All is read; words are being released and vocabularies trained.
    Training,
    /// Done.
    Seen(Box<Preview>),
    /// Why there is no preview.
    Refused(String),
}

/// A report on the errand of the same number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbered {
    /// Number of the errand.
    pub id: u64,
    /// How it goes.
    pub report: Report,
}

/// The settings that a certified plan gives its vocabulary, released by another method where one is named; `None` where
/// the plan releases none.
#[must_use]
pub fn settings(
    plan: &PlanFile,
    certified: &Certified,
    other: Option<Method>,
    json: bool,
) -> Option<Settings> {
    let (Tokenizer::Train(trained), Some(release)) = (&plan.tokenizer, certified.release) else {
        return None;
    };
    Some(Settings {
        text_field: json.then(|| plan.data.text_field.clone()),
        user_field: plan.data.user_field.clone().filter(|_| json),
        unit: plan.privacy.unit,
        method: other.unwrap_or(trained.release.into()),
        noise_multiplier: release.noise_multiplier,
        threshold_delta: release.threshold_delta,
        vocab_size: trained.vocab_size as usize,
        sentence: None,
    })
}

/// A refusal with what to do about it.
#[must_use]
pub fn refused(error: &PreviewError) -> String {
    let advice = match error {
        PreviewError::Train(_) => {
            " With these settings too few words survive: raise the promised ε or the share of the vocabulary, or give more text."
        }
        PreviewError::Binary | PreviewError::Units(_) => {
            " Choose a .txt file, or .jsonl with one object a line."
        }
        _ => "",
    };
    format!("{error}.{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::certify;
    use crate::presets::PRESETS;

    /// The preview spends what the plan gives its vocabulary, by the plan's own event.
    #[test]
    fn a_preview_has_the_noise_and_threshold_of_the_plan() {
        let plan = PRESETS[0].plan().unwrap();
        let certified = certify(PRESETS[0].text).unwrap();
        let settings = settings(&plan, &certified, None, true).unwrap();
        let release = certified.release.unwrap();
        assert_eq!(settings.noise_multiplier, release.noise_multiplier);
        assert_eq!(settings.threshold_delta, release.threshold_delta);
        assert_eq!(settings.text_field.as_deref(), Some("text"));
    }

    #[test]
    fn a_plan_that_releases_no_vocabulary_has_no_preview() {
        let review = PRESETS.iter().find(|preset| preset.name == "strict-review").unwrap();
        let (plan, certified) = (review.plan().unwrap(), certify(review.text).unwrap());
        assert_eq!(settings(&plan, &certified, None, false), None);
    }
}
