//! Adam with decoupled weight decay.

use super::moments::{Moments, bias};
use super::{Divided, OptimizerGradient, StateSpec, is_matrix};
use network::nn::{AdamStep, Kernels, ParamSpec, Weights};
use network::tensor::{FloatDType, Tensor, from_host, to_host};

/// Adam (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019). Vectors (biases and gains) do not
/// decay.
///
/// With the bias correction for noise, the known variance of the noise is subtracted from the second moment before the
/// root: w ← w − rate·m̂/√max(v̂ − Φ̂, floor), where Φ̂ averages the noise's variance over the same steps.
///
/// # References
/// Tang, Shpilevskiy & Lécuyer 2023, "DP-AdamBC", <https://arxiv.org/abs/2312.14334>.
#[derive(Clone, Debug)]
pub struct AdamW<B: Kernels> {
    settings: plan::AdamW,
    moments: Moments<B>,
    /// Moving average of the noise's variance, in the precision of the checkpoint.
    noise: f32,
    device: B::Device,
    pub(super) steps: u64,
}

impl<B: Kernels> AdamW<B> {
    pub(super) fn new(settings: plan::AdamW, specs: &[ParamSpec], device: &B::Device) -> Self {
        Self { settings, moments: Moments::zero(specs, device), noise: 0.0, device: device.clone(), steps: 0 }
    }

    pub(super) fn of_pieces(self, pieces: &[ParamSpec], device: &B::Device) -> Self {
        Self::new(self.settings, pieces, device)
    }

    pub(super) fn step(
        &mut self,
        weights: &mut Weights<B>,
        gradient: OptimizerGradient<B>,
        learning_rate: f64,
    ) {
        self.steps += 1;
        let plan::AdamW { beta1, beta2, epsilon, weight_decay, .. } = self.settings;
        let floor = self.settings.dp_bias_correction.as_ref().map(|correction| correction.floor);
        let [first_bias, second_bias] = [beta1, beta2].map(|beta| bias(beta, self.steps));
        self.noise = (f64::from(self.noise) * beta2 + gradient.noise_variance * (1.0 - beta2)) as f32;
        let noise = f64::from(self.noise) / second_bias;
        let values = weights.take();
        let mut moved = Vec::with_capacity(values.len());
        for (index, (value, grad)) in values.into_iter().zip(gradient.parts).enumerate() {
            let kept =
                if is_matrix(&weights.specs()[index]) { 1.0 - learning_rate * weight_decay } else { 1.0 };
            let step = AdamStep {
                betas: [beta1, beta2],
                second_bias,
                epsilon,
                noise: floor.map(|floor| [noise, floor]),
                kept,
                rate: learning_rate / first_bias,
            };
            moved.push(self.moments.step(index, value, grad, &step));
        }
        weights.replace(moved);
    }

    pub(super) fn layout(&self, specs: &[ParamSpec]) -> Vec<StateSpec> {
        let mut layout = Moments::<B>::layout(specs);
        if self.settings.dp_bias_correction.is_some() {
            let name = "optimizer.noise_variance".to_owned();
            layout.push(StateSpec { name, shape: vec![1], divided: Divided::Never });
        }
        layout
    }

    pub(super) fn state(&self) -> Vec<Tensor<B, 1>> {
        let mut state = self.moments.state();
        if self.settings.dp_bias_correction.is_some() {
            state.push(from_host(vec![self.noise], [1], FloatDType::F32, &self.device));
        }
        state
    }

    pub(super) fn restore(&mut self, steps: u64, mut values: Vec<Tensor<B, 1>>) {
        self.steps = steps;
        if self.settings.dp_bias_correction.is_some() {
            let noise = values.pop().map(to_host).and_then(|noise| noise.first().copied());
            self.noise = noise.unwrap_or_default();
        }
        self.moments.restore(values);
    }
}
