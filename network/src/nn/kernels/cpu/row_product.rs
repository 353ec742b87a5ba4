//! Products of rows and a weight in which an element of the result depends on its row and its column alone.
//!
//! # Guarantee
//! Element (i, j) of a·b has the same bits whatever the other rows and columns are, how many there are, and how many threads share the
//! work. Exact sums rely on it: several examples may share a product, and none changes the rounding of another.
//!
//! # Proof
//! [`sum`] alone computes elements. It keeps a sum for each element of a tile and, for l = 0, 1, … in this order, adds a(i, l)·b(l, j) to
//! it with one instruction, lane by lane. Every lane of every tile uses the same instruction. The inner axis is cut at multiples
//! of [`DEEP`], which no shape changes; between two parts the sum is stored in 32 bits and loaded again, which does not round. What a
//! tile has beyond the operands is zero, and its sums are not written.
//!
//! Processors with a fused multiply-add, whatever their vector width, compute the same bits. The library `gemm` promises nothing of this
//! kind: it has other kernels for few rows or columns, and cuts the inner axis by the caches of the machine.
//!
//! # References
//! Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication", <https://doi.org/10.1145/1356052.1356053> (blocks and
//! packed copies).

use std::cell::RefCell;

use half::{bf16, f16};
use pulp::{Arch, Simd, WithSimd};

use super::matrix::Matrix;
use super::parts::{in_parts, positive};
use super::tile::{LARGEST_TILE, Number, VECTORS, aligned, copy_panels, lanes, sum};
use crate::tensor::{DType, Flex, Tensor};

/// Part of the inner axis whose copies stay in the second-level cache.
const DEEP: usize = 384;
/// Rows that are multiplied by a block of columns before the next ones.
const TALL: usize = 192;
/// Panels of columns in a block.
const PANELS: usize = 12;

/// Product of rows of 32 bits and a weight of 32 or 16 bits, `[d_in, d_out]`.
pub fn product(input: Tensor<Flex, 2>, weight: Tensor<Flex, 2>) -> Tensor<Flex, 2> {
    let [input, weight] = [positive(input), positive(weight)];
    let out = |multiply: &(dyn Fn(&Matrix<'_>, &mut [f32]) + Sync)| {
        in_parts(&input, weight.layout().shape()[1], |rows, _, out| multiply(rows, out))
    };
    match weight.dtype() {
        DType::BF16 => out(&|rows, out| multiply(rows, &Matrix::<bf16>::of(&weight, 0), out)),
        DType::F16 => out(&|rows, out| multiply(rows, &Matrix::<f16>::of(&weight, 0), out)),
        _ => out(&|rows, out| multiply(rows, &Matrix::<f32>::of(&weight, 0), out)),
    }
}

/// Writes the product, in row-major order.
///
/// # Panics
/// For matrices of other shapes.
pub fn multiply<T: Number>(a: &Matrix<'_>, b: &Matrix<'_, T>, out: &mut [f32]) {
    let ([m, k], n) = (a.shape, b.shape[1]);
    assert!(b.shape[0] == k && out.len() == m * n, "matrices of other shapes");
    if k == 0 || out.is_empty() {
        return out.fill(0.0);
    }
    COPIES.with_borrow_mut(|copies| Arch::new().dispatch(Multiply { a, b, out, copies }));
}

thread_local! {
    /// Copies of the operands' blocks.
    static COPIES: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

struct Multiply<'a, 'b, T> {
    a: &'a Matrix<'b>,
    b: &'a Matrix<'b, T>,
    out: &'a mut [f32],
    copies: &'a mut [Vec<f32>; 2],
}

impl<T: Number> WithSimd for Multiply<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // A tile has as many sums as the registers hold beside a row of b and an element of a.
        if S::REGISTER_COUNT < 32 { self.run::<S, 4>(simd) } else { self.run::<S, 8>(simd) }
    }
}

