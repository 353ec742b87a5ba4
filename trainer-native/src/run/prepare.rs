//! Everything that training needs, from the plan's files and the run folder.

use dp_tokenizer::Tokenizer;
use mechanisms::{PrivacyRng, Purpose};

use super::request::Job;
use crate::data::{self, Dataset, Sampler, UnitText, Units};
use crate::device::check_precision;
use crate::dp::TrainingData;
use crate::infer::{Evaluation, HeldOut};
use crate::nn::Kernels;
use crate::objective::Objective;
use crate::pretrained::{self, Start};
use crate::progress::note;
use crate::store::RunStore;
use crate::train::{TrainError, Trainer};
use crate::{RunError, memory, vocabulary};

/// The plan's input files, read and checked before anything is written.
pub(super) struct Inputs {
    units: Units,
    evaluation: Option<Vec<UnitText>>,
    initial: Option<Start>,
}

impl Inputs {
    pub fn read<B: Kernels>(job: &Job, device: &B::Device) -> Result<Self, RunError> {
        let plan = job.plan.plan();
        memory::check(&job.plan, job.device)?;
        check_precision::<B>(plan.performance().precision, device)
            .map_err(|error| RunError::Refused(error.to_string()))?;
        let units = data::read_units(plan, &job.base)?;
        let evaluation = data::read_evaluation(plan, &job.base, &units)?;
        job.check_interrupt()?;
        vocabulary::check_public(&job.plan, &job.base)?;
        let initial = pretrained::prepare(plan, &job.base)?;
        Ok(Self { units, evaluation, initial })
    }
}

/// A run that is ready for its first step, or for the step after its checkpoint.
pub(super) struct Prepared<B: Kernels> {
    pub tokenizer: Tokenizer,
    pub data: TrainingData,
    pub trainer: Trainer<B>,
    /// The plan's public evaluation text, if it has any.
    held_out: Option<HeldOut>,
    /// The step to end before.
    pub end: u64,
}

impl<B: Kernels> Prepared<B> {
    /// Makes or reads the tokenizer, encodes the text and builds the model.
    pub fn new(
        job: &Job,
        inputs: Inputs,
        store: &mut RunStore<'_>,
        device: B::Device,
        rng: &impl PrivacyRng,
    ) -> Result<Self, RunError> {
        let Inputs { units, evaluation, initial } = inputs;
        if let Some(initial) = &initial {
            if store.ledger().initial_weights().is_none() && !initial.ignored.is_empty() {
                note(&format!("model.initial: unused tensors: {}", initial.ignored.join(", ")));
            }
            store.record_initial_weights(&initial.sha256)?;
        }
        // A release that was charged is finished and saved before an interrupt: it cannot be repeated.
        let shared = job.vocabulary.as_deref();
        let tokenizer = vocabulary::obtain(&job.plan, &job.base, store, shared, rng)?;
        job.check_interrupt()?;
        let objective = Objective::new(job.plan.plan(), &tokenizer)?;
        let spec = objective.window_spec();
        let mut dataset = Dataset::new(units, &tokenizer, spec)?;
        if let Some(canaries) = store.canaries(job.canaries, rng)? {
            dataset.plant(&canaries.planted_windows(tokenizer.vocab_size(), spec));
        }
        let held_out =
            evaluation.map(|texts| HeldOut::new(&texts, &tokenizer, &objective)).transpose()?.flatten();
        let trainer = build_trainer::<B>(job, tokenizer.vocab_size(), initial, store, device, rng)?;
        let end = store.affordable_end()?;
        if end < job.plan.total_steps() {
            note(&format!(
                "the spare steps are used up: the run will end at step {end} instead of {}",
                job.plan.total_steps()
            ));
        }
        job.check_interrupt()?;
        let data = TrainingData { sampler: Sampler::default(), dataset, objective };
        Ok(Self { tokenizer, data, trainer, held_out, end })
    }

    /// Figures of the current weights on the held-out text, if there is any.
    pub fn evaluate(&self) -> Result<Option<Evaluation>, RunError> {
        self.held_out.as_ref().map(|held_out| held_out.evaluate(&self.trainer.inference())).transpose()
    }
}

/// The model with its initial weights, or in the state of the checkpoint.
fn build_trainer<B: Kernels>(
    job: &Job,
    vocab_size: usize,
    initial: Option<Start>,
    store: &mut RunStore<'_>,
    device: B::Device,
    rng: &impl PrivacyRng,
) -> Result<Trainer<B>, RunError> {
    let plan = job.plan.plan();
    let refused = |error: TrainError| RunError::Refused(error.to_string());
    let vocab_size = initial.as_ref().map_or(vocab_size, |initial| initial.vocab_size);
    let physical_batch = memory::windows_at_once(plan, job.device, B::workers());
    let mut init = rng.stream(Purpose::Initialization, 0, 0);
    let mut trainer =
        Trainer::new(plan.model(), plan.training(), vocab_size, &mut init, physical_batch, device)
            .map_err(refused)?
            .recompute(plan.performance().recompute)
            .precision(plan.performance().precision);
    if let Some(initial) = initial {
        trainer.load_weights(initial.weights).map_err(refused)?;
    }
    if let Some(state) = store.take_saved_state() {
        trainer.load_state(state).map_err(refused)?;
    }
    Ok(trainer)
}
