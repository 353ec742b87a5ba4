//! Stochastic gradient descent with momentum.

use super::zeros;
use network::nn::{Kernels, ParamSpec, Weights};
use network::tensor::Tensor;

/// Gradient descent with momentum: `v ← momentum·v + g; w ← w − rate·v`.
#[derive(Clone, Debug)]
pub struct Sgd<B: Kernels> {
    settings: plan::Sgd,
    pub(super) velocity: Vec<Tensor<B, 1>>,
    pub(super) steps: u64,
}

impl<B: Kernels> Sgd<B> {
    pub(super) fn new(settings: plan::Sgd, specs: &[ParamSpec], device: &B::Device) -> Self {
        Self { settings, velocity: zeros(specs, device), steps: 0 }
    }

    pub(super) fn of_pieces(self, pieces: &[ParamSpec], device: &B::Device) -> Self {
        Self::new(self.settings, pieces, device)
    }

    pub(super) fn step(&mut self, weights: &mut Weights<B>, gradient: Vec<Tensor<B, 1>>, learning_rate: f64) {
        self.steps += 1;
        let values = weights.take();
        let mut moved = Vec::with_capacity(values.len());
        for ((value, grad), velocity) in values.into_iter().zip(gradient).zip(&mut self.velocity) {
            velocity.inplace(|velocity| velocity * self.settings.momentum + grad);
            moved.push(value - velocity.clone() * learning_rate);
        }
        weights.replace(moved);
    }
}
