//! Sums of products of two rows at every offset, accumulated on a grid that may be finer than theirs.

/// A row of sums, stored as interleaved lanes so that the inner loops read and write consecutive floats.
pub(super) struct StridedSums {
    lanes: Vec<Vec<f64>>,
    length: usize,
}

impl StridedSums {
    pub(super) fn new(refine: usize, length: usize) -> Self {
        Self { lanes: vec![vec![0.0; length / refine + 1]; refine], length }
    }

    /// Adds `scale`·left\[i\]·right\[i\] at `start` + i·(number of lanes).
    pub(super) fn add_products(&mut self, start: i64, left: &[f64], right: &[f64], scale: f64) {
        let (at, count) = (start as usize, self.lanes.len());
        let row = &mut self.lanes[at % count][at / count..];
        for ((sum, left), right) in row.iter_mut().zip(left).zip(right) {
            *sum += scale * left * right;
        }
    }

    pub(super) fn interleaved(&self) -> Vec<f64> {
        let count = self.lanes.len();
        (0..self.length).map(|at| self.lanes[at % count][at / count]).collect()
    }
}

/// The range of indices i < `left` for which i + `slide` is an index below `right`.
pub(super) fn overlap(left: usize, right: usize, slide: i64) -> Option<(usize, usize)> {
    let from = (-slide).max(0);
    let until = (right as i64 - slide).min(left as i64);
    (from < until).then_some((from as usize, until as usize))
}
