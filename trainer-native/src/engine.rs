//! The engine: a model, its optimizer and the steps that a run is made of.

use mechanisms::{MechanismError, PrivacyRng, Stream};
use thiserror::Error;

use crate::device::{self, DeviceError};
pub use crate::dp::{DpStep, PlainStep};
use crate::dp::{Lot, dp_gradient, fold_in_order, plain_gradient};
use crate::model::{Batch, Network, Shape};
pub use crate::model::{Example, ModelError};
use crate::nn::{Kernels, ParamSpec, SelectionError, Weights};
use crate::optim::Optimizer;
use crate::tensor::{FloatDType, Int, Tensor, from_host, to_host, to_host_f64};

/// What the engine refuses.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A size of the model that cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A figure of a step out of its range.
    #[error("{what} = {value}; allowed: finite and above 0")]
    Figure {
        /// Its name.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// An example that the model cannot take. Its tokens are not shown: they may be private.
    #[error(
        "example {index} {problem}; cut windows to the model's context and encode them with its tokenizer"
    )]
    Example {
        /// Place in the lot.
        index: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A saved state that does not fit the model.
    #[error("saved state: tensor \"{name}\" {problem}; resume with the plan that wrote it")]
    State {
        /// Name of the tensor.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A part of the weights that cannot be trained by itself.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The device lost its work.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A mechanism refused its parameters.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
}

/// A tensor on the host under its name in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// Hugging Face name, or one that begins with `optimizer.`.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub data: Vec<f32>,
}

/// How well a model predicts one target of public text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Negative log-likelihood in nats.
    pub nll: f64,
    /// Whether no other token is likelier.
    pub is_likeliest: bool,
}

impl Prediction {
    /// # Shapes
    /// - logits: `[places, classes]`, targets: `[places]`
    fn of<B: Kernels>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Vec<Self> {
        let places = logits.dims()[0];
        let largest = logits.clone().max_dim(1);
        let hit = logits.clone().gather(1, targets.clone().reshape([places, 1])).greater_equal(largest);
        let hits = to_host(hit.float());
        let nll = to_host_f64(B::token_nll(logits, targets));
        nll.into_iter().zip(hits).map(|(nll, hit)| Self { nll, is_likeliest: hit > 0.5 }).collect()
    }
}

/// A model in training.
pub struct Engine<B: Kernels> {
    model: Network,
    weights: Weights<B>,
    optimizer: Optimizer<B>,
    clipping: plan::Clipping,
    /// The clip norm where it follows the data, once a step was made.
    adapted: Option<f64>,
    /// Of the last private step.
    gradient_to_noise: Option<f64>,
    physical_batch: usize,
    recompute: bool,
    device: B::Device,
}

/// Name of the optimizer's step counter in a saved state: two exact halves of 20 bits, as f32 holds 24.
const COUNTER: &str = "optimizer.steps";

/// Name of an adaptive clip norm in a saved state; 0 before the first step.
const CLIP_NORM: &str = "clipping.l2_clip_norm";

/// An adaptive clip norm stays a figure that the noise can be scaled by.
const LEAST_CLIP_NORM: f32 = 1e-12;
const LARGEST_CLIP_NORM: f32 = 1e12;

impl<B: Kernels> Engine<B> {
    /// Lays the model out and draws its first weights.
    ///
    /// # Errors
    /// [`EngineError::Model`] for sizes that do not fit together.
    pub fn new(
        model: &plan::Model,
        training: &plan::Training,
        vocab_size: usize,
        init: &mut Stream,
        physical_batch: usize,
        device: B::Device,
    ) -> Result<Self, EngineError> {
        let network = Network::new(model, training, vocab_size)?;
        let selection = network.selection(model)?;
        let model = network;
        if physical_batch == 0 {
            let error = ModelError { what: "physical_batch", value: 0, allowed: "at least 1" };
            return Err(error.into());
        }
        B::warm_up();
        let mut weights = Weights::initialize(model.specs(), init, &device);
        if let Some(selection) = selection {
            weights = weights.restrict(selection, init, &device);
        }
        let optimizer = Optimizer::new(&training.optimizer, weights.specs(), &device);
        let clipping = training.clipping;
        let (adapted, gradient_to_noise, recompute) = (None, None, false);
        Ok(Self {
            model,
            weights,
            optimizer,
            clipping,
            adapted,
            gradient_to_noise,
            physical_batch,
            recompute,
            device,
        })
    }

    /// Whether each block of layers is computed again for the backward pass, for less memory and to the same bits.
    #[must_use]
    pub fn recompute(self, recompute: bool) -> Self {
        Self { recompute, ..self }
    }

    /// In what format the products of training steps take their operands; what is measured is always measured in 32 bits.
    #[must_use]
    pub fn precision(self, precision: plan::Precision) -> Self {
        Self { weights: self.weights.precision(precision), ..self }
    }

