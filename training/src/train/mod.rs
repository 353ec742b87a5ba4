//! A model in training: its weights, its optimizer, and the private step.

#[cfg(test)]
mod block_tests;
mod error;
#[cfg(test)]
mod rank_tests;
mod state;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mechanisms::{PrivacyRng, RandomnessSource, Stream};
use plan::CertifiedPlan;
use safetensors::tensor::{Dtype, View};

pub use error::TrainerError;

use crate::RunError;
use crate::disclosure::Private;
use crate::dp::{BandedNoise, Carried, DpStep, Lot, StepError, Summation, plain_gradient, private_gradient};
use crate::infer::InferenceModel;
use crate::optim::{Average, Optimizer, OptimizerGradient, learning_rate};
use crate::ranks::{Ranks, Shards};
use network::Example;
use network::device;
use network::model::{ModelError, Network};
use network::nn::{Kernels, ParamId, ParamSpec, Stored, Weights};
use network::tensor::{FloatDType, Tensor, from_host, to_host};
use network::tensor_file::{
    NamedTensor, NumberFormat, PrivacyMark, StoredValues, TensorError, model_sha256, write_model,
};

/// The figures of one step of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainStep {
    /// Divisor of the sum.
    pub expected_batch_size: f64,
    /// Learning rate of this step.
    pub learning_rate: f64,
}

/// A model in training.
pub struct Trainer<B: Kernels> {
    model: Network,
    weights: Weights<B>,
    optimizer: Optimizer<B>,
    /// The average of the weights, if the plan asks for one.
    average: Option<Average<B>>,
    summation: Summation,
    /// The clip norm of the next step, if clipping is adaptive and a step was taken.
    adapted_clip_norm: Option<f64>,
    /// What the last private step left for the next one.
    carried: Carried,
    /// The estimate of the last private step; see [`Self::gradient_to_noise()`].
    gradient_to_noise: Option<f64>,
    physical_batch: usize,
    recompute: bool,
    group_by_length: bool,
    /// This rank's part of the parameters, if there are several ranks.
    shards: Option<Shards>,
    device: B::Device,
}

impl<B: Kernels> Trainer<B> {
    /// Builds the model. It starts from the tensors of `start`; other weights are drawn from `init`.
    ///
    /// # Errors
    /// [`TrainerError::Model`] for sizes that do not fit together.
    pub fn new(
        start: Vec<NamedTensor<StoredValues>>,
        model: &plan::Model,
        training: &plan::Training,
        vocab_size: usize,
        init: &mut Stream,
        physical_batch: usize,
        device: B::Device,
    ) -> Result<Self, TrainerError> {
        let network = Network::new(model, training, vocab_size)?;
        let selection = network.selection(model)?;
        if physical_batch == 0 {
            let error = ModelError::Size { what: "physical_batch", value: 0, allowed: "at least 1" };
            return Err(error.into());
        }
        B::warm_up();
        let weights = Weights::start(network.specs(), first_values::<B>(start, &device), init, &device)?;
        let weights = match selection {
            Some(selection) => weights.restrict(selection, init, &device),
            None => weights.widened(),
        };
        let optimizer = Optimizer::new(&training.optimizer, weights.specs(), &device);
        Ok(Self {
            model: network,
            weights,
            optimizer,
            average: training.averaging.map(|plan| Average::new(plan, training.total_steps())),
            summation: Summation { clipping: training.clipping, arithmetic: plan::Arithmetic::Fast },
            adapted_clip_norm: None,
            carried: Carried::default(),
            gradient_to_noise: None,
            physical_batch,
            recompute: false,
            group_by_length: false,
            shards: None,
            device,
        })
    }

    /// Divides steps and the optimizer's state among ranks. The optimizer starts afresh.
    #[must_use]
    pub(crate) fn on_ranks(self, ranks: &Ranks) -> Self {
        if !ranks.are_several() {
            return self;
        }
        let specs = self.weights.specs().to_vec().into();
        let shards = Shards::new(ranks.clone(), specs, self.optimizer.grain());
        let optimizer = self.optimizer.of_pieces(&shards, &self.device);
        Self { optimizer, shards: Some(shards), ..self }
    }

    /// Sets the number of parameters above which ranks divide sums. Affects time and memory only.
    #[must_use]
    pub(crate) fn divide_sums_above(mut self, parameters: usize) -> Self {
        self.shards.iter_mut().for_each(|shards| shards.divide_sums_above(parameters));
        self
    }

    /// Returns whether ranks divide sums.
    pub(crate) fn divides_sums(&self) -> bool {
        self.shards.as_ref().is_some_and(Shards::divide_sums)
    }

