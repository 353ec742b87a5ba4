//! Clipping in exact arithmetic: each example's gradient by itself, in integers whose norm is checked.
//!
//! The floating-point norm only chooses the factor. The scaled gradient is rounded toward zero to
//! the grid, and the norm of these integers is compared with the clip norm without rounding.
//! Therefore no rounding error, whatever its source, lets an example move the sum by more than the
//! clip norm.

use mechanisms::{L2Sensitivity, MechanismError};
use plan::Clipping;

use super::clip::ClipFactors;
use super::norms::SquaredNorms;
use super::sum::GradSum;
use network::nn::{Kernels, ParamId, ParamSpec};
use network::tensor::{FloatDType, from_host, to_host};

/// Clips single examples to multiples of a grid's step.
pub(super) struct ExactClip {
    clipping: Clipping,
    l2_clip_norm: f64,
    grid_step: f64,
    /// ⌊C/step⌋²
    largest_square: u128,
}

/// The clipped gradient of one example.
pub(super) struct ExactGradient {
    pub parts: Vec<Vec<i64>>,
    pub unclipped_halves: i64,
}

impl ExactClip {
    /// Creates the clipping for a grid whose step is a power of two.
    ///
    /// # Errors
    /// For a clip norm that is not above 0, or of 2⁵¹ grid steps or more.
    pub fn new(clipping: Clipping, l2_clip_norm: f64, grid_step: f64) -> Result<Self, MechanismError> {
        let steps = L2Sensitivity::new(l2_clip_norm)?.get() / grid_step;
        if steps < (1_u64 << 51) as f64 {
            let largest = steps as u128;
            return Ok(Self { clipping, l2_clip_norm, grid_step, largest_square: largest * largest });
        }
        let name = "clip norm in units of the noise's grid (2^28 divided by the noise multiplier)";
        Err(MechanismError::OutOfRange { name, value: steps, allowed: "below 2^51" })
    }

    /// The gradient of one example in integers, with a norm of at most ⌊C/step⌋.
    pub fn clip<B: Kernels>(&self, gradient: GradSum<B>, specs: &[ParamSpec]) -> ExactGradient {
        let device = gradient.0.first().map(|part| part.device()).unwrap_or_default();
        let parts: Vec<Vec<f32>> = gradient.0.into_iter().map(to_host).collect();
        let square = |part: &Vec<f32>| part.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>();
        let tensor = |(index, part): (usize, &Vec<f32>)| {
            (ParamId(index), from_host(vec![square(part) as f32], [1], FloatDType::F32, &device))
        };
        let squares: SquaredNorms<B> = parts.iter().enumerate().map(tensor).collect();
        let factors = ClipFactors::new(self.clipping, &squares, 1, self.l2_clip_norm, specs);
        let factor = |param: usize| f64::from(factors.of_param(param)[0]);
        ExactGradient { parts: self.scaled(&parts, factor), unclipped_halves: factors.unclipped_halves }
    }

    /// Returns the parts times their factors in integers, with a norm of at most ⌊C/step⌋ even if a
    /// factor is too large.
    fn scaled(&self, parts: &[Vec<f32>], factor: impl Fn(usize) -> f64) -> Vec<Vec<i64>> {
        // The first scale suffices unless rounding made the norm too low. The last one is 0.
        for shrink in [1.0, 1.0 - 1e-3, 0.0] {
            let scale = |param: usize| factor(param) / self.grid_step * shrink;
            let integers: Vec<Vec<i64>> =
                parts.iter().enumerate().map(|(param, part)| truncated(part, scale(param))).collect();
            if square_of(&integers) <= self.largest_square {
                return integers;
            }
        }
        parts.iter().map(|part| vec![0; part.len()]).collect()
    }
}

/// Returns the values times `factor`, rounded toward zero. NaN becomes 0, and a value beyond the
/// range of integers becomes the nearest integer.
fn truncated(part: &[f32], factor: f64) -> Vec<i64> {
    part.iter().map(|&value| (f64::from(value) * factor) as i64).collect()
}

/// Returns the sum of squares, or the largest number if the sum does not fit.
fn square_of(parts: &[Vec<i64>]) -> u128 {
    let of_part = |part: &Vec<i64>| {
        part.iter().fold(0_u128, |sum, &integer| {
            let magnitude = u128::from(integer.unsigned_abs());
            sum.saturating_add(magnitude * magnitude)
        })
    };
    parts.iter().map(of_part).fold(0, u128::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the factor is, the resulting integers have a norm of at most ⌊C/step⌋.
    #[test]
    fn a_factor_that_is_too_large_does_not_let_a_gradient_pass() {
        let grid_step = 2.0_f64.powi(-20);
        let clip = ExactClip::new(Clipping::Flat, 1.0, grid_step).unwrap();
        let parts = [vec![3.0, -1.0], vec![f32::NAN, 2.5, f32::INFINITY], vec![4.0]];
        let finite = [vec![3.0, -1.0], vec![4.0]];
        let norm = 26.0_f64.sqrt();
        for excess in [1.0, 1.0 + 1e-5, 1.0 + 9e-4, 1.5, 1e9, f64::INFINITY, f64::NAN] {
            for parts in [&parts[..], &finite[..]] {
                let square = square_of(&clip.scaled(parts, |_| excess / norm));
                assert!(square <= clip.largest_square, "{excess}: {square}");
            }
        }
        // A rounding error costs at most a thousandth of the gradient.
        let kept = square_of(&clip.scaled(&finite, |_| (1.0 + 1e-5) / norm)) as f64;
        assert!(kept.sqrt() * grid_step > 0.998, "{kept}");
    }
}
