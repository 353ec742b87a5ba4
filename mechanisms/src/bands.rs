//! Noise that is correlated over steps: the rows of C⁻¹z for a banded Toeplitz matrix C.

use accountant::correlated::{MAX_BANDS, MAX_STEPS, Strategy};

use crate::rounded_gaussian::FRACTION_BITS;
use crate::{GaussianMechanism, MechanismError, RoundedGaussian, Stream, out_of_range};

/// A lower-triangular Toeplitz matrix C with b bands: c₀ = 1 on the diagonal, and c₁, …, c_{b−1} below it, multiples of 2⁻¹⁶.
///
/// # Guarantee
/// Let x_t be the integers of step t of a block, all on one grid, and z_t independent N(0, s²) numbers, not rounded. The block begins
/// with step 0, before which nothing was drawn. [`Bands::noise`] computes w_t = round(z_t − Σ_{0<k<b} c_k·w_{t−k}) without any error.
/// Then the releases x_t + w_t are a function of y = Cx + z:
///
/// * With o_t = x_t + w_t, rounding commutes with the integer x_t: o_t = round(x_t + z_t − Σ c_k·w_{t−k}).
/// * w_{t−k} = o_{t−k} − x_{t−k}, and x_t + Σ c_k·x_{t−k} is row t of Cx, so that o_t = round(y_t − Σ c_k·o_{t−k}).
///
/// By induction, o_t follows from y₀, …, y_t. A block therefore costs no more than a Gaussian mechanism of standard deviation s on Cx,
/// also if x_t depends on o₀, …, o_{t−1}. This needs nothing of the grid, because z_t is not rounded before it is added. Adding one unit
/// to step t alone moves Cx by the norm of a column of C, [`Bands::column_norm`], times the norm of its contribution.
///
/// The sum Σ c_k·w_{t−k} is exact because it fits 63 bits in units of 2⁻¹⁶: |z_t| is below 2³⁴ (see [`RoundedGaussian`]), so that |w_t|
/// is below 2³⁵·Σ|C⁻¹|, and [`Bands::new`] refuses a C whose sums of absolute entries are too large.
///
/// # References
/// Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization", <https://arxiv.org/abs/2306.08153>.
///
/// ```
/// use mechanisms::Bands;
/// let bands = Bands::new(150, vec![1 << 15])?;
/// assert_eq!(bands.coefficients(), [1.0, 0.5]);
/// assert!((bands.column_norm() - 1.25_f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bands {
    /// c₁, …, c_{b−1} in units of 2⁻¹⁶.
    below: Vec<i64>,
    column_norm: f64,
}

/// The number 1 in units of an entry.
const ONE: i64 = 1 << FRACTION_BITS;

/// The largest product of Σ|C| and Σ|C⁻¹|, each over a column: 2³⁵·2¹⁶·2¹⁰ is 2⁶¹, and the rounding of the product is
/// far below a bit.
const LARGEST_SUMS: f64 = 1024.0;

impl Bands {
    /// Returns the matrix with the entries `below` under its diagonal, in units of 2⁻¹⁶, for blocks of at most `steps`
    /// steps.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for 1024 entries or more, or for a matrix whose noise would not fit 63 bits.
    pub fn new(steps: u64, below: Vec<i64>) -> Result<Self, MechanismError> {
        let count = below.len() as u64 + 1;
        if count > MAX_BANDS {
            return out_of_range("bands", count as f64, "1 to 1024");
        }
        let coefficients: Vec<f64> = below.iter().map(|entry| *entry as f64 / ONE as f64).collect();
        let sum = 1.0 + coefficients.iter().map(|c| c.abs()).sum::<f64>();
        let mut inverse = InverseColumn::new(&coefficients);
        let mut sum_of_inverse = 0.0;
        for _ in 0..steps {
            sum_of_inverse += inverse.next_entry().abs();
        }
        let sums = sum * sum_of_inverse;
        if sums <= LARGEST_SUMS {
            // The sum is exact: |C| adds up to at most 2¹⁰, so that the squares add up to at most 2⁵².
            let squares = below.iter().fold(ONE * ONE, |sum, entry| sum + entry * entry);
            let column_norm = (squares as f64).sqrt() / ONE as f64 * (1.0 + f64::EPSILON);
            Ok(Self { below, column_norm })
        } else {
            out_of_range("sum of |C| times sum of |inverse of C|", sums, "at most 1024")
        }
    }

    /// Returns the matrix of `bands` bands whose prefix sums over `steps` steps have the least error, as
    /// [`Strategy::banded`] finds it, rounded to multiples of 2⁻¹⁶.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for no steps or more than 100,000; for no bands, or more than 1024 or than steps.
    pub fn least_error(steps: u64, bands: u64) -> Result<Self, MechanismError> {
        check(steps, bands)?;
        let Ok(strategy) = Strategy::banded(steps, bands) else {
            return out_of_range("steps", steps as f64, "1 to 100000 for correlated noise");
        };
        let first = strategy.coefficients().first().copied().unwrap_or(f64::NAN);
        let below = strategy.coefficients().iter().skip(1).map(|c| (c / first * ONE as f64).round() as i64);
        Self::new(steps, below.collect())
    }

