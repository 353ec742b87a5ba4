//! Views of matrices for products.

use std::ops::Range;

use pulp::bytemuck::Pod;

use crate::tensor::{Element, FlexTensor};

/// A matrix in the memory of a tensor.
pub struct Matrix<'a, T = f32> {
    /// From the first element on.
    pub(super) values: &'a [T],
    /// Rows and columns.
    pub(super) shape: [usize; 2],
    /// Distance of two rows, and of two columns, in elements.
    pub(super) strides: [usize; 2],
}

impl<'a, T> Matrix<'a, T> {
    /// Matrix number `at` of a batch, whose strides are not negative.
    pub fn of(batch: &'a FlexTensor, at: usize) -> Self
    where
        T: Element + Pod,
    {
        let layout = batch.layout();
        let matrices = layout.num_dims() - 2;
        let sizes: &[usize] = layout.shape();
        let stride = |axis: usize| layout.strides()[axis].unsigned_abs();
        let (mut first, mut rest) = (layout.start_offset(), at);
        for axis in (0..matrices).rev() {
            first += rest % sizes[axis] * stride(axis);
            rest /= sizes[axis];
        }
        let (shape, strides) =
            ([sizes[matrices], sizes[matrices + 1]], [stride(matrices), stride(matrices + 1)]);
        let is_empty = shape.contains(&0);
        let length = if is_empty { 0 } else { (shape[0] - 1) * strides[0] + (shape[1] - 1) * strides[1] + 1 };
        Self { values: &batch.storage::<T>()[first..first + length], shape, strides }
    }

    /// A matrix of so many rows, in row-major order.
    pub fn in_order(values: &'a [T], rows: usize) -> Self {
        let columns = values.len() / rows.max(1);
        Self { values, shape: [rows, columns], strides: [columns, 1] }
    }

    pub fn rows(&self, rows: Range<usize>) -> Self {
        let values = self.values.get(rows.start * self.strides[0]..).unwrap_or_default();
        Self { values, shape: [rows.len().min(self.shape[0] - rows.start), self.shape[1]], ..*self }
    }

    pub fn columns(&self, columns: Range<usize>) -> Self {
        self.transposed().rows(columns).transposed()
    }

    pub fn transposed(&self) -> Self {
        let ([rows, columns], [down, across]) = (self.shape, self.strides);
        Self { shape: [columns, rows], strides: [across, down], ..*self }
    }
}
