//! Windows of tokens as one batch of fixed shape.

use crate::tensor::{Backend, FloatDType, Int, Tensor, TensorData, from_host};

/// Up to `rows` windows, padded to a fixed shape with positions and rows of zero weight.
///
/// A window of L tokens has L − 1 inputs and as many targets. Its loss is the mean over its own targets, so nothing
/// in it depends on the other windows.
#[derive(Clone, Debug)]
pub struct TokenBatch<B: Backend> {
    /// `[rows, seq]`
    pub tokens: Tensor<B, 2, Int>,
    /// The token that follows each input. `[rows, seq]`
    pub targets: Tensor<B, 2, Int>,
    /// 1 / (number of targets) at each target of a window, 0 at padding. `[rows, seq]`
    pub target_weights: Tensor<B, 2>,
    /// How many rows hold a window; the others are padding.
    pub examples: usize,
}

impl<B: Backend> TokenBatch<B> {
    /// Lays windows out.
    ///
    /// # Panics
    /// If there are more windows than rows or a window has more than `seq + 1` tokens; the engine checks both.
    pub fn new(windows: &[Vec<u32>], rows: usize, seq: usize, dtype: FloatDType, device: &B::Device) -> Self {
        assert!(windows.len() <= rows, "more windows than rows");
        let mut tokens = vec![0_i32; rows * seq];
        let mut targets = vec![0_i32; rows * seq];
        let mut target_weights = vec![0.0_f32; rows * seq];
        for (row, window) in windows.iter().enumerate() {
            let count = window.len().saturating_sub(1);
            assert!(count <= seq, "window longer than the context");
            let at = row * seq..row * seq + count;
            for (slot, &token) in tokens[at.clone()].iter_mut().zip(window) {
                *slot = token as i32;
            }
            for (slot, &token) in targets[at.clone()].iter_mut().zip(window.iter().skip(1)) {
                *slot = token as i32;
            }
            target_weights[at].fill(1.0 / count as f32);
        }
        let integers = |values| Tensor::from_data(TensorData::new(values, [rows, seq]), device);
        Self {
            tokens: integers(tokens),
            targets: integers(targets),
            target_weights: from_host(target_weights, [rows, seq], dtype, device),
            examples: windows.len(),
        }
    }
}
