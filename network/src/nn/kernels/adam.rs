//! Operands of a step of Adam.

use crate::tensor::{Backend, Tensor};

/// The constants of one step of Adam with decoupled weight decay.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// β₁ and β₂
    pub betas: [f64; 2],
    /// Bias correction of the second average, 1 − β₂ᵗ.
    pub second_bias: f64,
    /// Number added to the root of the second average.
    pub epsilon: f64,
    /// Replacement for `epsilon`: the variance that noise adds to the second average, and the
    /// smallest value after subtracting it.
    pub noise: Option<[f64; 2]>,
    /// Factor of the weights; 1 without weight decay.
    pub kept: f64,
    /// Learning rate divided by the bias correction of the first average.
    pub rate: f64,
}

/// A parameter and its moving averages. All have shape `[n]`.
#[derive(Clone, Debug)]
pub struct AdamTensors<B: Backend> {
    /// Weights
    pub value: Tensor<B, 1>,
    /// Average of the gradient.
    pub first: Tensor<B, 1>,
    /// Average of the squared gradient.
    pub second: Tensor<B, 1>,
}
