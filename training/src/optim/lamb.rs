//! LAMB: Adam with a step length proportional to the weights, tensor by tensor.

use super::is_matrix;
use super::moments::{Moments, bias};
use super::whole::{Over, Whole};
use crate::ranks::Shards;
use network::nn::{Kernels, ParamSpec, Weights};
use network::tensor::Tensor;

/// LAMB: `u = m̂/(√v̂ + ε) + λw; w ← w − rate·‖w‖/‖u‖·u`, where the ratio is 1 if either norm is 0. Vectors do not decay.
///
/// # References
/// You et al. 2020, <https://arxiv.org/abs/1904.00962>.
#[derive(Clone, Debug)]
pub struct Lamb<B: Kernels> {
    settings: plan::Lamb,
    pub(super) moments: Moments<B>,
    whole: Whole,
    device: B::Device,
    pub(super) steps: u64,
}

impl<B: Kernels> Lamb<B> {
    pub(super) fn new(settings: plan::Lamb, specs: &[ParamSpec], device: &B::Device) -> Self {
        let moments = Moments::zero(specs, device);
        Self { settings, moments, whole: Whole::params(specs), device: device.clone(), steps: 0 }
    }

    pub(super) fn of_pieces(self, shards: &Shards, device: &B::Device) -> Self {
        Self { whole: Whole::pieces(shards), ..Self::new(self.settings, shards.specs(), device) }
    }

    pub(super) fn step(&mut self, weights: &mut Weights<B>, gradient: Vec<Tensor<B, 1>>, learning_rate: f64) {
        self.steps += 1;
        let plan::Lamb { beta1, beta2, epsilon, weight_decay } = self.settings;
        let [first_bias, second_bias] = [beta1, beta2].map(|beta| bias(beta, self.steps));
        let values = weights.take();
        let mut updates = Vec::with_capacity(values.len());
        for (index, (value, grad)) in values.iter().zip(gradient).enumerate() {
            let decay = if is_matrix(&weights.specs()[index]) { weight_decay } else { 0.0 };
            let [first, second] = self.moments.update(index, &grad, [beta1, beta2]);
            updates
                .push(first / first_bias / ((second / second_bias).sqrt() + epsilon) + value.clone() * decay);
        }
        let squares = |tensors: &[Tensor<B, 1>]| {
            let squares = tensors.iter().map(|tensor| Some(tensor.clone().square()));
            self.whole.sums(Over::Elements, squares, &self.device)
        };
        let norms = squares(&values).into_iter().zip(squares(&updates));
        let moved = values.into_iter().zip(updates).zip(norms).map(|((value, update), norms)| match norms {
            (Some(weight), Some(of_update)) => {
                let [weight_norm, update_norm] = [weight.sqrt(), of_update.sqrt()];
                let is_zero = (weight_norm.clone() * update_norm.clone()).equal_elem(0.0);
                let ratio = (weight_norm / update_norm).mask_fill(is_zero, 1.0);
                value - update * ratio * learning_rate
            }
            _ => value,
        });
        weights.replace(moved.collect());
    }
}
