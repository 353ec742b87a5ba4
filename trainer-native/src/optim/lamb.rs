//! LAMB: Adam with a step length proportional to the weights, tensor by tensor.

use super::is_matrix;
use super::moments::{Moments, bias};
use crate::nn::{Kernels, ParamSpec, Weights};
use crate::tensor::Tensor;

/// LAMB: `u = m̂/(√v̂ + ε) + λw; w ← w − rate·‖w‖/‖u‖·u`, where the ratio is 1 if either norm is 0. Vectors do not decay.
///
/// # References
/// You et al. 2020, <https://arxiv.org/abs/1904.00962>.
#[derive(Clone, Debug)]
pub struct Lamb<B: Kernels> {
    settings: plan::Lamb,
    pub(super) moments: Moments<B>,
    pub(super) steps: u64,
}

impl<B: Kernels> Lamb<B> {
    pub(super) fn new(settings: plan::Lamb, specs: &[ParamSpec], device: &B::Device) -> Self {
        Self { settings, moments: Moments::zero(specs, device), steps: 0 }
    }

    pub(super) fn step(&mut self, weights: &mut Weights<B>, gradient: Vec<Tensor<B, 1>>, learning_rate: f64) {
        self.steps += 1;
        let plan::Lamb { beta1, beta2, epsilon, weight_decay } = self.settings;
        let [first_bias, second_bias] = [beta1, beta2].map(|beta| bias(beta, self.steps));
        let values = weights.take();
        let mut moved = Vec::with_capacity(values.len());
        for (index, (value, grad)) in values.into_iter().zip(gradient).enumerate() {
            let decay = if is_matrix(&weights.specs()[index]) { weight_decay } else { 0.0 };
            let [first, second] = self.moments.update(index, &grad, [beta1, beta2]);
            let update =
                first / first_bias / ((second / second_bias).sqrt() + epsilon) + value.clone() * decay;
            let [weight_norm, update_norm] =
                [&value, &update].map(|tensor| tensor.clone().square().sum().sqrt());
            let is_zero = (weight_norm.clone() * update_norm.clone()).equal_elem(0.0);
            let ratio = (weight_norm / update_norm).mask_fill(is_zero, 1.0);
            moved.push(value - update * ratio * learning_rate);
        }
        weights.replace(moved);
    }
}
