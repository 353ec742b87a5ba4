//! Matrix products of 32 bits in the memory of their result. The product of `burn-flex` clears memory for its result and then copies these
//! zeros to other memory, whose pages the system clears, too.

use gemm::{Parallelism, gemm};

use super::matrix::Matrix;
use super::parts::{in_parts, is_shared};
use super::{amx, close, open, portable, row_product};
use crate::tensor::{DType, Flex, Tensor};

/// Matrix product. Axes before the last two are those of a batch. A matrix has the same bits in any batch and on any number of threads:
/// these divide the rows of large products alone, which [`row_product`] computes.
pub fn product<const D: usize>(a: Tensor<Flex, D>, b: Tensor<Flex, D>) -> Tensor<Flex, D> {
    let have_equal_batches = have_equal_batches(&a, &b);
    let [a, b] = [a, b].map(|operand| operand.into_primitive().tensor());
    if !have_equal_batches || ![&a, &b].iter().all(|operand| operand.layout().has_positive_strides()) {
        return close(a).matmul(close(b));
    }
    let [m, k, n] = [a.layout().shape()[D - 2], a.layout().shape()[D - 1], b.layout().shape()[D - 1]];
    let multiply = if is_shared(m, k, n) { row_product::multiply } else { multiply };
    in_parts(&a, n, |rows, at, out| multiply(rows, &Matrix::of(&b, at), out))
}

/// [`product`] of operands rounded to bfloat16, accumulated in 32 bits.
pub fn product_bf16<const D: usize>(a: Tensor<Flex, D>, b: Tensor<Flex, D>) -> Tensor<Flex, D> {
    if !amx::is_present() || !have_equal_batches(&a, &b) {
        return portable::product_bf16(a, b);
    }
    let in_lines = |tensor: Tensor<Flex, D>| {
        let view = tensor.clone().into_primitive().tensor();
        let (layout, inner) = (view.layout(), &view.layout().strides()[D - 2..]);
        if layout.has_positive_strides() && inner.contains(&1) { view } else { open(tensor) }
    };
    let b = in_lines(b);
    let n = b.layout().shape()[D - 1];
    in_parts(&in_lines(a), n, |rows, at, out| amx::multiply(rows, &Matrix::of(&b, at), out))
}

/// Whether both are batches of as many matrices of 32 bits.
fn have_equal_batches<const D: usize>(a: &Tensor<Flex, D>, b: &Tensor<Flex, D>) -> bool {
    a.dims()[..D - 2] == b.dims()[..D - 2] && [a.dtype(), b.dtype()] == [DType::F32; 2]
}

/// Writes the product, in row-major order.
pub fn multiply(a: &Matrix<'_>, b: &Matrix<'_>, out: &mut [f32]) {
    write_product(a, b, out, false);
}

/// Adds the product, in row-major order.
pub fn add_product(a: &Matrix<'_>, b: &Matrix<'_>, out: &mut [f32]) {
    write_product(a, b, out, true);
}

