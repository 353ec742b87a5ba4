//! Thresholds that hide the items which only one unit holds.

use accountant::normal;

use super::contribution::Contribution;
use super::error::ReleaseError;
use super::fixed_point::{ONE, noise};

/// The parameters that decide a threshold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    pub(super) noise_multiplier: f64,
    /// The most items (or counts) that a unit may contribute.
    pub(super) cap: u32,
    pub(super) contribution: Contribution,
    /// The factor by which a bias may raise a weight; no item gets more than 1.
    pub(super) max_bias: f64,
    pub(super) rule: Rule,
}

/// The rule for the distance of the threshold above a unit's own weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// Items that only one unit holds pass with at most this probability.
    Tail(f64),
    /// The threshold lies this many σ above the largest weight, by a published formula.
    Sigmas(f64),
}

impl Threshold {
    /// Returns the least noisy weight that is released, in the fixed-point unit.
    ///
    /// A unit with k items that nobody else has gives each at most the weight w(k). None of them passes T with
    /// probability at least (1 − p)^k ≥ 1 − δ, where p = P(noise ≥ T − w(k)); so T is the largest over k of
    /// w(k) + σ·Φ⁻¹((1−δ)^{1/k}). The noise is discrete: P(X ≥ m) ≤ P(N(0, σ²) ≥ m − 1), hence one more.
    pub(super) fn fixed_point(self) -> Result<i64, ReleaseError> {
        let sigma = noise(self.noise_multiplier)?.sigma() as f64;
        let highest = match self.rule {
            Rule::Tail(delta) => (1..=self.cap)
                .map(|k| self.weight(k) + round_up(sigma * quantile(delta, k)) + 1.0)
                .fold(f64::NEG_INFINITY, f64::max),
            Rule::Sigmas(sigmas) => self.weight(1) + round_up(sigma * sigmas) + 1.0,
        };
        Ok(highest as i64)
    }

    /// Returns the probability that any item which only one unit holds passes: as stated, or as a published formula
    /// implies.
    pub(super) fn delta(self) -> Result<f64, ReleaseError> {
        if let Rule::Tail(delta) = self.rule {
            return Ok(delta);
        }
        let (threshold, sigma) = (self.fixed_point()? as f64, noise(self.noise_multiplier)?.sigma() as f64);
        let any_of = |k: u32| {
            let tail = normal::sf((threshold - 1.0 - self.weight(k)) / sigma);
            -libm::expm1(f64::from(k) * libm::log1p(-tail))
        };
        Ok((1..=self.cap).map(any_of).fold(0.0, f64::max))
    }

    fn weight(self, k: u32) -> f64 {
        (self.contribution.largest_weight(k, self.cap) as f64 * self.max_bias).ceil().min(ONE as f64)
    }
}

/// Returns z with P(Z > z) = 1 − (1−δ)^{1/k}.
pub(super) fn quantile(delta: f64, k: u32) -> f64 {
    normal::isf(-libm::expm1(libm::log1p(-delta) / f64::from(k)))
}

/// Rounds up to the next integer, after the error of the quantile (relative 1e-13).
fn round_up(value: f64) -> f64 {
    (value + value.abs() * 1e-12).ceil()
}

/// Returns the threshold of one round in multiples of a unit's contribution: the largest over k ≤ `cap` of 1/√k +
/// σ·Φ⁻¹((1−δ)^{1/k}).
///
/// # Errors
/// [`ReleaseError`] for a noise multiplier or δ out of range.
pub(crate) fn threshold_in_sensitivities(
    noise_multiplier: f64,
    delta: f64,
    cap: u32,
) -> Result<f64, ReleaseError> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(ReleaseError::OutOfRange {
            name: "threshold delta",
            value: delta,
            allowed: "0 < value < 1",
        });
    }
    if !(noise_multiplier > 0.0 && noise_multiplier < 1_048_576.0) {
        return Err(ReleaseError::OutOfRange {
            name: "noise multiplier",
            value: noise_multiplier,
            allowed: "0 < value < 2^20",
        });
    }
    let rule = Rule::Tail(delta);
    let threshold = Threshold {
        noise_multiplier,
        cap: cap.max(1),
        contribution: Contribution::Even,
        max_bias: 1.0,
        rule,
    };
    Ok(threshold.fixed_point()? as f64 / ONE as f64)
}

