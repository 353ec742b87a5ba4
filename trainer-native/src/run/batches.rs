//! The examples of a step: sampled units → their windows → examples.

use mechanisms::PrivacyRng;
use plan::CertifiedPlan;

use crate::RunError;
use crate::data::{Dataset, Example, Sampler};
use crate::disclosure::Private;
use crate::objective::Objective;

/// Where a run's examples come from.
pub(super) struct Batches {
    pub sampler: Sampler,
    pub dataset: Dataset,
    pub objective: Objective,
}

impl Batches {
    /// One example of each unit that the plan's mechanism samples for `step`.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the plan has no such step or a token file cannot be read.
    pub fn sample(
        &mut self,
        plan: &CertifiedPlan,
        step: u64,
        rng: &impl PrivacyRng,
    ) -> Result<Private<Vec<Example>>, RunError> {
        let units = self.sampler.draw(plan, step, self.dataset.units() as u64, rng)?;
        let windows = self.dataset.sample_windows(&units, step, rng)?;
        Ok(self.objective.examples(&windows, step, rng))
    }
}
