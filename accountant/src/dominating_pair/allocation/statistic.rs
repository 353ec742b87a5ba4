//! A lower law of an exchange: what one statistic of an epoch reveals.
//!
//! # Proof note
//! Let the unit contribute e, its replacement −e and all others nothing. The coordinates along e of the outputs are z₁, …, z_b over σ, all standard
//! normal but one, which is displaced by w = 1/σ under P and by −w under Q. Any function of them is post-processing. Each z is rounded to an
//! integer near scale·sinh(wz) by a rule that is odd, so that the sum of the integers has one law under P and its mirror image under Q.
//! P/Q is (C + D)/(C − D) with D = Σ sinh(wz) and C = Σ cosh(wz), the latter nearly constant: the sum tells nearly all.
//!
//! The sum's law is that of b − 1 plain and one displaced integer, by a discrete Fourier transform. Sums that differ by its length
//! fall on one, which is post-processing too. What the transform and the masses may be off by is subtracted under P and added under Q.

use std::collections::BTreeMap;

use crate::dominating_pair::{DiscretePair, Outcome};
use crate::normal;
use crate::numeric::fft::{Complex, Fft};

/// Length of the transform.
const LENGTH: usize = 1 << 17;

/// Integers per standard deviation of the sum, about.
const RESOLUTION: f64 = 60.0;

/// Distance of the outcomes' losses relative to the spread of the loss, and the largest.
const SPACING: f64 = 0.01;
const WIDEST: f64 = 0.02;

/// Most bins. Beyond it, rounding could show.
const MAX_BINS: u64 = 1 << 20;

/// Relative error of a normal tail, and of sums over outcomes.
const TAIL: f64 = 2e-13;
const SUMMED: f64 = 1e-10;

/// The lower law of an epoch of `bins` bins, none where it is not computed.
pub(super) fn lower_exchange(sigma: f64, bins: u64) -> Option<DiscretePair> {
    if bins > MAX_BINS {
        return None;
    }
    let (w, count) = (1.0 / sigma, bins as f64);
    // Rare large outcomes of a small σ do not set the scale.
    let spread = f64::sqrt(0.5 * libm::expm1(2.0 * w * w)).min(libm::sinh(1.5 * w));
    let scale = RESOLUTION / (spread * f64::sqrt(count));
    let plain = Masses::new(scale, w, 0.0);
    let displaced = Masses::new(scale, w, w);
    let (sums, error) = law_of_sum(&plain, &displaced, count);
    let width = (SPACING * spread / (f64::sqrt(count) * libm::exp(0.5 * w * w))).min(WIDEST);
    let mut groups: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (index, sum) in sums.iter().enumerate() {
        let (p, q) = (sum - error, sums[(LENGTH - index) % LENGTH].max(0.0) + error);
        if p > 0.0 {
            let group = groups.entry(libm::round(libm::log(p / q) / width) as i64).or_default();
            group.0 += p;
            group.1 += q;
        }
    }
    let outcome = |(p, q): &(f64, f64)| Outcome { loss: libm::log(p / q) - SUMMED, mass: p * (1.0 - SUMMED) };
    Some(DiscretePair::new(groups.values().map(outcome).collect()))
}

/// Masses of the integers modulo [`LENGTH`], and a bound on the sum of their errors.
struct Masses {
    masses: Vec<f64>,
    error: f64,
}

impl Masses {
    /// The law of the rounded outcome of N(`mean`, 1).
    fn new(scale: f64, w: f64, mean: f64) -> Self {
        let last = LENGTH / 2 - 1;
        let mut out = Self { masses: vec![0.0; LENGTH], error: 0.0 };
        for (sign, place) in [(1.0, 0), (-1.0, LENGTH)] {
            // The tail from the lower edge of each integer on, away from 0.
            let tail = |edge: f64| normal::sf(libm::asinh(edge / scale) / w - sign * mean);
            let mut above = tail(0.5);
            for integer in 1..=last {
                let beyond = if integer == last { 0.0 } else { tail(integer as f64 + 0.5) };
                let slot = if place == 0 { integer } else { place - integer };
                out.masses[slot] = above - beyond;
                out.error += TAIL * (above + beyond);
                above = beyond;
            }
        }
        // What is left of one lies at 0.
        let others: f64 = out.masses.iter().sum();
        out.masses[0] = (1.0 - others).max(0.0);
        out.error = 2.0 * out.error + 1e-14;
        out
    }
}

/// The law of the sum of `count` − 1 plain integers and one displaced one, modulo [`LENGTH`], and a bound on the error of each mass.
fn law_of_sum(plain: &Masses, displaced: &Masses, count: f64) -> (Vec<f64>, f64) {
    let fft = Fft::new(LENGTH);
    let both = plain.masses.iter().zip(&displaced.masses);
    let mut data: Vec<Complex> = both.map(|(one, other)| Complex::new(*one, *other)).collect();
    fft.forward(&mut data);
    // Both signals together are at most two.
    let rounding = 12.0 * f64::EPSILON * libm::log2(LENGTH as f64) + 4.0 * f64::EPSILON;
    let (one, other) = (rounding + plain.error, rounding + displaced.error);
    let uses = count - 1.0;
    let (mut error, mut magnitude) = (0.0, 0.0);
    let spectrum: Vec<Complex> = (0..LENGTH)
        .map(|j| {
            let (here, mirror) = (data[j], data[(LENGTH - j) % LENGTH].conj());
            let first = here.add(mirror).scale(0.5);
            let second = here.sub(mirror).mul(Complex::new(0.0, -0.5));
            let sum = first.power(uses as u64).mul(second);
            let (size, beside) = (first.norm(), second.norm());
            let grown = libm::pow(size + one, (uses - 1.0).max(0.0));
            error += uses * (one + 2.0 * f64::EPSILON * size) * grown * (beside + other)
                + libm::pow(size + one, uses) * (other + 4.0 * f64::EPSILON * beside)
                + 1e-130;
            magnitude += sum.norm();
            sum.conj()
        })
        .collect();
    let mut data = spectrum;
    fft.forward(&mut data);
    let error = 1.01 * (error + rounding * magnitude) / LENGTH as f64;
    (data.iter().map(|value| value.re / LENGTH as f64).collect(), error)
}
