//! What a release may spend and how.

use accountant::DpEvent;
use mechanisms::MechanismError;

use super::threshold::Threshold;
use crate::unit::UnitError;

/// Most items of one unit that count in a round, unless told otherwise.
const MAX_ITEMS: u32 = 4096;

/// Why a release is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A parameter outside its domain.
    #[error("{name} = {value} is out of range; allowed: {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The noise cannot be drawn.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// The units cannot be read.
    #[error(transparent)]
    Units(#[from] UnitError),
}

/// A checked release. Its event follows from it; nobody writes the event a second time.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseConfig {
    noise_multiplier: f64,
    threshold_delta: f64,
    round_shares: Vec<f64>,
    count_share: f64,
    max_items_per_unit: u32,
}

impl ReleaseConfig {
    /// A DP-SIPS release with the default rounds: 1/16, 3/16 and 1/2 of μ², and a quarter for counts.
    ///
    /// `noise_multiplier` is that of the whole release seen as one Gaussian mechanism; `threshold_delta` is the
    /// probability that any item of a single unit alone is released.
    ///
    /// # Errors
    /// As [`Self::with_shares`].
    pub fn new(noise_multiplier: f64, threshold_delta: f64) -> Result<Self, ReleaseError> {
        Self::with_shares(noise_multiplier, threshold_delta, &[0.0625, 0.1875, 0.5], 0.25)
    }

    /// A release whose rounds get these shares of μ², and whose counts get the last.
    ///
    /// # Errors
    /// [`ReleaseError::OutOfRange`] unless 0 < `noise_multiplier` < 2²⁰, 0 < `threshold_delta` < 1, every round's share
    /// is above 0, `count_share` ≥ 0, and all of them sum to at most 1 (+ 1e-9).
    pub fn with_shares(
        noise_multiplier: f64,
        threshold_delta: f64,
        round_shares: &[f64],
        count_share: f64,
    ) -> Result<Self, ReleaseError> {
        let out_of_range = |name, value, allowed| Err(ReleaseError::OutOfRange { name, value, allowed });
        let finest = round_shares.iter().copied().chain((count_share > 0.0).then_some(count_share));
        let smallest = finest.fold(1.0, f64::min);
        let total: f64 = round_shares.iter().sum::<f64>() + count_share;
        if !(noise_multiplier > 0.0 && noise_multiplier < 1_048_576.0) {
            return out_of_range("noise multiplier of the release", noise_multiplier, "0 < value < 2^20");
        }
        if !(threshold_delta > 0.0 && threshold_delta < 1.0) {
            return out_of_range("threshold delta", threshold_delta, "0 < value < 1");
        }
        if round_shares.is_empty() || !(smallest > 1e-6) {
            return out_of_range("share of a round", smallest, "at least one round, each share > 1e-6");
        }
        if !(count_share >= 0.0 && total <= 1.0 + 1e-9) {
            return out_of_range("sum of the shares", total, "count share >= 0, sum <= 1");
        }
        Ok(Self {
            noise_multiplier,
            threshold_delta,
            round_shares: round_shares.to_vec(),
            count_share,
            max_items_per_unit: MAX_ITEMS,
        })
    }

    /// Lets at most this many items of a unit count in each round; beyond that a random choice counts. A public figure:
    /// a smaller one lowers the threshold a little. 0 is taken as 1.
    #[must_use]
    pub fn max_items_per_unit(mut self, cap: u32) -> Self {
        self.max_items_per_unit = cap.max(1);
        self
    }

    /// What the release costs.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        accountant::vocabulary_release_event(
            self.noise_multiplier,
            self.threshold_delta,
            &self.round_shares,
            self.count_share,
        )
    }

    pub(super) fn rounds(&self) -> usize {
        self.round_shares.len()
    }

    pub(super) fn round_noise_multiplier(&self, round: usize) -> f64 {
        self.noise_multiplier / self.round_shares[round].sqrt()
    }

    pub(super) fn count_noise_multiplier(&self) -> Option<f64> {
        (self.count_share > 0.0).then(|| self.noise_multiplier / self.count_share.sqrt())
    }

    pub(super) fn cap(&self) -> usize {
        self.max_items_per_unit as usize
    }

    pub(super) fn threshold(&self, round: usize) -> Threshold {
        Threshold {
            noise_multiplier: self.round_noise_multiplier(round),
            delta: self.threshold_delta / self.round_shares.len() as f64,
            cap: self.max_items_per_unit,
        }
    }
}
