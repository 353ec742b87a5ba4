//! Values of stated sensitivity, and the Gaussian mechanism. Only a mechanism can open such a value.

use accountant::DpEvent;

use crate::{MechanismError, Stream};

/// How far adding or removing one unit can move a value in L2 norm: finite and positive.
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
            Err(MechanismError::OutOfRange { name: "L2 sensitivity", value, allowed: "finite and > 0" })
        }
    }

    /// As a float.
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

    /// The stated bound.
    #[must_use]
    pub fn sensitivity(&self) -> L2Sensitivity {
        self.sensitivity
    }

    /// Applies a map that keeps all distances: reshaping, moving between devices, joining parts.
    pub fn map_isometry<U>(self, form: impl FnOnce(T) -> U) -> Bounded<U> {
        Bounded { value: form(self.value), sensitivity: self.sensitivity }
    }
}

/// Gaussian noise of standard deviation `noise_multiplier` × sensitivity on a query over the whole data set.
///
/// ```
/// use mechanisms::{Bounded, GaussianMechanism, L2Sensitivity, PrivacyRng, Purpose, TestRng};
/// let sum = Bounded::new(vec![0.0_f32; 3], L2Sensitivity::new(2.0)?);
/// let mechanism = GaussianMechanism::new(1.5)?;
/// assert_eq!(mechanism.std(&sum), 3.0);
/// let mut stream = TestRng::from_seed(1).stream(Purpose::GradientNoise, 0, 0);
/// assert!(mechanism.privatize(sum, &mut stream).iter().all(|z| *z != 0.0));
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
            let (name, value) = ("noise multiplier", noise_multiplier);
            Err(MechanismError::OutOfRange { name, value, allowed: "finite and > 0" })
        }
    }

    /// Standard deviation of the noise, in sensitivities.
    #[must_use]
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// The mechanism that together with `part`, each on its own value, costs what this one costs alone:
    /// 1/σ² = 1/σ₁² + 1/σ₂². Its noise multiplier is rounded up.
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
        // The factors of 1 − (σ/σ₁)² lose no digits where σ and σ₁ are close. The last factor covers the rounding.
        let ratio = self.noise_multiplier / part.noise_multiplier;
        let left = (1.0 - ratio) * (1.0 + ratio);
        if left > 0.0 {
            return Self::new(self.noise_multiplier / left.sqrt() * (1.0 + 1e-12));
        }
        Err(MechanismError::OutOfRange {
            name: "noise multiplier of a part",
            value: part.noise_multiplier,
            allowed: "above that of the whole",
        })
    }

    /// What one use costs.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        DpEvent::Gaussian { noise_multiplier: self.noise_multiplier }
    }

    /// Standard deviation of the noise that `value` gets.
    #[must_use]
    pub fn std<T>(&self, value: &Bounded<T>) -> f64 {
        self.noise_multiplier * value.sensitivity.0
    }

    /// Adds the noise and releases the value.
    #[must_use]
    pub fn privatize(&self, value: Bounded<Vec<f32>>, stream: &mut Stream) -> Vec<f32> {
        self.privatize_with(value, |values, std| stream.add_gaussian_f32(values, std))
    }

    /// As [`Self::privatize`], for a value in another form, for example a tensor on a device.
    ///
    /// `add_noise` gets the value and the standard deviation. It must add independent Gaussian noise to every component.
    #[must_use]
    pub fn privatize_with<T>(&self, value: Bounded<T>, add_noise: impl FnOnce(&mut T, f64)) -> T {
        let std = self.std(&value);
        let mut value = value.value;
        add_noise(&mut value, std);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    fn noise(sensitivity: f64, noise_multiplier: f64) -> Vec<f32> {
        let value = Bounded::new(vec![1.0_f32; 200_000], L2Sensitivity::new(sensitivity).unwrap());
        let mut stream = TestRng::from_seed(4).stream(Purpose::GradientNoise, 0, 0);
        GaussianMechanism::new(noise_multiplier).unwrap().privatize(value, &mut stream)
    }

    #[test]
    fn noise_std_is_multiplier_times_sensitivity_and_a_wrong_one_is_rejected() {
        let out = noise(0.5, 3.0);
        let n = out.len() as f64;
        let ratio = out.iter().map(|&x| (f64::from(x) - 1.0).powi(2)).sum::<f64>() / n / (1.5 * 1.5);
        let tolerance = 4.9 * (2.0 / n).sqrt();
        assert!((ratio - 1.0).abs() < tolerance, "{ratio}");
        assert!((ratio / (1.02_f64 * 1.02) - 1.0).abs() > tolerance, "σ wrong by 2 % must be rejected");
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
