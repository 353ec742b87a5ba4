//! Sums of gradients whose factors are held: tiles of a product are computed in registers, rounded and added to integers while they are in
//! the innermost cache.

use std::cell::RefCell;

use plan::Precision;
use pulp::{Arch, Simd, WithSimd};

use super::super::portable::{self, Stretch, Truncation};
use super::super::{GradientFactors, SumTile};
use super::matrix::Matrix;
use super::parts::positive;
use super::tile::{LARGEST_TILE, VECTORS, aligned, copy_panels, lanes, sum};
use super::{open, values};
use crate::tensor::{DType, Flex, FlexTensor};

/// Rows of a block, whose sums and factors stay in the second-level cache from example to example, and its panels of columns.
const TALL: usize = 128;
const PANELS: usize = 5;

thread_local! {
    /// Copies of the factors.
    static COPIES: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

pub fn add_factors(
    gradients: &mut [GradientFactors<Flex>],
    shape: [usize; 2],
    add: &mut dyn FnMut(SumTile<'_>),
) {
    let Some(mut products) = gradients.iter().map(Product::of).collect::<Option<Vec<_>>>() else {
        return portable::add_factors(gradients, shape, add);
    };
    COPIES.with_borrow_mut(|copies| {
        Arch::new().dispatch(AddFactors { products: &mut products, shape, copies, add });
    });
    for (gradient, product) in gradients.iter_mut().zip(products) {
        gradient.room = product.room;
    }
}

/// A gradient whose product is of 32 bits.
struct Product {
    left: FlexTensor,
    right: FlexTensor,
    /// Rows that are looked up and their places, in order.
    rows: Vec<(usize, usize)>,
    looked_up: Option<FlexTensor>,
    factor: f64,
    room: u128,
}

impl Product {
    fn of(gradient: &GradientFactors<Flex>) -> Option<Self> {
        let [left, right] = gradient.product.clone()?;
        if gradient.precision != Precision::F32 || [left.dtype(), right.dtype()] != [DType::F32; 2] {
            return None;
        }
        let (mut rows, looked_up) = match gradient.looked_up.clone() {
            Some((rows, added)) => (rows.into_iter().zip(0..).collect(), Some(open(added))),
            None => (Vec::new(), None),
        };
        rows.sort_unstable();
        let [left, right] = [positive(left), positive(right)];
        Some(Self { left, right, rows, looked_up, factor: gradient.factor, room: gradient.room })
    }

    /// Adds what is looked up to a tile from this row and column on.
    #[inline(always)]
    fn look_up(
        &self,
        tile: &mut [f32],
        width: usize,
        [row, column]: [usize; 2],
        [rows, columns]: [usize; 2],
    ) {
        let Some(looked_up) = &self.looked_up else { return };
        let (added, all) = (values(looked_up), looked_up.layout().shape()[1]);
        let first = self.rows.partition_point(|&(at, _)| at < row);
        for &(at, place) in self.rows[first..].iter().take_while(|&&(at, _)| at < row + rows) {
            let added = &added[place * all + column..][..columns];
            tile[(at - row) * width..].iter_mut().zip(added).for_each(|(value, added)| *value += added);
        }
    }
}

struct AddFactors<'a> {
    products: &'a mut [Product],
    shape: [usize; 2],
    copies: &'a mut [Vec<f32>; 2],
    add: &'a mut dyn FnMut(SumTile<'_>),
}

impl WithSimd for AddFactors<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::REGISTER_COUNT < 32 { self.run::<S, 4>(simd) } else { self.run::<S, 8>(simd) }
    }
}

