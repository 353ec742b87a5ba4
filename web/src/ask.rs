//! What the page asks its worker, and what comes back. Plans travel as their text, the rest in a form that is small in
//! code: a derived reader of JSON is several times as large, and every visitor would download it.

use accountant::Bounds;
use plan::Unknown;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A message as bytes.
#[must_use]
pub fn packed(message: &impl Serialize) -> Vec<u8> {
    // Messages are plain values: writing one cannot fail, and no bytes are no message to the other side.
    postcard::to_allocvec(message).unwrap_or_default()
}

/// A message from its bytes; none where they are no such message.
#[must_use]
pub fn unpacked<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// A numbered question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Comes back in the reply, so that a reply to an old question can be told.
    pub id: u64,
    /// The question.
    pub task: Task,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// What does this `plan.json` cost? The text is the one that export writes.
    Certify(String),
    /// Is this text a `plan.json`?
    Read(String),
    /// What would the plan cost if one thing were different?
    Vary(Variation),
    /// How long, or how wide, may the run be?
    Solve(Sought),
    /// Which ε is this promise?
    Promise(Promise),
    /// What else can be said of the plan?
    Explain(Explanation),
}

/// A plan of which one quantity is to be found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sought {
    /// The `plan.json`, with ε and the noise.
    pub text: String,
    /// What is to be found.
    pub unknown: Unknown,
}

/// A promise in other words than ε.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// The δ beside it.
    pub delta: f64,
    /// What is promised.
    pub aim: Aim,
}

/// What a promise may be stated as.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// μ of Gaussian differential privacy.
    Mu(f64),
    /// The success of a membership test.
    Rates {
        /// Share of those who are not there that the test names.
        false_positive_rate: f64,
        /// Share of those who are there that it may name at the most.
        true_positive_rate: f64,
    },
}

/// A question about a plan whose noise is written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The `plan.json`, its noise multipliers given.
    pub text: String,
    /// What is asked.
    pub what: What,
}

/// What can be said of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Odds of an attacker, and μ.
    Attacker,
    /// ε of a stage alone.
    Stage(Stage),
    /// ε for so many units together, such as the records of one user.
    Group(u32),
    /// ε of so many runs.
    Runs(u64),
    /// ε by other accounting.
    Method(Method),
    /// What the best test on a stage misses at this false positive rate.
    Rate(Stage, f64),
}

/// A part of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// All of it.
    Whole,
    /// The vocabulary's release alone.
    Vocabulary,
    /// Training alone.
    Training,
}

/// A way to account for the run that the certificate does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Rényi orders, as most published figures.
    Renyi,
    /// The same noise on shuffled batches, which most published programs draw.
    Shuffled,
}

/// A plan with one thing different.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variation {
    /// The `plan.json`, its noise multipliers given.
    pub text: String,
    /// What is different.
    pub axis: Axis,
    /// Its value.
    pub value: f64,
}

/// What a curve varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// The noise multiplier of a training step.
    Noise,
    /// The number of steps after which training stops.
    Steps,
    /// The expected batch size, at the ε that the plan promises.
    Batch,
}

/// The reply to the request of the same number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Number of the request.
    pub id: u64,
    /// The answer, or why there is none.
    pub outcome: Result<Answer, Refusal>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What a plan costs.
    Certified(Box<Certified>),
    /// The text is this plan, defaults left out.
    Plan(String),
    /// What a variation or a part costs.
    Epsilon(Bounds),
    /// What noise a variation needs.
    Noise(NoiseFigures),
    /// The text of the plan with the quantity sought, and what it costs.
    Solved(String, Box<Certified>),
    /// The promise as ε.
    Promised(f64),
    /// What an attacker gains.
    Attacker(AttackerFigures),
    /// What several units together lose.
    Group(GroupFigures),
    /// What several runs cost.
    Runs(RunFigures),
    /// The share of those who are there that the best test misses at the least.
    Missed(f64),
    /// The plan has no such part, or this question no proven answer.
    Nothing,
}

/// What noise a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFigures {
    /// σ over the clip norm.
    pub noise_multiplier: f64,
    /// The same over the expected batch size.
    pub noise_batch_ratio: f64,
}

/// What an attacker gains who wants to know whether one unit was there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttackerFigures {
    /// How often the guess is right, from fifty to fifty.
    pub odds: Bounds,
    /// The μ at which one Gaussian mechanism costs the same at the plan's δ.
    pub mu: Bounds,
}

/// What several units together lose at the plan's δ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupFigures {
    /// ε of the whole pipeline; none where nothing is proven.
    pub whole: Option<Bounds>,
    /// Probability, from above, with which the vocabulary's thresholds fail them.
    pub failure: f64,
    /// ε of training alone; none where nothing is proven.
    pub training: Option<Bounds>,
}

/// What several runs cost at the plan's δ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// ε when all results may be looked at; none where nothing is proven.
    pub all: Option<Bounds>,
    /// ε when only the best of a secret number of trainings is, so many on average; none where nothing is proven.
    pub best: Option<Bounds>,
}

/// What a plan costs: the figures of the trainer's certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certified {
    /// Certified ε of the whole pipeline.
    pub epsilon: Bounds,
    /// δ of the promise.
    pub delta: f64,
    /// Training, phase by phase.
    pub phases: Vec<PhaseFigures>,
    /// Of the vocabulary's release; none where the tokenizer costs nothing.
    pub release: Option<ReleaseFigures>,
    /// The plan with its noise multipliers written out, for curves.
    pub fixed_text: String,
    /// SHA-256 of the canonical plan.
    pub hash: String,
    /// The δ this many units call for when nobody chose one.
    pub default_delta: f64,
}

/// Steps that cost the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// Number of steps.
    pub steps: u64,
    /// Units a step draws on average.
    pub expected_batch_size: u64,
    /// Probability with which a unit joins a step.
    pub sampling_probability: f64,
    /// σ over the clip norm.
    pub noise_multiplier: f64,
    /// The same over the expected batch size.
    pub noise_batch_ratio: f64,
}

/// How the vocabulary is released.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleaseFigures {
    /// Of the whole release, seen as one Gaussian.
    pub noise_multiplier: f64,
    /// Probability that a word of one unit alone is released.
    pub threshold_delta: f64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Where in the plan, as a JSON path; empty when it is no one place.
    pub path: String,
    /// What was given.
    pub given: String,
    /// What is allowed.
    pub allowed: String,
    /// What to do.
    pub fix: String,
    /// The smallest ε this noise can promise, when a smaller one is promised.
    pub attainable_epsilon: Option<f64>,
    /// The δ this many units call for, where the plan says how many there are.
    pub default_delta: Option<f64>,
}
