//! The law of a mean of log-normals from above in convex order: masses on a geometric grid. `allocation` has the proof.

use core::f64::consts::PI;

use crate::numeric::{legendre, normal};

use super::allocation::{Mean, TAIL};
use super::planes::{Planes, overlap};

/// Masses at e^{step·(lowest + k)}, at 0, and mean without mass at infinity.
#[derive(Clone, Debug)]
pub(super) struct Above {
    step: f64,
    lowest: i64,
    masses: Vec<f64>,
    pub(super) zero: f64,
    pub(super) infinite: f64,
}

impl Above {
    /// The law of L on a grid of the given step.
    pub(super) fn one(sigma: f64, step: f64) -> Self {
        let (far, half) = (normal::isf(TAIL), 0.5 / (sigma * sigma));
        let lowest = libm::floor((-far / sigma - half) / step);
        let highest = libm::ceil(((far + 1.0 / sigma) / sigma - half) / step);
        let cells = (highest - lowest) as usize;
        let mut masses = vec![0.0; cells + 1];
        let standard = |index: f64| (index * step + half) * sigma;
        let whole = libm::expm1(step);
        for (cell, index) in (0..cells).map(|cell| (cell, lowest + cell as f64)) {
            legendre::wide(standard(index), standard(index + 1.0), |z, weight| {
                let mass = weight * libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * PI);
                let above = (z / sigma - half - index * step).clamp(0.0, step);
                masses[cell] += mass * libm::expm1(step - above) * libm::exp(above) / whole;
                masses[cell + 1] += mass * libm::expm1(above) / whole;
            });
        }
        let (first, last) = (standard(lowest), standard(highest));
        // More than there is at either end: what lies beyond it, once for each place it may go to.
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

    /// Means of points `apart` cells from each other, in cells of the finer grid above the first, split so that the
    /// mean stays: the lower cell and the weights of both.
    fn split(&self, weights: (f64, f64), apart: i64, refine: usize) -> (i64, f64, f64) {
        let step = self.step / refine as f64;
        let log = libm::log(weights.0 + weights.1 * libm::exp(apart as f64 * self.step));
        let cell = libm::floor(log / step);
        let above = (log - cell * step).clamp(0.0, step);
        let whole = libm::expm1(step);
        (cell as i64, libm::expm1(step - above) * libm::exp(above) / whole, libm::expm1(above) / whole)
    }

    fn combined(&self, other: &Self, weights: (f64, f64), refine: usize, twice: bool) -> Self {
        let (left, right) = (&self.masses, &other.masses);
        let shift = other.lowest - self.lowest;
        let first = self.lowest.min(other.lowest) * refine as i64 - 1;
        let last =
            (self.lowest + left.len() as i64).max(other.lowest + right.len() as i64) * refine as i64 + 1;
        let mut planes = Planes::new(refine, (last - first + 1) as usize);
        let least = if twice { 0 } else { 1 - left.len() as i64 };
        for slide in least..right.len() as i64 {
            let Some((from, until)) = overlap(left.len(), right.len(), slide) else { continue };
            let (cell, low, high) = self.split(weights, slide + shift, refine);
            let times = if twice && slide > 0 { 2.0 } else { 1.0 };
            let start = (self.lowest + from as i64) * refine as i64 + cell - first;
            let (near, far) = (&left[from..until], &right[(from as i64 + slide) as usize..]);
            planes.add_products(start, near, far, times * low);
            planes.add_products(start + 1, near, far, times * high);
        }
        let mut out = Self {
            step: self.step / refine as f64,
            lowest: first,
            masses: planes.interleaved(),
            zero: self.zero * other.zero,
            infinite: weights.0 * self.infinite + weights.1 * other.infinite,
        };
        out.with_zero(self.zero, other, weights.1, refine);
        out.with_zero(other.zero, self, weights.0, refine);
        out.trimmed()
    }

    /// Adds what is `weight` of a value of `other` because the rest is 0: split between 0 and the value.
    fn with_zero(&mut self, zero: f64, other: &Self, weight: f64, refine: usize) {
        for (at, mass) in other.masses.iter().enumerate() {
            let place = (other.lowest + at as i64) * refine as i64 - self.lowest;
            self.masses[place as usize] += zero * mass * weight;
            self.zero += zero * mass * (1.0 - weight);
        }
    }

    /// Without the ends that hardly weigh anything.
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

impl Mean for Above {
    fn mean(&self, other: &Self, weights: (f64, f64), refine: usize) -> Self {
        self.combined(other, weights, refine, false)
    }

    fn doubled(&self, refine: usize) -> Self {
        self.combined(self, (0.5, 0.5), refine, true)
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
