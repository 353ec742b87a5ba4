//! Logits as products with the rows of a table, which may be the token table.

use crate::nn::{ForwardPass, Kernels, ParamId, Var};

/// `x·Tᵀ + b`
#[derive(Clone, Copy, Debug)]
pub struct TableLogits {
    /// `[vocabulary, d]`
    pub table: ParamId,
    /// `[vocabulary]`
    pub bias: Option<ParamId>,
}

impl TableLogits {
    /// Returns the logits. They are not saved, so the gradient of the loss can reuse their memory.
    ///
    /// # Shapes
    /// - input: `[batch, targets, d]`
    /// - output: `[batch, targets, vocabulary]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let weights = pass.weights();
        let Var { value: hidden, slot } = input;
        let [batch, targets, d] = hidden.dims();
        let rows = hidden.clone().reshape([batch * targets, d]);
        let table = weights.held_matrix(self.table).transpose();
        let logits = match self.bias {
            Some(bias) => pass.affine(rows, table, weights.vector(bias)),
            None => pass.product(rows, table),
        };
        let vocabulary = logits.dims()[1];
        let trained = pass.use_table(self.table);
        let needed = slot.is_some() || trained || self.bias.is_some_and(|bias| weights.trains(bias));
        pass.note(logits.reshape([batch, targets, vocabulary]), needed, move |grad, back| {
            if slot.is_some() {
                let rows = grad.clone().reshape([batch * targets, vocabulary]);
                let hidden_grad = back.weights.layer_product(rows, back.weights.held_matrix(self.table));
                back.add(slot, hidden_grad.reshape([batch, targets, d]));
            }
            if let Some(bias) = self.bias.filter(|&bias| back.weights.trains(bias)) {
                back.explicit(bias, B::sum_positions(grad.clone()));
            }
            if trained {
                back.made_logits(self.table, hidden, grad);
            }
        })
    }
}
