//! Tilt, transform, raise to the number of uses, transform back.

use crate::numeric::fft::{Complex, Fft};
use crate::{AccountantError, Result};

use super::Loss;
use super::cells::Cells;
use super::composed::{Composed, Curve};
use super::grid::Grid;
use super::merge::merge;
use crate::dominating_pair::quadrature::ULP;

const TOO_LONG: AccountantError =
    AccountantError::NotConverged { what: "the privacy loss of one step spans too many grid points" };

/// The masses of a single use, tilted and normalised, with the log of their divisor.
struct Tilted {
    masses: Vec<f64>,
    log_norm: f64,
    /// log Σ masses·e^{(order − tilt)·loss} over the norm, at both orders of the grid.
    log_above: f64,
    log_below: f64,
}

fn tilt(masses: Vec<f64>, step: f64, grid: &Grid) -> Option<Tilted> {
    let weighed = |order: f64| -> (Vec<f64>, f64) {
        let weighed: Vec<f64> = masses
            .iter()
            .enumerate()
            .map(
                |(index, mass)| {
                    if *mass > 0.0 { mass * libm::exp(order * (index as f64 - 1.0) * step) } else { 0.0 }
                },
            )
            .collect();
        let sum = weighed.iter().sum();
        (weighed, sum)
    };
    let (mut tilted, norm) = weighed(grid.tilt);
    let (_, above) = weighed(grid.order_above);
    let (_, below) = weighed(grid.order_below);
    if !(norm > 0.0 && norm < f64::INFINITY && above < f64::INFINITY && below > 0.0) {
        return None;
    }
    for mass in &mut tilted {
        *mass /= norm;
    }
    Some(Tilted {
        masses: tilted,
        log_norm: libm::log(norm),
        log_above: libm::log(above),
        log_below: libm::log(below),
    })
}

/// Returns both composed curves on the grid.
pub(super) fn compose(losses: &[Loss], grid: &Grid) -> Result<Composed> {
    let length = grid.length();
    let fft = Fft::new(length);
    let half = length / 2;
    let mut spectra = [vec![Complex::new(1.0, 0.0); half + 1], vec![Complex::new(1.0, 0.0); half + 1]];
    let mut errors = [vec![0.0; half + 1], vec![0.0; half + 1]];
    let mut curves = [Curve::default(), Curve::default()];
    let mut origin = 0.0;
    // The rounding of each output of a transform, relative to the sum of the magnitudes that went in.
    let rounding = 6.0 * ULP * libm::log2(length as f64) + 4.0 * ULP;
    for Loss { law, count } in losses {
        let uses = *count as f64;
        let cells = Cells::new(law, grid.step, grid.tail).ok_or(TOO_LONG)?;
        origin += uses * cells.origin;
        let upper = tilt(cells.split(), grid.step, grid).ok_or(TOO_LONG)?;
        let lower = tilt(merge(&cells), grid.step, grid).ok_or(TOO_LONG)?;
        let mut data = vec![Complex::default(); length];
        for (index, (up, low)) in upper.masses.iter().zip(&lower.masses).enumerate() {
            // Index 0 is one step below the origin. The body, at the origin, is the same at every frequency:
            // added after the transform, it costs no digits of the rest.
            if index == 1 {
                continue;
            }
            let slot = (index + length - 1) % length;
            data[slot] = data[slot].add(Complex::new(*up, *low));
        }
        fft.forward(&mut data);
        for (curve, tilted) in curves.iter_mut().zip([&upper, &lower]) {
            curve.log_norm += uses * tilted.log_norm;
            curve.log_above += uses * (tilted.log_above - tilted.log_norm);
            curve.log_below += uses * (tilted.log_below - tilted.log_norm);
            curve.rounding += uses * 16.0 * ULP * (1.0 + libm::fabs(tilted.log_norm) + grid.tilt * grid.step);
        }
        curves[0].lost += uses * cells.lost;
        let bodies = [upper.masses[1], lower.masses[1]];
        let input = rounding * (2.0 - bodies[0] - bodies[1]).max(0.0) + 2.0 * ULP;
        for j in 0..=half {
            let (here, mirror) = (data[j], data[(length - j) % length].conj());
            let parts = [here.add(mirror).scale(0.5), here.sub(mirror).mul(Complex::new(0.0, -0.5))];
            for which in 0..2 {
                let whole = parts[which].add(Complex::new(bodies[which], 0.0));
                let powered = whole.power(*count);
                errors[which][j] += power_error(whole.norm(), powered.norm(), uses, input);
                spectra[which][j] = spectra[which][j].mul(powered);
            }
        }
    }
    let mut data = packed(&spectra, length);
    fft.forward(&mut data);
    for (which, curve) in curves.iter_mut().enumerate() {
        let spectrum_error: f64 = errors[which].iter().sum();
        let magnitude: f64 = spectra.iter().flatten().map(|value| value.norm()).sum();
        curve.noise = 2.0 * (spectrum_error + rounding * magnitude) / length as f64;
        curve.masses =
            data.iter().map(|value| if which == 0 { value.re } else { -value.im } / length as f64).collect();
    }
    let [upper, lower] = curves;
    Ok(Composed::new(upper, lower, origin, grid))
}

/// Packs the half spectra of two real signals into a full spectrum, conjugated. Its forward
/// transform is the inverse of both: one in the real part and the other, negated, in the imaginary
/// part.
fn packed([upper, lower]: &[Vec<Complex>; 2], length: usize) -> Vec<Complex> {
    (0..length)
        .map(|j| {
            let at = |spectrum: &[Complex]| {
                if 2 * j <= length { spectrum[j] } else { spectrum[length - j].conj() }
            };
            at(upper).add(at(lower).mul(Complex::new(0.0, 1.0))).conj()
        })
        .collect()
}

/// |(φ + e)^T − computed φ^T| for |e| ≤ `rounding`.
fn power_error(norm: f64, powered: f64, uses: f64, rounding: f64) -> f64 {
    let grown = uses * (rounding + 1.5 * ULP);
    if norm >= 0.25 {
        // (1 + 4·rounding)^T stays below 1.1 wherever `Composed` accepts the noise.
        4.4 * grown * powered + 1e-130
    } else if uses >= 64.0 {
        1e-30
    } else {
        grown
    }
}
