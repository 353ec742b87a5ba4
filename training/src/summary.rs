//! The result of a finished run.

use std::path::{Path, PathBuf};

use accountant::Bounds;
use serde::Serialize;

use crate::RunError;
use crate::infer::Evaluation;
use crate::progress::DIGITS;
use crate::store::certificate::Certificate;
use crate::store::ledger::FileDigest;
use crate::store::{covered, files};

/// The result of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The run folder.
    pub run: PathBuf,
    /// Whether the run is private.
    pub private: bool,
    /// Whether the training text was public.
    pub public_data: bool,
    /// ε spent; absent in a run without noise.
    pub epsilon: Option<Bounds>,
    /// Failure probability.
    pub delta: f64,
    /// Logical steps whose result is in the model.
    pub steps_done: u64,
    /// Logical steps of the plan.
    pub steps_planned: u64,
    /// Figures on the held-out text, if the plan has one.
    pub evaluation: Option<Evaluation>,
}

impl Summary {
    /// Summarises a run folder with this certificate.
    ///
    /// # Errors
    /// As [`read_evaluation`].
    pub(crate) fn of(folder: &Path, certificate: &Certificate) -> Result<Self, RunError> {
        Ok(Self {
            run: folder.to_owned(),
            private: certificate.private,
            public_data: certificate.public_data,
            epsilon: certificate.guarantee.epsilon,
            delta: certificate.guarantee.delta,
            steps_done: certificate.ledger.steps_done,
            steps_planned: certificate.ledger.steps_planned,
            evaluation: read_evaluation(folder, &certificate.hashes.files)?,
        })
    }
}

/// Returns the held-out figures of a finished run, if it wrote any. A file that the ledger does not
/// name is ignored.
///
/// # Errors
/// As [`covered::read`]; [`RunError::Verification`] if the file is malformed.
pub fn read_evaluation(folder: &Path, written: &[FileDigest]) -> Result<Option<Evaluation>, RunError> {
    let Some(bytes) = covered::read(folder, written, files::EVALUATION)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|_| {
        RunError::Verification(format!("{} is not of this version", folder.join(files::EVALUATION).display()))
    })
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, delta, steps_done, steps_planned, .. } = self;
        if !self.private {
            writeln!(f, "NOT PRIVATE: this run has no privacy guarantee")?;
        }
        write!(f, "{}: {steps_done} of {steps_planned} steps", run.display())?;
        match self.epsilon {
            Some(Bounds { upper, .. }) => {
                writeln!(f, ", ε ≤ {} at δ = {delta:e}", cli::rounded_up(upper, DIGITS))?;
            }
            None if self.public_data => writeln!(f, " on public text: nothing private was used")?,
            None => writeln!(f, ", no bound on ε")?,
        }
        if let Some(evaluation) = &self.evaluation {
            writeln!(f, "held-out {evaluation}")?;
            if let Some(warning) = evaluation.warning() {
                writeln!(f, "warning: {warning}")?;
            }
        }
        write!(f, "certificate: {}", run.join(files::CERTIFICATE_MARKDOWN).display())
    }
}