impl<T: Number> Multiply<'_, '_, T> {
    #[inline(always)]
    fn run<S: Simd, const ROWS: usize>(self, simd: S) {
        let Self { a, b, out, copies: [left, right] } = self;
        let ([m, k], n) = (a.shape, b.shape[1]);
        let width = VECTORS * lanes::<S>();
        let columns_of_b = b.transposed();
        for begin in (0..k).step_by(DEEP) {
            let inner = begin..k.min(begin + DEEP);
            let depth = inner.len();
            let left = aligned(left, m.next_multiple_of(ROWS) * depth);
            copy_panels(a, 0..m, inner.clone(), left, [ROWS, ROWS]);
            for block in (0..n).step_by(PANELS * width) {
                let columns = block..n.min(block + PANELS * width);
                let right = aligned(right, columns.len().next_multiple_of(width) * depth);
                copy_panels(&columns_of_b, columns.clone(), inner.clone(), right, [width, lanes::<S>()]);
                for tall in (0..m).step_by(TALL) {
                    for (right, column) in
                        right.chunks_exact(width * depth).zip(columns.clone().step_by(width))
                    {
                        let left = left[tall * depth..].chunks_exact(ROWS * depth);
                        for (left, row) in left.zip((tall..m.min(tall + TALL)).step_by(ROWS)) {
                            let size = [ROWS.min(m - row), width.min(n - column)];
                            let out = &mut out[row * n + column..];
                            Tile { left, right, out, pitch: n, size, adds: begin > 0 }.add::<S, ROWS>(simd);
                        }
                    }
                }
            }
        }
    }
}

/// A tile of the output and the copies of its rows and columns, inner index by inner index.
struct Tile<'a> {
    left: &'a [f32],
    right: &'a [f32],
    /// From its first element on; rows are `pitch` apart.
    out: &'a mut [f32],
    pitch: usize,
    /// Rows and columns that are written.
    size: [usize; 2],
    /// Whether the sums start with what is there, and not with zero.
    adds: bool,
}

