//! Reading plan files.

use std::path::Path;

use accountant::DpEvent;
use plan::{CertifiedPlan, Plan, PlanFile};

use crate::{RunError, durable};

/// A plan and the file that it was read from.
pub(crate) struct PlanText {
    pub plan: Plan,
    /// The file, byte for byte.
    pub bytes: Vec<u8>,
}

impl PlanText {
    /// Reads a plan file without certifying it.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file, the place in it and a fix.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let bytes = durable::read(path)?;
        Ok(Self { plan: parse(path, &bytes)?, bytes })
    }

    /// Certifies the plan of the file at `path`, after what was spent on its units before.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file and a fix.
    pub fn certify(self, path: &Path, earlier: Vec<DpEvent>) -> Result<CertifiedPlan, RunError> {
        self.plan.after(earlier).certify().map_err(|error| refused(path, &error))
    }
}

/// Reads a plan file without certifying it.
///
/// # Errors
/// As [`PlanText::read`].
pub(crate) fn read_uncertified(path: &Path) -> Result<Plan, RunError> {
    Ok(PlanText::read(path)?.plan)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Plan, RunError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        refused(path, &format!("not UTF-8 after byte {}; save the plan as UTF-8", error.valid_up_to()))
    })?;
    let file = PlanFile::parse(text).map_err(|error| refused(path, &error))?;
    Plan::try_from(file).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(format!("{}: {error}", path.display()))
}
