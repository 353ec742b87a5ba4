//! Exact discrete Gaussian noise for counts and fixed-point weights.

use crate::bernoulli::bernoulli_exp;
use crate::{MechanismError, Stream, out_of_range};

/// The distribution on the integers with mass proportional to exp(−x²/2σ²), σ a positive integer.
///
/// A caller with finer values counts in a fixed-point unit (2⁻²⁰, say), so that σ in that unit is a large integer;
/// rounding σ up to the next unit is always safe.
///
/// # Guarantee
/// Sampling is exact: integer arithmetic only, no floating point. Added to integers of L2 sensitivity Δ it satisfies
/// (Δ/σ)²/2-zCDP; its variance is at most σ², and P(X ≥ m) ≤ P(N(0, σ²) ≥ m − 1) for integer m. Its (ε, δ) curve
/// differs from the continuous Gaussian's by a relative O(1/σ), negligible at the σ ≥ 2²⁰ used here.
///
/// # References
/// Canonne, Kamath, Steinke 2020, Algorithms 2 and 3, Theorem 7, Corollary 9, Proposition 25,
/// <https://arxiv.org/abs/2004.00010>
///
/// ```
/// use mechanisms::{DiscreteGaussian, PrivacyRng, Purpose, TestRng};
/// let noise = DiscreteGaussian::new(1 << 20)?;
/// let draw = noise.sample(&mut TestRng::from_seed(1).stream(Purpose::HistogramNoise, 0, 0));
/// assert!(draw.abs() < 10 << 20);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscreteGaussian {
    sigma: u64,
}

impl DiscreteGaussian {
    /// The largest σ: the squares of a draw must fit in 128 bits.
    const MAX_SIGMA: u64 = 1 << 48;

    /// Accepts 1 ≤ `sigma` ≤ 2⁴⁸.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] otherwise.
    pub fn new(sigma: u64) -> Result<Self, MechanismError> {
        if (1..=Self::MAX_SIGMA).contains(&sigma) {
            return Ok(Self { sigma });
        }
        out_of_range("sigma (in fixed-point units)", sigma as f64, "1 <= sigma <= 2^48")
    }

    /// Returns σ in fixed-point units.
    #[must_use]
    pub fn sigma(self) -> u64 {
        self.sigma
    }

    /// Draws an integer.
    #[must_use]
    pub fn sample(self, stream: &mut Stream) -> i64 {
        // A draw is a discrete Laplace of scale σ, kept with probability exp(−(|y| − σ)²/2σ²).
        let sigma = u128::from(self.sigma);
        loop {
            let candidate = self.discrete_laplace(stream);
            let distance = u128::from(candidate.unsigned_abs()).abs_diff(sigma);
            if bernoulli_exp(distance * distance, 2 * sigma * sigma, stream) {
                return candidate;
            }
        }
    }

    /// Draws an integer with mass proportional to exp(−|x|/σ).
    fn discrete_laplace(self, stream: &mut Stream) -> i64 {
        let scale = self.sigma;
        loop {
            let remainder = stream.below(scale);
            if !bernoulli_exp(u128::from(remainder), u128::from(scale), stream) {
                continue;
            }
            let mut quotient = 0_u64;
            while bernoulli_exp(1, 1, stream) {
                quotient += 1;
            }
            // A quotient beyond 2¹⁴ has probability e^(−16384); saturating keeps even that defined.
            let magnitude =
                quotient.saturating_mul(scale).saturating_add(remainder).min(i64::MAX as u64) as i64;
            let negative = stream.next_u32() & 1 == 1;
            if magnitude != 0 || !negative {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    fn draws(sigma: u64, n: usize) -> Vec<i64> {
        let noise = DiscreteGaussian::new(sigma).unwrap();
        let mut stream = TestRng::from_seed(5).stream(Purpose::HistogramNoise, 0, 0);
        (0..n).map(|_| noise.sample(&mut stream)).collect()
    }

    /// Returns χ² of the draws against the mass function of `sigma`, with cells −4..=4 and the two tails: 10 degrees of
    /// freedom.
    fn chi2(draws: &[i64], sigma: f64) -> f64 {
        let mass: Vec<f64> =
            (-200..=200_i32).map(|x| (-f64::from(x * x) / (2.0 * sigma * sigma)).exp()).collect();
        let total: f64 = mass.iter().sum();
        let mut expected = [0.0; 11];
        for (x, m) in (-200..=200_i64).zip(&mass) {
            expected[(x.clamp(-5, 5) + 5) as usize] += m / total * draws.len() as f64;
        }
        let mut observed = [0.0; 11];
        for &x in draws {
            observed[(x.clamp(-5, 5) + 5) as usize] += 1.0;
        }
        observed.iter().zip(expected).map(|(o, e)| (o - e).powi(2) / e).sum()
    }

    #[test]
    fn draws_follow_the_mass_function_and_a_wrong_sigma_is_rejected() {
        // qchisq(1e-6, 10, lower = FALSE) = 46.86
        let sample = draws(3, 100_000);
        assert!(chi2(&sample, 3.0) < 46.9, "{}", chi2(&sample, 3.0));
        assert!(chi2(&sample, 3.1) > 46.9, "{}", chi2(&sample, 3.1));
    }

    #[test]
    fn variance_at_fixed_point_scale_is_sigma_squared() {
        let sigma = 1_u64 << 24;
        let n = 100_000;
        let ratio =
            draws(sigma, n).iter().map(|&x| (x as f64 / sigma as f64).powi(2)).sum::<f64>() / n as f64;
        let tolerance = 4.9 * (2.0 / n as f64).sqrt(); // α = 1e-6, normal approximation of χ²
        assert!((ratio - 1.0).abs() < tolerance, "{ratio}");
        assert!((ratio / (1.05_f64 * 1.05) - 1.0).abs() > tolerance, "σ wrong by 5 % must be rejected");
    }

    #[test]
    fn the_largest_sigma_does_not_overflow() {
        assert!(draws(DiscreteGaussian::MAX_SIGMA, 1000).iter().any(|&x| x != 0));
        assert!(DiscreteGaussian::new(0).is_err());
        assert!(DiscreteGaussian::new(DiscreteGaussian::MAX_SIGMA + 1).is_err());
    }
}
