//! Defines the messages between the page and the worker that reads a text: to count its records, or to preview its vocabulary. Only that
//! worker sees the text.

#[cfg(feature = "page")]
pub mod worker;

use dp_tokenizer::preview::{Preview, PreviewError, Settings};
use dp_tokenizer::release::Method;
use dp_tokenizer::survey::{Kind, Survey, Wanted};
use plan::{Encoding, PlanFile, Tokenizer};
use serde::{Deserialize, Serialize};

use crate::protocol::Certified;

/// Largest file of a preview, in bytes.
pub(crate) const MAX_FILE_BYTES: f64 = 200e6;
/// Largest file whose records are counted, in bytes.
pub(crate) const MAX_COUNTED_BYTES: f64 = 4e9;

/// A request about a text. The text or the file is posted beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TextRequest {
    /// Preview the vocabulary.
    Preview {
        /// Settings for splitting the text into units and releasing its words.
        settings: Box<Settings>,
        /// Name and encoding of the file. `None` for lines of text or of JSON that were pasted.
        file: Option<(String, Encoding)>,
    },
    /// Find the fields of the text and count its records.
    Look {
        /// The name of the file, which tells its format.
        name: String,
        /// The fields to count; `None` for those with usual names.
        wanted: Option<Wanted>,
        /// The encoding of the file; `None` for the one that its first bytes tell.
        encoding: Option<Encoding>,
    },
}

/// State of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TextStatus {
    /// Bytes read so far.
    Reading(f64),
    /// The whole text is read. Words are being released and vocabularies trained.
    Training,
    /// The preview.
    Done(Box<Preview>),
    /// The fields of the text.
    Found(Box<Kind>),
    /// The counts of these fields; `None` if the text needs the choice of a field.
    Counted(Option<(Wanted, Survey)>),
    /// Reason why there is no result.
    Failed(String),
}

/// Settings of a preview with the vocabulary's noise and threshold from a certified plan. `other` replaces the plan's
/// release method; `fields` says that records have fields. `None` if the plan releases no vocabulary.
pub(crate) fn settings(
    plan: &PlanFile,
    certified: &Certified,
    other: Option<Method>,
    fields: bool,
) -> Option<Settings> {
    let (Tokenizer::Train(trained), Some(release)) = (&plan.tokenizer, certified.release) else {
        return None;
    };
    Some(Settings {
        text_field: fields.then(|| plan.data.text_field.clone()),
        user_field: plan.data.user_field.clone().filter(|_| fields),
        unit: plan.privacy.unit,
        words: trained.words,
        method: other.unwrap_or(trained.release.into()),
        noise_multiplier: release.noise_multiplier,
        threshold_delta: release.threshold_delta,
        vocab_size: trained.vocab_size as usize,
        sentence: None,
    })
}

/// Returns an error, and what to do about it.
fn error_text(error: &PreviewError) -> String {
    let advice = match error {
        PreviewError::Train(_) => {
            " Too few words are released with these settings. Raise the target ε or the vocabulary’s share of the budget, \
             or use more text."
        }
        PreviewError::Binary | PreviewError::Units(_) => {
            " The panel “Data” names the format, the encoding and the fields or columns of the text."
        }
        _ => "",
    };
    format!("{error}.{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::certify;
    use crate::presets::PRESETS;

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