#[cfg(test)]
mod tests {
    use super::super::fixed_point::even_weight;
    use super::*;
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    #[test]
    fn the_tail_at_the_threshold_is_at_most_delta_for_every_number_of_items() {
        // Oracle: the exact probability 1 − (1 − P(Z ≥ (T − w(k))/σ))^k by log1p and the normal tail.
        for (sigma, delta, cap) in [(3.0, 1e-9, 400), (50.0, 1e-6, 4096), (0.4, 0.05, 30)] {
            let t = threshold_in_sensitivities(sigma, delta, cap).unwrap();
            let mut largest = 0.0_f64;
            for k in 1..=cap {
                let tail = normal::sf((t - 1.0 / f64::from(k).sqrt()) / sigma);
                largest = largest.max(-libm::expm1(f64::from(k) * libm::log1p(-tail)));
            }
            assert!(
                largest <= delta * (1.0 + 1e-6) && largest >= 0.99 * delta,
                "{sigma} {delta} {cap}: {largest}"
            );
        }
    }

    #[test]
    fn simulated_units_alone_pass_no_more_often_than_delta() {
        let (sigma, delta, cap, rounds) = (2.0, 0.2, 9, 40_000);
        let (rule, contribution) = (Rule::Tail(delta), Contribution::Even);
        let threshold = Threshold { noise_multiplier: sigma, rule, contribution, max_bias: 1.0, cap }
            .fixed_point()
            .unwrap();
        let noise = noise(sigma).unwrap();
        let mut stream = TestRng::from_seed(6).stream(Purpose::HistogramNoise, 0, 0);
        let mut rate = |threshold: i64, k: usize| {
            let passed = (0..rounds)
                .filter(|_| (0..k).any(|_| even_weight(k) as i64 + noise.sample(&mut stream) >= threshold))
                .count();
            passed as f64 / f64::from(rounds)
        };
        let tolerance = 4.9 * (delta * (1.0 - delta) / f64::from(rounds)).sqrt(); // α = 1e-6
        for k in [1, 3, 9] {
            let rate = rate(threshold, k);
            assert!(rate <= delta + tolerance, "{k} items: {rate}");
        }
        // Without the factor √2 of erf⁻¹ the threshold is far too low, and the test sees it.
        let wrong =
            (ONE as f64 / 3.0 + (threshold as f64 - ONE as f64 / 3.0) / std::f64::consts::SQRT_2) as i64;
        assert!(rate(wrong, 9) > delta + tolerance);
    }

    #[test]
    fn the_threshold_grows_with_noise_cap_and_certainty() {
        let t = |s, d, k| threshold_in_sensitivities(s, d, k).unwrap();
        assert!(t(2.0, 1e-6, 10) > t(1.0, 1e-6, 10));
        assert!(t(1.0, 1e-9, 10) > t(1.0, 1e-6, 10));
        assert!(t(5.0, 1e-6, 100) > t(5.0, 1e-6, 10));
        // With one item a unit, it is 1 + 10·Φ⁻¹(1 − 1e-9) with Φ⁻¹(1 − 1e-9) = 5.99780701500769.
        let one = threshold_in_sensitivities(10.0, 1e-9, 1).unwrap();
        assert!((one - 60.9780701500769).abs() < 1e-6);
        assert!(threshold_in_sensitivities(f64::NAN, 1e-6, 1).is_err());
        assert!(threshold_in_sensitivities(1.0, 1.0, 1).is_err());
    }
}