    /// One private step on the sampled examples, one a unit; an empty lot is a step of noise alone.
    ///
    /// # Errors
    /// On figures out of range and examples the model cannot take; the weights are then unchanged.
    /// [`EngineError::Device`] where the device failed; the engine is then of no more use.
    pub fn dp_step(
        &mut self,
        lot: &[Example],
        step: DpStep,
        rng: &impl PrivacyRng,
    ) -> Result<(), EngineError> {
        positive("noise_multiplier", step.noise_multiplier)?;
        positive("l2_clip_norm", step.l2_clip_norm)?;
        positive("expected_batch_size", step.expected_batch_size)?;
        let lot = self.lot(lot)?;
        let step = DpStep { l2_clip_norm: self.adapted.unwrap_or(step.l2_clip_norm), ..step };
        let (gradient, next) = dp_gradient(&self.model, &self.weights, &lot, &step, self.clipping, rng)?;
        // As the checkpoint holds it, so that a resumed run goes on from the same figure.
        self.adapted = next.map(|next| f64::from((next as f32).clamp(LEAST_CLIP_NORM, LARGEST_CLIP_NORM)));
        self.gradient_to_noise = Some(gradient.to_noise());
        self.optimizer.step(&mut self.weights, gradient, step.learning_rate);
        Ok(device::check::<B>(&self.device)?)
    }

    /// Estimate of ‖gradient‖² / ‖noise‖² in the last private step: post-processing of what was released.
    #[must_use]
    pub fn gradient_to_noise(&self) -> Option<f64> {
        self.gradient_to_noise
    }

    /// The clip norm of the next private step where it follows the data, and one was made: post-processing too.
    #[must_use]
    pub fn adapted_clip_norm(&self) -> Option<f64> {
        self.adapted
    }

    /// One step of the non-private baseline: the same cost path without norms, clipping and noise.
    ///
    /// # Errors
    /// As [`Engine::dp_step`].
    pub fn plain_step(&mut self, lot: &[Example], step: PlainStep) -> Result<(), EngineError> {
        positive("expected_batch_size", step.expected_batch_size)?;
        let lot = self.lot(lot)?;
        let gradient = plain_gradient(&self.model, &self.weights, &lot, &step);
        self.optimizer.step(&mut self.weights, gradient, step.learning_rate);
        Ok(device::check::<B>(&self.device)?)
    }

    /// Summed negative log-likelihood in nats and number of target tokens. For public text only.
    ///
    /// # Errors
    /// [`EngineError::Example`].
    pub fn nll(&self, examples: &[Example]) -> Result<(f64, u64), EngineError> {
        let targets = examples.iter().map(|example| example.targets.len() as u64).sum();
        Ok((self.nll_each(examples)?.into_iter().sum(), targets))
    }

    /// Negative log-likelihood of each example's targets, in nats. For public text only.
    ///
    /// # Errors
    /// [`EngineError::Example`].
    pub fn nll_each(&self, examples: &[Example]) -> Result<Vec<f64>, EngineError> {
        self.by_batch(examples, |weights, batch, piece| {
            let targets = batch.targets.clone();
            let nll = to_host_f64(B::token_nll(self.model.logits(weights, batch), flat(targets)));
            self.rows(&nll, piece).map(|row| row.iter().sum()).collect()
        })
    }

    /// How well each target of each example is predicted. For public text only.
    ///
    /// # Errors
    /// [`EngineError::Example`].
    pub fn predictions(&self, examples: &[Example]) -> Result<Vec<Vec<Prediction>>, EngineError> {
        self.by_batch(examples, |weights, batch, piece| {
            let targets = batch.targets.clone();
            let all = Prediction::of(self.model.logits(weights, batch), flat(targets));
            self.rows(&all, piece).map(<[Prediction]>::to_vec).collect()
        })
    }

