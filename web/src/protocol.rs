//! Messages between the page and its worker.
//!
//! Plans travel as JSON text. Everything else is packed by `postcard`: a derived JSON reader is several times larger, and
//! every visitor would download it.

use accountant::Bounds;
use accountant::correlated::Compared;
use plan::Unknown;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Encodes a message as bytes.
#[must_use]
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    // Messages are plain values, so encoding cannot fail. The other side ignores an empty message.
    postcard::to_allocvec(message).unwrap_or_default()
}

/// Decodes a message, or returns `None` if the bytes are no such message.
#[must_use]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// A task with a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// A number that is copied into the response, so that the page can drop responses to outdated requests.
    pub id: u64,
    /// The task.
    pub task: Task,
}

/// A task of the page for its worker. Plans are the text of a `plan.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Certify this plan.
    Certify(String),
    /// Check that this text is a plan, and normalize it.
    Parse(String),
    /// Certify the plan with one setting changed.
    Vary(Variation),
    /// Find the number of steps or the batch size that uses up the plan's ε.
    Solve(SolveRequest),
    /// Convert a privacy target to ε.
    Convert(ConversionRequest),
    /// Propose a plan for a budget.
    Advise(AdviceRequest),
    /// Answer a further question about the plan.
    Analyze(AnalysisRequest),
}

/// A plan with one quantity to find.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolveRequest {
    /// The plan, with both ε and the noise multipliers set.
    pub plan: String,
    /// The quantity to find.
    pub unknown: Unknown,
}

/// Data, privacy and a budget for which to propose a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceRequest {
    /// A plan with the data, the privacy and the tokenizer.
    pub plan: String,
    /// Index among [`plan::MACHINES`].
    pub machine: usize,
    /// Seconds on the machine.
    pub seconds: f64,
    /// What training starts from: the name of one of [`plan::SIZES`], or of one of [`plan::CHECKPOINTS`] with what of it is trained, such
    /// as `gpt2/lora`. Empty to have it proposed.
    pub start: String,
}

/// A privacy target to convert to ε.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversionRequest {
    /// The δ that goes with ε.
    pub delta: f64,
    /// The target.
    pub target: PrivacyTarget,
}

/// A privacy target that is not stated as ε.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrivacyTarget {
    /// μ of Gaussian differential privacy.
    Mu(f64),
    /// A limit on the success of membership inference.
    Rates {
        /// Share of non-members that the attack wrongly reports.
        false_positive_rate: f64,
        /// Largest share of members that the attack may report.
        true_positive_rate: f64,
    },
}

/// A question about a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnalysisRequest {
    /// The plan, with its noise multipliers set.
    pub plan: String,
    /// The question.
    pub analysis: Analysis,
}

/// A question about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analysis {
    /// The attacker's odds, and μ.
    Attacker,
    /// ε of one stage alone.
    Stage(Stage),
    /// ε for this many units together, such as the records of one user.
    Group(u32),
    /// ε of this many runs.
    Runs(u64),
    /// ε by another accounting method.
    Method(AccountingMethod),
    /// Training with correlated noise, at the ε of training alone.
    Correlated,
    /// False negative rate of the best attack on a stage, at this false positive rate.
    FalseNegativeRate(Stage, f64),
}

/// A part of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The whole pipeline.
    Whole,
    /// The release of the vocabulary alone.
    Vocabulary,
    /// Training alone.
    Training,
}

/// An accounting method that the certificate does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountingMethod {
    /// Rényi DP, which most published figures use.
    Renyi,
    /// The same noise on shuffled batches, which most published programs draw.
    Shuffled,
}

/// A plan with one setting changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variation {
    /// The plan, with its noise multipliers set.
    pub plan: String,
    /// The setting to change.
    pub parameter: Parameter,
    /// The value.
    pub value: f64,
}

/// A setting that a chart varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// Noise multiplier of training.
    NoiseMultiplier,
    /// Number of steps after which training stops.
    Steps,
    /// Number of reserve steps.
    SpareSteps,
    /// Expected batch size, at the plan's target ε.
    BatchSize,
    /// Expected batch size, at one of [`USUAL_EPSILONS`] in place of the plan's target.
    BatchSizeAt(usize),
}

/// Targets with which a plan's noise is compared: strong, medium, and usual for language models.
pub const USUAL_EPSILONS: [f64; 3] = [1.0, 3.0, 8.0];

