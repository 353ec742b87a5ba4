//! State that a resumed run continues from.

use super::{TrainError, Trainer};
use crate::nn::Kernels;
use crate::optim::StateTensor;
use crate::tensor::{FloatDType, from_host, to_host};
use crate::tensor_file::{NamedTensor, TensorMap, named_tensors};

/// Name of the optimizer's step counter: two exact halves of 20 bits, as f32 holds 24.
const COUNTER: &str = "optimizer.steps";

/// Name of an adaptive clip norm; 0 before the first step.
const CLIP_NORM: &str = "clipping.l2_clip_norm";

impl<B: Kernels> Trainer<B> {
    /// All that a resumed run needs beside its initial weights: trained weights, the optimizer's tensors and step counter,
    /// and the adaptive clip norm.
    #[must_use]
    pub fn state(&self) -> Vec<NamedTensor> {
        let mut state = self.trained();
        let of_optimizer = self.optimizer.state(self.weights.specs()).into_iter();
        state.extend(of_optimizer.map(|StateTensor { name, shape, value }| NamedTensor {
            name,
            shape,
            data: to_host(value),
        }));
        if let plan::Clipping::Adaptive(_) = self.summation.clipping {
            let data = vec![self.adapted_clip_norm.unwrap_or_default() as f32];
            state.push(NamedTensor { name: CLIP_NORM.to_owned(), shape: vec![1], data });
        }
        let steps = self.optimizer.steps();
        let halves = vec![(steps >> 20) as f32, (steps & 0xF_FFFF) as f32];
        state.push(NamedTensor { name: COUNTER.to_owned(), shape: vec![2], data: halves });
        state
    }

    /// Continues from a state that [`Trainer::state`] returned.
    ///
    /// # Errors
    /// [`TrainError::State`] if a tensor is missing, unknown, or of another shape; the trainer is then unchanged.
    pub fn load_state(&mut self, state: Vec<NamedTensor>) -> Result<(), TrainError> {
        let mut state = TensorMap::new(state)?;
        let specs = self.weights.specs().to_vec();
        let counter = state.take(COUNTER, &[2])?;
        let steps = ((counter[0] as u64) << 20) | counter[1] as u64;
        let values = state.take_all::<B>(&specs, &self.device)?;
        let take = |tensor: StateTensor<B>| {
            let data = state.take(&tensor.name, &tensor.shape)?;
            let length = data.len();
            Ok(from_host(data, [length], FloatDType::F32, &self.device))
        };
        let of_optimizer =
            self.optimizer.state(&specs).into_iter().map(take).collect::<Result<_, TrainError>>()?;
        let adapted = match self.summation.clipping {
            plan::Clipping::Adaptive(_) => Some(f64::from(state.take(CLIP_NORM, &[1])?[0])),
            _ => None,
        };
        state.finish()?;
        self.weights.replace(values);
        self.optimizer.restore(steps, of_optimizer);
        self.adapted_clip_norm = adapted.filter(|norm| *norm > 0.0);
        Ok(())
    }

    /// The trained weights: those of adapters, or of the model where it is trained itself.
    #[must_use]
    pub fn trained(&self) -> Vec<NamedTensor> {
        named_tensors(self.weights.specs(), self.weights.values())
    }

    /// Loads weights that [`Trainer::trained`] returned; the optimizer keeps its state.
    ///
    /// # Errors
    /// As [`Trainer::load_state`].
    pub fn load_trained(&mut self, weights: Vec<NamedTensor>) -> Result<(), TrainError> {
        let mut weights = TensorMap::new(weights)?;
        let values = weights.take_all::<B>(self.weights.specs(), &self.device)?;
        weights.finish()?;
        self.weights.replace(values);
        Ok(())
    }

    /// Loads the weights of a model directory; the optimizer keeps its state.
    ///
    /// # Errors
    /// As [`Trainer::load_state`].
    pub fn load_weights(&mut self, weights: Vec<NamedTensor>) -> Result<(), TrainError> {
        let mut weights = TensorMap::new(weights)?;
        let values = weights.take_all::<B>(self.weights.model_specs(), &self.device)?;
        weights.finish()?;
        self.weights.replace_model(values);
        Ok(())
    }
}
