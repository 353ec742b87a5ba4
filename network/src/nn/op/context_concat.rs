//! The input of a feed-forward language model: the concatenated vectors of the most recent tokens.

use crate::nn::{Cache, ForwardPass, Kernels, Var};
use crate::tensor::Tensor;

/// Concatenates the vectors of each position and of those before it, with zeros before the first.
#[derive(Clone, Copy, Debug)]
pub struct ContextConcat {
    /// Number of vectors for each position, its own included.
    pub length: usize,
}

impl ContextConcat {
    /// Returns the concatenated vectors, oldest first.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d]`
    /// - output: `[batch, seq, length·d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let Var { value, slot } = input;
        // A position that uses its own vector alone keeps nothing.
        let keeps = self.length > 1;
        let output = match pass.later_cache().filter(|_| keeps) {
            Some(cache) => self.next(cache, value),
            None => {
                if let Some(cache) = pass.cache().filter(|_| keeps) {
                    cache.keep(vec![self.last_vectors(value.clone())]);
                }
                B::context_concat(value, self.length)
            }
        };
        // A position's vector was used at its own place and at those that follow.
        pass.note(output, slot.is_some(), move |grad, back| {
            back.add(slot, B::context_concat_backward(grad, self.length));
        })
    }

    /// Returns the vectors of one new position of each row, with those of the positions before it.
    fn next<B: Kernels>(self, cache: &mut Cache<B>, value: Tensor<B, 3>) -> Tensor<B, 3> {
        let [rows, _, d] = value.dims();
        let all = cache.exchange(|kept| {
            let all = Tensor::cat(vec![kept, value.unsqueeze_dim(1)], 2);
            [all.clone(), all.narrow(2, 1, self.length - 1)]
        });
        all.reshape([rows, 1, self.length * d])
    }

    /// Returns the vectors that the next position uses beside its own. `[rows, 1, length − 1, d]`
    fn last_vectors<B: Kernels>(self, value: Tensor<B, 3>) -> Tensor<B, 4> {
        let [rows, seq, d] = value.dims();
        let none = Tensor::zeros([rows, self.length, d], (&value.device(), value.dtype()));
        let all = Tensor::cat(vec![none, value], 1);
        all.narrow(1, seq + 1, self.length - 1).unsqueeze_dim(1)
    }
}
