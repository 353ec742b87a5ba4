//! Why a plan is refused: one line that says what was given, where, what is allowed, and what to do.

use accountant::AccountantError;
use mechanisms::MechanismError;

use super::remedy::Remedy;

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The text is not JSON.
    #[error("plan is not valid JSON: line {line}, column {column}: {what}; fix: {fix}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What was found.
        what: String,
        /// What to do.
        fix: &'static str,
    },
    /// The plan was written for another version of the format.
    #[error("version: {given} is not a version this build reads; allowed: {known}; {fix}")]
    Version {
        /// What the plan says.
        given: String,
        /// What this build reads.
        known: u64,
        /// What to do.
        fix: &'static str,
    },
    /// A field is unknown, missing, of the wrong type or out of range.
    #[error("{path}: {given}; allowed: {allowed}; fix: {fix}")]
    Field {
        /// Where, as a JSON path: `privacy.delta`, `training.batch_schedule[1].steps`.
        path: String,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: String,
        /// What to do.
        fix: String,
    },
    /// The plan promises less ε than its mechanisms give.
    #[error(
        "privacy.epsilon: {stated} is promised, but this noise gives ε ≤ {upper} (and not below {lower}) at \
         δ = {delta}; fix: raise privacy.epsilon to at least {upper}, or leave out privacy.noise_multipliers \
         to have the noise calibrated"
    )]
    Overstated {
        /// The ε of the plan.
        stated: f64,
        /// Certified lower bound of what the mechanisms give.
        lower: f64,
        /// Certified upper bound of what the mechanisms give.
        upper: f64,
        /// The δ of the plan.
        delta: f64,
    },
    /// With the plan's noise, not even the smallest number of steps, or batch, stays within its ε.
    #[error(
        "privacy.epsilon: with this noise, {smallest} exceeds ε = {epsilon}; fix: {}",
        Remedy::list(remedies)
    )]
    NothingFits {
        /// The ε of the plan.
        epsilon: f64,
        /// What exceeds it.
        smallest: &'static str,
        /// Changes each of which is enough.
        remedies: Vec<Remedy>,
    },
    /// The accountant has no certified answer.
    #[error("privacy: {0}")]
    Accountant(#[from] AccountantError),
    /// A mechanism refuses a figure that validation let through.
    #[error("privacy: {0}")]
    Mechanism(#[from] MechanismError),
}

impl PlanError {
    /// [`Self::Field`] with these texts.
    pub(crate) fn field(path: &str, given: impl Into<String>, allowed: &str, fix: &str) -> Self {
        Self::Field {
            path: path.to_owned(),
            given: given.into(),
            allowed: allowed.to_owned(),
            fix: fix.to_owned(),
        }
    }
}

/// Refuses a field: [`PlanError::Field`] as a result.
pub(crate) fn refuse<T>(
    path: &str,
    given: impl Into<String>,
    allowed: &str,
    fix: &str,
) -> Result<T, PlanError> {
    Err(PlanError::field(path, given, allowed, fix))
}
