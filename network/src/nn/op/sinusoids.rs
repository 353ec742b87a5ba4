//! Positions as sines and cosines, which are not learned.
//!
//! # References
//! Vaswani et al. 2017, <https://arxiv.org/abs/1706.03762>, section 3.5; all sines before all
//! cosines, as in Marian.

use super::add;
use crate::nn::{ForwardPass, Kernels, Var};
use crate::tensor::from_host;

/// A vector for each position. It has no parameters.
#[derive(Clone, Copy, Debug)]
pub struct Sinusoids {
    /// Width of a vector; even.
    pub width: usize,
}

impl Sinusoids {
    /// Adds each position's vector.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let dims @ [batch, seq, d] = input.dims();
        // In generation, each row has one position of its own. Otherwise all rows have the same positions.
        let vectors: Vec<f32> = match pass.rows_at() {
            Some(rows) => rows.iter().flat_map(|&position| self.vector(position)).collect(),
            None => (0..seq).flat_map(|position| self.vector(position)).collect(),
        };
        let shape = if pass.rows_at().is_some() { [batch, 1, d] } else { [1, seq, d] };
        let like = &input.value;
        let vectors = from_host(vectors, shape, like.dtype().into(), &like.device());
        add(pass, input, Var::constant(vectors.expand(dims)))
    }

    fn vector(self, position: usize) -> impl Iterator<Item = f32> {
        let half = self.width / 2;
        (0..self.width).map(move |at| {
            let frequency = 10_000_f64.powf(-2.0 * (at % half) as f64 / self.width as f64);
            let angle = position as f64 * frequency;
            (if at < half { angle.sin() } else { angle.cos() }) as f32
        })
    }
}
