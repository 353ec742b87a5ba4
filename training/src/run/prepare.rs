//! Prepares the tokenizer, the examples and the model, from the plan's files and the run folder.

use dp_tokenizer::count::UnitItems;
use mechanisms::{PrivacyRng, Purpose};
use serde::{Deserialize, Serialize};
use tokenizer::Tokenizer;

use super::folder::Folder;
use super::inputs::Inputs;
use super::request::Job;
use super::start::Start;
use crate::data::{Canaries, Dataset, LabelledRecords, LabelledSet, Planting, Units};
use crate::disclosure::Private;
use crate::dp::{TrainingData, TrainingSet};
use crate::infer::{Evaluation, HeldOut, generation_config};
use crate::objective::{Generation, Objective, Task, canary_tokens};
use crate::progress::note;
use crate::ranks::Ranks;
use crate::store::RunStore;
use crate::train::{Trainer, TrainerError};
use crate::{RunError, chat, label_histogram, limits, memory, vocabulary, warm_start, word_counting};
use network::nn::Kernels;
use network::tensor_file::NamedTensor;

/// A run that is ready for its first step, or for the step after its checkpoint.
pub(super) struct Prepared<B: Kernels> {
    pub tokenizer: Tokenizer,
    pub data: TrainingData,
    pub trainer: Trainer<B>,
    /// The plan's public evaluation text, if it has any.
    held_out: Option<HeldOut>,
    pub progressed: Progressed,
    /// The settings of generation in the checkpoint that the run starts from.
    pub generation: serde_json::Value,
    /// How `sentence-transformers` makes an embedding with that checkpoint.
    pub embedding: Option<[serde_json::Value; 2]>,
}

impl<B: Kernels> Prepared<B> {
    /// Makes or reads the tokenizer, encodes the text and builds the model.
    pub fn new(
        job: &Job,
        inputs: Inputs,
        folder: &mut Folder<'_>,
        device: B::Device,
        rng: &dyn PrivacyRng,
    ) -> Result<Self, RunError> {
        let plan = job.plan.plan();
        let are_due = folder.on_first(|store| {
            Ok((label_histogram::is_due(plan, store), word_counting::is_due(&job.plan, store)?))
        })?;
        let (counts_labels, counts_words) = job.ranks.of_first(are_due.unwrap_or_default())?;
        let labels = match counts_labels {
            true => label_histogram::count(plan, &inputs.units, &job.ranks, rng)?,
            false => None,
        };
        let words = match counts_words {
            true => word_counting::count_in_shares(&job.plan, &job.base, &job.ranks)?,
            false => None,
        };
        let counted = Counted { labels, words };
        let begun = folder.on_first(|store| Begun::new::<B>(job, &inputs, counted, store, rng))?;
        let mut begun = Begun::share(begun, &job.ranks)?;
        let (saved, resumes) = (begun.saved.take(), begun.progressed.resumes);
        let (set, objective, built) = job.ranks.agree(Self::build(job, inputs, begun, device, rng))?;
        let mut prepared = built(TrainingData::new(plan, set, objective)?);
        if resumes {
            let goes_on = prepared.progressed.steps_done < job.plan.total_steps();
            let loaded = prepared.trainer.load_state_of_first(saved, &job.ranks, goes_on);
            job.ranks.agree(loaded.map_err(|error| RunError::Refused(error.to_string())))?;
        } else if plan.training().warm_start.is_some() {
            prepared.warm_start(job)?;
        }
        Ok(prepared)
    }

    /// Trains on texts of released words before the first step. The first rank does all of it, so that all ranks have
    /// the same weights.
    fn warm_start(&mut self, job: &Job) -> Result<(), RunError> {
        let Self { tokenizer, data, trainer, .. } = self;
        let own = job.ranks.is_first().then(|| {
            warm_start::carry_out(&job.plan, tokenizer, &data.objective, trainer, || job.check_interrupt())
        });
        job.ranks.agree(own.unwrap_or(Ok(())))?;
        if !job.ranks.are_several() {
            return Ok(());
        }
        let own = job.ranks.is_first().then(|| trainer.trained());
        let Some(weights) = share_tensors(own, &job.ranks)? else { return Ok(()) };
        let loaded = trainer.load_first(weights).map_err(|error| RunError::Failed(error.to_string()));
        job.ranks.agree(loaded)
    }

