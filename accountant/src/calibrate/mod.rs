//! Finds parameters that meet a target.

mod search;

use crate::{AccountantError, Delta, DpEvent, NeighboringRelation, Result, epsilon};
use search::Trials;

/// An ε that an event must not exceed at δ.
///
/// A search takes a function from a parameter to the event. Its result is certified: the event at the returned parameter has
/// upper ε at most `epsilon`. Every search refuses an `epsilon` that is not a finite number above 0, and whatever the
/// accountant refuses about an event.
#[derive(Clone, Copy, Debug)]
pub struct EpsilonTarget {
    /// The ε not to exceed.
    pub epsilon: f64,
    /// The δ at which the limit holds.
    pub delta: Delta,
    /// The neighbouring relation.
    pub relation: NeighboringRelation,
}

impl EpsilonTarget {
    /// Returns the smallest noise multiplier that meets the target, rounded up by at most 1e-6, relative.
    ///
    /// ```
    /// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate::EpsilonTarget};
    /// // Igamberdiev et al. 2024, WMT16 at ε = 5: 2.973747 by contour inversion, 3.123536 by Rényi orders.
    /// let target = EpsilonTarget { epsilon: 5.0, delta: Delta::new(1e-8)?, relation: AddOrRemoveOne };
    /// let noise = target.noise_multiplier(|noise_multiplier| {
    ///     let step =
    ///         DpEvent::PoissonSampledGaussian { sampling_probability: 0.230_402_891_286_282_25, noise_multiplier };
    ///     DpEvent::SelfComposed { event: Box::new(step), count: 109 }
    /// })?;
    /// assert!(noise >= 2.973_746_6 && noise < 2.973_750);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// [`AccountantError::NotConverged`] when no multiplier up to 1e9 meets the target.
    pub fn noise_multiplier(&self, event_for: impl Fn(f64) -> DpEvent) -> Result<f64> {
        Trials::new(self, event_for)?.smallest_noise(1.0)
    }

    /// Returns the largest count from 0 to `most` that meets the target: a number of steps, or of trials.
    ///
    /// ```
    /// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate::EpsilonTarget};
    /// let target = EpsilonTarget { epsilon: 2.0, delta: Delta::new(1e-5)?, relation: AddOrRemoveOne };
    /// let steps = target.steps(1_000_000, |count| {
    ///     let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier: 1.0 };
    ///     DpEvent::SelfComposed { event: Box::new(step), count }
    /// })?;
    /// // A thousand steps cost 1.828 (reference query A).
    /// assert!((1100..1300).contains(&steps));
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// See [`EpsilonTarget`].
    pub fn steps(&self, most: u64, event_for: impl Fn(u64) -> DpEvent) -> Result<u64> {
        Trials::new(self, event_for)?.largest_count(most)
    }

    /// Returns the largest expected batch, a whole number up to `units`, that meets the target, for a run of given
    /// noise and steps. 0 means that no batch meets it.
    ///
    /// ```
    /// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate::EpsilonTarget};
    /// let target = EpsilonTarget { epsilon: 1.83, delta: Delta::new(1e-5)?, relation: AddOrRemoveOne };
    /// let batch = target.batch_size(100_000, |batch| {
    ///     let sampling_probability = batch as f64 / 100_000.0;
    ///     let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier: 1.0 };
    ///     DpEvent::SelfComposed { event: Box::new(step), count: 1000 }
    /// })?;
    /// // A batch of 1000, q = 0.01, costs 1.828 (reference query A).
    /// assert!((1000..1005).contains(&batch));
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// See [`EpsilonTarget`].
    pub fn batch_size(&self, units: u64, event_for: impl Fn(u64) -> DpEvent) -> Result<u64> {
        self.steps(units, event_for)
    }

    /// Returns the smallest expected batch, a whole number up to `units`, that meets the target. ε must fall with the
    /// batch, as in a run of given steps and noise-batch ratio, whose noise multiplier grows with the batch.
    ///
    /// ```
    /// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate::EpsilonTarget};
    /// let target = EpsilonTarget { epsilon: 1.83, delta: Delta::new(1e-5)?, relation: AddOrRemoveOne };
    /// let batch = target.smallest_batch_size(100_000, |batch| {
    ///     let (sampling_probability, noise_multiplier) = (batch as f64 / 100_000.0, 1e-3 * batch as f64);
    ///     let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
    ///     DpEvent::SelfComposed { event: Box::new(step), count: 1000 }
    /// })?;
    /// // A batch of 1000 at a multiplier of 1 costs 1.828 (reference query A).
    /// assert!((995..=1000).contains(&batch));
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// [`AccountantError::NotConverged`] when even a batch of all units misses the target.
    pub fn smallest_batch_size(&self, units: u64, event_for: impl Fn(u64) -> DpEvent) -> Result<u64> {
        Trials::new(self, event_for)?.smallest_count(units)
    }