    /// Returns the number b of bands.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.below.len() as u64 + 1
    }

    /// Returns the mechanism that draws z, whose noise multiplier is in norms of one contribution. The noise multiplier
    /// of `noise` is in such norms times the norm of a column. The result is rounded up.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for noise beyond the range of floats.
    pub fn mechanism(&self, noise: GaussianMechanism) -> Result<GaussianMechanism, MechanismError> {
        GaussianMechanism::new(noise.noise_multiplier() * self.column_norm * (1.0 + 1e-15))
    }

    /// Returns c₀, c₁, …, c_{b−1}.
    #[must_use]
    pub fn coefficients(&self) -> Vec<f64> {
        [ONE].iter().chain(&self.below).map(|entry| *entry as f64 / ONE as f64).collect()
    }

    /// Returns an upper bound on the L2 norm of a column, within 3e-16 of it.
    #[must_use]
    pub fn column_norm(&self) -> f64 {
        self.column_norm
    }

    /// Returns the first column of C⁻¹, from its top.
    #[must_use]
    pub fn inverse(&self) -> InverseColumn {
        InverseColumn::new(&self.coefficients()[1..])
    }

    /// Writes w_t for the elements from `first` on. `z` with `stream` is the noise of step t; `earlier` holds w_{t−1}, w_{t−2}, … of the
    /// same elements, as many as the block has, or the last b − 1.
    pub fn noise(
        &self,
        z: RoundedGaussian,
        stream: &mut Stream,
        first: u64,
        earlier: &[&[i64]],
        out: &mut [i64],
    ) {
        out.fill(0);
        for (entry, earlier) in self.below.iter().zip(earlier) {
            out.iter_mut().zip(*earlier).for_each(|(sum, w)| *sum += entry * w);
        }
        z.subtract(stream, first, out);
    }
}

/// Accepts only numbers of steps and bands for which a matrix can be found.
pub(crate) fn check(steps: u64, bands: u64) -> Result<(), MechanismError> {
    if !(1..=MAX_STEPS).contains(&steps) {
        return out_of_range("steps", steps as f64, "1 to 100000 for correlated noise");
    }
    if (1..=MAX_BANDS.min(steps)).contains(&bands) {
        Ok(())
    } else {
        out_of_range("bands", bands as f64, "1 to 1024, and at most the number of steps")
    }
}

/// The entries of the first column of C⁻¹: 1, −c₁, c₁² − c₂, …
#[derive(Clone, Debug)]
pub struct InverseColumn {
    below: Vec<f64>,
    /// The last b − 1 entries, newest first.
    last: Vec<f64>,
    begun: bool,
}

impl InverseColumn {
    fn new(below: &[f64]) -> Self {
        Self { below: below.to_vec(), last: Vec::new(), begun: false }
    }