    /// Returns the set of the units' windows or records, the objective, and what makes a prepared run of the data that these give.
    fn build(
        job: &Job,
        inputs: Inputs,
        begun: Begun,
        device: B::Device,
        rng: &dyn PrivacyRng,
    ) -> Result<(TrainingSet, Objective, impl FnOnce(TrainingData) -> Self), RunError> {
        let Inputs { units, evaluation, initial, .. } = inputs;
        let Begun { tokenizer, progressed, saved: _, canaries, physical_batch } = begun;
        let objective =
            Objective::new(job.plan.plan(), &tokenizer, chat::of_plan(job.plan.plan(), &job.base)?.as_ref())?;
        let mut set = training_set(job, units, &tokenizer, &objective, canaries)?;
        let held_out = evaluation
            .map(|text| HeldOut::new(&text, &tokenizer, &objective, job.plan.plan()))
            .transpose()?
            .flatten();
        let generation = initial.as_ref().map(|initial| initial.generation.clone()).unwrap_or_default();
        let own = generation_config::of_texts(&objective, &tokenizer)?;
        let replaced = generation_config::replaced(&own, &generation, tokenizer.vocab_size());
        let generates = !matches!(objective.generation(), Generation::None);
        if generates && job.ranks.is_first() && !replaced.is_empty() {
            let of = |name: &&str| {
                format!("{name} = {} of the checkpoint, {} in this run", generation[*name], own[*name])
            };
            let what = replaced.iter().map(of).collect::<Vec<_>>().join("; ");
            note(&format!("model.initial: texts begin and end by this run's rule: {what}"));
        }
        let embedding = initial.as_ref().and_then(|initial| initial.embedding.clone());
        let trainer = build_trainer::<B>(job, &tokenizer, initial, physical_batch, device, rng)?;
        if progressed.end < job.plan.total_steps() {
            note(&format!(
                "the spare steps are used up: the run will end at step {} instead of {}",
                progressed.end,
                job.plan.total_steps()
            ));
        }
        add_features(job.plan.plan(), &mut set, &trainer)?;
        job.check_interrupt()?;
        let built =
            move |data| Self { tokenizer, data, trainer, held_out, progressed, generation, embedding };
        Ok((set, objective, built))
    }

    /// Returns the figures of the current weights on the held-out text, if there is any. The ranks
    /// share the work, and all get the same result.
    pub fn evaluate(&self, ranks: &Ranks) -> Result<Option<Evaluation>, RunError> {
        let model = || self.trainer.inference().on_ranks(ranks);
        let own = self.held_out.as_ref().map(|held_out| held_out.evaluate(&model())).transpose();
        ranks.agree(own)
    }

