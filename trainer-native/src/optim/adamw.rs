//! Adam with decoupled weight decay.

use super::zeros;
use crate::layer::{Kernels, ParamSpec, Weights};
use crate::tensor::Tensor;

/// Adam (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019). Vectors (biases and gains) do not
/// decay.
#[derive(Clone, Debug)]
pub struct AdamW<B: Kernels> {
    settings: plan::AdamW,
    pub(super) first: Vec<Tensor<B, 1>>,
    pub(super) second: Vec<Tensor<B, 1>>,
    pub(super) steps: u64,
}

impl<B: Kernels> AdamW<B> {
    pub(super) fn new(settings: plan::AdamW, specs: &[ParamSpec], device: &B::Device) -> Self {
        Self { settings, first: zeros(specs, device), second: zeros(specs, device), steps: 0 }
    }

    pub(super) fn step(&mut self, weights: &mut Weights<B>, gradient: Vec<Tensor<B, 1>>, learning_rate: f64) {
        self.steps += 1;
        let plan::AdamW { beta1, beta2, epsilon, weight_decay } = self.settings;
        let exponent = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let first_bias = 1.0 - beta1.powi(exponent);
        let second_bias = 1.0 - beta2.powi(exponent);
        let values = weights.take();
        let mut moved = Vec::with_capacity(values.len());
        for (index, (value, grad)) in values.into_iter().zip(gradient).enumerate() {
            let is_matrix = weights.specs()[index].shape.len() > 1;
            let kept = if is_matrix { 1.0 - learning_rate * weight_decay } else { 1.0 };
            let (first, second) = (&mut self.first[index], &mut self.second[index]);
            first.inplace(|first| first * beta1 + grad.clone() * (1.0 - beta1));
            second.inplace(|second| second * beta2 + grad.square() * (1.0 - beta2));
            let scale = (second.clone() / second_bias).sqrt() + epsilon;
            moved.push(value * kept - first.clone() / scale * (learning_rate / first_bias));
        }
        weights.replace(moved);
    }
}
