//! Noise that is correlated between steps: the ε that it costs, and the noise that prefix sums keep.
//!
//! A matrix mechanism adds row t of C⁻¹Z·σ to the gradient sum of step t, where Z has independent standard normal rows and σ is in
//! clip norms. DP-SGD has C = I. Prefix sums of the noisy gradients then have the noise of A·C⁻¹Z·σ, where A is the lower-triangular
//! matrix of ones. Here C is lower-triangular and Toeplitz: c₀, c₁, … stand on its diagonals. Its structure and σ decide ε; the errors
//! of prefix sums decide how much noise a model trained by SGD sees.
//!
//! # References
//! Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization", <https://arxiv.org/abs/2306.08153>; McKenna 2024,
//! <https://arxiv.org/abs/2405.15913>; banded inverse square root: Kalinin et al. 2025, <https://arxiv.org/abs/2505.12128>;
//! DP-λCGD: Kalinin et al. 2026, <https://arxiv.org/abs/2601.22334>.

mod banded;
mod compare;

pub use compare::{Compared, Family, MAX_BANDS, TrainingRun, best_banded, compare};

use crate::calibrate::EpsilonTarget;
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, Result, epsilon};

/// The most steps of a strategy.
pub const MAX_STEPS: u64 = 100_000;

/// The steps in which a unit may take part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Participation {
    /// Cyclic Poisson sampling (Choquette-Choo et al. 2023, Algorithm 2): each unit belongs to one of b parts, independently of its
    /// content, where b is the number of bands of C. Step t samples from part t mod b.
    CyclicPoisson {
        /// Probability with which a unit takes part in each step of its part.
        sampling_probability: f64,
    },
    /// Fixed batches without amplification: each unit takes part at most `participations` times, and any two of its steps are at least
    /// `separation` apart.
    Separated {
        /// Fewest steps from one participation to the next, at least 1.
        separation: u64,
        /// Largest number of participations.
        participations: u64,
    },
}

/// A lower-triangular Toeplitz matrix C and what it does to prefix sums.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    steps: u64,
    /// c₀, c₁, … up to the last band.
    coefficients: Vec<f64>,
    /// The first column of A·C⁻¹.
    decoder: Vec<f64>,
    /// Relative rounding error of the coefficients and of a norm computed from them.
    rounding: f64,
}

