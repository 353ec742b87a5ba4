//! Saves and loads the state from which a resumed run continues.

use std::borrow::Cow;

use pulp::bytemuck;

use super::{Trainer, TrainerError, flat};
use crate::optim::StateSpec;
use crate::ranks::Ranks;
use network::nn::{Kernels, ParamSpec};
use network::tensor::{Tensor, to_host};
use network::tensor_file::{Held, NamedTensor, TensorError, TensorMap, Values, held_tensors, named_tensors};

/// Name of the optimizer's step counter. It is stored as two parts of 20 bits, because f32 holds integers of 24 bits
/// exactly.
const COUNTER: &str = "optimizer.steps";

/// Start of the names of averaged weights.
const AVERAGE: &str = "average.";

/// Name of an adaptive clip norm, which is 0 before the first step.
const CLIP_NORM: &str = "clipping.l2_clip_norm";

/// Message of the first rank that it needs no further tensor.
const NO_MORE: u64 = u64::MAX;

/// The state of a trainer on several ranks, or on one.
pub(crate) struct SharedState<'a, B: Kernels> {
    trainer: &'a Trainer<B>,
    /// The optimizer's tensors for whole parameters, and this rank's parts of each.
    of_optimizer: Vec<(StateSpec, Vec<Tensor<B, 1>>)>,
}

/// A tensor of a [`SharedState`].
pub(crate) enum StateTensor<'a, B: Kernels> {
    /// The first rank has it.
    Own(Held<B>),
    /// Each rank has its part of this tensor of the optimizer.
    Divided(&'a SharedState<'a, B>, usize),
}

impl<B: Kernels> Values for StateTensor<'_, B> {
    fn on_host(&self) -> Cow<'_, [f32]> {
        match self {
            Self::Own(held) => held.on_host(),
            Self::Divided(state, index) => Cow::Owned(state.collect(*index)),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Own(held) => held.count(),
            Self::Divided(state, index) => state.of_optimizer[*index].0.len(),
        }
    }
}

impl<B: Kernels> SharedState<'_, B> {
    /// Passes everything that a resumed run needs beside its initial weights to `take`, on the first rank: trained weights, the
    /// optimizer's tensors and step counter, averages, and the adaptive clip norm. The state does not depend on the number of ranks.
    /// A tensor that the ranks divide is collected whenever `take` copies it to the host, so that no rank ever has the whole state. The
    /// other ranks call [`Self::send`] meanwhile.
    pub fn receive<T>(&self, take: impl FnOnce(Vec<NamedTensor<StateTensor<'_, B>>>) -> T) -> T {
        let trainer = self.trainer;
        let own = |tensor: NamedTensor<Held<B>>| {
            let NamedTensor { name, shape, data } = tensor;
            NamedTensor { name, shape, data: StateTensor::Own(data) }
        };
        let mut state = held_tensors(trainer.weights.specs(), trainer.weights.values());
        if let Some(average) = &trainer.average {
            state.extend(held_tensors(&trainer.averaged_specs(), average.values()));
        }
        if let plan::Clipping::Adaptive(_) = trainer.summation.clipping {
            let data = Held::Host(vec![trainer.adapted_clip_norm.unwrap_or_default() as f32]);
            state.push(NamedTensor { name: CLIP_NORM.to_owned(), shape: vec![1], data });
        }
        let steps = trainer.optimizer.steps();
        let halves = Held::Host(vec![(steps >> 20) as f32, (steps & 0xF_FFFF) as f32]);
        state.push(NamedTensor { name: COUNTER.to_owned(), shape: vec![2], data: halves });
        let of_optimizer = self.of_optimizer.iter().enumerate().map(|(index, (spec, parts))| NamedTensor {
            name: spec.name.clone(),
            shape: spec.shape.clone(),
            data: match (&trainer.shards, &parts[..]) {
                (None, [whole]) => StateTensor::Own(Held::Device(whole.clone())),
                _ => StateTensor::Divided(self, index),
            },
        });
        let taken = take(state.into_iter().map(own).chain(of_optimizer).collect());
        self.announce(NO_MORE);
        taken
    }

    /// Sends this rank's parts of the tensors that the first rank asks for, until it has all.
    pub fn send(&self) {
        loop {
            match self.announce(NO_MORE) {
                NO_MORE => return,
                index => self.collect_parts(index as usize, |_, _| ()),
            }
        }
    }

    /// Returns a tensor of the optimizer, which all ranks divide, on the first rank.
    fn collect(&self, index: usize) -> Vec<f32> {
        self.announce(index as u64);
        let (spec, _) = &self.of_optimizer[index];
        let mut whole = vec![0.0; spec.len()];
        let Some(shards) = &self.trainer.shards else { return whole };
        let params = self.trainer.weights.specs();
        let places = |rank| spec.parts(params, shards, rank).into_iter().flatten();
        let mut places: Vec<_> = (0..shards.ranks().count()).map(places).collect();
        self.collect_parts(index, |rank, values| {
            values.iter().zip(&mut places[rank]).for_each(|(value, place)| whole[place] = *value);
        });
        whole
    }

    fn collect_parts(&self, index: usize, take: impl FnMut(usize, &[f32])) {
        let Some(shards) = &self.trainer.shards else { return };
        let (spec, own) = &self.of_optimizer[index];
        let length = |rank| {
            spec.parts(self.trainer.weights.specs(), shards, rank).iter().map(ExactSizeIterator::len).sum()
        };
        let lengths: Vec<usize> = (0..shards.ranks().count()).map(length).collect();
        let own: Vec<f32> = own.iter().flat_map(|part| to_host(part.clone())).collect();
        shards.collect(&own, &lengths, take);
    }

    /// Returns the number that the first rank passes.
    fn announce(&self, own: u64) -> u64 {
        let mut bytes = own.to_le_bytes();
        if let Some(shards) = &self.trainer.shards {
            shards.ranks().broadcast_in_place(&mut bytes);
        }
        u64::from_le_bytes(bytes)
    }
}

