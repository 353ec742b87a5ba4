use thiserror::Error;

use crate::RunError;
use crate::dp::StepError;
use network::ExampleError;
use network::device::DeviceError;
use network::model::ModelError;
use network::nn::SelectionError;
use network::tensor_file::TensorError;

/// The reasons why a model cannot be built, trained or measured.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A model that cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A figure of a step out of its range.
    #[error("{what} = {value}; allowed: finite and above 0")]
    Figure {
        /// Name of the figure.
        what: &'static str,
        /// The given value.
        value: f64,
    },
    /// A step that the plan does not have.
    #[error("the plan has no step {step}")]
    Step {
        /// Logical step, from 0.
        step: u64,
    },
    /// A step that does not continue its block of correlated noise.
    #[error("step {step} does not follow the noise drawn so far; the next step is {expected}")]
    Order {
        /// Logical step, from 0.
        step: u64,
        /// The step that follows.
        expected: u64,
    },
    /// An example that does not fit the model.
    #[error(transparent)]
    Example(#[from] ExampleError),
    /// A saved state that does not fit the model.
    #[error("saved state: {0}; resume with the plan that wrote it")]
    State(#[from] TensorError),
    /// A selection of trainable weights that the model does not have.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A private step that cannot be taken.
    #[error(transparent)]
    Private(#[from] StepError),
}

impl From<TrainError> for RunError {
    /// Converts errors during training. Errors while a model is built are [`RunError::Refused`].
    fn from(error: TrainError) -> Self {
        Self::Failed(error.to_string())
    }
}
