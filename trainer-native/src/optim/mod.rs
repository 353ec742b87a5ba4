//! Optimizers on released gradients, and learning-rate schedules.

mod adafactor;
mod adamw;
mod lamb;
mod learning_rate;
mod moments;
mod sgd;

pub use adafactor::Adafactor;
pub use adamw::AdamW;
pub use lamb::Lamb;
pub use learning_rate::learning_rate;
pub use sgd::Sgd;

use crate::dp::{BaselineGradient, PrivateGradient};
use crate::nn::{Kernels, ParamSpec, Weights};
use crate::tensor::{FloatDType, Tensor, from_host};

/// What an optimizer takes: a gradient with noise, or that of a run marked as not private.
pub struct OptimizerGradient<B: Kernels> {
    parts: Vec<Tensor<B, 1>>,
    /// Variance of the noise in each element; 0 in a baseline.
    noise_variance: f64,
}

impl<B: Kernels> From<PrivateGradient<B>> for OptimizerGradient<B> {
    fn from(gradient: PrivateGradient<B>) -> Self {
        let noise_variance = gradient.noise_std() * gradient.noise_std();
        Self { parts: gradient.into_parts(), noise_variance }
    }
}

impl<B: Kernels> OptimizerGradient<B> {
    /// The same gradient with other parts.
    pub(crate) fn map(self, change: impl FnOnce(Vec<Tensor<B, 1>>) -> Vec<Tensor<B, 1>>) -> Self {
        Self { parts: change(self.parts), ..self }
    }
}

impl<B: Kernels> From<BaselineGradient<B>> for OptimizerGradient<B> {
    fn from(gradient: BaselineGradient<B>) -> Self {
        Self { parts: gradient.into_parts(), noise_variance: 0.0 }
    }
}

/// A tensor of an optimizer's state.
pub(crate) struct StateTensor<B: Kernels> {
    /// Name in a checkpoint.
    pub name: String,
    pub shape: Vec<usize>,
    /// Flat values.
    pub value: Tensor<B, 1>,
}

/// An optimizer with its state.
#[derive(Clone, Debug)]
pub enum Optimizer<B: Kernels> {
    /// Adam with decoupled weight decay.
    AdamW(AdamW<B>),
    /// Gradient descent with momentum.
    Sgd(Sgd<B>),
    /// Factored second moments.
    Adafactor(Adafactor<B>),
    /// Adam with steps as long as the weights.
    Lamb(Lamb<B>),
}

impl<B: Kernels> Optimizer<B> {
    /// An optimizer before its first step.
    pub fn new(plan: &plan::Optimizer, specs: &[ParamSpec], device: &B::Device) -> Self {
        match plan {
            plan::Optimizer::Adamw(settings) => Self::AdamW(AdamW::new(settings.clone(), specs, device)),
            plan::Optimizer::Sgd(settings) => Self::Sgd(Sgd::new(settings.clone(), specs, device)),
            plan::Optimizer::Adafactor(settings) => {
                Self::Adafactor(Adafactor::new(settings.clone(), specs, device))
            }
            plan::Optimizer::Lamb(settings) => Self::Lamb(Lamb::new(settings.clone(), specs, device)),
        }
    }

    /// Moves the weights one step against the gradient.
    pub fn step(
        &mut self,
        weights: &mut Weights<B>,
        gradient: impl Into<OptimizerGradient<B>>,
        learning_rate: f64,
    ) {
        let gradient = gradient.into();
        match self {
            Self::AdamW(adamw) => adamw.step(weights, gradient, learning_rate),
            Self::Sgd(sgd) => sgd.step(weights, gradient.parts, learning_rate),
            Self::Adafactor(adafactor) => adafactor.step(weights, gradient.parts, learning_rate),
            Self::Lamb(lamb) => lamb.step(weights, gradient.parts, learning_rate),
        }
    }

    /// The lists of its state that have a tensor for each parameter, if an element's step and state depend on that element alone.
    /// Parameters can then be cut into pieces at will.
    pub(crate) fn state_lists(&self) -> Option<&'static [&'static str]> {
        match self {
            Self::AdamW(_) => Some(&["first_moment", "second_moment"]),
            Self::Sgd(_) => Some(&["momentum"]),
            // Their steps depend on norms of whole parameters.
            Self::Adafactor(_) | Self::Lamb(_) => None,
        }
    }

    /// An optimizer of the same settings before its first step, for pieces of parameters if it can take these.
    pub(crate) fn of_pieces(self, pieces: &[ParamSpec], device: &B::Device) -> Self {
        match self {
            Self::AdamW(adamw) => Self::AdamW(adamw.of_pieces(pieces, device)),
            Self::Sgd(sgd) => Self::Sgd(sgd.of_pieces(pieces, device)),
            whole => whole,
        }
    }

    /// Number of steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self {
            Self::AdamW(adamw) => adamw.steps,
            Self::Sgd(sgd) => sgd.steps,
            Self::Adafactor(adafactor) => adafactor.steps,
            Self::Lamb(lamb) => lamb.steps,
        }
    }

    /// The state's tensors, in a fixed order.
    pub(crate) fn state(&self, specs: &[ParamSpec]) -> Vec<StateTensor<B>> {
        match self {
            Self::AdamW(adamw) => adamw.state(specs),
            Self::Sgd(sgd) => listed("momentum", &sgd.velocity, specs),
            Self::Adafactor(adafactor) => adafactor.state(specs),
            Self::Lamb(lamb) => lamb.moments.state(specs),
        }
    }

    /// Continues from a saved state. `values` are in the order of [`Optimizer::state`].
    pub fn restore(&mut self, steps: u64, values: Vec<Tensor<B, 1>>) {
        match self {
            Self::AdamW(adamw) => adamw.restore(steps, values),
            Self::Sgd(sgd) => (sgd.steps, sgd.velocity) = (steps, values),
            Self::Adafactor(adafactor) => adafactor.restore(steps, values),
            Self::Lamb(lamb) => {
                lamb.steps = steps;
                lamb.moments.restore(values);
            }
        }
    }
}

/// A list of one tensor per parameter, as part of a state.
fn listed<B: Kernels>(list: &str, values: &[Tensor<B, 1>], specs: &[ParamSpec]) -> Vec<StateTensor<B>> {
    let state = |(value, spec): (&Tensor<B, 1>, &ParamSpec)| StateTensor {
        name: state_name(list, spec),
        shape: spec.shape.clone(),
        value: value.clone(),
    };
    values.iter().zip(specs).map(state).collect()
}

/// The name, in a checkpoint, of a parameter's state.
pub(crate) fn state_name(list: &str, spec: &ParamSpec) -> String {
    format!("optimizer.{list}.{}", spec.name)
}

/// Whether weight decay applies. Vectors (biases and gains) do not decay.
fn is_matrix(spec: &ParamSpec) -> bool {
    spec.shape.len() > 1
}

fn zero<B: Kernels>(length: usize, device: &B::Device) -> Tensor<B, 1> {
    from_host(vec![0.0; length], [length], FloatDType::F32, device)
}

fn zeros<B: Kernels>(specs: &[ParamSpec], device: &B::Device) -> Vec<Tensor<B, 1>> {
    specs.iter().map(|spec| zero(spec.len(), device)).collect()
}

#[cfg(test)]
mod tests;
