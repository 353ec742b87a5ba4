//! Optimizers, which move weights by released gradients, and learning-rate schedules.

mod adafactor;
mod adamw;
mod averaging;
mod lamb;
mod learning_rate;
mod moments;
mod sgd;
mod whole;

use std::ops::Range;

pub use adafactor::Adafactor;
pub use adamw::AdamW;
pub(crate) use averaging::Average;
pub use lamb::Lamb;
pub use learning_rate::learning_rate;
use moments::Moments;
pub use sgd::Sgd;

use crate::dp::{BaselineGradient, PrivateGradient};
use crate::ranks::{Grain, Piece, Shards, share_of};
use network::nn::{Kernels, ParamSpec, Weights, zeros_in_memory};
use network::tensor::{FloatDType, Tensor, from_host};

/// The gradient that an optimizer takes: a noisy one, or that of a run marked as not private.
pub struct OptimizerGradient<B: Kernels> {
    parts: Vec<Tensor<B, 1>>,
    /// Variance of the noise in each element; 0 for a run without noise.
    noise_variance: f64,
}

impl<B: Kernels> From<PrivateGradient<B>> for OptimizerGradient<B> {
    fn from(gradient: PrivateGradient<B>) -> Self {
        let noise_variance = gradient.noise_std() * gradient.noise_std();
        Self { parts: gradient.into_parts(), noise_variance }
    }
}

impl<B: Kernels> From<BaselineGradient<B>> for OptimizerGradient<B> {
    fn from(gradient: BaselineGradient<B>) -> Self {
        Self { parts: gradient.into_parts(), noise_variance: 0.0 }
    }
}

/// A tensor of an optimizer's state, of whole parameters.
#[derive(Clone, Debug)]
pub(crate) struct StateSpec {
    /// Name in a checkpoint.
    pub name: String,
    pub shape: Vec<usize>,
    /// The way in which ranks divide the tensor.
    pub divided: Divided,
}

/// The way in which ranks divide a tensor of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Divided {
    /// The tensor is divided in the same way as this parameter.
    WithParam(usize),
    /// Each rank has one part, as defined by [`crate::ranks::share_of`].
    Evenly,
    /// All ranks have the whole tensor.
    Never,
}

impl StateSpec {
    fn new(list: &str, spec: &ParamSpec, shape: Vec<usize>, divided: Divided) -> Self {
        Self { name: format!("optimizer.{list}.{}", spec.name), shape, divided }
    }

    /// Returns the specification of one tensor for each parameter, of the parameter's shape.
    fn list(list: &str, params: &[ParamSpec]) -> Vec<Self> {
        let numbered = params.iter().enumerate();
        numbered.map(|(at, spec)| Self::new(list, spec, spec.shape.clone(), Divided::WithParam(at))).collect()
    }

    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the parts of the tensor that a rank has, in the order of its pieces.
    pub fn parts(&self, params: &[ParamSpec], shards: &Shards, rank: usize) -> Vec<Range<usize>> {
        match self.divided {
            Divided::Evenly => vec![share_of(self.len(), rank, shards.ranks().count())],
            Divided::Never => std::iter::once(0..self.len()).collect(),
            Divided::WithParam(param) => {
                // A value of the state may stand for a row.
                let each = (params[param].len() / self.len().max(1)).max(1);
                let pieces = shards.pieces_by_rank()[rank].iter().filter(|piece| piece.param == param);
                pieces.map(|Piece { range, .. }| range.start / each..range.end / each).collect()
            }
        }
    }
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
    /// Adam with steps proportional to the length of the weights.
    Lamb(Lamb<B>),
}

impl<B: Kernels> Optimizer<B> {
    /// Creates an optimizer before its first step.
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

    /// Moves the weights by one step against the gradient.
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

    /// Returns the places at which parameters may be cut among ranks.
    pub(crate) fn grain(&self) -> Grain {
        match self {
            Self::AdamW(_) | Self::Sgd(_) => Grain::Elements,
            // The steps of these two depend on sums over whole parameters.
            Self::Adafactor(_) | Self::Lamb(_) => Grain::Blocks,
        }
    }

    /// Creates an optimizer with the same settings, before its first step, for a rank's pieces.
    pub(crate) fn of_pieces(self, shards: &Shards, device: &B::Device) -> Self {
        match self {
            Self::AdamW(adamw) => Self::AdamW(adamw.of_pieces(shards.specs(), device)),
            Self::Sgd(sgd) => Self::Sgd(sgd.of_pieces(shards.specs(), device)),
            Self::Adafactor(adafactor) => Self::Adafactor(adafactor.of_pieces(shards, device)),
            Self::Lamb(lamb) => Self::Lamb(lamb.of_pieces(shards, device)),
        }
    }

    /// Returns the number of steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self {
            Self::AdamW(adamw) => adamw.steps,
            Self::Sgd(sgd) => sgd.steps,
            Self::Adafactor(adafactor) => adafactor.steps,
            Self::Lamb(lamb) => lamb.steps,
        }
    }

    /// Returns the tensors of the state for whole parameters of these specifications. The state of
    /// pieces has the parts of these tensors in the same order.
    pub(crate) fn layout(&self, specs: &[ParamSpec]) -> Vec<StateSpec> {
        match self {
            Self::AdamW(adamw) => adamw.layout(specs),
            Self::Sgd(_) => StateSpec::list("momentum", specs),
            Self::Adafactor(_) => Adafactor::<B>::layout(specs),
            Self::Lamb(_) => Moments::<B>::layout(specs),
        }
    }

    /// Returns the state's tensors, flat, in the order of [`Optimizer::layout`].
    pub(crate) fn state(&self) -> Vec<Tensor<B, 1>> {
        match self {
            Self::AdamW(adamw) => adamw.state(),
            Self::Sgd(sgd) => sgd.velocity.clone(),
            Self::Adafactor(adafactor) => adafactor.state(),
            Self::Lamb(lamb) => lamb.moments.state(),
        }
    }

    /// Continues from a saved state. `values` are in the order of `Optimizer::layout`.
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

/// Returns whether weight decay applies to a parameter. Vectors (biases and gains) do not decay.
fn is_matrix(spec: &ParamSpec) -> bool {
    spec.shape.len() > 1
}

fn zero<B: Kernels>(length: usize, device: &B::Device) -> Tensor<B, 1> {
    from_host(zeros_in_memory(length), [length], FloatDType::F32, device)
}

fn zeros<B: Kernels>(specs: &[ParamSpec], device: &B::Device) -> Vec<Tensor<B, 1>> {
    specs.iter().map(|spec| zero(spec.len(), device)).collect()
}

#[cfg(test)]
mod tests;
