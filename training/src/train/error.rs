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
pub enum TrainerError {
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

impl From<TrainerError> for RunError {
    /// Converts errors during training. Errors while a model is built are [`RunError::Refused`].
    fn from(error: TrainerError) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use network::Example;
    use network::model::Network;
    use serde_json::json;

    use super::*;

    /// The place of an example tells which units are in a lot.
    #[test]
    fn an_example_that_does_not_fit_is_refused_without_its_place_and_its_tokens() {
        let model =
            json!({ "family": "gpt2", "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 10 });
        let training = json!({
            "objective": "causal_lm", "expected_batch_size": 6, "steps": 9, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
        });
        let [model, training] = [model, training].map(|part| part.to_string());
        let (model, training) =
            (serde_json::from_str(&model).unwrap(), serde_json::from_str(&training).unwrap());
        let network = Network::new(&model, &training, 40).unwrap();
        let message = |windows: &[[u32; 3]]| {
            let lot: Vec<Example> = windows.iter().map(|window| Example::causal(window)).collect();
            TrainerError::from(network.check(&lot).unwrap_err()).to_string()
        };
        let alone = message(&[[1, 57, 3]]);
        assert_eq!(alone, message(&[[1, 2, 3], [4, 5, 6], [1, 57, 3]]));
        assert!(!alone.contains("57"), "{alone}");
    }
}