    /// Returns the batch of the least noise-batch ratio, or the smallest batch within `slack` of it.
    ///
    /// Model quality depends on the ratio, not on the multiplier (Ponomareva et al. 2023, section 5,
    /// <https://arxiv.org/abs/2303.00654>). With steps given, the ratio falls with the batch and levels off where noise no
    /// longer shrinks, so that a little slack saves most of the compute. Candidates are the powers of two up to `units` and
    /// `units` itself.
    ///
    /// ```
    /// use accountant::calibrate::{Compute, EpsilonTarget};
    /// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne};
    /// let target = EpsilonTarget { epsilon: 3.0, delta: Delta::new(1e-5)?, relation: AddOrRemoveOne };
    /// let found = target.noise_batch_ratio(60_000, Compute::Steps(500), 0.1, |batch, count, noise_multiplier| {
    ///     let sampling_probability = batch as f64 / 60_000.0;
    ///     let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
    ///     DpEvent::SelfComposed { event: Box::new(step), count }
    /// })?;
    /// // All units at once: μ = √500/σ; ε = 3 takes μ = 0.719117 (Balle & Wang 2018). Half of them are nearly as good.
    /// let all = 500_f64.sqrt() / 0.719_117 / 60_000.0;
    /// assert!(found.expected_batch_size < 60_000 && found.ratio <= 1.1 * all * 1.000_01);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::noise_multiplier`]; a slack that is not a finite number from 0; no units, steps or examples.
    pub fn noise_batch_ratio(
        &self,
        units: u64,
        compute: Compute,
        slack: f64,
        event_for: impl Fn(u64, u64, f64) -> DpEvent,
    ) -> Result<NoiseBatch> {
        if !(0.0..f64::INFINITY).contains(&slack) {
            return Err(AccountantError::out_of_range("slack", slack, "a finite number from 0"));
        }
        let mut found: Vec<NoiseBatch> = Vec::new();
        let mut guess = 1.0;
        for batch in candidates(units) {
            let steps = match compute {
                Compute::Steps(steps) => steps,
                Compute::Examples(examples) => examples / batch,
            };
            if steps == 0 {
                break;
            }
            let noise = Trials::new(self, |noise| event_for(batch, steps, noise))?.smallest_noise(guess)?;
            guess = noise;
            found.push(NoiseBatch {
                expected_batch_size: batch,
                steps,
                noise_multiplier: noise,
                ratio: noise / batch as f64,
            });
        }
        let least = found.iter().fold(f64::INFINITY, |least, tried| least.min(tried.ratio));
        let nothing = AccountantError::out_of_range("units, steps or examples", 0.0, "at least 1 of each");
        found.into_iter().find(|tried| tried.ratio <= least * (1.0 + slack)).ok_or(nothing)
    }

    /// Returns the certified upper ε of `event`.
    fn spent(&self, event: &DpEvent) -> Result<f64> {
        Ok(epsilon(event, self.delta, self.relation)?.upper)
    }
}

/// The limit of a run's cost besides privacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Number of steps, whatever the batch.
    Steps(u64),
    /// Number of examples in all: expected batch times steps.
    Examples(u64),
}

/// A batch with the noise that its privacy needs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct NoiseBatch {
    /// The expected batch, in units.
    pub expected_batch_size: u64,
    /// The number of steps of the run.
    pub steps: u64,
    /// The noise multiplier that meets the target.
    pub noise_multiplier: f64,
    /// The noise multiplier over the expected batch: the noise on the mean gradient in clip norms, whatever the clip
    /// norm is.
    pub ratio: f64,
}

/// Returns the powers of two up to `units`, and `units`.
fn candidates(units: u64) -> impl Iterator<Item = u64> {
    let powers = core::iter::successors(Some(1_u64), |batch| batch.checked_mul(2));
    powers.take_while(move |batch| *batch < units).chain((units > 0).then_some(units))
}
