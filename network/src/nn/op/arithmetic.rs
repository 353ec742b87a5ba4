//! Adds values and multiplies them by numbers. These operators have no parameters.

use crate::nn::{ForwardPass, Kernels, Var};

/// Returns the sum of two values, such as a block's part and the residual stream.
pub fn add<B: Kernels>(pass: &mut ForwardPass<'_, B>, a: Var<B>, b: Var<B>) -> Var<B> {
    let slots = [a.slot, b.slot];
    let needed = slots.iter().any(Option::is_some);
    pass.note(a.value + b.value, needed, move |grad, back| {
        back.add(slots[0], grad.clone());
        back.add(slots[1], grad);
    })
}

/// Returns a value times a number.
pub fn scale<B: Kernels>(pass: &mut ForwardPass<'_, B>, input: Var<B>, factor: f64) -> Var<B> {
    let Var { value, slot } = input;
    pass.note(value * factor, slot.is_some(), move |grad, back| back.add(slot, grad * factor))
}

/// Returns `cap·tanh(x / cap)`: values near 0 stay, and none exceeds ±cap.
pub fn soft_cap<B: Kernels>(pass: &mut ForwardPass<'_, B>, input: Var<B>, cap: f64) -> Var<B> {
    let Var { value, slot } = input;
    let share = (value / cap).tanh();
    let output = share.clone() * cap;
    pass.note(output, slot.is_some(), move |grad, back| {
        back.add(slot, grad * (share.square().neg() + 1.0));
    })
}

/// Returns the same value with a gradient that is summed separately before it is added to that of
/// `input`. This fixes the order of a sum of gradients.
pub fn branch<B: Kernels>(pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
    let Var { value, slot } = input;
    pass.note(value, slot.is_some(), move |grad, back| back.add(slot, grad))
}
