//! The engine: a model, its optimizer and the steps that a run is made of.

use mechanisms::{MechanismError, PrivacyRng, Stream};
use thiserror::Error;

pub use crate::dp::{DpStep, PlainStep};
use crate::dp::{Lot, dp_gradient, fold_in_order, plain_gradient};
use crate::layer::{Kernels, ParamSpec, Weights};
use crate::model::{Gpt2, Gpt2Config, TokenBatch};
use crate::optim::Optimizer;
use crate::tensor::{FloatDType, Tensor, from_host, to_host, to_host_f64};

/// What the engine refuses.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A size of the model that cannot be built.
    #[error("model: {what} = {value}; allowed: {allowed}")]
    Model {
        /// Field of the plan's model.
        what: &'static str,
        /// What was given.
        value: usize,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A figure of a step out of its range.
    #[error("{what} = {value}; allowed: finite and above 0")]
    Figure {
        /// Its name.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// A window that the model cannot take. Its tokens are not shown: they may be private.
    #[error(
        "window {index} {problem}; cut windows to the model's context and encode them with its tokenizer"
    )]
    Window {
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

/// A model in training.
pub struct Engine<B: Kernels> {
    model: Gpt2,
    weights: Weights<B>,
    optimizer: Optimizer<B>,
    physical_batch: usize,
    device: B::Device,
}

/// Name of the optimizer's step counter in a saved state: two exact halves of 20 bits, as f32 holds 24.
const COUNTER: &str = "optimizer.steps";

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
        let config = config(model, vocab_size)?;
        positive_size("physical_batch", physical_batch)?;
        let plan::Family::Gpt2 = model.family;
        B::warm_up();
        let model = Gpt2::new(config);
        let weights = Weights::initialize(model.specs(), init, &device);
        let optimizer = Optimizer::new(&training.optimizer, weights.specs(), &device);
        Ok(Self { model, weights, optimizer, physical_batch, device })
    }

    /// One private step on the sampled windows, one a unit; an empty lot is a step of noise alone.
    ///
    /// A window of L tokens trains on its L − 1 successors; up to context + 1 tokens are taken.
    ///
    /// # Errors
    /// On figures out of range and windows the model cannot take; the weights are then unchanged.
    pub fn dp_step(
        &mut self,
        lot: &[Vec<u32>],
        step: DpStep,
        rng: &impl PrivacyRng,
    ) -> Result<(), EngineError> {
        positive("noise_multiplier", step.noise_multiplier)?;
        positive("l2_clip_norm", step.l2_clip_norm)?;
        positive("expected_batch_size", step.expected_batch_size)?;
        let lot = self.lot(lot)?;
        let gradient = dp_gradient(&self.model, &self.weights, &lot, &step, rng)?;
        self.optimizer.step(&mut self.weights, gradient, step.learning_rate);
        Ok(())
    }

    /// One step of the non-private baseline: the same cost path without norms, clipping and noise.
    ///
    /// # Errors
    /// As [`Engine::dp_step`].
    pub fn plain_step(&mut self, lot: &[Vec<u32>], step: PlainStep) -> Result<(), EngineError> {
        positive("expected_batch_size", step.expected_batch_size)?;
        let lot = self.lot(lot)?;
        let gradient = plain_gradient(&self.model, &self.weights, &lot, &step);
        self.optimizer.step(&mut self.weights, gradient, step.learning_rate);
        Ok(())
    }

    /// Summed negative log-likelihood in nats and number of target tokens. For public text only.
    ///
    /// # Errors
    /// [`EngineError::Window`].
    pub fn nll(&self, windows: &[Vec<u32>]) -> Result<(f64, u64), EngineError> {
        let lot = self.lot(windows)?;
        let targets = windows.iter().map(|window| window.len().saturating_sub(1) as u64).sum();
        let pieces: Vec<&[Vec<u32>]> = windows.chunks(lot.physical_batch).collect();
        let work = |weights: &Weights<B>, piece: &&[Vec<u32>]| {
            let batch = TokenBatch::new(piece, lot.physical_batch, lot.context, weights.dtype(), lot.device);
            let counted = batch.target_weights.greater_elem(0.0).float();
            let rows = [lot.physical_batch * lot.context];
            let logits = self.model.logits(weights, batch.tokens);
            let nll = B::token_nll(logits, batch.targets.reshape(rows));
            to_host_f64(nll * counted.reshape(rows)).into_iter().sum::<f64>()
        };
        let contexts = vec![self.weights.clone(); B::workers().min(pieces.len()).max(1)];
        Ok((fold_in_order(&pieces, contexts, work, 0.0, |sum, part| sum + part), targets))
    }

    /// Natural-log probabilities of the token that follows `tokens`, which are cut to the last `context` of them.
    ///
    /// # Errors
    /// [`EngineError::Window`] for an empty or unknown token list.
    pub fn next_token_logits(&self, tokens: &[u32]) -> Result<Vec<f32>, EngineError> {
        let context = self.model.config().context;
        let tokens = &tokens[tokens.len().saturating_sub(context)..];
        if tokens.is_empty() {
            return Err(EngineError::Window { index: 0, problem: "is empty" });
        }
        self.lot(&[tokens.to_vec()])?;
        let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
        let ids = crate::tensor::TensorData::new(ids, [1, tokens.len()]);
        let logits = self.model.logits(&self.weights, Tensor::from_data(ids, &self.device));
        Ok(to_host(logits.narrow(0, tokens.len() - 1, 1)))
    }

    /// The model's weights under Hugging Face names.
    #[must_use]
    pub fn weights(&self) -> Vec<NamedTensor> {
        named("", self.weights.specs(), self.weights.values())
    }

    /// `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        self.model.hf_config()
    }

    /// All that a resumed run needs: weights, the optimizer's tensors and its step counter.
    #[must_use]
    pub fn state(&self) -> Vec<NamedTensor> {
        let mut state = self.weights();
        for (list, values) in self.optimizer.state() {
            state.extend(named(&format!("optimizer.{list}."), self.weights.specs(), values));
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
        let names: Vec<&str> = self.optimizer.state().into_iter().map(|(name, _)| name).collect();
        let lists = names
            .into_iter()
            .map(|list| state.take_list::<B>(&format!("optimizer.{list}."), &specs, &self.device))
            .collect::<Result<_, _>>()?;
        state.finish()?;
        self.weights.replace(values);
        self.optimizer.restore(steps, lists);
        Ok(())
    }

    /// Takes up weights alone, from a model directory; the optimizer keeps its state.
    ///
    /// # Errors
    /// As [`Engine::load_state`].
    pub fn load_weights(&mut self, weights: Vec<NamedTensor>) -> Result<(), EngineError> {
        let mut weights = Tensors::new(weights)?;
        let values = weights.take_list::<B>("", self.weights.specs(), &self.device)?;
        weights.finish()?;
        self.weights.replace(values);
        Ok(())
    }

    fn lot<'a>(&'a self, windows: &'a [Vec<u32>]) -> Result<Lot<'a, B>, EngineError> {
        let Gpt2Config { context, vocab_size, .. } = *self.model.config();
        for (index, window) in windows.iter().enumerate() {
            if window.len() > context + 1 {
                return Err(EngineError::Window { index, problem: "is longer than the model's context" });
            }
            if window.iter().any(|&token| token as usize >= vocab_size) {
                return Err(EngineError::Window { index, problem: "has a token outside the vocabulary" });
            }
        }
        Ok(Lot { windows, physical_batch: self.physical_batch, context, device: &self.device })
    }
}

fn config(model: &plan::Model, vocab_size: usize) -> Result<Gpt2Config, EngineError> {
    let config = Gpt2Config {
        vocab_size,
        context: model.context as usize,
        d_model: model.d_model as usize,
        layers: model.layers as usize,
        heads: model.heads as usize,
        d_ff: model.d_ff as usize,
    };
    let sizes = [
        ("vocab_size", vocab_size),
        ("context", config.context),
        ("d_model", config.d_model),
        ("heads", config.heads),
        ("d_ff", config.d_ff),
    ];
    for (what, value) in sizes {
        positive_size(what, value)?;
    }
    if !config.d_model.is_multiple_of(config.heads) {
        return Err(EngineError::Model {
            what: "heads",
            value: config.heads,
            allowed: "a divisor of d_model",
        });
    }
    Ok(config)
}

fn positive_size(what: &'static str, value: usize) -> Result<(), EngineError> {
    if value > 0 { Ok(()) } else { Err(EngineError::Model { what, value, allowed: "at least 1" }) }
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
