//! Noise that is correlated over steps: the rows of C⁻¹z for a banded Toeplitz matrix C.

use accountant::correlated::{MAX_STEPS, Strategy};

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

/// 1, in units of an entry.
const ONE: i64 = 1 << FRACTION_BITS;

/// Largest product of Σ|C| and Σ|C⁻¹|, each over a column: 2³⁵·2¹⁶·2¹⁰ is 2⁶¹, and the rounding of the product is far below a bit.
const LARGEST_SUMS: f64 = 1024.0;

/// Largest number of bands.
const MAX_BANDS: u64 = 256;

impl Bands {
    /// The matrix with the entries `below` under its diagonal, in units of 2⁻¹⁶, for blocks of at most `steps` steps.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for 256 entries or more, or for a matrix whose noise would not fit 63 bits.
    pub fn new(steps: u64, below: Vec<i64>) -> Result<Self, MechanismError> {
        let count = below.len() as u64 + 1;
        if count > MAX_BANDS {
            return out_of_range("bands", count as f64, "1 to 256");
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
            // Exact: |C| adds up to at most 2¹⁰, so that the squares add up to at most 2⁵².
            let squares = below.iter().fold(ONE * ONE, |sum, entry| sum + entry * entry);
            let column_norm = (squares as f64).sqrt() / ONE as f64 * (1.0 + f64::EPSILON);
            Ok(Self { below, column_norm })
        } else {
            out_of_range("sum of |C| times sum of |inverse of C|", sums, "at most 1024")
        }
    }

    /// The matrix of `bands` bands whose prefix sums over `steps` steps have the least error, as [`Strategy::banded`] finds it, rounded
    /// to multiples of 2⁻¹⁶.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for no steps or more than 100,000; for no bands, or more than 256 or than steps.
    pub fn least_error(steps: u64, bands: u64) -> Result<Self, MechanismError> {
        check(steps, bands)?;
        let Ok(strategy) = Strategy::banded(steps, bands) else {
            return out_of_range("steps", steps as f64, "1 to 100000 for correlated noise");
        };
        let first = strategy.coefficients().first().copied().unwrap_or(f64::NAN);
        let below = strategy.coefficients().iter().skip(1).map(|c| (c / first * ONE as f64).round() as i64);
        Self::new(steps, below.collect())
    }

    /// Number b of bands.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.below.len() as u64 + 1
    }

    /// The mechanism that draws z: its noise multiplier is in norms of one contribution, and that of `noise` in column norms times it.
    /// Rounded up.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for noise beyond the range of floats.
    pub fn mechanism(&self, noise: GaussianMechanism) -> Result<GaussianMechanism, MechanismError> {
        GaussianMechanism::new(noise.noise_multiplier() * self.column_norm * (1.0 + 1e-15))
    }

    /// c₀, c₁, …, c_{b−1}.
    #[must_use]
    pub fn coefficients(&self) -> Vec<f64> {
        [ONE].iter().chain(&self.below).map(|entry| *entry as f64 / ONE as f64).collect()
    }

    /// Upper bound on the L2 norm of a column; within 3e-16 of it.
    #[must_use]
    pub fn column_norm(&self) -> f64 {
        self.column_norm
    }

    /// The first column of C⁻¹, from its top.
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

/// Accepts the numbers of steps and bands for which a matrix is found.
pub(crate) fn check(steps: u64, bands: u64) -> Result<(), MechanismError> {
    if !(1..=MAX_STEPS).contains(&steps) {
        return out_of_range("steps", steps as f64, "1 to 100000 for correlated noise");
    }
    if (1..=MAX_BANDS.min(steps)).contains(&bands) {
        Ok(())
    } else {
        out_of_range("bands", bands as f64, "1 to 256, and at most the number of steps")
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

    /// The next entry.
    pub fn next_entry(&mut self) -> f64 {
        let earlier: f64 = self.below.iter().zip(&self.last).map(|(c, entry)| c * entry).sum();
        let entry = if self.begun { -earlier } else { 1.0 };
        self.begun = true;
        self.last.insert(0, entry);
        self.last.truncate(self.below.len());
        entry
    }
}
