//! Optimizers on released gradients, and learning-rate schedules.

mod adamw;
mod learning_rate;
mod sgd;

pub use adamw::AdamW;
pub use learning_rate::learning_rate;
pub use sgd::Sgd;

use crate::dp::{BaselineGradient, PrivateGradient};
use crate::layer::{Kernels, ParamSpec, Weights};
use crate::tensor::{Tensor, from_host};

/// A gradient that an optimizer may see: noised, or of a run that never claimed privacy.
pub struct Descent<B: Kernels>(Vec<Tensor<B, 1>>);

impl<B: Kernels> From<PrivateGradient<B>> for Descent<B> {
    fn from(gradient: PrivateGradient<B>) -> Self {
        Self(gradient.into_parts())
    }
}

impl<B: Kernels> From<BaselineGradient<B>> for Descent<B> {
    fn from(gradient: BaselineGradient<B>) -> Self {
        Self(gradient.into_parts())
    }
}

/// How weights follow a gradient.
#[derive(Clone, Debug)]
pub enum Optimizer<B: Kernels> {
    /// Adam with decoupled weight decay.
    AdamW(AdamW<B>),
    /// Gradient descent with momentum.
    Sgd(Sgd<B>),
}

impl<B: Kernels> Optimizer<B> {
    /// With state zero.
    #[must_use]
    pub fn new(plan: &plan::Optimizer, specs: &[ParamSpec], device: &B::Device) -> Self {
        match plan {
            plan::Optimizer::Adamw(settings) => Self::AdamW(AdamW::new(settings.clone(), specs, device)),
            plan::Optimizer::Sgd(settings) => Self::Sgd(Sgd::new(settings.clone(), specs, device)),
        }
    }

    /// Moves the weights one step against the gradient.
    pub fn step(&mut self, weights: &mut Weights<B>, gradient: impl Into<Descent<B>>, learning_rate: f64) {
        let gradient = gradient.into().0;
        match self {
            Self::AdamW(adamw) => adamw.step(weights, gradient, learning_rate),
            Self::Sgd(sgd) => sgd.step(weights, gradient, learning_rate),
        }
    }

    /// How many steps it has made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self {
            Self::AdamW(adamw) => adamw.steps,
            Self::Sgd(sgd) => sgd.steps,
        }
    }

    /// Its state: a name and one tensor a parameter each.
    #[must_use]
    pub fn state(&self) -> Vec<(&'static str, &[Tensor<B, 1>])> {
        match self {
            Self::AdamW(adamw) => vec![("first_moment", &adamw.first), ("second_moment", &adamw.second)],
            Self::Sgd(sgd) => vec![("momentum", &sgd.velocity)],
        }
    }

    /// Takes up where a saved state stopped; `lists` in the order of [`Optimizer::state`].
    pub fn restore(&mut self, steps: u64, mut lists: Vec<Vec<Tensor<B, 1>>>) {
        match self {
            Self::AdamW(adamw) => {
                adamw.steps = steps;
                adamw.second = lists.pop().unwrap_or_default();
                adamw.first = lists.pop().unwrap_or_default();
            }
            Self::Sgd(sgd) => {
                sgd.steps = steps;
                sgd.velocity = lists.pop().unwrap_or_default();
            }
        }
    }
}

fn zeros<B: Kernels>(specs: &[ParamSpec], device: &B::Device) -> Vec<Tensor<B, 1>> {
    let zero = |spec: &ParamSpec| {
        from_host(vec![0.0; spec.len()], [spec.len()], crate::tensor::FloatDType::F32, device)
    };
    specs.iter().map(zero).collect()
}
