//! Poisson sampling: each unit takes part in a step with probability q, independently of all others.

use accountant::DpEvent;

use super::{DrawnPass, OneStep, TrainingMechanism};
use crate::{GaussianMechanism, MechanismError, PrivacyRng, Purpose, Stream};

/// The mechanism of DP-SGD: Gaussian noise on a sum over a Poisson sample.
///
/// # References
/// Abadi et al. 2016, <https://arxiv.org/abs/1607.00133>.
///
/// ```
/// use mechanisms::{PoissonSampledGaussian, TestRng, TrainingMechanism};
/// let mechanism = PoissonSampledGaussian::new(1e-6, 1.1)?;
/// let batch = mechanism.sample(0, 5_000_000_000, &TestRng::from_seed(1))?.batch(0);
/// assert!((4500..5500).contains(&batch.len()));
/// assert!(PoissonSampledGaussian::new(1.5, 1.1).is_err());
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PoissonSampledGaussian {
    sampling_probability: f64,
    noise: GaussianMechanism,
}

impl PoissonSampledGaussian {
    /// Accepts 0 < `sampling_probability` ≤ 1 and a finite noise multiplier above 0.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] otherwise, NaN included.
    pub fn new(sampling_probability: f64, noise_multiplier: f64) -> Result<Self, MechanismError> {
        let sampling_probability = super::probability(sampling_probability)?;
        Ok(Self { sampling_probability, noise: GaussianMechanism::new(noise_multiplier)? })
    }
}

impl TrainingMechanism for PoissonSampledGaussian {
    fn event(&self) -> DpEvent {
        DpEvent::PoissonSampledGaussian {
            sampling_probability: self.sampling_probability,
            noise_multiplier: self.noise.noise_multiplier(),
        }
    }

    fn noise(&self) -> GaussianMechanism {
        self.noise
    }

    fn sample(&self, pass: u64, population: u64, rng: &dyn PrivacyRng) -> DrawnPass {
        let mut stream = rng.stream(Purpose::Sampling, pass, 0);
        Ok(Box::new(OneStep(poisson_sample(self.sampling_probability, population, &mut stream))))
    }
}

/// Returns the indices below `population` that take part, in ascending order. `probability` ≥ 1
/// takes all; ≤ 0 or NaN takes none.
///
/// Work and memory are O(number taken), so a population of 5·10⁹ costs no more than one of 10⁴.
///
/// # Method
/// The gap before the next index taken is geometric, and the binary digits of a geometric variable are independent:
/// digit j is 1 with probability 1/(1 + exp(x_j)), x_j = −2ʲ·ln(1−q). Each digit is one comparison of 64 random bits,
/// so no logarithm of a random number is computed.
///
/// # Guarantee
/// Given everything drawn before it, each index is taken with probability q·(1 ± 2⁻⁴⁴): about 40 factors, each with a
/// relative error below 2⁻⁵⁰. (Inverting the distribution with a 53-bit uniform instead errs by 2⁻⁵³/q, which at
/// q = 1.6·10⁻⁶ is a million times worse.)
///
/// # References
/// Opacus and jax-privacy draw one coin a unit, O(population); the digit property is the memorylessness of the
/// geometric distribution applied to G mod 2ʲ.
pub(crate) fn poisson_sample(probability: f64, population: u64, stream: &mut Stream) -> Vec<u64> {
    if probability >= 1.0 {
        return (0..population).collect();
    }
    if probability.is_nan() || probability <= 0.0 || population == 0 {
        return Vec::new();
    }
    let gaps = GapDigits::new(probability, population);
    let expected = probability * population as f64;
    let mut taken = Vec::with_capacity((expected + 6.0 * expected.sqrt()) as usize + 8);
    let mut next = 0_u64;
    while let Some(gap) = gaps.draw(stream) {
        match next.checked_add(gap) {
            Some(index) if index < population => {
                taken.push(index);
                next = index + 1;
            }
            _ => break,
        }
    }
    taken
}

/// The distribution of the gap, with one threshold for each binary digit. A digit is 1 when 64 random bits fall below
/// its threshold.
struct GapDigits {
    thresholds: Vec<u64>,
    /// The threshold of "the gap reaches 2^digits", which is past the population.
    beyond: u64,
}

impl GapDigits {
    fn new(probability: f64, population: u64) -> Self {
        let digits = u64::BITS - (population - 1).leading_zeros();
        let rate = -libm::log1p(-probability);
        let thresholds = (0..digits)
            .map(|digit| to_threshold(1.0 / (1.0 + libm::exp(libm::ldexp(rate, digit as i32)))))
            .collect();
        Self { thresholds, beyond: to_threshold(libm::exp(-libm::ldexp(rate, digits as i32))) }
    }

