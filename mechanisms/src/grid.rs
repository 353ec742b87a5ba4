//! Grids of integers on which sums and their noise are exact.

use crate::{MechanismError, RoundedGaussian, out_of_range};

/// The multiples of a power of two, and Gaussian noise on them.
///
/// Sums of integers do not depend on their order, and Gaussian noise rounded to integers is exact: [`RoundedGaussian`].
///
/// ```
/// use mechanisms::Grid;
/// let grid = Grid::new(1.5, 1.0)?;
/// assert_eq!(grid.unit(), 2.0_f64.powi(-28));
/// assert_eq!(grid.noise().std(), (3 << 27) + 1);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    unit: f64,
    noise: RoundedGaussian,
}

/// The exponent of the fineness: the unit is the largest power of two of at most 2⁻²⁸ standard deviations. With d
/// components, rounding each to the grid moves a value by at most √d·2⁻²⁹ standard deviations: 2e-5 of one for 10⁸
/// components.
const FINENESS: i32 = 28;

/// The exponent of the smallest unit: about 2⁻⁴⁰ sensitivities, so that sums of thousands of units' values fit 51 bits
/// however small the noise is.
const LONGEST: i32 = 40;

/// The range of figures whose units are far from the limits of double precision.
const RANGE: std::ops::Range<f64> = 1e-200..1e200;

/// The factor that covers the rounding of a standard deviation that was computed as a product.
const ROUND_UP: f64 = 1.0 + 1e-15;

impl Grid {
    /// Returns the grid for a value of this sensitivity and noise of this standard deviation. The
    /// standard deviation on the grid is never below the given one. If the given one is above 2⁻¹¹
    /// sensitivities, the excess is at most 2⁻²⁷ of it.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] for a figure outside 1e-200..1e200, NaN included.
    pub fn new(std: f64, sensitivity: f64) -> Result<Self, MechanismError> {
        for (name, value) in [("standard deviation of noise", std), ("sensitivity", sensitivity)] {
            if !RANGE.contains(&value) {
                return out_of_range(name, value, "1e-200 <= value < 1e200");
            }
        }
        let exponent = (exponent(std) - FINENESS).max(exponent(sensitivity) - LONGEST);
        Self::of_unit(std, power_of_two(exponent))
    }

    /// Creates a grid as [`Grid::new`] does, with a unit of at most 1, so that integers lie on the
    /// grid.
    ///
    /// # Errors
    /// As [`Grid::new`], and for a standard deviation above 2³⁰.
    pub(crate) fn for_integers(std: f64, sensitivity: f64) -> Result<Self, MechanismError> {
        let grid = Self::new(std, sensitivity)?;
        if grid.unit <= 1.0 { Ok(grid) } else { Self::of_unit(std, 1.0) }
    }

    fn of_unit(std: f64, unit: f64) -> Result<Self, MechanismError> {
        // The quotient is exact, and the conversion of a large float saturates, which is then refused.
        Ok(Self { unit, noise: RoundedGaussian::new((std / unit * ROUND_UP).ceil() as u64)? })
    }

    /// Returns the distance between neighboring points: a power of two.
    #[must_use]
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// Returns the noise, in units of the grid.
    #[must_use]
    pub fn noise(&self) -> RoundedGaussian {
        self.noise
    }
}

/// Returns ⌊log₂ value⌋ of a normal number above 0.
fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52) as i32 - 1023
}

/// Returns 2^`exponent`, for an exponent of a normal number.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_on_the_grid_has_at_least_the_standard_deviation_asked_for() {
        for std in [1e-199, 1e-3, 0.1, 0.999_999_999_999, 1.0, 1.0 + f64::EPSILON, 3.7, 1e9, 9e199] {
            let grid = Grid::new(std, std).unwrap();
            let got = grid.noise().std() as f64 * grid.unit();
            assert!(got > std && got <= std * (1.0 + 2.0_f64.powi(-27)), "{std}: {got}");
            assert!(grid.unit() <= std * 2.0_f64.powi(-28) && grid.unit() > std * 2.0_f64.powi(-29));
        }
        for bad in [0.0, -1.0, 1e-201, 1e200, f64::NAN, f64::INFINITY] {
            assert!(Grid::new(bad, 1.0).is_err() && Grid::new(1.0, bad).is_err(), "{bad}");
        }
        let tiny = Grid::new(1e-30, 1.0).unwrap();
        assert_eq!((tiny.unit(), tiny.noise().std()), (2.0_f64.powi(-40), 1));
    }

    #[test]
    fn integers_lie_on_their_grid() {
        assert_eq!(Grid::for_integers(2.0_f64.powi(30) * 0.99, 1.0).unwrap().unit(), 1.0);
        assert_eq!(Grid::for_integers(4.0, 1.0).unwrap().unit(), 2.0_f64.powi(-26));
        assert!(Grid::for_integers(2.0_f64.powi(31), 1.0).is_err());
    }
}
