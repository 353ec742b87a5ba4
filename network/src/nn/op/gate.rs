//! Gated activations: one projection, through an activation, scales another.

use crate::nn::{ForwardPass, Kernels, Var};
use crate::tensor::Tensor;

/// A gated activation `f(gate) ∘ up`, by its function f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// GELU in its tanh form: GEGLU of Gemma, T5 v1.1 and mT5.
    GeluTanh,
    /// GELU itself: GEGLU of ModernBERT.
    Gelu,
    /// x·σ(x): SwiGLU of Llama.
    Silu,
}

impl Gate {
    /// Returns `f(gate) ∘ up`.
    ///
    /// # Shapes
    /// - gate, up, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, gate: Var<B>, up: Var<B>) -> Var<B> {
        let slots = [gate.slot, up.slot];
        let (gate, up) = (gate.value, up.value);
        let output = self.value(gate.clone(), up.clone());
        let needed = slots.iter().any(Option::is_some);
        pass.note(output, needed, move |grad, back| {
            let [gate, up] = self.backward(gate, up, grad);
            back.add(slots[0], gate);
            back.add(slots[1], up);
        })
    }

    /// Applies the gate as [`Self::forward`] does, to gate and up side by side.
    ///
    /// # Shapes
    /// - both: `[batch, seq, 2·d]`
    /// - output: `[batch, seq, d]`
    pub fn of_both<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, both: Var<B>) -> Var<B> {
        let Var { value, slot } = both;
        let d = value.dims()[2] / 2;
        let [gate, up] = [0, d].map(|start| value.clone().narrow(2, start, d));
        let output = self.value(gate.clone(), up.clone());
        pass.note(output, slot.is_some(), move |grad, back| {
            back.add(slot, Tensor::cat(self.backward(gate, up, grad).into(), 2));
        })
    }

    fn value<B: Kernels>(self, gate: Tensor<B, 3>, up: Tensor<B, 3>) -> Tensor<B, 3> {
        match self {
            Self::GeluTanh => B::gelu_gate(gate, up),
            Self::Gelu => B::gelu_erf(gate) * up,
            Self::Silu => B::silu_gate(gate, up),
        }
    }

    fn backward<B: Kernels>(
        self,
        gate: Tensor<B, 3>,
        up: Tensor<B, 3>,
        grad: Tensor<B, 3>,
    ) -> [Tensor<B, 3>; 2] {
        match self {
            Self::GeluTanh => B::gelu_gate_backward(gate, up, grad),
            Self::Gelu => {
                let through_up = grad.clone() * B::gelu_erf(gate.clone());
                [B::gelu_erf_backward(gate, grad * up), through_up]
            }
            Self::Silu => B::silu_gate_backward(gate, up, grad),
        }
    }
}
