//! Uses a trained model: figures on held-out text, and generated text. Nothing here builds an optimizer or draws
//! weights.

mod answer_evaluation;
mod answers;
mod bert_score;
mod entities;
mod evaluate;
mod evaluation;
mod features;
mod generate;
mod labels;
mod measure;
mod model;
mod predict;
mod recall;
mod scores;

use std::collections::BTreeMap;
use std::path::Path;

use plan::{Device, Trainable};
use tokenizer::Tokenizer;

pub use answer_evaluation::{AnswerEvaluation, ClassScores};
pub use bert_score::BertScore;
pub(crate) use evaluate::HeldOut;
pub use evaluate::evaluate;
pub use evaluation::{
    ByWord, EntityEvaluation, Evaluation, LabelEvaluation, LabelScore, Sentences, TokenEvaluation, Unknown,
};
pub use generate::Beams;
pub(crate) use generate::Decoding;
pub use generate::DecodingStrategy;
pub use generate::EarlyStopping;
pub use generate::Generated;
pub use generate::GenerationOptions;
pub use generate::Prompt;
pub use generate::PromptFile;
pub use generate::TokenSampling;
pub use generate::Written;
pub(crate) use generate::config as generation_config;
pub use generate::generate;
pub use generate::{TextBounds, UsualGeneration};
pub use measure::Prediction;
pub use model::{InferenceError, InferenceModel};
pub use predict::predict;
pub use recall::{Asked, Recall, TrainedRecord};

use crate::objective::Objective;
use crate::plan_file::read_uncertified;
use crate::store::covered::check_model;
use crate::store::files;
use crate::{RunError, chat, memory, vocabulary};
use network::Example;
use network::device::{OnDevice, on_device};
use network::model::Network;
use network::nn::Kernels;
use network::tensor_file::read_tensors;

/// The model of a finished run, with what turns text into its examples and back.
pub struct RunModel<B: Kernels> {
    /// The weights on the device.
    pub model: InferenceModel<B>,
    /// The tokenizer of the run.
    pub tokenizer: Tokenizer,
    /// The objective, which turns records into examples.
    pub objective: Objective,
    /// The plan of the run.
    pub plan: plan::Plan,
    /// The tokens that end a text.
    ends: Vec<u32>,
    /// The strings that end a text.
    stops: Vec<String>,
}

impl<B: Kernels> RunModel<B> {
    /// Reads a run folder.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the run is not finished, or its files do not fit together.
    pub fn read(folder: &Path, kind: Device, device: B::Device) -> Result<Self, RunError> {
        check_model(folder)?;
        let plan = read_uncertified(&folder.join(files::PLAN))?;
        let tokenizer = vocabulary::read(folder)?;
        let objective = Objective::new(&plan, &tokenizer, chat::of_run(&plan, folder)?.as_ref())?;
        // The run wrote all weights, including those that it did not train.
        let model = plan::Model { trainable: Trainable::All, ..plan.model().clone() };
        let vocabulary = saved_vocab_size(folder)?;
        let network = Network::new(&model, plan.training(), vocabulary as usize)
            .map_err(|error| RunError::Refused(error.to_string()))?;
        let weights = read_tensors(&folder.join(files::MODEL))?;
        let physical_batch = memory::windows_at_once(&plan, vocabulary, None, kind, B::workers());
        let model = InferenceModel::new(network, weights, physical_batch, device)
            .map_err(|error| RunError::Refused(format!("{}: {error}", folder.display())))?;
        let generation = generation_config::read(folder)?;
        let (ends, stops) = (generation_config::ends(&generation), generation_config::stops(&generation));
        Ok(Self { model, tokenizer, objective, plan, ends, stops })
    }
}

/// Returns the size of the model's vocabulary. The vocabulary of a checkpoint may be larger than
/// its tokenizer's.
fn saved_vocab_size(folder: &Path) -> Result<u32, RunError> {
    let path = folder.join(files::CONFIG);
    let config: serde_json::Value = serde_json::from_slice(&durable::read(&path)?).unwrap_or_default();
    let size = config["vocab_size"].as_u64().and_then(|size| u32::try_from(size).ok());
    size.ok_or_else(|| {
        RunError::Refused(format!(
            "{}: it has no vocab_size; restore the file that the run wrote",
            path.display()
        ))
    })
}

/// A task for the model of a finished run, on any backend.
pub trait ModelTask {
    /// The result of the task.
    type Output;

    /// Carries out the task.
    ///
    /// # Errors
    /// Those of the task.
    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<Self::Output, RunError>;
}

/// Reads the model of a run folder and carries out a task with it.
pub fn with_model<T: ModelTask>(folder: &Path, device: Device, task: T) -> Result<T::Output, RunError> {
    on_device(device, TaskOnDevice { folder, kind: device, task })
        .map_err(|error| RunError::Refused(error.to_string()))?
}

struct TaskOnDevice<'a, T> {
    folder: &'a Path,
    kind: Device,
    task: T,
}

impl<T: ModelTask> OnDevice for TaskOnDevice<'_, T> {
    type Output = Result<T::Output, RunError>;

    fn run<B: Kernels>(self, device: B::Device) -> Self::Output {
        self.task.run(&RunModel::<B>::read(self.folder, self.kind, device)?)
    }
}

/// Groups examples by the length of their input, rounded up to a multiple of `step`: each group's length, and the places of its members, of
/// which it has at most `most`.
fn by_length(examples: &[Example], step: usize, most: impl Fn(usize) -> usize) -> Vec<(usize, Vec<usize>)> {
    let mut of_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, example) in examples.iter().enumerate() {
        of_length.entry(example.input.len().max(1).next_multiple_of(step)).or_default().push(at);
    }
    let groups = of_length.into_iter().flat_map(|(length, all)| {
        all.chunks(most(length).max(1)).map(|members| (length, members.to_vec())).collect::<Vec<_>>()
    });
    groups.collect()
}

/// Returns the results of groups, which are in the order of the groups' members, in the order of the examples.
fn in_order<T>(groups: &[(usize, Vec<usize>)], results: impl IntoIterator<Item = T>) -> Vec<T> {
    let places = groups.iter().flat_map(|(_, members)| members.iter().copied());
    let mut all: Vec<(usize, T)> = places.zip(results).collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}
