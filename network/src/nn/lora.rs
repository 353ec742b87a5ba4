//! Low-rank adapters: a frozen matrix W₀ computes as W = W₀ + s·B·A, and only A and B are trained.
//!
//! Layers compute with the merged matrix W, or with W₀ and the two factors where W₀ is held in 16 bits. An example's gradient of W is a product over positions,
//! dW = gradᵀ·input, so the gradients of the adapter are products too: dB = gradᵀ·(s·input·Aᵀ) and
//! dA = (s·grad·B)ᵀ·input.
//!
//! # References
//! Hu et al. 2021, "LoRA", <https://arxiv.org/abs/2106.09685>; names as Hugging Face's PEFT.

use super::{GradRecord, Initializer, Kernels, ParamId, ParamSpec, Stored};
use crate::tensor::{Backend, Tensor};

/// The adapter of a linear layer: places of its matrices among the trained parameters.
#[derive(Clone, Copy, Debug)]
pub struct Adapter {
    /// `[rank, d_in]`
    pub a: ParamId,
    /// `[d_out, rank]`
    pub b: ParamId,
    /// s: alpha over the rank.
    pub scale: f64,
    /// Storage of the frozen matrix.
    pub stored: Stored,
}

impl Adapter {
    /// Adds the two matrices of an adapter of `matrix` to the list of trained parameters.
    pub(super) fn add_to(
        list: &mut Vec<ParamSpec>,
        matrix: &ParamSpec,
        stored: Stored,
        lora: &plan::Lora,
    ) -> Self {
        let rank = lora.rank as usize;
        let [d_in, d_out] = match stored {
            Stored::InOut => [matrix.shape[0], matrix.shape[1]],
            Stored::OutIn => [matrix.shape[1], matrix.shape[0]],
        };
        let mut add = |name: &str, shape: [usize; 2], initial| {
            let name = format!("{}.{name}.weight", matrix.module());
            list.push(ParamSpec { name, shape: shape.to_vec(), initial });
            ParamId(list.len() - 1)
        };
        // B starts at 0, so training starts from the checkpoint itself. A starts as in PEFT, with
        // variance 1/(3·d_in).
        let std = 1.0 / (3.0 * d_in as f64).sqrt();
        let a = add("lora_A", [rank, d_in], Initializer::Normal { std });
        let b = add("lora_B", [d_out, rank], Initializer::Constant(0.0));
        Self { a, b, scale: lora.alpha / f64::from(lora.rank), stored }
    }

    /// Returns the records of A and B.
    ///
    /// # Shapes
    /// - a: `[rank, d_in]`, b: `[d_out, rank]`, input: `[batch, seq, d_in]`, grad: `[batch, seq, d_out]`
    pub(super) fn records<B: Kernels>(
        self,
        a: Tensor<B, 2>,
        b: Tensor<B, 2>,
        input: Tensor<B, 3>,
        grad: Tensor<B, 3>,
    ) -> [GradRecord<B>; 2] {
        let down = times(&input, a.transpose(), self.scale);
        let up = times(&grad, b, self.scale);
        [
            GradRecord::Product { param: self.a, input: up, grad: input },
            GradRecord::Product { param: self.b, input: grad, grad: down },
        ]
    }

    /// Returns what the adapter adds to the product of rows and the matrix.
    ///
    /// # Shapes
    /// - rows: `[rows, d_in]`, a: `[rank, d_in]`, b: `[d_out, rank]`
    /// - output: `[rows, d_out]`
    pub(super) fn apply<B: Kernels>(
        self,
        rows: Tensor<B, 2>,
        a: Tensor<B, 2>,
        b: Tensor<B, 2>,
    ) -> Tensor<B, 2> {
        B::layer_product(B::layer_product(rows, a.transpose()) * self.scale, b.transpose())
    }

    /// Returns what the adapter adds to the gradient of the rows that [`Self::apply`] gets.
    ///
    /// # Shapes
    /// - grad: `[rows, d_out]`, a: `[rank, d_in]`, b: `[d_out, rank]`
    /// - output: `[rows, d_in]`
    pub(super) fn apply_back<B: Kernels>(
        self,
        grad: Tensor<B, 2>,
        a: Tensor<B, 2>,
        b: Tensor<B, 2>,
    ) -> Tensor<B, 2> {
        B::layer_product(B::layer_product(grad, b) * self.scale, a)
    }

    /// Returns the merged matrix, flat as the frozen one.
    pub(super) fn merge<B: Backend>(
        self,
        frozen: Tensor<B, 1>,
        a: Tensor<B, 2>,
        b: Tensor<B, 2>,
    ) -> Tensor<B, 1> {
        let change = b.matmul(a);
        let change = match self.stored {
            Stored::InOut => change.transpose(),
            Stored::OutIn => change,
        };
        let length = frozen.dims()[0];
        frozen + change.reshape([length]) * self.scale
    }
}

/// `[batch, seq, d]` times `[d, n]`, scaled.
fn times<B: Kernels>(values: &Tensor<B, 3>, matrix: Tensor<B, 2>, scale: f64) -> Tensor<B, 3> {
    let [batch, seq, d] = values.dims();
    let n = matrix.dims()[1];
    (B::layer_product(values.clone().reshape([batch * seq, d]), matrix) * scale).reshape([batch, seq, n])
}
