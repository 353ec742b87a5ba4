//! What the page asks its worker, and what comes back. Both sides speak JSON.

use accountant::Bounds;
use plan::PlanFile;
use serde::{Deserialize, Serialize};

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
    /// The text is this plan.
    Plan(Box<PlanFile>),
    /// What a variation costs.
    Epsilon(Bounds),
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
