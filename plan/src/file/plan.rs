//! A valid plan: every field is in range, and the fields fit one another.

use accountant::{Delta, DpEvent};

use super::schema::check::check;
use super::{canonical, consistent, memory};
use crate::{
    Data, Evaluation, Model, Performance, PlanError, PlanFile, Privacy, ProcessSettings, Tokenizer, Training,
    Visibility,
};

/// A valid plan, made from a [`PlanFile`] by `TryFrom`. [`Plan::certify`] computes its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(crate) file: PlanFile,
    delta: Delta,
    json: String,
    /// What was spent on the same units before.
    pub(crate) earlier: Vec<DpEvent>,
}

impl TryFrom<PlanFile> for Plan {
    type Error = PlanError;

    fn try_from(file: PlanFile) -> Result<Self, PlanError> {
        let file = file.with_steps();
        let text = file.text();
        let value = serde_json::from_str(&text).map_err(|error| unwritable(&error.to_string()))?;
        check(&value)?;
        let json = canonical::to_json(&value);
        // JSON writes NaN and infinity as null, so a file that does not come back as it was is refused.
        if PlanFile::unchecked(&text).as_ref() != Some(&file) {
            return Err(unwritable("a number is NaN or infinite"));
        }
        let delta = Delta::new(file.privacy.delta)?;
        consistent::check(&file, delta)?;
        Ok(Self { file, delta, json, earlier: Vec::new() })
    }
}

fn unwritable(why: &str) -> PlanError {
    PlanError::field("plan", why, "finite numbers", "correct the number")
}

impl Plan {
    /// Returns the file behind the plan, with defaults filled in.
    #[must_use]
    pub fn file(&self) -> &PlanFile {
        &self.file
    }

    /// Returns the plan as canonical JSON: defaults written out, keys sorted, no blanks.
    #[must_use]
    pub fn to_json(&self) -> &str {
        &self.json
    }

    /// Returns the plan's name, which is a valid name of a folder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns the training text.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.file.data
    }

    /// Returns whether the training text is declared public. In that case no ε is stated, no noise is added and nothing
    /// is charged.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.file.data.visibility == Visibility::Public
    }

    /// Returns the privacy guarantee. In a public plan only its unit and its sampling have an effect.
    #[must_use]
    pub fn privacy(&self) -> &Privacy {
        &self.file.privacy
    }

    /// Returns the δ of the guarantee.
    #[must_use]
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Returns the number, declared public, of the units or examples from which a step samples.
    #[must_use]
    pub fn population(&self) -> u64 {
        self.file.population()
    }

    /// Returns the origin of the vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.file.tokenizer
    }

    /// Returns the shape of the network.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.file.model
    }

    /// Returns the objective, the batches and the optimizer.
    #[must_use]
    pub fn training(&self) -> &Training {
        &self.file.training
    }

    /// Returns the public text on which the model is measured.
    #[must_use]
    pub fn evaluation(&self) -> Option<&Evaluation> {
        self.file.evaluation.as_ref()
    }

    /// Returns a lower bound on the bytes that training needs with a vocabulary of this size: weights, gradient sum,
    /// moments, one micro-batch of the `given` size or the plan's.
    #[must_use]
    pub fn least_training_bytes(&self, vocabulary: u32, given: Option<u32>) -> u128 {
        let micro_batch = given.or(self.performance().physical_batch).unwrap_or(1);
        memory::Network::with_vocabulary(&self.file, vocabulary)
            .least_training_bytes(micro_batch.min(self.largest_batch()))
    }

    /// Returns an estimate of the most bytes that training on the CPU takes with a vocabulary of this size and adapters of so
    /// many parameters. The text and an evaluation count as nothing.
    #[must_use]
    pub fn peak_training_bytes(&self, vocabulary: u32, adapters: u128, settings: ProcessSettings) -> u128 {
        memory::Network::with_vocabulary(&self.file, vocabulary).peak_bytes(&self.file, adapters, settings)
    }

    /// Returns the number of units in a micro-batch, for a vocabulary of this size and for each of `workers` on a
    /// machine with `free` bytes of memory: the `given` value, the plan's, or the largest power of two up to 32 that
    /// fits. It never exceeds the largest expected batch, and affects speed only.
    #[must_use]
    pub fn windows_at_once(&self, vocabulary: u32, given: Option<u32>, free: u64, workers: u32) -> u32 {
        let found =
            || memory::Network::with_vocabulary(&self.file, vocabulary).windows_at_once(free, workers);
        given.or(self.performance().physical_batch).unwrap_or_else(found).min(self.largest_batch())
    }

    fn largest_batch(&self) -> u32 {
        let batches = self.training().phases().into_iter().map(|phase| phase.expected_batch_size);
        batches.max().and_then(|batch| u32::try_from(batch).ok()).unwrap_or(u32::MAX)
    }

    /// Returns the performance settings.
    #[must_use]
    pub fn performance(&self) -> &Performance {
        &self.file.performance
    }
}
