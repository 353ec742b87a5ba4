//! The reasons why a plan is refused. A message is one line that says what was given, where, what is allowed, and what
//! to do.

use accountant::AccountantError;
use mechanisms::MechanismError;

use super::remedy::Remedy;

/// The reasons why a plan is refused.
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
        /// Description of what was found.
        what: String,
        /// Advice on what to do.
        fix: &'static str,
    },
    /// The plan was written for another version of the format.
    #[error("version: {given} is not a version this build reads; allowed: {known}; {fix}")]
    Version {
        /// The version that the plan states.
        given: String,
        /// The version that this build reads.
        known: u64,
        /// Advice on what to do.
        fix: &'static str,
    },
    /// A field is unknown, missing, of the wrong type or out of range.
    #[error("{path}: {given}; allowed: {allowed}; fix: {fix}")]
    Field {
        /// The place, as a JSON path: `privacy.delta`, `training.batch_schedule[1].steps`.
        path: String,
        /// The given value.
        given: String,
        /// The allowed values.
        allowed: String,
        /// Advice on what to do.
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
        /// Certified lower bound on the ε of the mechanisms.
        lower: f64,
        /// Certified upper bound on the ε of the mechanisms.
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
        /// Description of the smallest choice, which already exceeds ε.
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
    /// Creates a [`Self::Field`] with these texts.
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