/// The response to the request with the same number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Number of the request.
    pub id: u64,
    /// The answer, or why there is none.
    pub outcome: Result<Answer, Refusal>,
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The figures of a certified plan.
    Certified(Box<Certified>),
    /// The normalized text of a plan.
    Plan(String),
    /// ε of a variation or of a part.
    Epsilon(Bounds),
    /// The noise that a variation needs.
    Noise(NoiseFigures),
    /// The plan with the quantity found, and its figures.
    Solved(String, Box<Certified>),
    /// The target as ε.
    Converted(f64),
    /// A proposed plan, its figures, and the reasons.
    Advised(String, Box<Certified>, AdviceFigures),
    /// The attacker's gain.
    Attacker(AttackerFigures),
    /// ε for a group of units.
    Group(GroupFigures),
    /// ε of several runs.
    Runs(RunFigures),
    /// DP-SGD and mechanisms with correlated noise.
    Correlated(Vec<Compared>),
    /// Lower bound on the false negative rate of the best attack.
    FalseNegativeRate(f64),
    /// The plan has no such part, or no bound is proven.
    Unavailable,
}

/// The noise that a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFigures {
    /// σ divided by the clip norm.
    pub noise_multiplier: f64,
    /// The noise multiplier divided by the expected batch size.
    pub noise_batch_ratio: f64,
}

/// Advantages and disadvantages of a proposed plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AdviceFigures {
    /// Estimated seconds of training.
    pub seconds: f64,
    /// Estimated bytes of memory; on a graphics processor a lower bound.
    pub memory: f64,
    /// Reasons for the proposal, one sentence each.
    pub reasons: Vec<String>,
    /// Points to reconsider, one sentence each.
    pub warnings: Vec<String>,
    /// The predicted loss; `None` where the law predicts none.
    pub prediction: Option<plan::Prediction>,
    /// The batch sizes that were compared.
    pub candidates: Vec<plan::Candidate>,
}

/// The gain of an attacker who wants to know whether one unit was in the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttackerFigures {
    /// Probability of a right guess, from even odds, on average over all outcomes.
    pub odds: Bounds,
    /// Largest probability with which the attacker can be sure after a single outcome; outcomes that allow more have an excess
    /// probability of at most δ.
    pub confidence: f64,
    /// True positive rate of the best test at a false positive rate of 1 % and of 0.1 %.
    pub true_positive_rates: [f64; 2],
    /// The μ of the one Gaussian mechanism that has the same ε at the plan's δ.
    pub mu: Bounds,
}

/// ε of a group of units at the plan's δ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupFigures {
    /// ε of the whole pipeline. `None` where no bound is proven.
    pub whole: Option<Bounds>,
    /// Upper bound on the probability that the vocabulary's thresholds fail the group.
    pub failure: f64,
    /// ε of training alone. `None` where no bound is proven.
    pub training: Option<Bounds>,
}

/// ε of several runs at the plan's δ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// ε if all results are used. `None` where no bound is proven.
    pub all: Option<Bounds>,
    /// ε if only the best of a secret number of training runs is used, with this mean. `None` where no bound is proven.
    pub best: Option<Bounds>,
}

/// The figures of the trainer's certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certified {
    /// ε of the whole pipeline.
    pub epsilon: Bounds,
    /// δ.
    pub delta: f64,
    /// Training, phase by phase.
    pub phases: Vec<PhaseFigures>,
    /// The release of the vocabulary. `None` where the tokenizer uses no private text.
    pub release: Option<ReleaseFigures>,
    /// The plan with its noise multipliers set and without a target ε. Variations start from it.
    pub plan_with_noise: String,
    /// SHA-256 of the canonical plan.
    pub hash: String,
    /// The default δ for this number of units.
    pub default_delta: f64,
}

/// Steps with the same privacy cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// Number of steps.
    pub steps: u64,
    /// Average number of units in a step.
    pub expected_batch_size: u64,
    /// Probability that a unit joins a step.
    pub sampling_probability: f64,
    /// σ divided by the clip norm.
    pub noise_multiplier: f64,
    /// The noise multiplier divided by the expected batch size.
    pub noise_batch_ratio: f64,
    /// Standard deviation of the noise on each coordinate of the average gradient, σ·C/B.
    pub gradient_noise: f64,
}

/// The release of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleaseFigures {
    /// Noise multiplier of the one Gaussian mechanism that the whole release is charged as.
    pub noise_multiplier: f64,
    /// Probability that a word of a single unit is released.
    pub threshold_delta: f64,
}

/// Reason why a task failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// JSON path of the setting at fault. Empty when it is not a single setting.
    pub path: String,
    /// The given value.
    pub given: String,
    /// The allowed values.
    pub allowed: String,
    /// Advice on how to fix it.
    pub fix: String,
    /// The smallest ε that this noise reaches, when the target is smaller.
    pub attainable_epsilon: Option<f64>,
    /// The default δ for the plan's number of units, if the plan states one.
    pub default_delta: Option<f64>,
    /// Changes that remove the cause: what they do, and the changed plan.
    pub remedies: Vec<(String, String)>,
}
