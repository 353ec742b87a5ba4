//! The file `paraphrase.json` as a user wrote it.

use serde::Deserialize;

use super::synthetic::{self, PrivateRecords, SyntheticPrivacy, check_range};
use crate::{Data, LabelHistogram, PlanError};

/// A `paraphrase.json`: a public model writes each synthetic text by several private records at once, which move the probabilities of the
/// next token by a bounded amount (InvisibleInk, Vinod, Pillutla & Thakurta 2025, <https://arxiv.org/abs/2507.02974>).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParaphraseFile {
    /// A name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The private records. They are read as for a plan; `label_field` is read if there are labels.
    pub data: Data,
    /// All labels, declared public. The references of a text have one label. Their counts are released with noise, and the texts are
    /// allotted to the labels in their proportions.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Noise multiplier of the counts of labels: the standard deviation of the noise on each count, in units.
    #[serde(default = "label_noise_multiplier")]
    pub label_noise_multiplier: f64,
    /// The privacy guarantee.
    pub privacy: SyntheticPrivacy,
    /// The folder of a finished run on public text that writes text from left to right. It must be public.
    pub generator: String,
    /// The prompt of a reference. `{text}` stands for a private record and `{label}` for the label of the text.
    #[serde(default = "prompt")]
    pub prompt: String,
    /// The prompt without a reference. `{label}` stands for the label of the text.
    #[serde(default)]
    pub public_prompt: String,
    /// Largest number of tokens of a text.
    #[serde(default = "tokens")]
    pub tokens: u64,
    /// Divides the scores of the tokens. The clip norm of the references grows with it.
    #[serde(default = "temperature")]
    pub temperature: f64,
    /// Largest difference between a reference's logit and the public one, in nats. The number by which the differences are divided follows from
    /// it and ε. Without it, the clip follows, and differences are divided by the mean number of references. With a smaller clip, what
    /// references have in common counts for more than their mean.
    #[serde(default)]
    pub clip: Option<f64>,
    /// Number k of the set of tokens that each is drawn from: those whose public logit is at least the k-th largest less two clips (top-k+).
    /// 0 for all tokens.
    #[serde(default = "top_k")]
    pub top_k: u64,
    /// Number of synthetic texts. Each is written by `data.units` / `records` references, rounded down, in the mean.
    pub records: u64,
}

fn label_noise_multiplier() -> f64 {
    20.0
}

fn prompt() -> String {
    "{text}".to_owned()
}

fn tokens() -> u64 {
    32
}

fn temperature() -> f64 {
    1.0
}

fn top_k() -> u64 {
    100
}

impl ParaphraseFile {
    /// Reads the text of a `paraphrase.json`.
    ///
    /// # Errors
    /// [`PlanError::Field`] for text that is not JSON, for an unknown, missing or misshapen field, and for a value out of range.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let allowed = "{\"name\": …, \"data\": …, \"privacy\": {\"unit\", \"relation\", \"delta\", \"epsilon\"}, \"generator\": …, \
                       \"records\": N} and, optionally, labels, label_noise_multiplier, prompt, public_prompt, tokens, temperature, clip, top_k";
        let file: Self = synthetic::parse("paraphrase", text, allowed)?;
        let Self { name, data, labels, privacy, .. } = &file;
        PrivateRecords { name, data, labels, privacy }.check()?;
        check_range("label_noise_multiplier", file.label_noise_multiplier, 0.02, 1e6)?;
        check_range("tokens", file.tokens, 1, 100_000)?;
        check_range("temperature", file.temperature, 0.01, 100.0)?;
        file.clip.map_or(Ok(()), |clip| check_range("clip", clip, 0.001, 1000.0))?;
        check_range("top_k", file.top_k, 0, 10_000_000)?;
        check_range("records", file.records, 1, data.units.min(100_000_000))?;
        check_range("data.units / records", file.references(), 1, 1_000_000)?;
        file.check_prompts()?;
        Ok(file)
    }

    /// Returns the mean number of references of a text.
    #[must_use]
    pub fn references(&self) -> u64 {
        self.data.units / self.records.max(1)
    }

    /// Returns the labels with the noise of their counts, if there are labels.
    #[must_use]
    pub fn label_histogram(&self) -> Option<LabelHistogram> {
        let (labels, noise_multiplier) = (self.labels.clone(), self.label_noise_multiplier);
        (!labels.is_empty()).then_some(LabelHistogram { labels, noise_multiplier })
    }

    fn check_prompts(&self) -> Result<(), PlanError> {
        let is_short = self.prompt.len() <= 10_000 && self.public_prompt.len() <= 10_000;
        let names_labels = self.prompt.contains("{label}") || self.public_prompt.contains("{label}");
        if is_short
            && self.prompt.matches("{text}").count() == 1
            && !self.public_prompt.contains("{text}")
            && (!names_labels || !self.labels.is_empty())
        {
            return Ok(());
        }
        crate::messages::refuse(
            "prompt",
            "{text} is missing, repeated or in public_prompt, {label} is used without labels, or it is too long",
            "{text} once in prompt and never in public_prompt, {label} where labels are listed, at most 10,000 bytes",
            "change the prompts",
        )
    }
}
