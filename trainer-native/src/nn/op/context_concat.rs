//! The input of a feed-forward language model: the vectors of the last so many tokens, side by side.

use crate::nn::{Kernels, Pass, Var};

/// Lays the vectors of each position and of those before it side by side; before the first there are zeros.
#[derive(Clone, Copy, Debug)]
pub struct ContextConcat {
    /// Vectors a position gets, its own included.
    pub length: usize,
}

impl ContextConcat {
    /// The vectors, the oldest first.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d]`
    /// - output: `[batch, seq, length·d]`
    pub fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let Var { value, slot } = input;
        let new = value.dims()[1];
        let value = match pass.cache() {
            Some(cache) => {
                let [all] = cache.extend([value.unsqueeze_dim(1)]);
                // Only the rows that the new positions use.
                let (seen, used) = (all.dims()[2], new + self.length - 1);
                let first = seen.saturating_sub(used);
                all.narrow(2, first, seen - first).squeeze_dim(1)
            }
            None => value,
        };
        let seq = value.dims()[1];
        let output = B::context_concat(value, self.length);
        let output = if new < seq { output.narrow(1, seq - new, new) } else { output };
        // A position's vector was used at its own place and at those that follow.
        pass.note(output, slot.is_some(), move |grad, back| {
            back.add(slot, B::context_concat_backward(grad, self.length));
        })
    }
}
