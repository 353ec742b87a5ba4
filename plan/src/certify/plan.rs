//! Computes the cost of a plan. The accountant computes every ε, δ and σ.

use accountant::calibrate::EpsilonTarget;
use accountant::{Bounds, DpEvent, budget};

use crate::messages::refuse;
use crate::{
    BatchPhase, CertifiedPlan, Clipping, NoiseMultipliers, Phase, Plan, PlanError, Privacy, TokenizerRelease,
};

/// The noise multiplier of the mechanisms that draw batches of public text; no noise is added there.
const UNUSED_NOISE: f64 = 1.0;

impl Plan {
    /// Computes the cost of the whole pipeline and checks it against the plan's ε.
    ///
    /// If the plan gives no noise multipliers, the tokenizer gets its share of the budget, and training the smallest
    /// noise with which all parts together stay within ε.
    ///
    /// # Guarantee
    /// [`CertifiedPlan::epsilon`] bounds the composed event of the [earlier events](Plan::after) on the plan's units,
    /// the release, all steps and all spare steps. Its upper end does not exceed the plan's `privacy.epsilon`. A plan
    /// on public text has an empty event and spends 0; it protects nobody, see [`Plan::is_public`].
    ///
    /// # Errors
    /// [`PlanError::Overstated`] if the plan's noise gives a larger ε than the plan states;
    /// [`PlanError::Accountant`] if the accountant has no certified answer.
    pub fn certify(self) -> Result<CertifiedPlan, PlanError> {
        if self.is_public() {
            return self.certified_public();
        }
        self.check_earlier()?;
        let noise = match self.privacy().noise_multipliers {
            Some(noise) => noise,
            None => self.calibrated()?,
        };
        let tokenizer_release = self.release(noise.tokenizer);
        let phases = self.phases(noise.training)?;
        self.check_count_noise(&phases)?;
        phases.iter().try_for_each(|phase| phase.mechanism.bands().map(|_| ()))?;
        let event = self.pipeline(tokenizer_release.as_ref(), &phases);
        let epsilon = accountant::epsilon(&event, self.delta(), self.privacy().relation)?;
        self.check_epsilon(epsilon)?;
        Ok(CertifiedPlan { plan: self, phases, tokenizer_release, event, epsilon })
    }

    /// Checks the noise of the count behind adaptive clipping. The count shares each step's event with the gradient, so
    /// its noise, in units of what one unit changes (a half), must be large enough to leave a part of the event to the
    /// gradient.
    fn check_count_noise(&self, phases: &[Phase]) -> Result<(), PlanError> {
        let Clipping::Adaptive(adaptive) = self.training().clipping else { return Ok(()) };
        let smallest = phases.iter().min_by_key(|phase| phase.expected_batch_size);
        let Some((batch, noise)) =
            smallest.map(|phase| (phase.expected_batch_size as f64, phase.noise_multiplier()))
        else {
            return Ok(());
        };
        if 2.0 * adaptive.count_noise * batch > 1.01 * noise {
            return Ok(());
        }
        let least = 0.51 * noise / batch;
        let given = format!("{}, which leaves nothing for the gradient", adaptive.count_noise);
        let allowed = format!("above {least:.3e} with this noise and a batch of {batch}");
        refuse("training.clipping.adaptive.count_noise", given, &allowed, "raise it, or use larger batches")
    }

    /// Certifies a plan on public text, which is used without noise and without a charge. Its batches are drawn as
    /// those of private text.
    fn certified_public(self) -> Result<CertifiedPlan, PlanError> {
        let phases = self.phases(UNUSED_NOISE)?;
        let event = DpEvent::Composed { events: Vec::new() };
        let epsilon = Bounds { lower: 0.0, upper: 0.0 };
        Ok(CertifiedPlan { plan: self, phases, tokenizer_release: None, event, epsilon })
    }

    fn calibrated(&self) -> Result<NoiseMultipliers, PlanError> {
        let (delta, relation) = (self.delta(), self.privacy().relation);
        // A valid plan without noise multipliers has an ε; the accountant refuses NaN.
        let epsilon = self.privacy().epsilon.unwrap_or(f64::NAN);
        let target = EpsilonTarget { epsilon, delta, relation };
        let tokenizer = self.tokenizer_noise(&target)?;
        let release = self.release(tokenizer);
        let event_for = |training| self.pipeline_with(release.as_ref(), training);
        let training = target.noise_multiplier(event_for)?;
        Ok(NoiseMultipliers { tokenizer, training })
    }

