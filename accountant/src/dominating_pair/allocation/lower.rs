//! A lower law of a mean of log-normals in convex order: values are merged into their mean. The parent module has the
//! proof. Any values may be merged; merging those near the same point of a geometric grid loses little.

use core::f64::consts::PI;

use crate::numeric::{legendre, normal};

use super::strided_sums::{StridedSums, overlap};
use super::{MeanLaw, TAIL, Weights};

/// Mass and first moment of the values merged near e^{step·(lowest + k)}.
#[derive(Clone, Debug)]
pub(super) struct LowerLaw {
    step: f64,
    lowest: i64,
    masses: Vec<f64>,
    moments: Vec<f64>,
}

impl LowerLaw {
    /// The law of L on a grid of the given step.
    pub(super) fn one(sigma: f64, step: f64) -> Self {
        let (far, half) = (normal::isf(TAIL), 0.5 / (sigma * sigma));
        let lowest = f64::floor((-far / sigma - half) / step);
        let highest = f64::ceil(((far + 1.0 / sigma) / sigma - half) / step);
        let count = (highest - lowest) as usize + 1;
        let standard = |index: f64| (index * step + half) * sigma;
        let (mut masses, mut moments) = (vec![0.0; count], vec![0.0; count]);
        for at in 0..count {
            let middle = lowest + at as f64;
            legendre::wide(standard(middle - 0.5), standard(middle + 0.5), |z, weight| {
                let scale = weight / f64::sqrt(2.0 * PI);
                masses[at] += scale * libm::exp(-0.5 * z * z);
                moments[at] += scale * libm::exp(-0.5 * (z - 1.0 / sigma) * (z - 1.0 / sigma));
            });
        }
        let (first, last) = (standard(lowest - 0.5), standard(highest + 0.5));
        masses[0] += normal::sf(-first);
        moments[0] += normal::sf(1.0 / sigma - first);
        masses[count - 1] += normal::sf(last);
        moments[count - 1] += normal::sf(last - 1.0 / sigma);
        Self { step, lowest: lowest as i64, masses, moments }
    }

    /// Mass and first moment of each group.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let both = self.masses.iter().copied().zip(self.moments.iter().copied());
        both.filter(|(mass, moment)| *mass > 0.0 && *moment > 0.0)
    }

    /// Merges the ends whose mass or moment is at most [`TAIL`].
    fn trimmed(mut self) -> Self {
        let (mut low, mut beyond) = (0, 0.0);
        while low + 1 < self.masses.len() && beyond + self.masses[low] <= TAIL {
            beyond += self.masses[low];
            low += 1;
        }
        let (mut high, mut beyond) = (self.masses.len() - 1, 0.0);
        while high > low && beyond + self.moments[high] <= TAIL {
            beyond += self.moments[high];
            high -= 1;
        }
        for row in [&mut self.masses, &mut self.moments] {
            let (under, over): (f64, f64) = (row[..low].iter().sum(), row[high + 1..].iter().sum());
            row[low] += under;
            row[high] += over;
            row.truncate(high + 1);
            row.drain(..low);
        }
        self.lowest += low as i64;
        self
    }
}

impl MeanLaw for LowerLaw {
    fn combined(&self, other: &Self, weights: Weights, refine: usize, twice: bool) -> Self {
        let shift = other.lowest - self.lowest;
        let (left, right) = (self.masses.len(), other.masses.len());
        let first = self.lowest.min(other.lowest) * refine as i64 - 1;
        let last = (self.lowest + left as i64).max(other.lowest + right as i64) * refine as i64 + 1;
        let length = (last - first + 1) as usize;
        let (mut masses, mut moments) = (StridedSums::new(refine, length), StridedSums::new(refine, length));
        let step = self.step / refine as f64;
        let least = if twice { 0 } else { 1 - left as i64 };
        for slide in least..right as i64 {
            let Some((from, until)) = overlap(left, right, slide) else { continue };
            let log = libm::log(weights.one + weights.other * libm::exp((slide + shift) as f64 * self.step));
            let start = (self.lowest + from as i64) * refine as i64 + libm::round(log / step) as i64 - first;
            let times = if twice && slide > 0 { 2.0 } else { 1.0 };
            let far = (from as i64 + slide) as usize..;
            let near = from..until;
            masses.add_products(start, &self.masses[near.clone()], &other.masses[far.clone()], times);
            let scaled = times * weights.one;
            moments.add_products(start, &self.moments[near.clone()], &other.masses[far.clone()], scaled);
            moments.add_products(start, &self.masses[near], &other.moments[far], times * weights.other);
        }
        Self { step, lowest: first, masses: masses.interleaved(), moments: moments.interleaved() }.trimmed()
    }

    fn refined(&self, times: usize) -> Self {
        let spread = |row: &[f64]| {
            let mut finer = vec![0.0; (row.len() - 1) * times + 1];
            for (at, value) in row.iter().enumerate() {
                finer[at * times] = *value;
            }
            finer
        };
        Self {
            step: self.step / times as f64,
            lowest: self.lowest * times as i64,
            masses: spread(&self.masses),
            moments: spread(&self.moments),
        }
    }

    fn length(&self) -> usize {
        self.masses.len()
    }
}