    /// Returns the next entry.
    pub fn next_entry(&mut self) -> f64 {
        let earlier: f64 = self.below.iter().zip(&self.last).map(|(c, entry)| c * entry).sum();
        let entry = if self.begun { -earlier } else { 1.0 };
        self.begun = true;
        self.last.insert(0, entry);
        self.last.truncate(self.below.len());
        entry
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    fn stream(step: u64) -> Stream {
        TestRng::from_seed(31).stream(Purpose::GradientNoise, step, 0)
    }

    /// Returns w of a block, row by row.
    fn block(bands: &Bands, std: u64, steps: u64, elements: usize) -> Vec<Vec<i64>> {
        let z = RoundedGaussian::new(std).unwrap();
        let mut rows: Vec<Vec<i64>> = Vec::new();
        for step in 0..steps {
            let earlier: Vec<&[i64]> = rows.iter().rev().map(Vec::as_slice).collect();
            let mut row = vec![0; elements];
            bands.noise(z, &mut stream(step), 0, &earlier, &mut row);
            rows.push(row);
        }
        rows
    }

    /// The proof of [`Bands`] in integers: the release of step t is round(y_t − Σ c_k·o_{t−k}), computed from Cx and from earlier
    /// releases, and never from w or x alone.
    #[test]
    fn releases_are_a_function_of_the_gaussian_mechanism_on_cx() {
        let bands = Bands::least_error(40, 5).unwrap();
        let (elements, std) = (300, (1 << 28) + 7);
        let w = block(&bands, std, 40, elements);
        let x: Vec<Vec<i64>> = (0..40_u64)
            .map(|step| {
                let mut values = TestRng::from_seed(32).stream(Purpose::Data, step, 0);
                (0..elements).map(|_| values.below(1 << 36) as i64 - (1 << 35)).collect()
            })
            .collect();
        let z = RoundedGaussian::new(std).unwrap();
        let mut released: Vec<Vec<i64>> = Vec::new();
        for step in 0..40_usize {
            let row = |k: usize| step.checked_sub(k + 1);
            // z − (Σ c_k·o_{t−k} − (Cx)_t), in units of 2⁻¹⁶.
            let mut out: Vec<i64> = (0..elements)
                .map(|at| {
                    let known = bands.below.iter().enumerate().filter_map(|(k, entry)| {
                        row(k).map(|earlier| entry * (released[earlier][at] - x[earlier][at]))
                    });
                    known.sum::<i64>() - ONE * x[step][at]
                })
                .collect();
            z.subtract(&mut stream(step as u64), 0, &mut out);
            let sum: Vec<i64> = x[step].iter().zip(&w[step]).map(|(x, w)| x + w).collect();
            assert_eq!(out, sum, "step {step}");
            released.push(sum);
        }
    }

    /// Returns the correlation coefficient of rows of C·w, times √n: normal for independent rows, beyond 4.9 with a
    /// probability of 1e-6.
    fn correlation(bands: &Bands, w: &[Vec<i64>], step: usize, lag: usize) -> (f64, f64) {
        let coefficients = bands.coefficients();
        let row = |step: usize| -> Vec<f64> {
            (0..w[0].len())
                .map(|at| {
                    coefficients.iter().zip(w[..=step].iter().rev()).map(|(c, w)| c * w[at] as f64).sum()
                })
                .collect()
        };
        let (now, then) = (row(step), row(step - lag));
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let n = now.len() as f64;
        (sum(&now, &then) / (sum(&now, &now) * sum(&then, &then)).sqrt() * n.sqrt(), sum(&now, &now) / n)
    }

    /// Oracle: C·w is z up to its rounding, independent over steps with variance s². α = 1e-6 each.
    #[test]
    fn noise_has_the_covariance_of_the_matrix_and_a_wrong_band_is_rejected() {
        let bands = Bands::least_error(60, 4).unwrap();
        let std = 1 << 20;
        let w = block(&bands, std, 12, 60_000);
        let n = w[0].len() as f64;
        for step in 1..12 {
            for lag in 1..=step {
                let (found, variance) = correlation(&bands, &w, step, lag);
                assert!(found.abs() < 4.9, "{step} {lag}: {found}");
                let ratio = variance / (std as f64).powi(2) - 1.0;
                assert!(ratio.abs() < 4.9 * (2.0 / n).sqrt(), "{step}: {ratio}");
            }
        }
        for band in 0..3 {
            let mut wrong = bands.clone();
            wrong.below[band] += ONE / 16;
            let worst = (1..=4).map(|lag| correlation(&wrong, &w, 11, lag).0.abs()).fold(0.0, f64::max);
            assert!(worst > 4.9, "band {band}: {worst}");
        }
    }

    /// Oracle: `jax_privacy`; the file names its version and functions. Entries are frozen: a change would break the certificates of
    /// runs, and a target that rounds otherwise would fail here.
    #[test]
    fn matrices_have_the_entries_errors_and_sensitivities_of_the_vectors() {
        let vectors: Value = serde_json::from_str(include_str!("../tests/banded_matrices.json")).unwrap();
        for row in vectors["matrices"].as_array().unwrap() {
            let [steps, count] = ["steps", "bands"].map(|name| row[name].as_u64().unwrap());
            let number = |name: &str| row[name].as_f64().unwrap();
            let bands = Bands::least_error(steps, count).unwrap();
            let entries: Vec<i64> =
                row["entries"].as_array().unwrap().iter().map(|entry| entry.as_i64().unwrap()).collect();
            assert_eq!(bands.below, entries, "{steps} steps, {count} bands");
            let near = |found: f64, want: f64, by: f64| {
                assert!((found / want - 1.0).abs() < by, "{steps} steps, {count} bands: {found} {want}");
            };
            let square = bands.column_norm() * bands.column_norm();
            near(square, number("column_norm_squared"), 1e-14);
            // Participations that are b steps apart move rows of their own; the last may be cut short at the end.
            let most = square * number("participations");
            assert!(most >= number("separated_sensitivity_squared") * (1.0 - 1e-14));
            let mut inverse = bands.inverse();
            let (mut sum, mut mean, mut max) = (0.0, 0.0, 0.0);
            for step in 0..steps {
                sum += inverse.next_entry();
                max += sum * sum;
                mean += sum * sum * (steps - step) as f64 / steps as f64;
            }
            near(mean, number("mean_squared_error"), 1e-9);
            near(max, number("max_squared_error"), 1e-9);
            // The tolerance covers the difference of the two searches, and the rounding to 2⁻¹⁶.
            near(mean * square, number("least_normalized_error"), 1e-4);
        }
    }

    #[test]
    fn matrices_out_of_range_are_refused() {
        // The inverse of 1 + 2x doubles at every step.
        assert!(Bands::new(12, vec![2 * ONE]).is_err() && Bands::new(4, vec![2 * ONE]).is_ok());
        assert!(Bands::new(1, vec![0; 1024]).is_err());
        for (steps, bands) in [(0, 1), (10, 0), (10, 11), (100_001, 2), (2000, 1025)] {
            assert!(Bands::least_error(steps, bands).is_err(), "{steps} {bands}");
        }
        // The search never ends at a matrix that is refused.
        for (steps, bands) in [(1, 1), (2, 2), (256, 256), (2000, 1024), (100_000, 64)] {
            assert!(Bands::least_error(steps, bands).is_ok(), "{steps} {bands}");
        }
    }
}