    /// Returns the noise of the vocabulary release for the tokenizer's share of a budget; `None` if no vocabulary is
    /// released.
    pub(crate) fn tokenizer_noise(&self, target: &EpsilonTarget) -> Result<Option<f64>, PlanError> {
        if self.tokenizer().release().is_none() {
            return Ok(None);
        }
        let threshold = budget::threshold_delta(target.delta);
        Ok(Some(budget::noise_multiplier_of_share(target, self.privacy().tokenizer_share, threshold)?))
    }

    pub(crate) fn release(&self, noise_multiplier: Option<f64>) -> Option<TokenizerRelease> {
        let noise_multiplier = noise_multiplier?;
        let (method, words) = self.tokenizer().release()?;
        let threshold_delta = budget::threshold_delta(self.delta());
        Some(TokenizerRelease {
            words,
            method,
            noise_multiplier,
            threshold_delta,
            round_shares: method.round_shares().to_vec(),
            count_share: method.count_share(),
            event: method.event(noise_multiplier, threshold_delta),
        })
    }

    fn phases(&self, noise_multiplier: f64) -> Result<Vec<Phase>, PlanError> {
        let (population, phases) = (self.population(), self.training().phases());
        let first = phases.first().map_or(1, |phase| phase.expected_batch_size) as f64;
        let phase = |BatchPhase { steps, expected_batch_size }: BatchPhase| {
            let Privacy { sampling, scale_noise_by_sqrt_batch, .. } = *self.privacy();
            let batch = expected_batch_size as f64;
            let growth = if scale_noise_by_sqrt_batch { (batch / first).sqrt() } else { 1.0 };
            Ok(Phase {
                steps,
                expected_batch_size,
                sampling_probability: batch / population as f64,
                mechanism: sampling.mechanism(
                    population,
                    steps,
                    expected_batch_size,
                    noise_multiplier * growth,
                )?,
                is_public: self.is_public(),
            })
        };
        phases.into_iter().map(phase).collect()
    }

    /// Returns [`Self::pipeline`] with a noise multiplier that is being tried. If no mechanism accepts the noise
    /// multiplier, the accountant refuses the event that is returned.
    pub(crate) fn pipeline_with(&self, release: Option<&TokenizerRelease>, noise_multiplier: f64) -> DpEvent {
        match self.phases(noise_multiplier) {
            Ok(phases) => self.pipeline(release, &phases),
            Err(_) => DpEvent::Gaussian { noise_multiplier: f64::NAN },
        }
    }

    /// Returns the phases at whose rates the spare steps are charged: the most expensive phase, or each. Any step may
    /// have to be repeated.
    pub(crate) fn spare_phases<'a>(&self, phases: &'a [Phase]) -> Vec<&'a Phase> {
        // Where noise grows with the batch, no phase is the most expensive one under every sampling.
        if self.privacy().scale_noise_by_sqrt_batch {
            return phases.iter().collect();
        }
        phases.iter().max_by_key(|phase| phase.expected_batch_size).into_iter().collect()
    }

    /// Returns the event of everything that touches private text: earlier events on its units, the release, the counts
    /// of labels, every pass of training, and the passes of the spare steps.
    fn pipeline(&self, release: Option<&TokenizerRelease>, phases: &[Phase]) -> DpEvent {
        let planned = phases.iter().map(|phase| (phase, phase.steps));
        let spare = self.spare_phases(phases).into_iter().map(|phase| (phase, self.privacy().spare_steps));
        let training = planned.chain(spare).filter(|(_, steps)| *steps > 0);
        let training = training.map(|(phase, steps)| phase.event_of(steps));
        let release = release.map(|release| release.event.clone());
        let before = self.earlier.iter().cloned().chain(release).chain(self.label_event());
        DpEvent::Composed { events: before.chain(training).collect() }
    }

    /// Returns the event of the counts of labels; `None` if none are released. If no mechanism accepts their noise, the
    /// accountant refuses the event that is returned.
    pub(crate) fn label_event(&self) -> Option<DpEvent> {
        let histogram = self.data().label_histogram.as_ref().filter(|_| !self.is_public())?;
        let refused = DpEvent::Gaussian { noise_multiplier: f64::NAN };
        Some(histogram.mechanism().map_or(refused, |mechanism| mechanism.event()))
    }

    fn check_epsilon(&self, Bounds { lower, upper }: Bounds) -> Result<(), PlanError> {
        match self.privacy().epsilon {
            Some(stated) if upper <= stated => Ok(()),
            Some(stated) => Err(PlanError::Overstated { stated, lower, upper, delta: self.delta().get() }),
            None if upper.is_finite() => Ok(()),
            None => refuse(
                "privacy.noise_multipliers",
                format!("so little noise that ε exceeds {lower} and has no finite bound"),
                "noise with a finite ε",
                "give more noise, or leave it out and give privacy.epsilon",
            ),
        }
    }
}
