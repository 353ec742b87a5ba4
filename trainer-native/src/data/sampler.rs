//! Draws the units of each step by the mechanism that the certified plan charges.

use mechanisms::{
    BallsInBinsGaussian, FixedSizeSampledGaussian, Pass, PrivacyRng, Purpose, SampledGaussian,
    ShuffledGaussian, TruncatedSampledGaussian,
};
use plan::{CertifiedPlan, PassPlace, Phase, Sampling, TruncatedPoisson};

use crate::RunError;
use crate::disclosure::Private;

/// The sampler of a run. Between steps it keeps nothing but the order of the pass under way.
#[derive(Default)]
pub struct Sampler {
    pass: Option<(u64, Pass)>,
}

impl Sampler {
    /// The units, among `units` of them, that take part in logical step `step`.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the plan has no such step, or if a sampler's event is not the one that is charged.
    pub fn draw(
        &mut self,
        plan: &CertifiedPlan,
        step: u64,
        units: u64,
        rng: &impl PrivacyRng,
    ) -> Result<Private<Vec<u64>>, RunError> {
        let missing = || RunError::Failed(format!("the plan has no step {step}"));
        let phase = plan.phase(step).ok_or_else(missing)?;
        let drawn = match phase.sampling {
            Sampling::Shuffle | Sampling::BallsInBins => {
                let place = plan.pass(step).ok_or_else(missing)?;
                self.pass(plan, phase, place, units, rng)?.batch(place.batch)
            }
            Sampling::Poisson | Sampling::TruncatedPoisson(_) | Sampling::FixedSize => {
                by_step(plan, phase, step, units, rng)?
            }
        };
        Ok(Private::new(drawn))
    }

    /// The pass of a step: the one under way, or a new one.
    fn pass(
        &mut self,
        plan: &CertifiedPlan,
        phase: &Phase,
        place: PassPlace,
        units: u64,
        rng: &impl PrivacyRng,
    ) -> Result<&mut Pass, RunError> {
        if self.pass.as_ref().is_none_or(|(number, _)| *number != place.pass) {
            let (batches, sigma) = (phase.batches_a_pass(), noise(plan, phase));
            let pass = if phase.sampling == Sampling::Shuffle {
                let mechanism = ShuffledGaussian::new(units.max(1), batches, sigma)?;
                hold(plan, phase, &mechanism.event())?;
                mechanism.pass(place.pass, rng)
            } else {
                let mechanism = BallsInBinsGaussian::new(batches, sigma)?;
                hold(plan, phase, &mechanism.event())?;
                mechanism.pass(units, place.pass, rng)
            };
            self.pass = Some((place.pass, pass));
        }
        let pass = self.pass.as_mut().map(|(_, pass)| pass);
        pass.ok_or_else(|| RunError::Failed("a pass was not begun".to_owned()))
    }
}

fn by_step(
    plan: &CertifiedPlan,
    phase: &Phase,
    step: u64,
    units: u64,
    rng: &impl PrivacyRng,
) -> Result<Vec<u64>, RunError> {
    let (q, sigma) = (phase.sampling_probability, noise(plan, phase));
    let mut stream = rng.stream(Purpose::Sampling, step, 0);
    let (event, drawn) = match phase.sampling {
        Sampling::TruncatedPoisson(TruncatedPoisson { largest_batch }) => {
            let mechanism = TruncatedSampledGaussian::new(q, sigma, units.max(1), largest_batch)?;
            (mechanism.event(), mechanism.sample(&mut stream))
        }
        Sampling::FixedSize => {
            let mechanism = FixedSizeSampledGaussian::new(phase.expected_batch_size, units.max(1), sigma)?;
            (mechanism.event(), mechanism.sample(&mut stream))
        }
        Sampling::Poisson | Sampling::Shuffle | Sampling::BallsInBins => {
            let mechanism = SampledGaussian::new(q, sigma)?;
            (mechanism.event(), mechanism.sample(units, &mut stream))
        }
    };
    hold(plan, phase, &event)?;
    Ok(drawn)
}

/// Public text gets no noise; its batches are drawn as if it did.
fn noise(plan: &CertifiedPlan, phase: &Phase) -> f64 {
    if plan.plan().is_public() { 1.0 } else { phase.noise_multiplier }
}

/// What draws is what is charged.
fn hold(plan: &CertifiedPlan, phase: &Phase, event: &accountant::DpEvent) -> Result<(), RunError> {
    if plan.plan().is_public() || *event == phase.step_event() {
        Ok(())
    } else {
        Err(RunError::Failed("the sampler's event is not the one the plan certifies".to_owned()))
    }
}
