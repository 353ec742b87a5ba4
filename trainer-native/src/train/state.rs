//! State that a resumed run continues from.

use std::collections::BTreeMap;

use super::{TrainError, Trainer, flat};
use crate::nn::{Kernels, ParamSpec};
use crate::optim::StateSpec;
use crate::ranks::{FromRank, Piece};
use crate::tensor::{Tensor, to_host};
use crate::tensor_file::{NamedTensor, TensorMap, named_tensors};

/// Name of the optimizer's step counter: two exact halves of 20 bits, as f32 holds 24.
const COUNTER: &str = "optimizer.steps";

/// Name of an adaptive clip norm; 0 before the first step.
const CLIP_NORM: &str = "clipping.l2_clip_norm";

impl<B: Kernels> Trainer<B> {
    /// All that a resumed run needs beside its initial weights: trained weights, the optimizer's tensors and step counter,
    /// and the adaptive clip norm. It does not depend on the number of ranks, and every rank gets all of it.
    #[must_use]
    pub fn state(&self) -> Vec<NamedTensor> {
        let mut state = self.trained();
        state.extend(self.optimizer_state());
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
        let of_optimizer = self.take_optimizer_state(&mut state, &specs)?;
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

    /// The optimizer's tensors, of whole parameters.
    fn optimizer_state(&self) -> Vec<NamedTensor> {
        let (layout, own) = (self.optimizer.layout(self.weights.specs()), self.optimizer.state());
        let named = |StateSpec { name, shape, .. }, data| NamedTensor { name, shape, data };
        let own = own.into_iter().map(to_host);
        let Some(shards) = &self.shards else {
            return layout.into_iter().zip(own).map(|(spec, data)| named(spec, data)).collect();
        };
        let own: Vec<f32> = own.flatten().collect();
        let mut whole: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        for FromRank { specs, values, .. } in shards.exchange(&own) {
            let mut values = values.into_iter();
            for StateSpec { name, shape, is_shared, .. } in self.optimizer.layout(&specs) {
                let part = values.by_ref().take(shape.iter().product());
                match whole.entry(name).or_default() {
                    known if is_shared && !known.is_empty() => part.for_each(drop),
                    joined => joined.extend(part),
                }
            }
        }
        let joined = |spec: StateSpec| {
            let data = whole.remove(&spec.name).unwrap_or_default();
            named(spec, data)
        };
        layout.into_iter().map(joined).collect()
    }

    /// This rank's part of a saved state, in the order of [`crate::optim::Optimizer::layout`].
    fn take_optimizer_state(
        &self,
        state: &mut TensorMap,
        specs: &[ParamSpec],
    ) -> Result<Vec<Tensor<B, 1>>, TrainError> {
        let own: Option<BTreeMap<String, Option<usize>>> = self.shards.as_ref().map(|shards| {
            let layout = self.optimizer.layout(shards.specs()).into_iter();
            layout.map(|tensor| (tensor.name, tensor.piece.filter(|_| !tensor.is_shared))).collect()
        });
        let mut values = Vec::new();
        for StateSpec { name, shape, .. } in self.optimizer.layout(specs) {
            let whole = state.take(&name, &shape)?;
            let part = match (&self.shards, own.as_ref().map(|own| own.get(&name))) {
                (Some(_), Some(None)) => continue,
                (Some(shards), Some(Some(&Some(piece)))) => {
                    let Piece { param, range } = &shards.pieces()[piece];
                    // A value of the state may stand for a row.
                    let each = specs[*param].len() / whole.len().max(1);
                    whole[range.start / each..range.end / each].to_vec()
                }
                _ => whole,
            };
            values.push(flat(part, &self.device));
        }
        Ok(values)
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
