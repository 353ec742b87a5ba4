//! Gradients of matrices that are added to sums in integers without being held.

use std::ops::Range;

use plan::Precision;

use crate::tensor::{Backend, Tensor};

/// One example's gradient of a matrix: a product, plus rows that are added to some of its rows.
pub struct GradientFactors<B: Backend> {
    /// `[rows, positions]` and `[positions, columns]`
    pub product: Option<[Tensor<B, 2>; 2]>,
    /// How the product is computed.
    pub precision: Precision,
    /// The row of each position, and what is added to it. `[positions, columns]`
    pub looked_up: Option<(Vec<usize>, Tensor<B, 2>)>,
    /// The gradient is multiplied by this.
    pub factor: f64,
    /// The largest sum of the squares of integers that may still be added.
    pub room: u128,
}

/// The sums of several examples' integers in a part of a matrix.
pub struct SumTile<'a> {
    /// The part's rows.
    pub rows: Range<usize>,
    /// The part's columns.
    pub columns: Range<usize>,
    /// The sums, in row-major order.
    pub sums: &'a [i64],
}

impl SumTile<'_> {
    /// Adds the tile to sums of its rows, which are `pitch` apart and begin with the matrix's first column.
    pub fn add_to(&self, sums: &mut [i64], pitch: usize) {
        let width = self.columns.len();
        if width == 0 {
            return;
        }
        for (row, added) in self.sums.chunks_exact(width).enumerate() {
            let sums = &mut sums[row * pitch + self.columns.start..][..width];
            sums.iter_mut().zip(added).for_each(|(sum, added)| *sum = sum.wrapping_add(*added));
        }
    }
}