    /// Starts from weights that predict tokens by these log-probabilities, if there are any.
    ///
    /// # Shapes
    /// - log_probabilities: `[tokens]`, in nats
    #[must_use]
    pub(crate) fn output_bias(mut self, log_probabilities: Option<&[f32]>) -> Self {
        if let Some(values) = log_probabilities {
            self.model.set_output_bias(&mut self.weights, values);
        }
        self
    }

    /// Sets whether the backward pass recomputes activations block by block. This saves memory and gives the same bits.
    #[must_use]
    pub fn recompute(self, recompute: bool) -> Self {
        Self { recompute, ..self }
    }

    /// Sets whether micro-batches hold examples of similar length and are padded to it alone. This saves time.
    #[must_use]
    pub fn group_by_length(self, group_by_length: bool) -> Self {
        Self { group_by_length, ..self }
    }

    /// Sets the number format of the operands of products in training steps. Inference always uses 32 bits.
    #[must_use]
    pub fn precision(self, precision: plan::Precision) -> Self {
        Self { weights: self.weights.precision(precision), ..self }
    }

    /// Sets whether clipped sums are computed in exact arithmetic.
    #[must_use]
    pub fn arithmetic(self, arithmetic: plan::Arithmetic) -> Self {
        Self { summation: Summation { arithmetic, ..self.summation }, ..self }
    }

    /// Takes a plan's step on its lot: with clipping and noise if the run is `protected`, else without.
    ///
    /// # Errors
    /// As [`Trainer::dp_step`]; [`TrainerError::Step`] if the plan has no such step.
    pub fn step(
        &mut self,
        plan: &CertifiedPlan,
        step: u64,
        protected: bool,
        lot: &Private<Vec<Example>>,
        rng: &dyn PrivacyRng,
    ) -> Result<(), TrainerError> {
        let phase = plan.phase(step).ok_or(TrainerError::Step { step })?;
        let training = plan.plan().training();
        let learning_rate = learning_rate(&training.learning_rate, step, plan.total_steps());
        let expected_batch_size = phase.expected_batch_size as f64;
        let lot = lot.for_mechanism();
        if !protected {
            return self.plain_step(lot, PlainStep { expected_batch_size, learning_rate });
        }
        let (noise, l2_clip_norm) = (phase.mechanism.noise(), training.l2_clip_norm);
        self.begin_block(plan, step, rng.source())?;
        self.dp_step(lot, DpStep { step, noise, l2_clip_norm, expected_batch_size, learning_rate }, rng)
    }

    /// Begins a block of correlated noise in the first step of a phase or of a process, and refuses other steps than the block's next
    /// one. A private process begins with the first step that it takes: its key is new. A test key draws the noise of all
    /// earlier steps of the phase again.
    fn begin_block(
        &mut self,
        plan: &CertifiedPlan,
        step: u64,
        key: RandomnessSource,
    ) -> Result<(), TrainerError> {
        let (Some(phase), Some(begin)) = (plan.phase(step), plan.first_step_of_phase(step)) else {
            return Err(TrainerError::Step { step });
        };
        match &self.carried.block {
            Some(block) if block.is_of_phase(begin) && block.next_step() == step => Ok(()),
            Some(block) if block.is_of_phase(begin) => {
                Err(TrainerError::Order { step, expected: block.next_step() })
            }
            _ => {
                let bands = phase.mechanism.bands().map_err(StepError::from)?;
                let first = if key.is_private() { step } else { begin };
                self.carried.block = bands.map(|bands| BandedNoise::begin(bands, begin, first));
                Ok(())
            }
        }
    }

    /// Takes one private step on a sampled lot. A step on an empty lot consists of noise alone.
    ///
    /// # Errors
    /// For figures out of range and examples that do not fit the model; the weights are then unchanged.
    /// [`TrainerError::Device`] if the device failed; the trainer cannot be used any more.
    pub fn dp_step(
        &mut self,
        examples: &[Example],
        step: DpStep,
        rng: &dyn PrivacyRng,
    ) -> Result<(), TrainerError> {
        check_positive("l2_clip_norm", step.l2_clip_norm)?;
        check_positive("expected_batch_size", step.expected_batch_size)?;
        let step = DpStep { l2_clip_norm: self.adapted_clip_norm.unwrap_or(step.l2_clip_norm), ..step };
        // An error leaves the block as it is.
        let mut carried = std::mem::take(&mut self.carried);
        let released = self.lot(examples).and_then(|lot| {
            let (model, weights, carried) = (&self.model, &self.weights, &mut carried);
            Ok(private_gradient(model, weights, &lot, &step, self.summation, carried, rng)?)
        });
        self.carried = carried;
        let (gradient, next) = released?;
        self.adapted_clip_norm = next;
        self.gradient_to_noise = Some(gradient.to_noise());
        self.update(gradient.into(), step.learning_rate);
        Ok(device::check::<B>(&self.device)?)
    }

