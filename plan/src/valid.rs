//! A plan that makes sense: every field in range, and the fields consistent with one another.

use accountant::Delta;

use crate::{Data, Evaluation, Model, Performance, PlanError, PlanFile, Privacy, Tokenizer, Training};

/// A plan that makes sense. Made from a [`PlanFile`] by `TryFrom`; what it costs says [`Plan::certify`].
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    file: PlanFile,
    delta: Delta,
}

impl TryFrom<PlanFile> for Plan {
    type Error = PlanError;

    fn try_from(file: PlanFile) -> Result<Self, PlanError> {
        let delta = Delta::new(file.privacy.delta)?;
        Ok(Self { file, delta })
    }
}

impl Plan {
    /// The file behind it, defaults filled in.
    #[must_use]
    pub fn file(&self) -> &PlanFile {
        &self.file
    }

    /// The plan's name, fit for a folder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// The private text.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.file.data
    }

    /// What is promised.
    #[must_use]
    pub fn privacy(&self) -> &Privacy {
        &self.file.privacy
    }

    /// The δ of the promise.
    #[must_use]
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Where the vocabulary comes from.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.file.tokenizer
    }

    /// The shape of the network.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.file.model
    }

    /// What is optimised, in what batches, and how.
    #[must_use]
    pub fn training(&self) -> &Training {
        &self.file.training
    }

    /// Public text on which the model is measured.
    #[must_use]
    pub fn evaluation(&self) -> Option<&Evaluation> {
        self.file.evaluation.as_ref()
    }

    /// Knobs of speed.
    #[must_use]
    pub fn performance(&self) -> &Performance {
        &self.file.performance
    }
}