impl AddFactors<'_> {
    #[inline(always)]
    fn run<S: Simd, const ROWS: usize>(self, simd: S) {
        let Self { products, shape: [rows, columns], copies: [left, right], add } = self;
        let (lanes, width) = (lanes::<S>(), VECTORS * lanes::<S>());
        let depth = |product: &Product| product.right.layout().shape()[0];
        let deepest = products.iter().map(depth).max().unwrap_or(0);
        let (band, across) = (TALL * deepest, columns.next_multiple_of(width) * deepest);
        let left = aligned(left, band * products.len());
        let right = aligned(right, across * products.len());
        for (product, right) in products.iter().zip(right.chunks_exact_mut(across.max(1))) {
            let lines = Matrix::<f32>::of(&product.right, 0).transposed();
            copy_panels(&lines, 0..columns, 0..depth(product), right, [width, lanes]);
        }
        let mut sums = vec![0; TALL * PANELS * width];
        let (mut tile, mut truncation) = ([0.0; LARGEST_TILE], Truncation::default());
        for top in (0..rows).step_by(TALL) {
            let band_rows = top..rows.min(top + TALL);
            for (product, left) in products.iter().zip(left.chunks_exact_mut(band.max(1))) {
                let lines = Matrix::<f32>::of(&product.left, 0);
                copy_panels(&lines, band_rows.clone(), 0..depth(product), left, [ROWS, ROWS]);
            }
            for block in (0..columns).step_by(PANELS * width) {
                let block = block..columns.min(block + PANELS * width);
                let pitch = block.len();
                let sums = &mut sums[..band_rows.len() * pitch];
                sums.fill(0);
                for (at, product) in products.iter_mut().enumerate() {
                    let depth = depth(product);
                    for column in block.clone().step_by(width) {
                        let right = &right[at * across + column * depth..];
                        let count = width.min(columns - column);
                        let width = count.next_multiple_of(lanes);
                        for row in band_rows.clone().step_by(ROWS) {
                            let left = &left[at * band + (row - top) * depth..][..ROWS * depth];
                            let right = &right[..width * depth];
                            sum::<S, ROWS>(simd, width / lanes, [left, right], &mut tile, width, false);
                            let size = [ROWS.min(band_rows.end - row), count];
                            let tile = &mut tile[..ROWS * width];
                            product.look_up(tile, width, [row, column], size);
                            let stretch = Stretch { values: &*tile, width, size };
                            let sums = &mut sums[(row - top) * pitch + column - block.start..];
                            product.room = truncation.add(stretch, product.factor, product.room, sums, pitch);
                        }
                    }
                }
                add(SumTile { rows: band_rows.clone(), columns: block, sums });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{FlexDevice, FloatDType, Tensor, from_host};

    /// Small whole numbers, whose products are not rounded.
    fn numbered(shape: [usize; 2], seed: usize) -> Tensor<Flex, 2> {
        let values = (0..shape[0] * shape[1]).map(|at| ((at * 7 + seed) % 23) as f32 - 11.0).collect();
        from_host(values, shape, FloatDType::F32, &FlexDevice)
    }

    fn gradient(
        [rows, columns]: [usize; 2],
        positions: usize,
        seed: usize,
        room: u128,
    ) -> GradientFactors<Flex> {
        // As records have it: a transposed view.
        let left = numbered([positions, rows], seed).transpose();
        let places: Vec<usize> = (0..5).map(|at| (at * at * 31 + seed) % rows).collect();
        GradientFactors {
            product: Some([left, numbered([positions, columns], seed + 1)]),
            precision: Precision::F32,
            looked_up: Some((places, numbered([5, columns], seed + 2))),
            factor: 0.75 - seed as f64,
            room,
        }
    }

    type Add = fn(&mut [GradientFactors<Flex>], [usize; 2], &mut dyn FnMut(SumTile<'_>));

    fn sums(add: Add, gradients: &mut [GradientFactors<Flex>], shape: [usize; 2]) -> Vec<i64> {
        let (mut sums, mut last) = (vec![0; shape[0] * shape[1]], 0);
        add(gradients, shape, &mut |tile| {
            assert!(tile.rows.start >= last, "rows come in order");
            last = tile.rows.start;
            tile.add_to(&mut sums[tile.rows.start * shape[1]..], shape[1]);
        });
        sums
    }

    /// Oracle: the portable definition. Shapes are below, at and above the sizes of tiles and blocks.
    #[test]
    fn sums_and_rooms_are_those_of_the_definition() {
        for (shape, positions) in
            [([1, 1], 1), ([7, 49], 3), ([130, 241], 9), ([300, 17], 130), ([8, 48], 500)]
        {
            let all = || [0, 1, 2].map(|seed| gradient(shape, positions + seed, seed, u128::MAX));
            let (mut fused, mut portable) = (all(), all());
            let found = sums(add_factors, &mut fused, shape);
            assert!(found == sums(portable::add_factors, &mut portable, shape), "{shape:?}");
            assert_eq!(fused.each_ref().map(|one| one.room), portable.each_ref().map(|one| one.room));
            // Each gradient by itself.
            let mut alone = vec![0; found.len()];
            for mut one in all() {
                let own = sums(add_factors, std::slice::from_mut(&mut one), shape);
                alone.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
            assert!(found == alone, "{shape:?}");
        }
    }

    #[test]
    fn integers_that_exceed_the_room_or_do_not_exist_are_left_out() {
        let shape = [40, 100];
        let square =
            |sums: &[i64]| sums.iter().map(|sum| u128::from(sum.unsigned_abs()).pow(2)).sum::<u128>();
        let whole = square(&sums(add_factors, &mut [gradient(shape, 6, 1, u128::MAX)], shape));
        for room in [0, 1, whole / 2, whole - 1, whole] {
            let mut one = [gradient(shape, 6, 1, room)];
            let added = square(&sums(add_factors, &mut one, shape));
            assert_eq!(added + one[0].room, room);
            assert_eq!(added == whole, room == whole);
        }
        for bad in [f32::NAN, f32::INFINITY, 2.0_f32.powi(60)] {
            let mut one = gradient(shape, 6, 1, u128::MAX);
            let Some([left, _]) = &mut one.product else { panic!("a product") };
            *left = left.clone().slice_fill([17..18, 2..3], bad);
            let found = sums(add_factors, &mut [one], shape);
            assert!(found[17 * shape[1]..18 * shape[1]].iter().all(|&sum| sum == 0), "{bad}");
            assert!(found[..8 * shape[1]].iter().any(|&sum| sum != 0), "{bad}: other tiles");
        }
    }
}
