//! Accounts for thresholds that can fail by releasing an item that only one unit holds.

use super::{DominatingPair, PairRequest, positive};
use crate::{AccountantError, Result, normal};

/// The thresholds of a composition.
#[derive(Clone, Debug, Default)]
pub(super) struct Thresholds {
    /// For each threshold, the probability with which an item of one unit alone passes it, and the
    /// number of its uses.
    failures: Vec<(f64, u64)>,
    /// Σ 1/σ² of the weights that thresholds look at.
    mu_squared: f64,
}

impl Thresholds {
    /// Adds `count` uses of a threshold that an item of one unit alone passes with probability `threshold_delta`.
    pub(super) fn push(&mut self, threshold_delta: f64, noise_multiplier: f64, count: u64) -> Result<()> {
        if !(0.0..1.0).contains(&threshold_delta) {
            let allowed = "0 <= threshold_delta < 1";
            return Err(AccountantError::out_of_range("threshold_delta", threshold_delta, allowed));
        }
        let sigma = positive("noise_multiplier", noise_multiplier)?;
        self.failures.push((threshold_delta, count));
        self.mu_squared += count as f64 / (sigma * sigma);
        Ok(())
    }

    /// Adds the probability that some threshold fails to that of `pair`.
    ///
    /// # Proof note
    /// For a group of k units let S be the items that nobody else holds. If their weights were zero throughout, an item
    /// that a given unit holds would pass a threshold with probability at most `threshold_delta`, since less weight means
    /// less chance; some item of S would pass with at most k times that. What the group adds on S moves each round's
    /// weights by at most k in L2 norm (triangle inequality). All rounds together are therefore a Gaussian mechanism of
    /// μ = k √(Σ 1/σ²), adaptive or not (composition of Gaussian differential privacy, Dong, Roth & Su 2022), and turn an event of probability p into one of at
    /// most Φ(Φ⁻¹(p) + μ). The sum is over all rounds because a threshold may look at the noisy weights of earlier ones.
    pub(super) fn add_failures(&self, pair: &mut DominatingPair, request: PairRequest) {
        let group = request.group_size;
        if group > 1 && request.is_lower() {
            // The failures are known from above only.
            return;
        }
        let units = f64::from(group);
        let mu = units * self.mu_squared.sqrt();
        for &(threshold_delta, count) in &self.failures {
            let failure = if group == 1 {
                threshold_delta
            } else {
                // The normal law is accurate to 1e-13, its inverse to 1e-13 of a standard deviation.
                normal::sf(normal::isf((units * threshold_delta).min(1.0)) - mu) * (1.0 + 1e-10)
            };
            // 1 − (1−f)(1−d)^count; the union bound count·d is never below it.
            pair.push_failure(failure, count);
        }
    }
}
