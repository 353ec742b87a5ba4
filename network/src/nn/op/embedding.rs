//! Token, position and segment embeddings.

use crate::nn::{ForwardPass, GradRecord, Kernels, ParamId, Var};
use crate::tensor::{Int, Tensor, TensorData};

/// Rows of a table, by token.
#[derive(Clone, Copy, Debug)]
pub struct TokenEmbedding {
    /// `[vocabulary, d]`
    pub table: ParamId,
}

impl TokenEmbedding {
    /// Looks the tokens up. All look-ups of one table and its use by a head are one record.
    ///
    /// # Shapes
    /// - tokens: `[batch, seq]`
    /// - output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, tokens: Tensor<B, 2, Int>) -> Var<B> {
        let rows = look_up(pass, self.table, tokens.clone());
        let needed = pass.use_table(self.table);
        pass.note(rows, needed, move |grad, back| back.looked_up(self.table, tokens, grad))
    }
}

/// A learned vector for each position.
#[derive(Clone, Copy, Debug)]
pub struct PositionEmbedding {
    /// `[first + context, d]`
    pub table: ParamId,
    /// The row of the first position. Some families leave rows unused before it.
    pub first: usize,
}

impl PositionEmbedding {
    /// Adds each position's vector.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let weights = pass.weights();
        let Var { value, slot } = input;
        let seq = value.dims()[1];
        let table_rows = weights.model_specs()[self.table.0].shape[0];
        let vectors = match pass.rows_at() {
            Some(positions) => {
                let rows: Vec<i32> =
                    positions.iter().map(|position| (self.first + position) as i32).collect();
                let rows = Tensor::from_data(TensorData::new(rows, [positions.len()]), &value.device());
                weights.rows(self.table, rows).unsqueeze_dim(1)
            }
            None => weights.matrix(self.table).narrow(0, self.first, seq).unsqueeze(),
        };
        let needed = slot.is_some() || weights.trains(self.table);
        pass.note(value + vectors, needed, move |grad, back| {
            let [batch, seq, d] = grad.dims();
            // Each example's gradient of the table is the gradient of the sum itself, between
            // unused rows: a decoder may be shorter than the encoder, with a table of the same
            // size.
            let mut rows = grad.clone().reshape([batch, seq * d]);
            let [before, after] = [self.first, table_rows.saturating_sub(self.first + seq)];
            if before + after > 0 {
                let unused = |rows: usize| Tensor::zeros([batch, rows * d], (&grad.device(), grad.dtype()));
                rows = Tensor::cat(vec![unused(before), rows, unused(after)], 1);
            }
            back.explicit(self.table, rows);
            back.add(slot, grad);
        })
    }
}

/// A vector for each of a few classes of tokens, such as the first and the second sentence.
#[derive(Clone, Copy, Debug)]
pub struct SegmentEmbedding {
    /// `[2, d]`, or `[1, d]` where all tokens are of one class
    pub table: ParamId,
}

impl SegmentEmbedding {
    /// Looks the classes up, if there are two. The record holds each example's whole gradient.
    ///
    /// # Shapes
    /// - segments: `[batch, seq]`, 0 or 1
    /// - output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, segments: Tensor<B, 2, Int>) -> Var<B> {
        let one_class = pass.weights().model_specs()[self.table.0].shape[0] == 1;
        let segments = if one_class { segments.zeros_like() } else { segments };
        let rows = look_up(pass, self.table, segments.clone());
        let needed = pass.weights().trains(self.table);
        pass.note(rows, needed, move |grad, back| {
            back.record(self.table, |param| {
                if one_class {
                    return GradRecord::Explicit { param, grads: B::sum_positions(grad) };
                }
                let [batch, seq, d] = grad.dims();
                let second = segments.float().cast(grad.dtype()).reshape([batch, 1, seq]);
                let member = Tensor::cat(vec![second.clone().neg() + 1.0, second], 1);
                GradRecord::Explicit { param, grads: B::product(member, grad).reshape([batch, 2 * d]) }
            });
        })
    }
}

fn look_up<B: Kernels>(pass: &ForwardPass<'_, B>, table: ParamId, rows: Tensor<B, 2, Int>) -> Tensor<B, 3> {
    let [batch, seq] = rows.dims();
    let found = pass.weights().rows(table, rows.reshape([batch * seq]));
    let d = found.dims()[1];
    found.reshape([batch, seq, d])
}
