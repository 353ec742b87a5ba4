//! The upper quantile Q of the normal distribution, Φ̄(Q(v)) = v, by polynomials in double precision.
//!
//! # Construction
//! Each of [`OCTAVES`] octaves of v, from ½ down to 2⁻²¹, has [`SEGMENTS`] segments of equal width. A segment's polynomial is
//! the Taylor polynomial of degree 5 at its center. Its derivatives are Q^(n) = (−1)ⁿ·P_n(Q)/φ(Q)ⁿ with P₁ = 1 and
//! P_(n+1) = P_n′ + n·x·P_n, because Q′ = −1/φ(Q) and φ′ = −x·φ. The center's Q is one Newton step from a close value,
//! with the tail of [`tail`], so its error is rounding alone.
//!
//! # Error
//! | cause | at most |
//! |---|---|
//! | remainder, P₆(x)/(6!·φ(x)⁶)·(width/2)⁶ at the segment's largest x (held by a test) | 1.7e-14 |
//! | v is known to 63 bits: 2⁻⁶⁴/φ(x) for x ≤ 4.91 | 2.4e-14 |
//! | v is rounded to 53 bits: 2⁻⁵³·v/φ(x), and v/φ(x) ≤ 1.26 | 2e-16 |
//! | rounding of the coefficients and of the polynomial: 4 half units of the last place of a number below 8 | 2e-15 |
//!
//! The sum is below [`ERROR`] = 2⁻⁴⁴ = 5.7e-14.

use std::sync::OnceLock;

use super::tail::{self, Fixed};

/// A bound on the absolute error of the polynomials.
pub(super) const ERROR: f64 = 1.0 / (1_u64 << 44) as f64;

const OCTAVES: u64 = 20;
const SEGMENTS: u64 = 64;
const DEGREE: usize = 5;

/// The number of rows of the table: a power of two, so that no index is out of range. Rows without a segment give NaN.
const ROWS: usize = 2048;

/// A magnitude below all segments. It stands for every smaller one.
const SMALLEST: f64 = (1_u64 << 42) as f64;

/// The index of the first segment among the upper bits of a float: exponent and 6 bits of fraction.
const FIRST_ROW: u64 = (1023 + 43) << 6;

/// The coefficients of all segments, by degree.
pub(super) struct Quantile {
    coefficients: [[f64; ROWS]; DEGREE + 1],
}

impl Quantile {
    /// Returns the table, built by the first caller in about ten milliseconds.
    pub fn table() -> &'static Self {
        static TABLE: OnceLock<Box<Quantile>> = OnceLock::new();
        TABLE.get_or_init(Self::build)
    }

    /// Returns Q(v) for v between `magnitude`·2⁻⁶⁴ and (`magnitude` + 1)·2⁻⁶⁴, `magnitude` below 2⁶³; NaN outside all
    /// segments.
    #[inline(always)]
    pub fn at(&self, magnitude: u64) -> f64 {
        const FRACTION: u64 = (1 << 52) - 1;
        const ONE: u64 = 1023 << 52;
        let value = magnitude as f64;
        let bits = (if value > SMALLEST { value } else { SMALLEST }).to_bits();
        let row = (bits >> 46).wrapping_sub(FIRST_ROW) as usize & (ROWS - 1);
        // The place within the segment, from −½ to ½.
        let place = f64::from_bits(((bits << 6) & FRACTION) | ONE) - 1.5;
        let [c0, c1, c2, c3, c4, c5] = &self.coefficients;
        ((((c5[row] * place + c4[row]) * place + c3[row]) * place + c2[row]) * place + c1[row]) * place
            + c0[row]
    }

    fn build() -> Box<Self> {
        let mut table = Box::new(Self { coefficients: [[f64::NAN; ROWS]; DEGREE + 1] });
        let (mut x, mut v) = (0.0, 0.5);
        for octave in 0..OCTAVES {
            for segment in (0..SEGMENTS).rev() {
                let center = Center::new(octave, segment);
                let guess = taylor(x, center.v - v);
                x = center.newton(guess);
                v = center.v;
                let row = ((OCTAVES - 1 - octave) * SEGMENTS + segment) as usize;
                let mut scale = 1.0;
                for (degree, derivative) in derivatives(x).into_iter().enumerate() {
                    table.coefficients[degree][row] = derivative * scale;
                    scale *= center.width / (degree + 1) as f64;
                }
            }
        }
        table
    }
}