impl Strategy {
    /// Independent noise, C = I.
    ///
    /// # Errors
    /// Fewer than one step, or more than [`MAX_STEPS`].
    ///
    /// ```
    /// let independent = accountant::correlated::Strategy::independent(1000)?;
    /// // Prefix sum t has t variances; their mean is 500.5.
    /// assert!((independent.mean_squared_error() - 500.5).abs() < 1e-9);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    pub fn independent(steps: u64) -> Result<Self> {
        check_steps(steps)?;
        Ok(Self::from_noise(steps, &[]))
    }

    /// The Toeplitz matrix of at most `bands` bands whose prefix sums have the least mean squared error for its norm, found by descent
    /// (McKenna 2024, <https://arxiv.org/abs/2405.15913>, section 4).
    ///
    /// # Errors
    /// As [`Self::independent`]; no bands, or more than steps.
    ///
    /// ```
    /// use accountant::correlated::Strategy;
    /// let banded = Strategy::banded(1000, 8)?;
    /// assert!(banded.mean_squared_error() < 0.25 * Strategy::independent(1000)?.mean_squared_error());
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    pub fn banded(steps: u64, bands: u64) -> Result<Self> {
        check_steps(steps)?;
        check_bands(steps, bands)?;
        let coefficients = banded::least_error(steps as usize, bands as usize);
        let decoder = banded::solve(&coefficients, &vec![1.0; steps as usize]);
        Ok(Self { steps, coefficients, decoder, rounding: rounding(steps, 0) })
    }

    /// Banded inverse square root: C⁻¹ has the first `bands` coefficients of A^(−1/2) (Kalinin et al. 2025,
    /// <https://arxiv.org/abs/2505.12128>).
    ///
    /// # Errors
    /// As [`Self::banded`].
    ///
    /// ```
    /// use accountant::correlated::Strategy;
    /// // With all bands, C·C = A, so that both factors have the same coefficients 1, 1/2, 3/8, …
    /// let whole = Strategy::inverse_square_root(3, 3)?;
    /// let sum = 1.0 + (1.0 + 0.25) + (1.0 + 0.25 + 0.140_625);
    /// assert!((whole.mean_squared_error() - sum / 3.0).abs() < 1e-12);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    pub fn inverse_square_root(steps: u64, bands: u64) -> Result<Self> {
        check_steps(steps)?;
        check_bands(steps, bands)?;
        // −(½ choose i)·(−1)^i: 1/2, 1/8, 1/16, …
        let mut next = 0.5;
        let recurrence = (1..bands).map(|band| {
            let now = next;
            next *= (band as f64 - 0.5) / (band as f64 + 1.0);
            now
        });
        Ok(Self::from_noise(steps, &recurrence.collect::<Vec<_>>()))
    }

    /// DP-λCGD: each step takes back the part λ of the noise of the step before (Kalinin et al. 2026,
    /// <https://arxiv.org/abs/2601.22334>).
    ///
    /// # Errors
    /// As [`Self::independent`]; a λ outside [0, 1).
    ///
    /// ```
    /// use accountant::correlated::Strategy;
    /// // Noise of two steps: Z₁, then Z₂ − Z₁/2; their sum has variance 1 + 1/4.
    /// let half = Strategy::one_step(2, 0.5)?;
    /// assert!((half.mean_squared_error() - (1.0 + 1.25) / 2.0).abs() < 1e-12);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    pub fn one_step(steps: u64, lambda: f64) -> Result<Self> {
        check_steps(steps)?;
        if !(0.0..1.0).contains(&lambda) {
            return Err(AccountantError::out_of_range("lambda", lambda, "0 <= lambda < 1"));
        }
        Ok(Self::from_noise(steps, &[lambda]))
    }

    /// C⁻¹ = 1 − Σ aᵢxⁱ with aᵢ ≥ 0 in `recurrence`. Every coefficient of C is then a sum of non-negative terms, which keeps its digits.
    fn from_noise(steps: u64, recurrence: &[f64]) -> Self {
        let mut coefficients = vec![1.0];
        let mut decoder = vec![1.0];
        for step in 1..steps as usize {
            let terms = recurrence.iter().zip(coefficients.iter().rev());
            coefficients.push(terms.map(|(weight, earlier)| weight * earlier).sum());
            decoder.push(decoder[step - 1] - recurrence.get(step - 1).unwrap_or(&0.0));
        }
        if recurrence.iter().all(|weight| *weight == 0.0) {
            coefficients.truncate(1);
        }
        Self { steps, coefficients, decoder, rounding: rounding(steps, recurrence.len() as u64) }
    }

    /// Diagonals of C, up to the last that is not zero.
    ///
    /// ```
    /// assert_eq!(accountant::correlated::Strategy::banded(100, 5)?.bands(), 5);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    #[must_use]
    pub fn bands(&self) -> u64 {
        self.coefficients.len() as u64
    }

    /// The diagonals c₀, c₁, … of C.
    ///
    /// ```
    /// use accountant::correlated::Strategy;
    /// let coefficients = Strategy::banded(100, 5)?.coefficients().to_vec();
    /// assert!((coefficients.iter().map(|c| c * c).sum::<f64>() - 1.0).abs() < 1e-12);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    #[must_use]
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Mean over the prefix sums of their noise's variance, at σ = 1.
    ///
    /// ```
    /// // Prefix sums of ten steps have 1, 2, …, 10 variances.
    /// let independent = accountant::correlated::Strategy::independent(10)?;
    /// assert!((independent.mean_squared_error() - 5.5).abs() < 1e-12);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    #[must_use]
    pub fn mean_squared_error(&self) -> f64 {
        let steps = self.steps as f64;
        let weighted = |(at, value): (usize, &f64)| (steps - at as f64) / steps * value * value;
        self.decoder.iter().enumerate().map(weighted).sum()
    }

    /// Variance of the noise of the last prefix sum, which has the most, at σ = 1.
    ///
    /// ```
    /// // Z₁ and Z₂ − Z₁/2 add up to Z₁/2 + Z₂.
    /// let half = accountant::correlated::Strategy::one_step(2, 0.5)?;
    /// assert!((half.max_squared_error() - 1.25).abs() < 1e-12);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    #[must_use]
    pub fn max_squared_error(&self) -> f64 {
        self.decoder.iter().map(|value| value * value).sum()
    }

    /// Returns an upper bound on the ℓ₂ norm of a column of C. Column j has the first n − j coefficients, so that the
    /// first has the largest norm.
    fn column_norm(&self) -> f64 {
        f64::sqrt(self.coefficients.iter().map(|c| c * c).sum::<f64>()) * (1.0 + self.rounding)
    }

    /// Returns bounds on ‖C·u‖ for the worst admissible participation u of one unit with gradients of norm 1.
    ///
    /// # Proof note
    /// If the coefficients are non-negative and non-increasing, gradients in one direction at steps 0, b, 2b, … are the worst (Kalinin &
    /// Lampert 2024, Theorem 2, <https://arxiv.org/abs/2405.13763>), and an attainable case. Otherwise every |cᵢ| is at most the largest
    /// |cⱼ| with j ≥ i, a non-increasing sequence to which the theorem applies: ‖C·u‖ ≤ ‖|C|·|u|‖. From below, any admissible
    /// participation will do: one step.
    fn separated_norm(&self, separation: u64, participations: u64) -> Bounds {
        let mut majorant: Vec<f64> = self.coefficients.iter().map(|c| libm::fabs(*c)).collect();
        for at in (1..majorant.len()).rev() {
            majorant[at - 1] = majorant[at - 1].max(majorant[at]);
        }
        let (steps, separation) = (self.steps as usize, separation.min(self.steps) as usize);
        let most = (participations.min(self.steps) as usize).min(steps.div_ceil(separation));
        let coefficient = |at: usize| majorant.get(at).copied().unwrap_or(0.0);
        // Row t: Σ_{j < most} c_{t − jb}, from the row b above it.
        let mut rows = vec![0.0; steps];
        for at in 0..steps {
            let above = if at >= separation { rows[at - separation] } else { 0.0 };
            rows[at] = above + coefficient(at);
        }
        let window = most * separation;
        let in_window = |at: usize| {
            if at < window {
                return rows[at];
            }
            // A difference would lose digits, so the sum itself is computed, over few terms.
            (0..most).map(|use_of| coefficient(at - use_of * separation)).sum()
        };
        let norm = f64::sqrt((0..steps).map(in_window).map(|row| row * row).sum::<f64>());
        let exact = majorant == self.coefficients;
        let lower = if exact { norm } else { self.column_norm() * (1.0 - 2.0 * self.rounding) };
        Bounds { lower: lower * (1.0 - self.rounding), upper: norm * (1.0 + self.rounding) }
    }

    /// Certified bounds on ε at `delta`.
    ///
    /// # Guarantee
    /// For one unit, with gradients of norm at most 1 that may depend on everything released before. The bounds do not hold for groups
    /// of units, whose members take part in different steps.
    ///
    /// # Proof note
    /// *Cyclic Poisson.* A unit takes part only in steps j, j + b, j + 2b, …, and column t of C is zero outside rows t to t + b − 1: each
    /// participation moves b rows of its own. Given the participation of all other units and what was released before step t, the
    /// gradient of the unit is fixed, and so is the displacement of these rows, C's column times the gradient: its norm is at most the
    /// largest column norm ‖c‖. Later rows depend on the unit's data through released rows alone. The rows of a group are therefore a
    /// Poisson-sampled Gaussian with σ/‖c‖ or cost less, and the ⌈n/b⌉ groups compose adaptively (Choquette-Choo et al. 2023,
    /// Theorem 4). From below: for a unit of part 0 whose gradient is always the same unit vector, among units with gradients 0,
    /// the first ⌊n/b⌋ groups are exactly such Gaussians. The bounds meet where b divides n.
    ///
    /// *Separated.* A Gaussian mechanism, by `Self::separated_norm`; adaptive gradients cost no more (Denisov et al. 2022,
    /// <https://arxiv.org/abs/2202.08312>, Theorem 2.1).
    ///
    /// # Errors
    /// A participation that is out of range; as [`crate::epsilon`].
    ///
    /// ```
    /// use accountant::correlated::{Participation, Strategy};
    /// use accountant::{Delta, NeighboringRelation::AddOrRemoveOne};
    /// // One band is DP-SGD with Poisson sampling: 1.828237 by contour inversion (reference query A).
    /// let independent = Strategy::independent(1000)?;
    /// let cyclic = Participation::CyclicPoisson { sampling_probability: 0.01 };
    /// let bounds = independent.epsilon(cyclic, 1.0, Delta::new(1e-5)?, AddOrRemoveOne)?;
    /// assert!(bounds.lower <= 1.828_237 && bounds.upper >= 1.828_236 && bounds.upper < 1.829);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    pub fn epsilon(
        &self,
        participation: Participation,
        noise_multiplier: f64,
        delta: Delta,
        relation: NeighboringRelation,
    ) -> Result<Bounds> {
        let upper = epsilon(&self.event(participation, noise_multiplier, Side::Upper)?, delta, relation)?;
        let lower = epsilon(&self.event(participation, noise_multiplier, Side::Lower)?, delta, relation)?;
        Bounds::new(lower.lower.min(upper.upper), upper.upper)
    }

    /// Smallest noise multiplier, in clip norms, that meets `target`; rounded up by at most 1e-6, relative.
    ///
    /// # Errors
    /// A participation that is out of range; as [`EpsilonTarget::noise_multiplier`].
    ///
    /// ```
    /// use accountant::calibrate::EpsilonTarget;
    /// use accountant::correlated::{Participation, Strategy};
    /// use accountant::{Delta, NeighboringRelation::AddOrRemoveOne};
    /// let target = EpsilonTarget { epsilon: 3.0, delta: Delta::new(1e-5)?, relation: AddOrRemoveOne };
    /// // Four participations, each of norm 1 and in bands of their own: ε = 3 takes μ = 2/σ = 0.719117 (Balle & Wang 2018).
    /// let separated = Participation::Separated { separation: 250, participations: 4 };
    /// let noise = Strategy::independent(1000)?.noise_multiplier(separated, &target)?;
    /// assert!((noise * 0.719_117 / 2.0 - 1.0).abs() < 1e-5);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    pub fn noise_multiplier(&self, participation: Participation, target: &EpsilonTarget) -> Result<f64> {
        self.event(participation, 1.0, Side::Upper)?;
        target.noise_multiplier(|noise| {
            // The participation was checked above.
            let none = DpEvent::Gaussian { noise_multiplier: f64::NAN };
            self.event(participation, noise, Side::Upper).unwrap_or(none)
        })
    }

    /// An event that costs as much for one unit, or more for an upper bound, or less for a lower
    /// one. It is not public, because a group of units costs more than the event states.
    fn event(&self, participation: Participation, noise_multiplier: f64, side: Side) -> Result<DpEvent> {
        match participation {
            Participation::CyclicPoisson { sampling_probability } => {
                let (bands, upper) = (self.bands(), side == Side::Upper);
                let norm = self.column_norm() * if upper { 1.0 } else { 1.0 - 4.0 * self.rounding };
                let noise_multiplier = noise_multiplier / norm;
                let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
                let count = if upper { self.steps.div_ceil(bands) } else { self.steps / bands };
                Ok(DpEvent::SelfComposed { event: Box::new(step), count })
            }
            Participation::Separated { separation, participations } => {
                let whole = |name, value: u64| match value {
                    0 => Err(AccountantError::out_of_range(name, 0.0, "at least 1")),
                    _ => Ok(()),
                };
                whole("separation", separation)?;
                whole("participations", participations)?;
                let norm = self.separated_norm(separation, participations);
                let norm = if side == Side::Upper { norm.upper } else { norm.lower };
                Ok(DpEvent::Gaussian { noise_multiplier: noise_multiplier / norm })
            }
        }
    }
}

/// The side of ε that an event bounds.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Upper,
    Lower,
}

/// Relative rounding error: of a recurrence of `terms` terms at each of `steps` steps, of a sum
/// over the steps, and of a few further operations, all on numbers that are not negative.
fn rounding(steps: u64, terms: u64) -> f64 {
    (steps as f64 * (terms as f64 + 4.0) + 64.0) * f64::EPSILON
}

fn check_steps(steps: u64) -> Result<()> {
    if (1..=MAX_STEPS).contains(&steps) {
        Ok(())
    } else {
        Err(AccountantError::out_of_range("steps", steps as f64, "1 to 100000 for correlated noise"))
    }
}

fn check_bands(steps: u64, bands: u64) -> Result<()> {
    if (1..=steps).contains(&bands) {
        Ok(())
    } else {
        Err(AccountantError::out_of_range("bands", bands as f64, "1 to the number of steps"))
    }
}
