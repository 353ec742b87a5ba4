//! Selects or averages positions of each example.

use crate::nn::{ForwardPass, Kernels, Var};
use crate::tensor::{IndexingUpdateOp, Int, Tensor};

/// Positions of each example, `[batch, n]`; `None` for all.
pub type Places<B> = Option<Tensor<B, 2, Int>>;

/// Selects the given positions of each example, in the given order. A position may occur twice.
///
/// # Shapes
/// - input: `[batch, seq, d]`, positions: `[batch, n]`
/// - output: `[batch, n, d]`
pub fn gather<B: Kernels>(
    pass: &mut ForwardPass<'_, B>,
    input: Var<B>,
    positions: Tensor<B, 2, Int>,
) -> Var<B> {
    let Var { value, slot } = input;
    let ([batch, seq, d], n) = (value.dims(), positions.dims()[1]);
    let first = Tensor::<B, 1, Int>::arange(0..batch as i64, &value.device()).mul_scalar(seq as i64);
    let first = first.reshape([batch, 1]).expand([batch, n]);
    let rows = (positions + first).reshape([batch * n]);
    let gathered = value.reshape([batch * seq, d]).select(0, rows.clone()).reshape([batch, n, d]);
    pass.note(gathered, slot.is_some(), move |grad, back| {
        let zeros = Tensor::zeros([batch * seq, d], (&grad.device(), grad.dtype()));
        let grad = zeros.select_assign(0, rows, grad.reshape([batch * n, d]), IndexingUpdateOp::Add);
        back.add(slot, grad.reshape([batch, seq, d]));
    })
}

/// Selects the positions as [`gather`] does, or all if none are given.
pub fn gather_some<B: Kernels>(pass: &mut ForwardPass<'_, B>, input: Var<B>, positions: Places<B>) -> Var<B> {
    match positions {
        Some(positions) => gather(pass, input, positions),
        None => input,
    }
}

/// Selects one position, the same for each example.
///
/// # Shapes
/// - input: `[batch, seq, d]`
/// - output: `[batch, 1, d]`
pub fn row<B: Kernels>(pass: &mut ForwardPass<'_, B>, input: Var<B>, position: usize) -> Var<B> {
    let Var { value, slot } = input;
    let [batch, seq, d] = value.dims();
    pass.note(value.narrow(1, position, 1), slot.is_some(), move |grad, back| {
        let zeros = |rows| Tensor::zeros([batch, rows, d], (&grad.device(), grad.dtype()));
        let parts = vec![zeros(position), grad.clone(), zeros(seq - position - 1)];
        let parts = parts.into_iter().filter(|part| part.dims()[1] > 0).collect();
        back.add(slot, Tensor::cat(parts, 1));
    })
}

/// Averages the first `lengths` positions of each example.
///
/// # Shapes
/// - input: `[batch, seq, d]`, lengths: `[batch]`, from 1 to seq
/// - output: `[batch, 1, d]`
pub fn mean<B: Kernels>(pass: &mut ForwardPass<'_, B>, input: Var<B>, lengths: Tensor<B, 1, Int>) -> Var<B> {
    let Var { value, slot } = input;
    let [batch, seq, d] = value.dims();
    let places = Tensor::<B, 1, Int>::arange(0..seq as i64, &value.device()).reshape([1, seq]);
    let lengths = lengths.reshape([batch, 1]);
    let inside = places.expand([batch, seq]).lower(lengths.clone().expand([batch, seq]));
    let shares = inside.float().cast(value.dtype()) / lengths.float().cast(value.dtype());
    let shares = shares.reshape([batch, seq, 1]);
    let sums = B::sum_positions(value * shares.clone()).reshape([batch, 1, d]);
    pass.note(sums, slot.is_some(), move |grad, back| {
        back.add(slot, grad.expand([batch, seq, d]) * shares);
    })
}
