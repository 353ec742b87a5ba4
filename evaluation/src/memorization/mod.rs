//! Measures how much of its training text a model continues word for word: exact matches, token
//! accuracy and edit distances on four splits, by whether a text has near-duplicates in the
//! training text.
//!
//! The figures depend on private text, and no mechanism has released them. They are marked so and
//! never written to the run folder.
//!
//! # References
//! Ponomareva, Bastings & Vassilvitskii 2022, section 5.2, with the splits of Lee et al. 2021,
//! <https://arxiv.org/abs/2107.06499>. Losses less those of reference models: Watson et al. 2022,
//! <https://arxiv.org/abs/2111.08440>.

mod index;
mod measure;
mod question;
mod scores;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use index::NearDuplicates;
pub(crate) use measure::Figures;
use mechanisms::{PrivacyRng, Purpose, TestRng};
use plan::Device;
use question::Question;
use scores::{SCORED, Scores};
use serde::{Deserialize, Serialize};

use crate::membership::Membership;
use network::nn::Kernels;
use training::RunError;
use training::infer::{
    Asked, Beams, DecodingStrategy, EarlyStopping, GenerationOptions, ModelTask, Prompt, Recall, RunModel,
    TokenSampling, TrainedRecord, with_model,
};

/// The warning that comes with the figures.
const WARNING: &str = "NOT PRIVATE: may not be published. These figures depend on private text, and no mechanism has released them.";
/// Key of the choice of examples and of spans.
const SEED: u64 = 0;
/// Number of prompts that are continued at a time.
const BATCH: usize = 16;

/// Options of a measurement.
pub struct MemorizationOptions<'a> {
    /// The text that the model was trained on.
    pub train: &'a Path,
    /// Text that the model was not trained on.
    pub valid: &'a Path,
    /// Number of tokens of a record that the model is given; by default, those that it reads in training.
    pub prefix: Option<usize>,
    /// Number of tokens that the model should write after them.
    pub continuation: Option<usize>,
    /// Largest number of examples of a split.
    pub examples: usize,
    /// Jaccard similarity of runs of five words from which two records are near-duplicates.
    pub similarity: f64,
    /// Number of beams, if the best text of a beam search is measured beside the greedy one.
    pub beams: Option<usize>,
    /// Runs on other text, whose losses are subtracted.
    pub references: &'a [PathBuf],
}

/// Figures of a model on the four splits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memorization {
    warning: Cow<'static, str>,
    /// The task given to the model, in words.
    pub question: String,
    /// Reason why the figures are lower bounds, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<String>,
    /// A row for each kind of text.
    pub rows: Vec<Row>,
    /// Figures of telling training records from validation records by the loss; absent if one of the texts is empty.
    pub membership: Option<Membership>,
    /// Figures of telling training records from validation records by the loss less its mean over reference models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_membership: Option<Membership>,
}

/// Figures of one split and one way of generating.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The text: training, validation, test, or canaries.
    pub split: Cow<'static, str>,
    /// The way in which tokens are chosen.
    pub decoding: Cow<'static, str>,
    /// The figures; [`None`] if no record of the split is long enough.
    pub(crate) figures: Option<Figures>,
}

/// Questions about the records of a split.
type Split = Vec<Recall>;

/// Measures how much of its training text a run's model has memorized.
///
/// # Errors
/// [`RunError::Refused`] if the folder holds no finished model, a text cannot be read, or the question does not fit the model.
pub fn memorization(
    folder: &Path,
    device: Device,
    options: &MemorizationOptions<'_>,
) -> Result<Memorization, RunError> {
    if !(options.similarity > 0.0 && options.similarity <= 1.0) {
        return Err(RunError::Refused(format!(
            "--similarity: {} is out of range; allowed: above 0 and at most 1",
            options.similarity
        )));
    }
    let (mut figures, own) = with_model(folder, device, Measure(options))?;
    figures.calibrated_membership = own.calibrated(device, options)?;
    figures.membership = own.membership();
    Ok(figures)
}

struct Measure<'a>(&'a MemorizationOptions<'a>);