    /// Draws a gap; `None` when it leads past the population.
    fn draw(&self, stream: &mut Stream) -> Option<u64> {
        if stream.next_u64() < self.beyond {
            return None;
        }
        let mut gap = 0;
        for (digit, &threshold) in self.thresholds.iter().enumerate() {
            // A threshold of 0 stands for a probability below 2⁻⁶⁴, as do all after it.
            if threshold == 0 {
                break;
            }
            gap |= u64::from(stream.next_u64() < threshold) << digit;
        }
        Some(gap)
    }
}

/// Returns a probability as the bound that a uniform 64-bit word must fall below (1 saturates, an error of 2⁻⁶⁴).
fn to_threshold(probability: f64) -> u64 {
    (probability * 18_446_744_073_709_551_616.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::tests::stream;

    #[test]
    fn sample_size_has_binomial_mean_and_variance_and_a_wrong_rate_is_rejected() {
        let (q, n, rounds) = (0.01, 10_000_u64, 4000);
        let sizes: Vec<f64> =
            (0..rounds).map(|s| poisson_sample(q, n, &mut stream(s)).len() as f64).collect();
        let mean = sizes.iter().sum::<f64>() / rounds as f64;
        let variance = sizes.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (rounds - 1) as f64;
        let (want, spread) = (q * n as f64, q * (1.0 - q) * n as f64);
        let tolerance = 4.9 * (spread / rounds as f64).sqrt();
        assert!((mean - want).abs() < tolerance, "{mean}");
        assert!((mean - 1.01 * want).abs() > tolerance, "a rate wrong by 1 % must be rejected");
        assert!((variance / spread - 1.0).abs() < 4.9 * (2.0 / rounds as f64).sqrt(), "{variance}");
    }

    #[test]
    fn every_index_is_equally_likely_whatever_q() {
        for (q, n) in [(0.03, 37_u64), (0.5, 37), (0.97, 37), (0.2, 1), (0.9, 2)] {
            let rounds = 40_000_u64;
            let mut hits = vec![0.0; n as usize];
            for step in 0..rounds {
                for index in poisson_sample(q, n, &mut stream(step)) {
                    hits[index as usize] += 1.0;
                }
            }
            for (index, h) in hits.iter().enumerate() {
                let z = (h - q * rounds as f64) / (q * (1.0 - q) * rounds as f64).sqrt();
                assert!(z.abs() < 5.6, "q={q} index {index}: z={z}"); // α = 1e-6 over 37 indices
            }
        }
    }

    #[test]
    fn two_indices_are_taken_independently() {
        let (q, rounds) = (0.3, 60_000_u64);
        let both = (0..rounds)
            .filter(|&s| {
                let lot = poisson_sample(q, 8, &mut stream(s));
                lot.contains(&2) && lot.contains(&3)
            })
            .count() as f64;
        let want = q * q;
        assert!((both / rounds as f64 - want).abs() < 4.9 * (want * (1.0 - want) / rounds as f64).sqrt());
    }

    #[test]
    fn the_digits_multiply_up_to_the_geometric_mass() {
        // Oracle: P(gap = k) = q(1−q)^k in logarithms by log1p, for gaps across the whole range of a 5e9 population.
        for q in [1.5633e-6, 1e-3, 0.2] {
            let digits = GapDigits::new(q, 5_240_387_307);
            let p = |t: u64| t as f64 / 18_446_744_073_709_551_616.0;
            for k in [0_u64, 1, 12345, 1_000_000, 20_000_000] {
                let mut log = libm::log1p(-p(digits.beyond));
                for (j, &t) in digits.thresholds.iter().enumerate() {
                    log += if (k >> j) & 1 == 1 { libm::log(p(t)) } else { libm::log1p(-p(t)) };
                }
                let want = libm::log(q) + k as f64 * libm::log1p(-q);
                if want > -40.0 {
                    assert!((log - want).abs() < 1e-12, "q={q} k={k}: {log} against {want}");
                }
            }
        }
    }

    #[test]
    fn extremes_are_handled() {
        assert_eq!(poisson_sample(1.0, 5, &mut stream(0)).len(), 5);
        assert!(poisson_sample(0.0, 5, &mut stream(0)).is_empty());
        assert!(poisson_sample(f64::NAN, 5, &mut stream(0)).is_empty());
        assert!(poisson_sample(0.5, 0, &mut stream(0)).is_empty());
        assert!(poisson_sample(1e-300, u64::MAX, &mut stream(0)).is_empty());
        let all_but_few = poisson_sample(1.0 - 1e-12, 100_000, &mut stream(0));
        assert_eq!(all_but_few.len(), 100_000);
    }
}