    /// Adds scores of the finished model's answers to its figures on the held-out text.
    pub(crate) fn with_scores(&self, figures: Evaluation) -> Result<Evaluation, RunError> {
        match &self.held_out {
            Some(held_out) => held_out.with_scores(figures, &self.trainer.inference(), &self.tokenizer),
            None => Ok(figures),
        }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Progressed {
    /// Steps in the checkpoint.
    pub steps_done: u64,
    /// The step before which this process ends.
    pub end: u64,
    /// Whether steps clip and add noise.
    pub protected: bool,
    /// Whether the run continues from a checkpoint.
    pub resumes: bool,
}

/// What the ranks counted in their shares of the text, and the first rank releases.
struct Counted {
    labels: Option<Private<Vec<i64>>>,
    words: Option<Private<UnitItems>>,
}

/// The state that the first rank finds in the run folder, or creates for it.
struct Begun {
    tokenizer: Tokenizer,
    progressed: Progressed,
    /// The state of the checkpoint, which only the first rank has.
    saved: Option<Vec<NamedTensor>>,
    canaries: Option<Canaries>,
    physical_batch: usize,
}

impl Begun {
    fn new<B: Kernels>(
        job: &Job,
        inputs: &Inputs,
        counted: Counted,
        store: &mut RunStore<'_>,
        rng: &dyn PrivacyRng,
    ) -> Result<Self, RunError> {
        if let Some(initial) = &inputs.initial {
            if store.ledger().initial_weights().is_none() {
                if !initial.ignored.is_empty() {
                    note(&format!("model.initial: unused tensors: {}", initial.ignored.join(", ")));
                }
                if let Some(settings) = &initial.unapplied {
                    note(settings);
                }
            }
            store.record_initial_weights(&initial.sha256)?;
        }
        // A charged release is finished and saved before an interrupt, because it cannot be
        // repeated.
        let shared = job.vocabulary.as_deref();
        let tokenizer = vocabulary::obtain(&job.plan, &job.base, store, shared, rng, counted.words)?;
        if tokenizer.drops_characters() {
            note(
                "tokenizer: it has no unknown token, so characters that its vocabulary lacks vanish from the text",
            );
        }
        if let Some(counts) = &counted.labels {
            label_histogram::release(&job.plan, counts, store, rng)?;
        }
        job.check_interrupt()?;
        let (plan, workers) = (job.plan.plan(), B::workers() * job.ranks.on_this_host());
        let saved = store.take_saved_state();
        Ok(Self {
            tokenizer,
            progressed: Progressed {
                steps_done: store.steps_done(),
                end: store.affordable_end()?,
                protected: store.is_protected(),
                resumes: saved.is_some(),
            },
            saved,
            canaries: store.canaries(job.canaries.as_ref(), rng)?,
            physical_batch: memory::windows_at_once(
                plan,
                inputs.vocabulary,
                job.physical_batch,
                job.device,
                workers,
            ),
        })
    }

    /// Sends what the first rank began to all ranks, but for the state of a checkpoint.
    fn share(own: Option<Self>, ranks: &Ranks) -> Result<Self, RunError> {
        if !ranks.are_several() {
            return own.ok_or_else(|| RunError::Failed("a single process is its own first rank".to_owned()));
        }
        let json = own.as_ref().map(|begun| begun.tokenizer.to_json()).unwrap_or_default();
        let json = String::from_utf8_lossy(&ranks.broadcast(json.into_bytes())).into_owned();
        let read = Tokenizer::from_json(&json).map_err(|error| RunError::Failed(error.to_string()));
        let tokenizer = ranks.agree(read)?;
        let figures = own.as_ref().map(|begun| (begun.progressed, begun.physical_batch));
        let saved = own.and_then(|begun| begun.saved);
        match ranks.of_first(figures)? {
            Some((progressed, physical_batch)) => {
                Ok(Self { tokenizer, progressed, saved, canaries: None, physical_batch })
            }
            None => Err(RunError::Failed("the first rank began nothing".to_owned())),
        }
    }
}

/// Sends the first rank's tensors to all ranks.
fn share_tensors(own: Option<Vec<NamedTensor>>, ranks: &Ranks) -> Result<Option<Vec<NamedTensor>>, RunError> {
    let own_names = own
        .as_ref()
        .map(|own| own.iter().map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect::<Vec<_>>());
    let Some(names) = ranks.of_first(own_names)? else { return Ok(None) };
    let mut own = own.into_iter().flatten();
    let tensor = |(name, shape): (String, Vec<usize>)| {
        let data = own.next().map(|tensor| tensor.data).unwrap_or_default();
        let bytes = ranks.broadcast(data.iter().flat_map(|value| value.to_le_bytes()).collect());
        let four = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
        NamedTensor { name, shape, data: bytes.chunks_exact(4).map(four).collect() }
    };
    Ok(Some(names.into_iter().map(tensor).collect()))
}

/// Builds the set of the units' windows or records, with the canaries of an audit.
fn training_set(
    job: &Job,
    mut units: Units,
    tokenizer: &Tokenizer,
    objective: &Objective,
    canaries: Option<Canaries>,
) -> Result<TrainingSet, RunError> {
    if let (Some(records), Some(task)) = (units.labelled.take(), objective.task().cloned()) {
        note_cut(job.plan.plan(), &task, &records, tokenizer);
        let copied = Tokenizer::from_json(&tokenizer.to_json());
        let tokenizer = copied.map_err(|error| RunError::Failed(error.to_string()))?;
        let examples = LabelledSet::new(records, move |record| task.example(record, &tokenizer));
        return Ok(TrainingSet::Records(examples));
    }
    let spec = objective.window_spec();
    let mut dataset = Dataset::new(units, tokenizer, spec)?;
    if let Some(canaries) = canaries {
        let tokens = canary_tokens(job.plan.plan(), tokenizer);
        dataset = canaries.plant(dataset, job.plan.plan().privacy().sampling, &tokens, spec);
    }
    Ok(TrainingSet::Windows(Box::new(dataset)))
}

/// Computes the features of each record once, if only the head is trained: they are then the same in each step.
///
/// Features are private. They exist in the memory of this process only, beside the records themselves: no checkpoint, metric or
/// other file has them, and a resumed run computes them again.
fn add_features<B: Kernels>(
    plan: &plan::Plan,
    set: &mut TrainingSet,
    trainer: &Trainer<B>,
) -> Result<(), RunError> {
    let TrainingSet::Records(records) = set else { return Ok(()) };
    if !plan.file().has_fixed_features() {
        return Ok(());
    }
    records.add_features(|examples| {
        let model = trainer.inference();
        let needed = (model.feature_values(examples) * size_of::<f32>()) as u64;
        // Without stored features, each step computes its own.
        if limits::free().is_some_and(|free| needed > free / 2) {
            return Ok(Vec::new());
        }
        model.features_each(examples).map_err(|error| RunError::Failed(error.to_string()))
    })
}

/// Notes that texts are cut to the model's context. The number of cut texts is private if the text
/// is private, and not known if the text stays in its files.
fn note_cut(plan: &plan::Plan, task: &Task, records: &LabelledRecords, tokenizer: &Tokenizer) {
    let context = plan.model().context;
    let said = match records {
        LabelledRecords::Kept(records) if plan.is_public() => {
            task.cut_note(records.for_mechanism(), tokenizer)
        }
        _ if plan.is_public() => Some(format!("records longer than the model's {context} tokens are cut")),
        _ => {
            Some(format!("records longer than the model's {context} tokens are cut; how many are is private"))
        }
    };
    if let Some(said) = said {
        note(&format!("training: {said}"));
    }
}

/// Builds the model with its initial weights.
fn build_trainer<B: Kernels>(
    job: &Job,
    tokenizer: &Tokenizer,
    mut initial: Option<Start>,
    physical_batch: usize,
    device: B::Device,
    rng: &dyn PrivacyRng,
) -> Result<Trainer<B>, RunError> {
    let plan = job.plan.plan();
    let refused = |error: TrainerError| RunError::Refused(error.to_string());
    if let Some(initial) = &mut initial {
        initial.extend(plan, &job.base, tokenizer)?;
    }
    let vocab_size = initial.as_ref().map_or(tokenizer.vocab_size(), |initial| initial.vocab_size);
    let vocab_size = vocab_size + job.canaries.as_ref().map_or(0, Planting::added_tokens);
    let mut init = rng.stream(Purpose::Initialization, 0, 0);
    let start = initial.map_or_else(Vec::new, |initial| initial.weights);
    let (model, training) = (plan.model(), plan.training());
    let trainer = Trainer::new(start, model, training, vocab_size, &mut init, physical_batch, device)
        .map_err(refused)?
        .output_bias(output_bias(plan, tokenizer).as_deref())
        .recompute(plan.performance().recompute)
        .group_by_length(plan.performance().group_by_length)
        .precision(plan.performance().precision)
        .arithmetic(job.mode.arithmetic)
        .on_ranks(&job.ranks);
    let trainer = match job.divide_sums_above {
        Some(parameters) => trainer.divide_sums_above(parameters),
        None => trainer,
    };
    if trainer.divides_sums() {
        note(
            "each rank keeps a part of the sums alone, because the model is large; this takes less memory and more time",
        );
    }
    Ok(trainer)
}

/// Returns the log-probabilities by which a model without a checkpoint first predicts tokens, if the vocabulary's
/// release tells them.
fn output_bias(plan: &plan::Plan, tokenizer: &Tokenizer) -> Option<Vec<f32>> {
    let mark = tokenizer.mark().filter(|_| plan.model().initial == plan::Initial::Random)?;
    mark.log_probabilities(tokenizer.vocab_size())
}
