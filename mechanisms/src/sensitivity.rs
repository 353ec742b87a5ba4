//! Values of stated sensitivity, and the Gaussian mechanism. Only a mechanism can open such a
//! value.

use accountant::DpEvent;

use crate::{Grid, MechanismError, Stream, out_of_range};

/// The largest distance in L2 norm by which adding or removing one unit can move a value: finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct L2Sensitivity(f64);

impl L2Sensitivity {
    /// Accepts a finite value above 0.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] otherwise, NaN included.
    pub fn new(value: f64) -> Result<Self, MechanismError> {
        if value > 0.0 && value.is_finite() {
            Ok(Self(value))
        } else {
            out_of_range("L2 sensitivity", value, "finite and > 0")
        }
    }

    /// Returns the sensitivity as a float.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A private value. Adding or removing one unit moves it by at most its stated sensitivity.
///
/// It cannot be read, printed, cloned or serialised; a mechanism consumes it. The caller of [`Bounded::new`] is responsible
/// for the bound.
#[must_use = "a bounded value is released by a mechanism or dropped"]
pub struct Bounded<T> {
    value: T,
    sensitivity: L2Sensitivity,
}

impl<T> Bounded<T> {
    /// States the sensitivity of `value`.
    pub fn new(value: T, sensitivity: L2Sensitivity) -> Self {
        Self { value, sensitivity }
    }

    /// Returns the stated bound.
    #[must_use]
    pub fn sensitivity(&self) -> L2Sensitivity {
        self.sensitivity
    }
}

/// Gaussian noise of standard deviation `noise_multiplier` × sensitivity on a query over the whole data set. The value lies on
/// a [`Grid`], and so does the noise, which is drawn exactly.
///
/// ```
/// use mechanisms::{Bounded, GaussianMechanism, L2Sensitivity, PrivacyRng, Purpose, TestRng};
/// let count = Bounded::new(40, L2Sensitivity::new(2.0)?);
/// let mechanism = GaussianMechanism::new(1.5)?;
/// assert_eq!(mechanism.std(&count), 3.0);
/// let mut stream = TestRng::from_seed(1).stream(Purpose::GradientNoise, 0, 0);
/// let released = mechanism.privatize(count, &mut stream)?;
/// assert!(released != 40.0 && (released - 40.0).abs() < 30.0);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianMechanism {
    noise_multiplier: f64,
}

impl GaussianMechanism {
    /// Accepts a finite noise multiplier above 0.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] otherwise, NaN included.
    pub fn new(noise_multiplier: f64) -> Result<Self, MechanismError> {
        if noise_multiplier > 0.0 && noise_multiplier.is_finite() {
            Ok(Self { noise_multiplier })
        } else {
            out_of_range("noise multiplier", noise_multiplier, "finite and > 0")
        }
    }

    /// Returns the standard deviation of the noise, in sensitivities.
    #[must_use]
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// Returns the mechanism that, together with `part` and each on its own value, costs as much as
    /// this mechanism alone: 1/σ² = 1/σ₁² + 1/σ₂². Its noise multiplier is rounded up.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] if `part` alone costs as much as this mechanism, or more.
    ///
    /// # References
    /// Two Gaussians on (x, y) are one Gaussian on (x/σ₁, y/σ₂); Andrew et al. 2019, Theorem 1,
    /// <https://arxiv.org/abs/1905.03871>.
    ///
    /// ```
    /// use mechanisms::GaussianMechanism;
    /// let whole = GaussianMechanism::new(3.0)?;
    /// let rest = whole.beside(&GaussianMechanism::new(5.0)?)?;
    /// assert!((rest.noise_multiplier() - 3.75).abs() < 1e-9);
    /// # Ok::<(), mechanisms::MechanismError>(())
    /// ```
    pub fn beside(&self, part: &Self) -> Result<Self, MechanismError> {
        // The factors of 1 − (σ/σ₁)² lose no digits if σ and σ₁ are close. The last factor covers
        // the rounding.
        let ratio = self.noise_multiplier / part.noise_multiplier;
        let left = (1.0 - ratio) * (1.0 + ratio);
        if left > 0.0 {
            return Self::new(self.noise_multiplier / left.sqrt() * (1.0 + 1e-12));
        }
        out_of_range("noise multiplier of a part", part.noise_multiplier, "above that of the whole")
    }