    /// Moves the weights. Each rank moves its own pieces, and then collects the pieces of all
    /// ranks.
    fn update(&mut self, gradient: OptimizerGradient<B>, learning_rate: f64) {
        let Some(shards) = &self.shards else {
            self.optimizer.step(&mut self.weights, gradient, learning_rate);
            return self.average_weights();
        };
        let mut own = Weights::new(Arc::clone(shards.specs()), shards.own(self.weights.values()));
        self.optimizer.step(&mut own, gradient, learning_rate);
        // Old and new weights are not in memory together.
        drop(self.weights.take());
        let whole = shards.gather(own.take().into_iter().map(to_host).collect()).into_iter();
        self.weights.replace(whole.map(|values| flat(values, &self.device)).collect());
        self.average_weights();
    }

    fn average_weights(&mut self) {
        if let Some(average) = &mut self.average {
            average.add(&self.weights, self.optimizer.steps());
        }
    }

    /// Returns the weights of the model: their average if the plan asks for one and it has begun, else those of the
    /// last step.
    fn result(&self) -> Cow<'_, Weights<B>> {
        match self.average.as_ref().map(Average::values) {
            None | Some([]) => Cow::Borrowed(&self.weights),
            Some(values) => {
                let mut weights = self.weights.clone();
                weights.replace(values.to_vec());
                Cow::Owned(weights)
            }
        }
    }

    /// Takes one step of the baseline.
    ///
    /// # Errors
    /// As [`Trainer::dp_step`].
    pub fn plain_step(&mut self, examples: &[Example], step: PlainStep) -> Result<(), TrainerError> {
        check_positive("expected_batch_size", step.expected_batch_size)?;
        let lot = self.lot(examples)?;
        let gradient = plain_gradient(&self.model, &self.weights, &lot, step.expected_batch_size);
        self.optimizer.step(&mut self.weights, gradient, step.learning_rate);
        self.average_weights();
        Ok(device::check::<B>(&self.device)?)
    }

    /// Takes a step on public examples with an optimizer of its own.
    ///
    /// # Errors
    /// As [`Trainer::dp_step`].
    pub(crate) fn public_step(
        &mut self,
        optimizer: &mut Optimizer<B>,
        examples: &[Example],
        learning_rate: f64,
    ) -> Result<(), TrainerError> {
        let lot = Lot { shards: None, ..self.lot(examples)? };
        let gradient = plain_gradient(&self.model, &self.weights, &lot, examples.len() as f64);
        optimizer.step(&mut self.weights, gradient, learning_rate);
        Ok(device::check::<B>(&self.device)?)
    }

    /// Returns the names, shapes and initial values of the parameters that an optimizer moves.
    pub(crate) fn trained_specs(&self) -> &[ParamSpec] {
        self.weights.specs()
    }

    pub(crate) fn device(&self) -> &B::Device {
        &self.device
    }

    /// Returns the estimate of ‖gradient‖² / ‖noise‖² in the last private step: post-processing of what was released.
    #[must_use]
    pub fn gradient_to_noise(&self) -> Option<f64> {
        self.gradient_to_noise
    }

    /// Returns the clip norm of the next private step, if clipping is adaptive and a step was
    /// taken. It is post-processing.
    #[must_use]
    pub(crate) fn adapted_clip_norm(&self) -> Option<f64> {
        self.adapted_clip_norm
    }

    /// Returns the model's weights under Hugging Face names, with adapters merged, and averaged if the plan asks for
    /// it.
    #[must_use]
    pub fn weights(&self) -> Vec<NamedTensor> {
        let weights = self.result();
        let value = |(at, spec): (usize, &ParamSpec)| NamedTensor {
            name: spec.name.clone(),
            shape: spec.shape.clone(),
            data: to_host(weights.model_value(ParamId(at))),
        };
        self.specs().iter().enumerate().map(value).collect()
    }

    /// Writes the model's weights as `transformers` reads them, adapters merged, with a mark.
    ///
    /// # Errors
    /// [`RunError::Storage`] if the file cannot be written.
    pub(crate) fn write_model(&self, path: &Path, mark: &PrivacyMark) -> Result<(), RunError> {
        let weights = self.result();
        let weights = &*weights;
        let names = self.specs().iter().map(|spec| spec.name.as_str());
        // What the checkpoint holds in 16 bits and no step changed stays as it is.
        let tensors = (0..).map(ParamId).map(|param| {
            let format = weights.frozen_format(param).unwrap_or(NumberFormat::F32);
            DeviceTensor { weights, param, format }
        });
        Ok(write_model(path, names.zip(tensors).collect(), mark)?)
    }

    /// Returns the SHA-256 of the model's file in a number format, as an export writes it; `None` if the format cannot
    /// hold a weight.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the file cannot be laid out.
    pub(crate) fn model_sha256(
        &self,
        format: NumberFormat,
        mark: &PrivacyMark,
    ) -> Result<Option<String>, RunError> {
        let weights = self.result();
        let weights = &*weights;
        let params = || (0..self.specs().len()).map(ParamId);
        let holds = |param| {
            weights.frozen_format(param) == Some(format)
                || to_host(weights.model_value(param)).into_iter().all(|v| format.holds(v))
        };
        if !params().all(holds) {
            return Ok(None);
        }
        let names = self.specs().iter().map(|spec| spec.name.as_str());
        let tensors = params().map(|param| DeviceTensor { weights, param, format });
        let digest = model_sha256(names.zip(tensors).collect(), mark);
        digest.map(Some).map_err(|error| RunError::Failed(format!("cannot lay out the tensors: {error}")))
    }

    /// Returns the names of the modules that have adapters, and the storage of their matrices.
    pub(crate) fn adapted(&self) -> Vec<(&str, Stored)> {
        self.weights.adapted()
    }

    /// Returns the names of the parameters that are trained themselves, without adapters.
    pub(crate) fn trained_whole(&self) -> Vec<&str> {
        let places = (0..self.specs().len()).map(ParamId);
        places.filter(|at| self.weights.trained(*at).is_some()).map(|at| &*self.specs()[at.0].name).collect()
    }

    /// Returns the names, shapes and initial values of the model's parameters.
    #[must_use]
    pub fn specs(&self) -> &[ParamSpec] {
        self.weights.model_specs()
    }

    /// Returns the longest input of the decoder, if there is one.
    #[must_use]
    pub fn decoder_context(&self) -> Option<usize> {
        self.model.shape().decoder
    }

    /// Returns the model as it would be published now, to measure it.
    #[must_use]
    pub fn inference(&self) -> InferenceModel<B> {
        let (network, weights) = (self.model.clone(), self.result().into_owned());
        InferenceModel::of_weights(network, weights, self.physical_batch, self.device.clone())
    }

    /// Returns `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        self.model.hf_config()
    }

    /// Checks that all examples of a lot fit the model.
    ///
    /// # Errors
    /// [`TrainerError::Example`].
    pub(crate) fn check(&self, lot: &Private<Vec<Example>>) -> Result<(), TrainerError> {
        Ok(self.model.check(lot.for_mechanism())?)
    }

    /// Returns the number of examples in a micro-batch.
    pub(crate) fn physical_batch(&self) -> usize {
        self.physical_batch
    }

    /// Makes a lot of these examples, if they fit the model.
    fn lot<'a>(&'a self, examples: &'a [Example]) -> Result<Lot<'a, B>, TrainerError> {
        self.model.check(examples)?;
        let Self { physical_batch, recompute, group_by_length, ref device, .. } = *self;
        let shape = self.model.shape();
        Ok(Lot {
            examples,
            physical_batch,
            shape,
            recompute,
            group_by_length,
            device,
            shards: self.shards.as_ref(),
        })
    }
}

