//! Dropout of a value. It has no parameters.

use super::add;
use crate::nn::{ForwardPass, Kernels, Var};

/// Applies the dropout of the pass, if it has one.
///
/// # Shapes
/// - input, output: `[batch, seq, d]`
pub fn dropout<B: Kernels>(pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
    let Some(dropout) = &mut pass.dropout else { return input };
    let Var { value, slot } = input;
    let factors = dropout.of_value(&value);
    pass.note(value * factors.clone(), slot.is_some(), move |grad, back| back.add(slot, grad * factors))
}

/// Adds the output of a block's part, after dropout, to the stream that the part reads.
pub fn residual<B: Kernels>(pass: &mut ForwardPass<'_, B>, part: Var<B>, stream: Var<B>) -> Var<B> {
    let part = dropout(pass, part);
    add(pass, part, stream)
}
