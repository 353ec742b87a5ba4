//! Sums of products of two rows that slide along each other, onto a grid that may be finer than theirs.

/// A row of sums, every `planes.len()`th of which lies in the same plane, so that inner loops run over neighbours.
pub(super) struct Planes {
    planes: Vec<Vec<f64>>,
    length: usize,
}

impl Planes {
    pub(super) fn new(refine: usize, length: usize) -> Self {
        Self { planes: vec![vec![0.0; length / refine + 1]; refine], length }
    }

    /// Adds `scale`·left\[i\]·right\[i\] at `start` + i·(number of planes).
    pub(super) fn add_products(&mut self, start: i64, left: &[f64], right: &[f64], scale: f64) {
        let (at, count) = (start as usize, self.planes.len());
        let row = &mut self.planes[at % count][at / count..];
        for ((sum, left), right) in row.iter_mut().zip(left).zip(right) {
            *sum += scale * left * right;
        }
    }

    pub(super) fn interleaved(&self) -> Vec<f64> {
        let count = self.planes.len();
        (0..self.length).map(|at| self.planes[at % count][at / count]).collect()
    }
}

/// The places i of a row of `left` for which i + `slide` is one of a row of `right`.
pub(super) fn overlap(left: usize, right: usize, slide: i64) -> Option<(usize, usize)> {
    let from = (-slide).max(0);
    let until = (right as i64 - slide).min(left as i64);
    (from < until).then_some((from as usize, until as usize))
}