fn write_product(a: &Matrix<'_>, b: &Matrix<'_>, out: &mut [f32], adds: bool) {
    let ([m, k], n) = (a.shape, b.shape[1]);
    assert!(b.shape[0] == k && out.len() == m * n, "matrices of other shapes");
    if k == 0 {
        return;
    }
    let [a_strides, b_strides] = [a.strides, b.strides].map(|strides| strides.map(|stride| stride as isize));
    #[expect(
        unsafe_code,
        reason = "gemm takes pointers; the slices hold every element that their shapes and strides reach"
    )]
    unsafe {
        let (to, left, right) = (out.as_mut_ptr(), a.values.as_ptr(), b.values.as_ptr());
        let [(rows, columns), (b_rows, b_columns)] =
            [a_strides, b_strides].map(|[row, column]| (row, column));
        gemm(
            m,
            n,
            k,
            to,
            1,
            n as isize,
            adds,
            left,
            columns,
            rows,
            right,
            b_columns,
            b_rows,
            if adds { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::threads::on_threads;
    use super::*;
    use crate::tensor::{FlexDevice, FloatDType, from_host, to_host, to_host_f64};

    fn numbered<const D: usize>(shape: [usize; D]) -> Tensor<Flex, D> {
        let length = shape.iter().product::<usize>();
        let values = (0..length).map(|at| (at * 7 % 23) as f32 / 8.0 - 1.0).collect();
        from_host(values, shape, FloatDType::F32, &FlexDevice)
    }

    /// Oracle: the library's product, with the same bits.
    #[test]
    fn products_of_views_are_those_of_the_library() {
        let equal = |a: Tensor<Flex, 2>, b: Tensor<Flex, 2>, what: &str| {
            let (found, want) = (product(a.clone(), b.clone()), a.matmul(b));
            assert_eq!((found.dims(), to_host(found)), (want.dims(), to_host(want)), "{what}");
        };
        for [m, k, n] in [[3, 5, 7], [1, 40, 3], [64, 1, 9], [50, 130, 70]] {
            equal(numbered([m, k]), numbered([k, n]), "in order");
            equal(numbered([k, m]).transpose(), numbered([n, k]).transpose(), "transposed");
            let (a, b) = (numbered([m + 4, k + 3]), numbered([k + 1, n + 6]));
            equal(a.narrow(0, 2, m).narrow(1, 1, k), b.narrow(0, 1, k).narrow(1, 4, n), "parts");
            equal(numbered([1, k]).expand([m, k]), numbered([k, n]).flip([0]), "repeated, and in reverse");
        }
        for [m, k, n] in [[0, 2, 3], [2, 0, 3], [2, 3, 0]] {
            let found = product(numbered([m, k]), numbered([k, n]));
            assert_eq!((found.dims(), to_host(found)), ([m, n], vec![0.0; m * n]), "empty");
        }
    }

    #[test]
    fn products_of_batches_are_those_of_the_library() {
        let (a, b) = (numbered([2, 5, 3, 4]), numbered([2, 6, 3, 4]));
        let b = b.swap_dims(1, 2);
        let a = a.swap_dims(1, 2);
        let (found, want) = (product(a.clone(), b.clone().transpose()), a.clone().matmul(b.transpose()));
        assert_eq!((found.dims(), to_host(found)), (want.dims(), to_host(want)));
        // One matrix for all of a batch.
        let shared = numbered([1, 1, 4, 6]);
        assert_eq!(to_host(product(a.clone(), shared.clone())), to_host(a.matmul(shared)));
    }

    #[test]
    fn threads_change_no_bit_of_a_product() {
        let (a, b) = (numbered([1, 301, 500]), numbered([1, 500, 470]));
        let (batch, others) = (numbered([5, 130, 301]), numbered([5, 301, 400]));
        let of = |threads: usize| {
            on_threads(threads, || {
                let tall = numbered([1, 500, 301]).swap_dims(1, 2);
                [
                    product(a.clone(), b.clone()),
                    product(tall, b.clone()),
                    product(batch.clone(), others.clone()),
                ]
                .map(to_host)
            })
        };
        let one = of(1);
        assert!([2, 3, 7].into_iter().all(|threads| of(threads) == one));
    }

    /// Numbers whose products are not rounded in 32 bits.
    fn scattered<const D: usize>(shape: [usize; D]) -> Tensor<Flex, D> {
        let length = shape.iter().product::<usize>();
        let values = (0..length).map(|at| ((at * 7919 % 10_007) as f32 - 5000.0) / 4096.0).collect();
        from_host(values, shape, FloatDType::F32, &FlexDevice)
    }

    /// Oracle: the product of the rounded operands in 64 bits. Shapes are below, at and above the sizes of tiles and of blocks.
    #[test]
    fn products_of_16_bits_multiply_rounded_operands() {
        let equal = |a: Tensor<Flex, 2>, b: Tensor<Flex, 2>, what: &str| {
            let wide = [&a, &b].map(|operand| operand.clone().cast(DType::BF16).cast(DType::F64));
            let [terms, want] =
                [[wide[0].clone().abs(), wide[1].clone().abs()], wide].map(|[a, b]| a.matmul(b));
            let found = product_bf16(a, b);
            assert_eq!((found.dims(), found.dtype()), (want.dims(), DType::F32), "{what}");
            let sizes = to_host_f64(terms).into_iter().zip(to_host_f64(want));
            for (found, (size, want)) in to_host_f64(found).into_iter().zip(sizes) {
                assert!((found - want).abs() <= 1e-6 * size, "{what}: {found} for {want}");
            }
        };
        for [m, k, n] in
            [[1, 1, 1], [3, 5, 7], [32, 64, 32], [1, 40, 3], [70, 1, 9], [33, 65, 31], [50, 700, 1100]]
        {
            let what = |way| format!("{way}, {m} {k} {n}");
            equal(scattered([m, k]), scattered([k, n]), &what("in order"));
            equal(scattered([k, m]).transpose(), scattered([n, k]).transpose(), &what("transposed"));
            equal(scattered([k, m]).transpose(), scattered([k, n]), &what("one transposed"));
            let (a, b) = (scattered([m + 4, k + 3]), scattered([k + 1, n + 6]));
            equal(a.narrow(0, 2, m).narrow(1, 1, k), b.narrow(0, 1, k).narrow(1, 4, n), &what("parts"));
            equal(
                scattered([1, k]).expand([m, k]),
                scattered([k, n]).flip([0]),
                &what("repeated, and in reverse"),
            );
            let apart = scattered([k, n, 2]).narrow(2, 1, 1).squeeze_dim::<2>(2);
            equal(scattered([m, k]), apart, &what("no neighbors"));
        }
        for [m, k, n] in [[0, 2, 3], [2, 0, 3], [2, 3, 0]] {
            let found = product_bf16(scattered([m, k]), scattered([k, n]));
            assert_eq!((found.dims(), to_host(found)), ([m, n], vec![0.0; m * n]), "empty");
        }
        let not_finite = |value| from_host::<Flex, 2>(vec![1.0, value], [1, 2], FloatDType::F32, &FlexDevice);
        let ones = || scattered([2, 2]).zeros_like().add_scalar(1.0);
        assert!(to_host(product_bf16(not_finite(f32::NAN), ones())).iter().all(|value| value.is_nan()));
        assert_eq!(to_host(product_bf16(not_finite(f32::INFINITY), ones())), [f32::INFINITY; 2]);
        assert_eq!(to_host(product_bf16(not_finite(f32::MAX), ones())), [f32::INFINITY; 2]);
    }

    /// Sums of one example must not depend on others, nor on the number of threads.
    #[test]
    fn an_element_of_a_product_of_16_bits_depends_on_its_row_and_column_alone() {
        let (a, b) = (scattered([2, 90, 600]), scattered([2, 600, 70]));
        let whole = product_bf16(a.clone(), b.clone());
        for threads in [1, 3] {
            let on_threads = on_threads(threads, || product_bf16(a.clone(), b.clone()));
            assert_eq!(to_host(on_threads), to_host(whole.clone()));
        }
        let rows = product_bf16(a.clone().narrow(1, 41, 13), b.clone());
        assert_eq!(to_host(rows), to_host(whole.clone().narrow(1, 41, 13)));
        let columns = product_bf16(a.clone(), b.clone().narrow(2, 7, 30));
        assert_eq!(to_host(columns), to_host(whole.clone().narrow(2, 7, 30)));
        let one = product_bf16(a.narrow(0, 1, 1), b.narrow(0, 1, 1));
        assert_eq!(to_host(one), to_host(whole.narrow(0, 1, 1)));
    }

    #[test]
    #[should_panic(expected = "matrices of other shapes")]
    fn matrices_of_other_shapes_are_refused() {
        product(numbered([2, 3]), numbered([4, 2]));
    }
}