    /// Returns the event of one use.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        DpEvent::Gaussian { noise_multiplier: self.noise_multiplier }
    }

    /// Returns the standard deviation of the noise that `value` gets.
    #[must_use]
    pub fn std<T>(&self, value: &Bounded<T>) -> f64 {
        self.noise_multiplier * value.sensitivity.0
    }

    /// Returns the grid of a value of this sensitivity.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn grid(&self, sensitivity: L2Sensitivity) -> Result<Grid, MechanismError> {
        Grid::new(self.noise_multiplier * sensitivity.0, sensitivity.0)
    }

    /// Adds the noise to an integer and releases it.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for noise of a standard deviation above 2³⁰.
    pub fn privatize(&self, value: Bounded<i64>, stream: &mut Stream) -> Result<f64, MechanismError> {
        let grid = Grid::for_integers(self.std(&value), value.sensitivity.0)?;
        // Exact: the unit is a power of two of at most 1, and the quotient of every count is below 2⁵³.
        let mut on_grid = [(value.value as f64 / grid.unit()) as i64];
        grid.noise().add_to(stream, 0, &mut on_grid);
        Ok(on_grid[0] as f64 * grid.unit())
    }

    /// Adds noise as [`Self::privatize`] does to a value in another form, for example the integers
    /// of many tensors.
    ///
    /// `add_noise` gets the value and the grid of the mechanism, [`Self::grid`]. The value must lie
    /// on this grid, and each of its components must get independent noise.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn privatize_with<T>(
        &self,
        value: Bounded<T>,
        add_noise: impl FnOnce(&mut T, &Grid),
    ) -> Result<T, MechanismError> {
        let grid = self.grid(value.sensitivity)?;
        let mut value = value.value;
        add_noise(&mut value, &grid);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    #[test]
    fn noise_std_is_multiplier_times_sensitivity_and_a_wrong_one_is_rejected() {
        let mechanism = GaussianMechanism::new(3.0).unwrap();
        let mut stream = TestRng::from_seed(4).stream(Purpose::GradientNoise, 0, 0);
        let value = || Bounded::new(vec![1_i64 << 27; 200_000], L2Sensitivity::new(0.5).unwrap());
        assert_eq!(mechanism.std(&value()), 1.5);
        let out =
            mechanism.privatize_with(value(), |values, grid| grid.noise().add_to(&mut stream, 0, values));
        let unit = mechanism.grid(value().sensitivity()).unwrap().unit();
        let out: Vec<f64> = out.unwrap().into_iter().map(|x| x as f64 * unit).collect();
        let n = out.len() as f64;
        let ratio = out.iter().map(|&x| (x - 0.5).powi(2)).sum::<f64>() / n / (1.5 * 1.5);
        let tolerance = 4.9 * (2.0 / n).sqrt();
        assert!((ratio - 1.0).abs() < tolerance, "{ratio}");
        assert!((ratio / (1.02_f64 * 1.02) - 1.0).abs() > tolerance, "σ wrong by 2 % must be rejected");
    }

    #[test]
    fn an_integer_gets_the_noise_of_its_sensitivity() {
        for (sensitivity, multiplier) in [(1.0, 0.25), (1.0, 1e6), (3.0, 1e8)] {
            let mechanism = GaussianMechanism::new(multiplier).unwrap();
            let mut square = 0.0;
            for index in 0..2000 {
                let value = Bounded::new(-7, L2Sensitivity::new(sensitivity).unwrap());
                let mut stream = TestRng::from_seed(5).stream(Purpose::GradientNoise, 0, index);
                let noise = mechanism.privatize(value, &mut stream).unwrap() + 7.0;
                square += (noise / (multiplier * sensitivity)).powi(2);
            }
            assert!((square / 2000.0 - 1.0).abs() < 4.9 * (2.0 / 2000.0_f64).sqrt(), "{multiplier}");
        }
        let huge = GaussianMechanism::new(2.0_f64.powi(31)).unwrap();
        let mut stream = TestRng::from_seed(5).stream(Purpose::GradientNoise, 0, 0);
        assert!(huge.privatize(Bounded::new(1, L2Sensitivity::new(1.0).unwrap()), &mut stream).is_err());
    }

    /// Oracle: 1/σ² = 1/σ₁² + 1/σ₂², which is what the accountant composes.
    #[test]
    fn two_parts_cost_the_whole_and_a_part_as_dear_as_the_whole_is_refused() {
        let whole = GaussianMechanism::new(0.7).unwrap();
        for part in [0.700_001, 0.8, 5.0, 1e6] {
            let part = GaussianMechanism::new(part).unwrap();
            let rest = whole.beside(&part).unwrap();
            let cost = [part, rest].iter().map(|m| m.noise_multiplier().powi(-2)).sum::<f64>();
            let exact = 0.7_f64.powi(-2);
            assert!(cost <= exact * (1.0 + 1e-15) && cost > exact * (1.0 - 1e-11), "{cost} {exact}");
        }
        for part in [0.7, 0.3] {
            assert!(whole.beside(&GaussianMechanism::new(part).unwrap()).is_err());
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(L2Sensitivity::new(bad).is_err());
            assert!(GaussianMechanism::new(bad).is_err());
        }
    }
}