impl Tile<'_> {
    #[inline(always)]
    fn add<S: Simd, const ROWS: usize>(self, simd: S) {
        let Self { left, right, out, pitch, size: [rows, columns], adds } = self;
        let vectors = columns.div_ceil(lanes::<S>());
        let width = vectors * lanes::<S>();
        let right = &right[..left.len() / ROWS * width];
        if [rows, columns] == [ROWS, width] {
            return sum::<S, ROWS>(simd, vectors, [left, right], out, pitch, adds);
        }
        let mut block = [0.0; LARGEST_TILE];
        if adds {
            for (block, out) in block.chunks_exact_mut(width).zip(out.chunks(pitch)).take(rows) {
                block[..columns].copy_from_slice(&out[..columns]);
            }
        }
        sum::<S, ROWS>(simd, vectors, [left, right], &mut block, width, adds);
        for (block, out) in block.chunks_exact(width).zip(out.chunks_mut(pitch)).take(rows) {
            out[..columns].copy_from_slice(&block[..columns]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::threads::on_threads;
    use super::*;
    use crate::tensor::{FlexDevice, FloatDType, from_host, to_host, to_host_f64};

    /// Numbers whose products are rounded in 32 bits.
    fn scattered(shape: [usize; 2], dtype: FloatDType) -> Tensor<Flex, 2> {
        let length = shape[0] * shape[1];
        let values = (0..length).map(|at| ((at * 7919 % 10_007) as f32 - 5000.0) / 4096.0).collect();
        from_host(values, shape, dtype, &FlexDevice)
    }

    const FORMATS: [FloatDType; 3] = [FloatDType::F32, FloatDType::BF16, FloatDType::F16];

    /// Sizes below, at and above those of tiles and of blocks.
    const SHAPES: [[usize; 3]; 9] = [
        [1, 1, 1],
        [3, 5, 7],
        [8, 384, 48],
        [9, 40, 49],
        [33, 385, 16],
        [7, 1, 17],
        [200, 17, 33],
        [21, 801, 600],
        [2, 770, 24],
    ];

    /// Oracle: the product in 64 bits.
    #[test]
    fn products_are_those_of_64_bits_up_to_rounding() {
        let equal = |a: Tensor<Flex, 2>, b: Tensor<Flex, 2>, what: &str| {
            let wide = [&a, &b].map(|operand| operand.clone().cast(DType::F64));
            let [terms, want] =
                [[wide[0].clone().abs(), wide[1].clone().abs()], wide].map(|[a, b]| a.matmul(b));
            let found = product(a, b);
            assert_eq!((found.dims(), found.dtype()), (want.dims(), DType::F32), "{what}");
            let sizes = to_host_f64(terms).into_iter().zip(to_host_f64(want));
            for (found, (size, want)) in to_host_f64(found).into_iter().zip(sizes) {
                assert!((found - want).abs() <= 1e-5 * size, "{what}: {found} for {want}");
            }
        };
        for ([m, k, n], dtype) in SHAPES.into_iter().flat_map(|shape| FORMATS.map(|dtype| (shape, dtype))) {
            let rows = |shape| scattered(shape, FloatDType::F32);
            let what = |way: &str| format!("{way}, {m} {k} {n} {dtype:?}");
            equal(rows([m, k]), scattered([k, n], dtype), &what("in order"));
            equal(rows([k, m]).transpose(), scattered([n, k], dtype).transpose(), &what("transposed"));
            let part = scattered([k + 1, n + 6], dtype).narrow(0, 1, k).narrow(1, 4, n);
            equal(rows([m + 4, k + 3]).narrow(0, 2, m).narrow(1, 1, k), part, &what("parts"));
            equal(rows([1, k]).expand([m, k]), scattered([k, n], dtype).flip([0]), &what("in reverse"));
            let apart = rows([m, 2 * k]).reshape([m, k, 2]).narrow(2, 1, 1).squeeze_dim::<2>(2);
            equal(apart, scattered([k, n], dtype), &what("no neighbors"));
        }
        for [m, k, n] in [[0, 2, 3], [2, 0, 3], [2, 3, 0]] {
            let [a, b] = [[m, k], [k, n]].map(|shape| scattered(shape, FloatDType::F32));
            let found = product(a, b);
            assert_eq!((found.dims(), to_host(found)), ([m, n], vec![0.0; m * n]), "empty");
        }
    }

    /// PITFALLS 55: see the guarantee of this file.
    #[test]
    fn an_element_depends_on_its_row_and_its_column_alone() {
        for ([m, k, n], dtype) in SHAPES.into_iter().flat_map(|shape| FORMATS.map(|dtype| (shape, dtype))) {
            let (a, b) = (scattered([m, k], FloatDType::F32), scattered([n, k], dtype).transpose());
            let whole = product(a.clone(), b.clone());
            for threads in [2, 3, 7] {
                let shared = on_threads(threads, || product(a.clone(), b.clone()));
                assert_eq!(to_host(shared), to_host(whole.clone()), "{threads} threads");
            }
            for row in [0, m / 2, m - 1] {
                let alone = product(a.clone().narrow(0, row, 1), b.clone());
                assert_eq!(to_host(alone), to_host(whole.clone().narrow(0, row, 1)), "row {row} of {m}");
            }
            // After other rows, in another place of a tile.
            let after = product(Tensor::cat(vec![a.clone().narrow(0, 0, m.min(5)), a.clone()], 0), b.clone());
            assert_eq!(to_host(after.narrow(0, m.min(5), m)), to_host(whole.clone()));
            for column in [0, n / 2, n - 1] {
                let alone = product(a.clone(), b.clone().narrow(1, column, 1));
                assert_eq!(to_host(alone), to_host(whole.clone().narrow(1, column, 1)), "column {column}");
            }
        }
    }

    #[test]
    fn numbers_that_are_not_finite_stay_in_their_rows() {
        let mut values = to_host(scattered([20, 60], FloatDType::F32));
        values[7 * 60 + 3] = f32::NAN;
        let a = from_host::<Flex, 2>(values, [20, 60], FloatDType::F32, &FlexDevice);
        let found = to_host(product(a, scattered([60, 50], FloatDType::F32)));
        let is_marked = |(at, value): (usize, &f32)| value.is_nan() == (at / 50 == 7);
        assert!(found.iter().enumerate().all(is_marked));
    }

    /// Ranks on other processors compute the same bits.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn vectors_of_any_width_compute_the_same_bits() {
        let Some(narrower) = pulp::x86::V3::try_new() else { return };
        for [m, k, n] in SHAPES {
            let [a, b] = [[m, k], [k, n]].map(|shape| to_host(scattered(shape, FloatDType::F32)));
            let (a, b) = (Matrix::in_order(&a, m), Matrix::in_order(&b, k));
            let mut found = [vec![0.0; m * n], vec![0.0; m * n]];
            multiply(&a, &b, &mut found[0]);
            let copies = &mut [Vec::new(), Vec::new()];
            Simd::vectorize(narrower, Multiply { a: &a, b: &b, out: &mut found[1], copies });
            assert_eq!(found[0], found[1], "{m} {k} {n}");
        }
    }

    #[test]
    #[should_panic(expected = "matrices of other shapes")]
    fn matrices_of_other_shapes_are_refused() {
        product(scattered([2, 3], FloatDType::F32), scattered([4, 2], FloatDType::F32));
    }
}