/// The center of a segment.
struct Center {
    v: f64,
    exact: Fixed,
    width: f64,
}

impl Center {
    fn new(octave: u64, segment: u64) -> Self {
        // v = (1 + (2·segment + 1)/128)·2^(−2 − octave), of which all digits are in the first word.
        let first = (2 * SEGMENTS + 2 * segment + 1) << (55 - octave);
        Self {
            v: first as f64 * tail::ONE_BIT,
            exact: Fixed::of_fraction(&[0, first]),
            width: 1.0 / (1_u64 << (8 + octave)) as f64,
        }
    }

    /// Takes one Newton step towards Φ̄(x) = v. An error of 1e-9 becomes one of 1e-17.
    fn newton(&self, x: f64) -> f64 {
        const DENOMINATOR: u64 = 1 << 40;
        let numerator = (x * DENOMINATOR as f64) as u64;
        let x = numerator as f64 / DENOMINATOR as f64;
        let excess = tail::upper(numerator, DENOMINATOR, 2).value.minus(&self.exact);
        x + excess / density(x)
    }
}

fn density(x: f64) -> f64 {
    0.398_942_280_401_432_7 * libm::exp(-0.5 * x * x)
}

/// Returns Q and its first five derivatives, in terms of x = Q.
fn derivatives(x: f64) -> [f64; DEGREE + 1] {
    let (square, slope) = (x * x, -1.0 / density(x));
    let polynomials =
        [1.0, x, 1.0 + 2.0 * square, x * (7.0 + 6.0 * square), 7.0 + square * (46.0 + square * 24.0)];
    let mut derivatives = [x; DEGREE + 1];
    let mut power = 1.0;
    for (derivative, polynomial) in derivatives[1..].iter_mut().zip(polynomials) {
        power *= slope;
        *derivative = polynomial * power;
    }
    derivatives
}

/// Returns Q at the distance `step` from the v of x.
fn taylor(x: f64, step: f64) -> f64 {
    let (mut sum, mut power) = (0.0, 1.0);
    for (degree, derivative) in derivatives(x).into_iter().enumerate() {
        sum += derivative * power;
        power *= step / (degree + 1) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P₆ from P₅ by the recursion; all terms are positive, so the segment's lower end has the largest remainder.
    #[test]
    fn the_remainder_of_every_segment_is_within_its_bound() {
        let table = Quantile::table();
        for octave in 0..OCTAVES {
            for segment in 0..SEGMENTS {
                let magnitude = (SEGMENTS + segment) << (56 - octave);
                let x = table.at(magnitude) + 1e-9;
                let square = x * x;
                let p6 = x * (127.0 + square * (326.0 + square * 120.0));
                let reach = 0.5 * Center::new(octave, segment).width / density(x);
                assert!(p6 / 720.0 * reach.powi(6) < 1.7e-14, "{octave} {segment}");
                assert!(2.0_f64.powi(-64) / density(x) < 2.4e-14 && x < 4.91);
                assert!(magnitude as f64 * 2.0_f64.powi(-64) / density(x) < 1.26);
            }
        }
    }

    /// Oracle: the tail in fixed point, at ends and centers of segments; the error is (Φ̄(Q) − v)/φ(Q).
    #[test]
    fn the_quantile_inverts_the_tail_within_its_error() {
        let table = Quantile::table();
        for octave in 0..OCTAVES {
            for part in 0..3 * SEGMENTS {
                let magnitude = ((u128::from(3 * SEGMENTS + part) << (56 - octave)) / 3) as u64;
                let x = table.at(magnitude);
                let numerator = (x * 2.0_f64.powi(50)) as u64;
                let v = Fixed::of_fraction(&[0, magnitude]);
                let error = tail::upper(numerator, 1 << 50, 2).value.minus(&v) / density(x);
                assert!(error.abs() < ERROR, "{octave} {part}: {error:e}");
            }
        }
    }

    #[test]
    fn a_magnitude_without_a_segment_gives_nan() {
        for magnitude in [0, 1, (1 << 43) - 1, u64::MAX >> 1] {
            assert!(Quantile::table().at(magnitude).is_nan(), "{magnitude}");
        }
        assert!(Quantile::table().at(1 << 43) > 4.8);
    }
}
