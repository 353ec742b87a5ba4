//! Everything that training needs, from the plan's files and the run folder.

use dp_tokenizer::Tokenizer;
use mechanisms::{PrivacyRng, Purpose};

use super::request::Job;
use crate::data::{self, Dataset, LabelledRecord, LabelledSet, Planting, PublicText, Sampler, Units};
use crate::device::check_precision;
use crate::disclosure::Private;
use crate::dp::{TrainingData, TrainingSet};
use crate::infer::{Evaluation, HeldOut};
use crate::model::Network;
use crate::nn::Kernels;
use crate::objective::{Objective, Task, canary_tokens};
use crate::pretrained::{self, Start};
use crate::progress::{note, stage};
use crate::store::RunStore;
use crate::train::{TrainError, Trainer};
use crate::{RunError, memory, vocabulary};

/// The plan's input files, read and checked before anything is written.
pub(super) struct Inputs {
    pub units: Units,
    evaluation: Option<PublicText>,
    initial: Option<Start>,
}

impl Inputs {
    pub fn read<B: Kernels>(job: &Job, device: &B::Device) -> Result<Self, RunError> {
        let plan = job.plan.plan();
        memory::check(&job.plan, job.physical_batch, job.device)?;
        check_precision::<B>(plan.performance().precision, device)
            .map_err(|error| RunError::Refused(error.to_string()))?;
        stage("reading the training text");
        let units = data::read_units(plan, &job.base)?;
        let evaluation = data::read_evaluation(plan, &job.base, &units)?;
        job.check_interrupt()?;
        vocabulary::check(&job.plan, &job.base)?;
        check_network(plan)?;
        let initial = pretrained::prepare(plan, &job.base)?;
        Ok(Self { units, evaluation, initial })
    }
}

/// Refuses a network that cannot be built, before a vocabulary is released for it or a folder written.
fn check_network(plan: &plan::Plan) -> Result<(), RunError> {
    let vocab_size = match plan.tokenizer() {
        plan::Tokenizer::Train(settings) => settings.vocab_size as usize,
        plan::Tokenizer::Extend(settings) => settings.added_tokens as usize,
        // Read later. No other size depends on it.
        plan::Tokenizer::Public(_) | plan::Tokenizer::Bytes => 1,
    };
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(error.to_string());
    let network = Network::new(plan.model(), plan.training(), vocab_size).map_err(|error| refused(&error))?;
    network.selection(plan.model()).map(|_| ()).map_err(|error| refused(&error))
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
        let set = training_set(job, units, &tokenizer, &objective, store, rng)?;
        let held_out = evaluation
            .map(|text| HeldOut::new(&text, &tokenizer, &objective, job.plan.plan()))
            .transpose()?
            .flatten();
        let trainer = build_trainer::<B>(job, &tokenizer, initial, store, device, rng)?;
        let end = store.affordable_end()?;
        if end < job.plan.total_steps() {
            note(&format!(
                "the spare steps are used up: the run will end at step {end} instead of {}",
                job.plan.total_steps()
            ));
        }
        job.check_interrupt()?;
        let data = TrainingData { sampler: Sampler::default(), set, objective };
        Ok(Self { tokenizer, data, trainer, held_out, end })
    }

    /// Figures of the current weights on the held-out text, if there is any.
    pub fn evaluate(&self) -> Result<Option<Evaluation>, RunError> {
        self.held_out.as_ref().map(|held_out| held_out.evaluate(&self.trainer.inference())).transpose()
    }

    /// Figures of the finished model on the held-out text, with scores of what it writes.
    pub fn with_scores(&self, figures: Evaluation) -> Result<Evaluation, RunError> {
        match &self.held_out {
            Some(held_out) => held_out.with_scores(figures, &self.trainer.inference(), &self.tokenizer),
            None => Ok(figures),
        }
    }
}

/// The units' windows or records, with the canaries of an audit.
fn training_set(
    job: &Job,
    units: Units,
    tokenizer: &Tokenizer,
    objective: &Objective,
    store: &mut RunStore<'_>,
    rng: &impl PrivacyRng,
) -> Result<TrainingSet, RunError> {
    if let (Some(records), Some(task)) = (&units.labelled, objective.task()) {
        note_cut(job.plan.plan(), task, records, tokenizer);
        let example = |record: &_| task.example(record, tokenizer);
        return Ok(TrainingSet::Records(LabelledSet::new(records.for_mechanism(), example)));
    }
    let spec = objective.window_spec();
    let mut dataset = Dataset::new(units, tokenizer, spec)?;
    if let Some(canaries) = store.canaries(job.canaries.as_ref(), rng)? {
        let tokens = canary_tokens(job.plan.plan(), tokenizer);
        dataset = canaries.plant(dataset, job.plan.plan().privacy().sampling, &tokens, spec);
    }
    Ok(TrainingSet::Windows(Box::new(dataset)))
}

/// Says that texts are cut to the model's context. How many are is private where the text is.
fn note_cut(plan: &plan::Plan, task: &Task, records: &Private<Vec<LabelledRecord>>, tokenizer: &Tokenizer) {
    let context = plan.model().context;
    let of_public = || task.cut_note(records.for_mechanism(), tokenizer);
    let said = match plan.is_public() {
        true => of_public(),
        false => {
            Some(format!("records longer than the model's {context} tokens are cut; how many are is private"))
        }
    };
    if let Some(said) = said {
        note(&format!("training: {said}"));
    }
}

/// The model with its initial weights, or in the state of the checkpoint.
fn build_trainer<B: Kernels>(
    job: &Job,
    tokenizer: &Tokenizer,
    mut initial: Option<Start>,
    store: &mut RunStore<'_>,
    device: B::Device,
    rng: &impl PrivacyRng,
) -> Result<Trainer<B>, RunError> {
    let plan = job.plan.plan();
    let refused = |error: TrainError| RunError::Refused(error.to_string());
    if let Some(initial) = &mut initial {
        initial.extend(plan, &job.base, tokenizer)?;
    }
    let vocab_size = initial.as_ref().map_or(tokenizer.vocab_size(), |initial| initial.vocab_size);
    let vocab_size = vocab_size + job.canaries.as_ref().map_or(0, Planting::added_tokens);
    let physical_batch = memory::windows_at_once(plan, job.physical_batch, job.device, B::workers());
    let mut init = rng.stream(Purpose::Initialization, 0, 0);
    let start = initial.map_or_else(Vec::new, |initial| initial.weights);
    let (model, training) = (plan.model(), plan.training());
    let mut trainer =
        Trainer::starting_from(start, model, training, vocab_size, &mut init, physical_batch, device)
            .map_err(refused)?
            .recompute(plan.performance().recompute)
            .precision(plan.performance().precision)
            .arithmetic(plan.privacy().arithmetic);
    if let Some(state) = store.take_saved_state() {
        trainer.load_state(state).map_err(refused)?;
    }
    Ok(trainer)
}
