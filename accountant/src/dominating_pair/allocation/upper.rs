//! An upper law of a mean of log-normals in convex order: masses on a geometric grid. The parent module has the proof.

use core::f64::consts::PI;

use crate::numeric::{legendre, normal};

use super::strided_sums::{StridedSums, overlap};
use super::{MeanLaw, TAIL, Weights};

/// Masses at e^{step·(lowest + k)} and at 0, and the part of the mean that lies at infinity, where
/// there is no mass.
#[derive(Clone, Debug)]
pub(super) struct UpperLaw {
    step: f64,
    lowest: i64,
    masses: Vec<f64>,
    pub(super) zero: f64,
    pub(super) infinite: f64,
}

impl UpperLaw {
    /// The law of L on a grid of the given step.
    pub(super) fn one(sigma: f64, step: f64) -> Self {
        let (far, half) = (normal::isf(TAIL), 0.5 / (sigma * sigma));
        let lowest = f64::floor((-far / sigma - half) / step);
        let highest = f64::ceil(((far + 1.0 / sigma) / sigma - half) / step);
        let cells = (highest - lowest) as usize;
        let mut masses = vec![0.0; cells + 1];
        let standard = |index: f64| (index * step + half) * sigma;
        let whole = libm::expm1(step);
        for (cell, index) in (0..cells).map(|cell| (cell, lowest + cell as f64)) {
            legendre::wide(standard(index), standard(index + 1.0), |z, weight| {
                let mass = weight * libm::exp(-0.5 * z * z) / f64::sqrt(2.0 * PI);
                let above = (z / sigma - half - index * step).clamp(0.0, step);
                masses[cell] += mass * libm::expm1(step - above) * libm::exp(above) / whole;
                masses[cell + 1] += mass * libm::expm1(above) / whole;
            });
        }
        let (first, last) = (standard(lowest), standard(highest));
        // These are upper bounds on the mass beyond either end, counted at each place to which it may go.
        masses[0] += normal::sf(1.0 / sigma - first) * libm::exp(-lowest * step);
        masses[cells] += normal::sf(last);
        Self {
            step,
            lowest: lowest as i64,
            masses,
            zero: normal::sf(-first),
            infinite: normal::sf(last - 1.0 / sigma),
        }
    }

    /// log of each point and its mass.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.masses.iter().enumerate().map(|(at, mass)| ((self.lowest + at as i64) as f64 * self.step, *mass))
    }

    /// The mean of two points `apart` cells from each other, split between two points of the finer grid with its value
    /// preserved: the lower point, counted from the first of the two, and both weights.
    fn split(&self, weights: Weights, apart: i64, refine: usize) -> (i64, f64, f64) {
        let step = self.step / refine as f64;
        let log = libm::log(weights.one + weights.other * libm::exp(apart as f64 * self.step));
        let cell = f64::floor(log / step);
        let above = (log - cell * step).clamp(0.0, step);
        let whole = libm::expm1(step);
        (cell as i64, libm::expm1(step - above) * libm::exp(above) / whole, libm::expm1(above) / whole)
    }

    /// Adds the means in which one part is 0 and `other` has weight `weight`, split between 0 and the value of `other`.
    fn with_zero(&mut self, zero: f64, other: &Self, weight: f64, refine: usize) {
        for (at, mass) in other.masses.iter().enumerate() {
            let place = (other.lowest + at as i64) * refine as i64 - self.lowest;
            self.masses[place as usize] += zero * mass * weight;
            self.zero += zero * mass * (1.0 - weight);
        }
    }

    /// Removes the ends whose mass is at most [`TAIL`].
    fn trimmed(mut self) -> Self {
        let value = |cells: usize| libm::exp(-(cells as f64) * self.step);
        let (mut low, mut beyond) = (0, 0.0);
        while low + 1 < self.masses.len() && beyond + self.masses[low] <= TAIL {
            beyond += self.masses[low];
            low += 1;
        }
        for at in 0..low {
            let kept = value(low - at);
            self.zero += self.masses[at] * (1.0 - kept);
            self.masses[low] += self.masses[at] * kept;
        }
        let worth = |at: usize| libm::exp((self.lowest + at as i64) as f64 * self.step);
        let (mut high, mut beyond) = (self.masses.len() - 1, 0.0);
        while high > low && beyond + self.masses[high] * worth(high) <= TAIL {
            beyond += self.masses[high] * worth(high);
            high -= 1;
        }
        for at in high + 1..self.masses.len() {
            self.infinite += self.masses[at] * worth(at) * (1.0 - value(at - high));
            self.masses[high] += self.masses[at];
        }
        self.masses.truncate(high + 1);
        self.masses.drain(..low);
        self.lowest += low as i64;
        self
    }
}

impl MeanLaw for UpperLaw {
    fn combined(&self, other: &Self, weights: Weights, refine: usize, twice: bool) -> Self {
        let (left, right) = (&self.masses, &other.masses);
        let shift = other.lowest - self.lowest;
        let first = self.lowest.min(other.lowest) * refine as i64 - 1;
        let last =
            (self.lowest + left.len() as i64).max(other.lowest + right.len() as i64) * refine as i64 + 1;
        let mut sums = StridedSums::new(refine, (last - first + 1) as usize);
        let least = if twice { 0 } else { 1 - left.len() as i64 };
        for slide in least..right.len() as i64 {
            let Some((from, until)) = overlap(left.len(), right.len(), slide) else { continue };
            let (cell, low, high) = self.split(weights, slide + shift, refine);
            let times = if twice && slide > 0 { 2.0 } else { 1.0 };
            let start = (self.lowest + from as i64) * refine as i64 + cell - first;
            let (near, far) = (&left[from..until], &right[(from as i64 + slide) as usize..]);
            sums.add_products(start, near, far, times * low);
            sums.add_products(start + 1, near, far, times * high);
        }
        let mut out = Self {
            step: self.step / refine as f64,
            lowest: first,
            masses: sums.interleaved(),
            zero: self.zero * other.zero,
            infinite: weights.one * self.infinite + weights.other * other.infinite,
        };
        out.with_zero(self.zero, other, weights.other, refine);
        out.with_zero(other.zero, self, weights.one, refine);
        out.trimmed()
    }

    fn refined(&self, times: usize) -> Self {
        let mut masses = vec![0.0; (self.masses.len() - 1) * times + 1];
        for (at, mass) in self.masses.iter().enumerate() {
            masses[at * times] = *mass;
        }
        Self { step: self.step / times as f64, lowest: self.lowest * times as i64, masses, ..*self }
    }

    fn length(&self) -> usize {
        self.masses.len()
    }
}