impl<B: Kernels> Trainer<B> {
    /// Returns the state without copying tensors, which share the trainer's memory. If no step follows (`goes_on`), it has no
    /// tensors of the optimizer.
    pub(crate) fn shared_state(&self, goes_on: bool) -> SharedState<'_, B> {
        let params = self.weights.specs();
        let mut own = self.optimizer.state().into_iter();
        let of_spec = |spec: StateSpec| {
            let parts = self
                .shards
                .as_ref()
                .map_or(1, |shards| spec.parts(params, shards, shards.ranks().rank()).len());
            (spec, own.by_ref().take(parts).collect())
        };
        SharedState {
            trainer: self,
            of_optimizer: self
                .optimizer
                .layout(params)
                .into_iter()
                .filter(|_| goes_on)
                .map(of_spec)
                .collect(),
        }
    }

    /// Returns everything that a resumed run needs beside its initial weights, on the first rank; nothing on others. All ranks call this
    /// together.
    #[must_use]
    pub fn state(&self) -> Vec<NamedTensor> {
        self.copied_state(true)
    }

    /// Returns [`Self::shared_state`] on the host.
    pub(super) fn copied_state(&self, goes_on: bool) -> Vec<NamedTensor> {
        let state = self.shared_state(goes_on);
        if self.shards.as_ref().is_some_and(|shards| !shards.ranks().is_first()) {
            state.send();
            return Vec::new();
        }
        let on_host = |NamedTensor { name, shape, data }: NamedTensor<StateTensor<'_, B>>| {
            let data = data.on_host().into_owned();
            NamedTensor { name, shape, data }
        };
        state.receive(|tensors| tensors.into_iter().map(on_host).collect())
    }

    /// Continues from a state that [`Trainer::state`] returned.
    ///
    /// # Errors
    /// [`TrainerError::State`] if a tensor is missing, unknown, or of another shape; the trainer is then unchanged.
    pub fn load_state(&mut self, state: Vec<NamedTensor>) -> Result<(), TrainerError> {
        self.load_state_of_first(Some(state), &Ranks::alone(), true)
    }

    /// Continues from a state that the first rank has. It sends one tensor after the other, of which each rank keeps its own part. If no
    /// step follows (`goes_on`), the optimizer's tensors may be absent. All ranks call this together.
    ///
    /// # Errors
    /// As [`Self::load_state`], on all ranks.
    pub(crate) fn load_state_of_first(
        &mut self,
        state: Option<Vec<NamedTensor>>,
        ranks: &Ranks,
        goes_on: bool,
    ) -> Result<(), TrainerError> {
        let mut state = SentState::new(state, ranks)?;
        let specs = self.weights.specs().to_vec();
        let counter = state.take(COUNTER, &[2])?;
        let steps = ((counter[0] as u64) << 20) | counter[1] as u64;
        let values = state.take_all::<B>(&specs, &self.device)?;
        let of_optimizer = match goes_on {
            true => self.take_optimizer_state(&mut state, &specs)?,
            false => self.optimizer.state(),
        };
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
        if goes_on {
            state.finish()?;
        }
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

    /// Returns this rank's part of a saved state, in the order of
    /// [`crate::optim::Optimizer::layout`].
    fn take_optimizer_state(
        &self,
        state: &mut SentState<'_>,
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

/// A state that the first rank has and sends to all ranks, one tensor after the other.
struct SentState<'a> {
    own: Option<TensorMap>,
    ranks: &'a Ranks,
}

impl<'a> SentState<'a> {
    fn new(own: Option<Vec<NamedTensor>>, ranks: &'a Ranks) -> Result<Self, TensorError> {
        let own = outcome_of_first(own.map(TensorMap::new).transpose(), ranks)?;
        Ok(Self { own, ranks })
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, TensorError> {
        let own = self.own.as_mut().map(|own| own.take(name, shape)).transpose();
        let own = outcome_of_first(own, self.ranks)?;
        let mut values = own.unwrap_or_else(|| vec![0.0; shape.iter().product()]);
        self.ranks.broadcast_in_place(bytemuck::cast_slice_mut(&mut values));
        Ok(values)
    }

    fn take_all<B: Kernels>(
        &mut self,
        specs: &[ParamSpec],
        device: &B::Device,
    ) -> Result<Vec<Tensor<B, 1>>, TensorError> {
        specs.iter().map(|spec| Ok(flat(self.take(&spec.name, &spec.shape)?, device))).collect()
    }

    fn finish(self) -> Result<(), TensorError> {
        outcome_of_first(self.own.map(TensorMap::finish).transpose(), self.ranks).map(drop)
    }
}

/// Spreads an error of the first rank.
fn outcome_of_first<T>(own: Result<Option<T>, TensorError>, ranks: &Ranks) -> Result<Option<T>, TensorError> {
    let mut failed = [u8::from(own.is_err())];
    ranks.broadcast_in_place(&mut failed);
    let of_first = TensorError { name: "checkpoint".to_owned(), problem: "is refused by the first rank" };
    if failed == [0] { own } else { own.and(Err(of_first)) }
}
