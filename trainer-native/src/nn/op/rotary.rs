//! Rotary positions: pairs of coordinates turned by an angle that grows with the position, so that the product of a
//! query and a key depends on how far they are apart.
//!
//! # References
//! Su et al. 2021, <https://arxiv.org/abs/2104.09864>; coordinate i is paired with i + d/2, as Hugging Face's models.

use crate::nn::Kernels;
use crate::tensor::{Tensor, from_host};

/// Turns queries and keys. It has no parameters.
#[derive(Clone, Copy, Debug)]
pub struct Rotary {
    /// Ratio of the longest wavelength to the shortest, 10,000 in most models.
    pub base: f64,
    /// Width of a head; even.
    pub d_head: usize,
}

/// Cosines and sines by position and pair.
#[derive(Clone, Debug)]
pub struct Angles<B: Kernels> {
    /// `[seq, d_head/2]`
    cos: Tensor<B, 2>,
    /// `[seq, d_head/2]`
    sin: Tensor<B, 2>,
}

impl Rotary {
    /// The angles of positions 0..seq, in the number format and on the device of `like`.
    pub fn angles<B: Kernels, const D: usize>(&self, seq: usize, like: &Tensor<B, D>) -> Angles<B> {
        let pairs = self.d_head / 2;
        let angle = |at: usize| {
            let (position, pair) = (at / pairs, at % pairs);
            position as f64 * self.base.powf(-2.0 * pair as f64 / self.d_head as f64)
        };
        let table = |of: fn(f64) -> f64| {
            let values = (0..seq * pairs).map(|at| of(angle(at)) as f32).collect();
            from_host(values, [seq, pairs], like.dtype().into(), &like.device())
        };
        Angles { cos: table(f64::cos), sin: table(f64::sin) }
    }
}

impl<B: Kernels> Angles<B> {
    /// Each position turned by its angles.
    ///
    /// # Shapes
    /// - values, output: `[batch, heads, seq, d_head]`
    pub fn turn(&self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        B::rotate(values, self.cos.clone(), self.sin.clone())
    }

    /// Each position turned back: the gradient of [`Angles::turn`], since a turn's transpose is its inverse.
    ///
    /// # Shapes
    /// - values, output: `[batch, heads, seq, d_head]`
    pub fn turn_back(&self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        B::rotate(values, self.cos.clone(), self.sin.clone().neg())
    }
}
