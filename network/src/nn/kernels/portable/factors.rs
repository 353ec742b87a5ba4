//! Sums of gradients whose factors are held, tile by tile.

use std::ops::Range;

use super::super::{GradientFactors, Kernels, SumTile};
use crate::tensor::{IndexingUpdateOp, Int, Tensor, TensorData};

/// Rows and columns of a tile: so few that the tile, its factors and its sums stay in the second-level cache from example to example.
const SIDE: usize = 256;

pub fn add_factors<B: Kernels>(
    gradients: &mut [GradientFactors<B>],
    [rows, columns]: [usize; 2],
    add: &mut dyn FnMut(SumTile<'_>),
) {
    let mut sums = vec![0; SIDE.min(rows) * SIDE.min(columns)];
    for top in (0..rows).step_by(SIDE) {
        for left in (0..columns).step_by(SIDE) {
            let (below, right) = (rows.min(top + SIDE), columns.min(left + SIDE));
            let sums = &mut sums[..(below - top) * (right - left)];
            sums.fill(0);
            let mut is_empty = true;
            for gradient in &mut *gradients {
                if let Some(tile) = tile(gradient, top..below, left..right) {
                    is_empty = false;
                    gradient.room =
                        B::add_truncated(tile, gradient.factor, gradient.room, sums, right - left);
                }
            }
            if !is_empty {
                add(SumTile { rows: top..below, columns: left..right, sums });
            }
        }
    }
}

/// The gradient at these rows and columns; `None` if it is zero.
fn tile<B: Kernels>(
    gradient: &GradientFactors<B>,
    range: Range<usize>,
    columns: Range<usize>,
) -> Option<Tensor<B, 2>> {
    let across = |matrix: &Tensor<B, 2>| matrix.clone().narrow(1, columns.start, columns.len());
    let product = gradient.product.as_ref().map(|[left, right]| {
        let left = left.clone().narrow(0, range.start, range.len());
        B::product_in(gradient.precision, left, across(right))
    });
    let looked_up = gradient.looked_up.as_ref().and_then(|(rows, grad)| {
        let (places, rows): (Vec<i32>, Vec<i32>) = (0..)
            .zip(rows)
            .filter(|(_, row)| range.contains(row))
            .map(|(place, row)| (place, (row - range.start) as i32))
            .unzip();
        let device = grad.device();
        let index = |values: Vec<i32>| {
            let length = values.len();
            Tensor::<B, 1, Int>::from_data(TensorData::new(values, [length]), &device)
        };
        (!rows.is_empty()).then(|| (index(rows), across(&grad.clone().select(0, index(places)))))
    });
    match (product, looked_up) {
        (product, None) => product,
        (product, Some((rows, grad))) => {
            let table = product.unwrap_or_else(|| {
                Tensor::zeros([range.len(), columns.len()], (&grad.device(), grad.dtype()))
            });
            Some(table.select_assign(0, rows, grad, IndexingUpdateOp::Add))
        }
    }
}
