//! Reading plan files.

use std::path::Path;

use plan::{CertifiedPlan, Plan, PlanFile};

use crate::{RunError, durable};

/// A certified plan and the file that it was read from.
pub(crate) struct PlanText {
    pub plan: CertifiedPlan,
    /// The file, byte for byte.
    pub bytes: Vec<u8>,
}

impl PlanText {
    /// Reads and certifies a plan file.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file, the place in it and a fix.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let bytes = durable::read(path)?;
        let plan = parse(path, &bytes)?.certify().map_err(|error| refused(path, &error))?;
        Ok(Self { plan, bytes })
    }
}

/// Reads a plan file without certifying it.
///
/// # Errors
/// As [`PlanText::read`].
pub(crate) fn read_uncertified(path: &Path) -> Result<Plan, RunError> {
    parse(path, &durable::read(path)?)
}

/// Reads the bytes of a plan file without certifying it.
///
/// # Errors
/// As [`PlanText::read`].
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Plan, RunError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        refused(path, &format!("not UTF-8 after byte {}; save the plan as UTF-8", error.valid_up_to()))
    })?;
    let file = PlanFile::parse(text).map_err(|error| refused(path, &error))?;
    Plan::try_from(file).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(format!("{}: {error}", path.display()))
}
