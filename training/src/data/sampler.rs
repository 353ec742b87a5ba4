//! Draws the units of each step by the mechanism that the plan certifies.

use mechanisms::{Pass, PrivacyRng};
use plan::CertifiedPlan;

use crate::RunError;
use crate::disclosure::Private;

/// The sampler of a run. It keeps the current pass over the units, with its number.
#[derive(Default)]
pub(crate) struct BatchSampler {
    pass: Option<(u64, Box<dyn Pass>)>,
}

impl BatchSampler {
    /// Returns the units that take part in logical step `step`, out of `population`.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the plan has no such step, or an event that holds for another population.
    pub fn draw(
        &mut self,
        plan: &CertifiedPlan,
        step: u64,
        population: u64,
        rng: &dyn PrivacyRng,
    ) -> Result<Private<Vec<u64>>, RunError> {
        let (Some(phase), Some(place)) = (plan.phase(step), plan.pass(step)) else {
            return Err(RunError::Failed(format!("the plan has no step {step}")));
        };
        let pass = match self.pass.take() {
            Some((number, pass)) if number == place.pass => pass,
            _ => phase
                .mechanism
                .sample(place.pass, population, rng)
                .map_err(|error| RunError::Failed(error.to_string()))?,
        };
        let (_, pass) = self.pass.insert((place.pass, pass));
        Ok(Private::new(pass.batch(place.batch)))
    }
}
