//! Saves and loads the state from which a resumed run continues.

use super::{Trainer, TrainerError, flat};
use crate::optim::StateSpec;
use network::nn::{Kernels, ParamSpec};
use network::tensor::{Tensor, to_host};
use network::tensor_file::{Held, NamedTensor, TensorMap, Values, held_tensors, named_tensors};

/// Name of the optimizer's step counter. It is stored as two parts of 20 bits, because f32 holds integers of 24 bits
/// exactly.
const COUNTER: &str = "optimizer.steps";

/// Start of the names of averaged weights.
const AVERAGE: &str = "average.";

/// Name of an adaptive clip norm, which is 0 before the first step.
const CLIP_NORM: &str = "clipping.l2_clip_norm";

impl<B: Kernels> Trainer<B> {
    /// Returns everything that a resumed run needs beside its initial weights: trained weights, the
    /// optimizer's tensors and step counter, averages, and the adaptive clip norm. The state does not depend
    /// on the number of ranks, and every rank gets all of it.
    #[must_use]
    pub fn state(&self) -> Vec<NamedTensor> {
        let on_host = |NamedTensor { name, shape, data }: NamedTensor<Held<B>>| {
            let data = data.on_host().into_owned();
            NamedTensor { name, shape, data }
        };
        self.held_state().into_iter().map(on_host).collect()
    }

    /// Returns [`Self::state`] without copying tensors, which share the trainer's memory.
    pub(crate) fn held_state(&self) -> Vec<NamedTensor<Held<B>>> {
        let mut state = held_tensors(self.weights.specs(), self.weights.values());
        state.extend(self.optimizer_state());
        if let Some(average) = &self.average {
            state.extend(held_tensors(&self.averaged_specs(), average.values()));
        }
        if let plan::Clipping::Adaptive(_) = self.summation.clipping {
            let data = Held::Host(vec![self.adapted_clip_norm.unwrap_or_default() as f32]);
            state.push(NamedTensor { name: CLIP_NORM.to_owned(), shape: vec![1], data });
        }
        let steps = self.optimizer.steps();
        let halves = Held::Host(vec![(steps >> 20) as f32, (steps & 0xF_FFFF) as f32]);
        state.push(NamedTensor { name: COUNTER.to_owned(), shape: vec![2], data: halves });
        state
    }

    /// Continues from a state that [`Trainer::state`] returned.
    ///
    /// # Errors
    /// [`TrainerError::State`] if a tensor is missing, unknown, or of another shape; the trainer is then unchanged.
    pub fn load_state(&mut self, state: Vec<NamedTensor>) -> Result<(), TrainerError> {
        let mut state = TensorMap::new(state)?;
        let specs = self.weights.specs().to_vec();
        let counter = state.take(COUNTER, &[2])?;
        let steps = ((counter[0] as u64) << 20) | counter[1] as u64;
        let values = state.take_all::<B>(&specs, &self.device)?;
        let of_optimizer = self.take_optimizer_state(&mut state, &specs)?;
        let averages = match &self.average {
            Some(average) if average.has_begun(steps) => {
                Some(state.take_all::<B>(&self.averaged_specs(), &self.device)?)
            }
            _ => None,
        };
        let adapted = match self.summation.clipping {
            plan::Clipping::Adaptive(_) => Some(f64::from(state.take(CLIP_NORM, &[1])?[0])),
            _ => None,
        };
        state.finish()?;
        self.weights.replace(values);
        self.optimizer.restore(steps, of_optimizer);
        if let (Some(average), Some(values)) = (&mut self.average, averages) {
            average.restore(values);
        }
        self.adapted_clip_norm = adapted.filter(|norm| *norm > 0.0);
        Ok(())
    }

    /// Returns the names and shapes of averaged weights in a state.
    fn averaged_specs(&self) -> Vec<ParamSpec> {
        let named = |spec: &ParamSpec| ParamSpec { name: format!("{AVERAGE}{}", spec.name), ..spec.clone() };
        self.weights.specs().iter().map(named).collect()
    }

    /// Returns the trained weights of the model: those of adapters, or those of the model if it is
    /// trained itself. They are averaged if the plan asks for it.
    #[must_use]
    pub fn trained(&self) -> Vec<NamedTensor> {
        let weights = self.result();
        named_tensors(weights.specs(), weights.values())
    }

    /// Loads weights that [`Trainer::trained`] returned. They are the model's from here on, without
    /// an average; the optimizer keeps its state.
    ///
    /// # Errors
    /// As [`Trainer::load_state`].
    pub(crate) fn load_trained(&mut self, weights: Vec<NamedTensor>) -> Result<(), TrainerError> {
        self.load_first(weights)?;
        self.average = None;
        Ok(())
    }

    /// Loads weights to train from.
    ///
    /// # Errors
    /// As [`Trainer::load_state`].
    pub(crate) fn load_first(&mut self, weights: Vec<NamedTensor>) -> Result<(), TrainerError> {
        let mut weights = TensorMap::new(weights)?;
        let values = weights.take_all::<B>(self.weights.specs(), &self.device)?;
        weights.finish()?;
        self.weights.replace(values);
        Ok(())
    }

    /// Returns the optimizer's tensors, for whole parameters.
    fn optimizer_state(&self) -> Vec<NamedTensor<Held<B>>> {
        let params = self.weights.specs();
        let layout = self.optimizer.layout(params).into_iter();
        let own = self.optimizer.state().into_iter();
        let named = |StateSpec { name, shape, .. }, data| NamedTensor { name, shape, data };
        let Some(shards) = &self.shards else {
            return layout.zip(own).map(|(spec, data)| named(spec, Held::Device(data))).collect();
        };
        let own: Vec<f32> = own.flat_map(to_host).collect();
        let mut sent: Vec<_> =
            shards.exchange(&own).into_iter().map(|from| from.values.into_iter()).collect();
        let joined = |spec: StateSpec| {
            let mut data = vec![0.0; spec.len()];
            for (rank, values) in sent.iter_mut().enumerate() {
                for part in spec.parts(params, shards, rank) {
                    data[part].iter_mut().zip(&mut *values).for_each(|(place, value)| *place = value);
                }
            }
            named(spec, Held::Host(data))
        };
        layout.map(joined).collect()
    }

    /// Returns this rank's part of a saved state, in the order of
    /// [`crate::optim::Optimizer::layout`].
    fn take_optimizer_state(
        &self,
        state: &mut TensorMap,
        params: &[ParamSpec],
    ) -> Result<Vec<Tensor<B, 1>>, TrainerError> {
        let mut values = Vec::new();
        for spec in self.optimizer.layout(params) {
            let whole = state.take(&spec.name, &spec.shape)?;
            match &self.shards {
                None => values.push(flat(whole, &self.device)),
                Some(shards) => {
                    let parts = spec.parts(params, shards, shards.ranks().rank());
                    values.extend(parts.into_iter().map(|part| flat(whole[part].to_vec(), &self.device)));
                }
            }
        }
        Ok(values)
    }
}