/// Returns the values that a checkpoint gives a parameter, if it does.
fn first_values<B: Kernels>(
    weights: Vec<NamedTensor<StoredValues>>,
    device: &B::Device,
) -> impl FnMut(&ParamSpec) -> Result<Option<Tensor<B, 1>>, TensorError> {
    let mut weights: BTreeMap<_, _> =
        weights.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
    move |spec| match weights.remove(&spec.name) {
        Some(NamedTensor { name, shape, .. }) if shape != spec.shape => {
            Err(TensorError { name, problem: "has another shape than the model's" })
        }
        found => Ok(found.map(|tensor| tensor.data.into_tensor::<B>(device))),
    }
}

/// A parameter of a model that is copied to the host when it is written.
struct DeviceTensor<'a, B: Kernels> {
    weights: &'a Weights<B>,
    param: ParamId,
    format: NumberFormat,
}

impl<B: Kernels> View for DeviceTensor<'_, B> {
    fn dtype(&self) -> Dtype {
        self.format.of_safetensors()
    }

    fn shape(&self) -> &[usize] {
        &self.weights.model_specs()[self.param.0].shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self.weights.frozen_bytes(self.param) {
            Some((format, bytes)) if format == self.format => Cow::Owned(bytes),
            _ => Cow::Owned(self.format.bytes(&to_host(self.weights.model_value(self.param)))),
        }
    }

    fn data_len(&self) -> usize {
        self.format.of_safetensors().bitsize() / 8 * self.weights.model_specs()[self.param.0].len()
    }
}

/// Creates a flat tensor.
fn flat<B: Kernels>(values: Vec<f32>, device: &B::Device) -> Tensor<B, 1> {
    let length = values.len();
    from_host(values, [length], FloatDType::F32, device)
}

fn check_positive(what: &'static str, value: f64) -> Result<(), TrainerError> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(TrainerError::Figure { what, value }) }
}