impl ModelTask for Measure<'_> {
    type Output = (Memorization, Scores);

    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<Self::Output, RunError> {
        let options = self.0;
        let question = Question::new(run, options.prefix, options.continuation)?;
        let train = run.read_as_trained(options.train, "--train")?;
        let valid = run.read_as_trained(options.valid, "--valid")?;
        let texts: Vec<&str> = train.iter().map(|record| record.text.as_str()).collect();
        let index = NearDuplicates::new(&texts, options.similarity);
        let near_train = |at: usize| index.has_near(texts[at], Some(at));
        let near_valid = |at: usize| index.has_near(&valid[at].text, None);
        let [train_duplicated, train_unique] = splits(run, options, &question, &train, near_train)?;
        let [valid_in_train, valid_unique] = splits(run, options, &question, &valid, near_valid)?;
        let splits = [
            ("train, duplicated", train_duplicated),
            ("train, unique", train_unique),
            ("validation, in train", valid_in_train),
            ("validation, unique", valid_unique),
        ];
        let mut rows = Vec::new();
        for (name, split) in &splits {
            let greedy = DecodingStrategy::Sample(TokenSampling::GREEDY);
            rows.push(measure(run, &question, split, [*name, "greedy"], greedy)?);
            if let Some(width) = options.beams {
                let beams = Beams { width, length_penalty: 1.0, early_stopping: EarlyStopping::Unlikely };
                rows.push(measure(run, &question, split, [*name, "beams"], DecodingStrategy::Search(beams))?);
            }
        }
        let figures = Memorization {
            warning: WARNING.into(),
            question: question.to_string(),
            lower_bound: question.lower_bound,
            rows,
            membership: None,
            calibrated_membership: None,
        };
        Ok((figures, Scores::read(run, &train, &valid)?))
    }
}

/// Selects records with and without near-duplicates: at most the requested number of each, in a
/// random order that is always the same.
fn splits<B: Kernels>(
    run: &RunModel<B>,
    options: &MemorizationOptions<'_>,
    question: &Question,
    records: &[TrainedRecord],
    is_near: impl Fn(usize) -> bool,
) -> Result<[Split; 2], RunError> {
    let rng = TestRng::from_seed(SEED);
    let mut order: Vec<usize> = (0..records.len()).collect();
    let mut draws = rng.stream(Purpose::Generation, 0, 0);
    let mut splits = [Split::default(), Split::default()];
    while !order.is_empty() && splits.iter().any(|split| split.len() < options.examples) {
        let at = order.swap_remove(draws.below(order.len() as u64) as usize);
        let mut stream = rng.stream(Purpose::Masking, at as u64, 0);
        let Some(recall) = question.ask(run, &records[at], &mut stream)? else { continue };
        let split = &mut splits[usize::from(!is_near(at))];
        if split.len() < options.examples {
            split.push(recall);
        }
    }
    Ok(splits)
}

/// Asks the model the questions of a split, those with targets of the same length at a time.
fn measure<B: Kernels>(
    run: &RunModel<B>,
    question: &Question,
    split: &Split,
    [name, decoding]: [&'static str; 2],
    strategy: DecodingStrategy,
) -> Result<Row, RunError> {
    let mut generated = vec![Vec::new(); split.len()];
    let mut by_length: BTreeMap<usize, (Vec<usize>, Vec<Prompt>)> = BTreeMap::new();
    for (at, Recall { asked, target }) in split.iter().enumerate() {
        match asked {
            Asked::Filled(example) => generated[at] = run.model.filled(example)?,
            Asked::Continued(prompt) => {
                let (places, prompts) = by_length.entry(target.len()).or_default();
                places.push(at);
                prompts.push(prompt.clone());
            }
        }
    }
    for (tokens, (places, prompts)) in by_length {
        let options = GenerationOptions {
            tokens,
            min_tokens: if question.goes_on() { tokens } else { 0 },
            strategy,
            batch: BATCH,
            seed: Some(SEED),
            ..GenerationOptions::default()
        };
        for (at, tokens) in places.into_iter().zip(run.generate(&prompts, &options)?) {
            generated[at] = tokens;
        }
    }
    let targets: Vec<Vec<u32>> = split.iter().map(|recall| recall.target.clone()).collect();
    Ok(Row { split: name.into(), decoding: decoding.into(), figures: Figures::of(&generated, &targets) })
}

impl fmt::Display for Memorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.warning)?;
        writeln!(f, "asked for: {}", self.question)?;
        if let Some(why) = &self.lower_bound {
            writeln!(f, "These figures are lower bounds: {why}.")?;
        }
        write!(f, "{:<22}{:<8}{:>9}{:>9}{:>9}{:>9}", "split", "text", "examples", "EM %", "TA %", "MED")?;
        for Row { split, decoding, figures } in &self.rows {
            write!(f, "\n{split:<22}{decoding:<8}")?;
            match figures {
                Some(Figures { examples, exact_match, token_accuracy, median_edit_distance }) => {
                    let (exact, accuracy) = (100.0 * exact_match, 100.0 * token_accuracy);
                    write!(f, "{examples:>9}{exact:>9.2}{accuracy:>9.2}{median_edit_distance:>9.1}")?;
                }
                None => write!(f, "{:>9}{:>9}{:>9}{:>9}", 0, "–", "–", "–")?,
            }
        }
        if let Some(membership) = &self.membership {
            write!(f, "\n{membership}, by the loss of at most {SCORED} records of each text")?;
        }
        if let Some(membership) = &self.calibrated_membership {
            write!(f, "\n{membership}, by the loss less that of the reference models")?;
        }
        Ok(())
    }
}