    /// How well the class of each example's pair of sentences is predicted, where there is one. For public text only.
    ///
    /// # Errors
    /// [`EngineError::Example`].
    pub fn sentence_predictions(&self, examples: &[Example]) -> Result<Vec<Prediction>, EngineError> {
        let found = self.by_batch(examples, |weights, batch, piece| {
            let classes = batch.sentences.clone();
            let all =
                self.model.sentence_logits(weights, batch).map(|logits| Prediction::of(logits, classes));
            let paired = |(at, example): (usize, &Example)| {
                all.as_ref().filter(|_| example.sentence.is_some()).map(|all| all[at])
            };
            piece.iter().enumerate().map(paired).collect()
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// What `part` makes of each example of each batch, in the examples' order.
    fn by_batch<T: Send>(
        &self,
        examples: &[Example],
        part: impl Fn(&Weights<B>, Batch<B>, &[Example]) -> Vec<T> + Sync,
    ) -> Result<Vec<T>, EngineError> {
        let lot = self.lot(examples)?;
        let pieces: Vec<&[Example]> = examples.chunks(lot.physical_batch).collect();
        let work = |weights: &Weights<B>, piece: &&[Example]| {
            let batch = Batch::new(piece, lot.physical_batch, lot.shape, weights.dtype(), lot.device);
            part(weights, batch, piece)
        };
        let contexts = vec![self.measured_weights(); B::workers().min(pieces.len()).max(1)];
        let join = |mut all: Vec<T>, part: Vec<T>| {
            all.extend(part);
            all
        };
        Ok(fold_in_order(&pieces, contexts, work, Vec::with_capacity(examples.len()), join))
    }

    /// Each example's own part of what there is for every target of a batch, padding left out.
    fn rows<'a, T>(&self, all: &'a [T], piece: &'a [Example]) -> impl Iterator<Item = &'a [T]> {
        let width = self.model.shape().targets();
        piece.iter().enumerate().map(move |(at, example)| &all[at * width..][..example.targets.len()])
    }

    /// Logits at each place of an example where the network predicts: each place of the input, or of the decoder's
    /// input, or the example's own positions. One row a place.
    ///
    /// # Errors
    /// [`EngineError::Example`] for an example that is empty or does not fit the network.
    pub fn logits(&self, example: &Example) -> Result<Vec<Vec<f32>>, EngineError> {
        let flat = to_host(self.logits_of(example)?);
        Ok(flat.chunks_exact(self.model.vocab_size()).map(<[f32]>::to_vec).collect())
    }

    /// Logits of the next token: what follows the decoder's input, if there is one, else the input. The input is cut
    /// to its last `context` tokens.
    ///
    /// # Errors
    /// As [`Engine::logits`].
    pub fn next_token_logits(&self, input: &[u32], decoder_input: &[u32]) -> Result<Vec<f32>, EngineError> {
        let context = self.model.shape().input;
        let input = input[input.len().saturating_sub(context)..].to_vec();
        let example = Example { input, decoder_input: decoder_input.to_vec(), ..Example::default() };
        let logits = self.logits_of(&example)?;
        let last = logits.dims()[0] - 1;
        Ok(to_host(logits.narrow(0, last, 1)))
    }

    /// Most tokens that the network can write in one answer; none if it has no decoder.
    #[must_use]
    pub fn decoder_context(&self) -> Option<usize> {
        self.model.shape().decoder
    }

    /// `[places, vocabulary]`
    fn logits_of(&self, example: &Example) -> Result<Tensor<B, 2>, EngineError> {
        let examples = std::slice::from_ref(example);
        let shape = self.model.shape();
        let shape = Shape {
            input: example.input.len(),
            decoder: shape.decoder.map(|_| example.decoder_input.len()),
            gathered: shape.gathered.map(|_| example.positions.len()),
        };
        self.lot(examples)?;
        if shape.input == 0 || shape.targets() == 0 {
            return Err(EngineError::Example { index: 0, problem: "is empty" });
        }
        let batch = Batch::new(examples, 1, shape, self.weights.dtype(), &self.device);
        Ok(self.model.logits(&self.measured_weights(), batch))
    }

    /// The weights as measurements take them.
    fn measured_weights(&self) -> Weights<B> {
        self.weights.clone().precision(plan::Precision::F32)
    }

    /// The model's weights under Hugging Face names, adapters merged.
    #[must_use]
    pub fn weights(&self) -> Vec<NamedTensor> {
        named("", self.weights.model_specs(), self.weights.model_values())
    }

    /// Names, shapes and starts of the model's parameters.
    #[must_use]
    pub fn specs(&self) -> &[ParamSpec] {
        self.weights.model_specs()
    }

    /// `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        self.model.hf_config()
    }

    /// All that a resumed run needs beside the weights it began with: trained weights, the optimizer's tensors and its step counter.
    #[must_use]
    pub fn state(&self) -> Vec<NamedTensor> {
        let mut state = named("", self.weights.specs(), self.weights.values());
        let of_optimizer = self.optimizer.state(self.weights.specs()).into_iter();
        state.extend(of_optimizer.map(|(name, shape, value)| NamedTensor {
            name,
            shape,
            data: to_host(value),
        }));
        if let plan::Clipping::Adaptive(_) = self.clipping {
            let data = vec![self.adapted.unwrap_or_default() as f32];
            state.push(NamedTensor { name: CLIP_NORM.to_owned(), shape: vec![1], data });
        }
        let steps = self.optimizer.steps();
        let halves = vec![(steps >> 20) as f32, (steps & 0xF_FFFF) as f32];
        state.push(NamedTensor { name: COUNTER.to_owned(), shape: vec![2], data: halves });
        state
    }

    /// Takes up a state that [`Engine::state`] gave.
    ///
    /// # Errors
    /// [`EngineError::State`] if a tensor is missing, unknown, or of another shape; the engine is then unchanged.
    pub fn load_state(&mut self, state: Vec<NamedTensor>) -> Result<(), EngineError> {
        let mut state = Tensors::new(state)?;
        let specs = self.weights.specs().to_vec();
        let counter = state.take(COUNTER, &[2])?;
        let steps = ((counter[0] as u64) << 20) | counter[1] as u64;
        let values = state.take_list::<B>("", &specs, &self.device)?;
        let take = |(name, shape, _): (String, Vec<usize>, Tensor<B, 1>)| {
            let data = state.take(&name, &shape)?;
            let length = data.len();
            Ok(from_host(data, [length], FloatDType::F32, &self.device))
        };
        let of_optimizer =
            self.optimizer.state(&specs).into_iter().map(take).collect::<Result<_, EngineError>>()?;
        let adapted = match self.clipping {
            plan::Clipping::Adaptive(_) => Some(f64::from(state.take(CLIP_NORM, &[1])?[0])),
            _ => None,
        };
        state.finish()?;
        self.weights.replace(values);
        self.optimizer.restore(steps, of_optimizer);
        self.adapted = adapted.filter(|norm| *norm > 0.0);
        Ok(())
    }

    /// Takes up weights alone, from a model directory; the optimizer keeps its state.
    ///
    /// # Errors
    /// As [`Engine::load_state`].
    pub fn load_weights(&mut self, weights: Vec<NamedTensor>) -> Result<(), EngineError> {
        let mut weights = Tensors::new(weights)?;
        let values = weights.take_list::<B>("", self.weights.model_specs(), &self.device)?;
        weights.finish()?;
        self.weights.replace_model(values);
        Ok(())
    }

    fn lot<'a>(&'a self, examples: &'a [Example]) -> Result<Lot<'a, B>, EngineError> {
        let (shape, vocab_size) = (self.model.shape(), self.model.vocab_size());
        for (index, example) in examples.iter().enumerate() {
            if let Some(problem) = shape.problem(example, vocab_size) {
                return Err(EngineError::Example { index, problem });
            }
        }
        let Self { physical_batch, recompute, ref device, .. } = *self;
        Ok(Lot { examples, physical_batch, shape, recompute, device })
    }
}

fn flat<B: Kernels>(targets: Tensor<B, 2, Int>) -> Tensor<B, 1, Int> {
    let [rows, width] = targets.dims();
    targets.reshape([rows * width])
}

fn positive(what: &'static str, value: f64) -> Result<(), EngineError> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(EngineError::Figure { what, value }) }
}

fn named<B: Kernels>(prefix: &str, specs: &[ParamSpec], values: &[Tensor<B, 1>]) -> Vec<NamedTensor> {
    let name = |(spec, value): (&ParamSpec, &Tensor<B, 1>)| NamedTensor {
        name: format!("{prefix}{}", spec.name),
        shape: spec.shape.clone(),
        data: to_host(value.clone()),
    };
    specs.iter().zip(values).map(name).collect()
}

/// Saved tensors by name, each taken once.
struct Tensors(std::collections::BTreeMap<String, NamedTensor>);

impl Tensors {
    fn new(list: Vec<NamedTensor>) -> Result<Self, EngineError> {
        let mut tensors = std::collections::BTreeMap::new();
        for tensor in list {
            let name = tensor.name.clone();
            if tensors.insert(name.clone(), tensor).is_some() {
                return Err(EngineError::State { name, problem: "is there twice" });
            }
        }
        Ok(Self(tensors))
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EngineError> {
        let error = |problem| EngineError::State { name: name.to_owned(), problem };
        let tensor = self.0.remove(name).ok_or_else(|| error("is missing"))?;
        if tensor.shape == shape && tensor.data.len() == shape.iter().product::<usize>() {
            Ok(tensor.data)
        } else {
            Err(error("has another shape than the model's"))
        }
    }

    fn take_list<B: Kernels>(
        &mut self,
        prefix: &str,
        specs: &[ParamSpec],
        device: &B::Device,
    ) -> Result<Vec<Tensor<B, 1>>, EngineError> {
        let take = |spec: &ParamSpec| {
            let data = self.take(&format!("{prefix}{}", spec.name), &spec.shape)?;
            Ok(from_host(data, [spec.len()], FloatDType::F32, device))
        };
        specs.iter().map(take).collect()
    }

    fn finish(self) -> Result<(), EngineError> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(EngineError::State { name, problem: "is not one of the model's" }),
        }
    }
}
