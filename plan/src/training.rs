//! What is optimised, in what batches, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Clipping;

/// What is optimised, in what batches, and how. Give `expected_batch_size` and `steps`, or `batch_schedule`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// What the model learns to predict.
    pub objective: Objective,
    /// Units a step draws on average; also the constant every gradient sum is divided by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub expected_batch_size: Option<u64>,
    /// Number of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub steps: Option<u64>,
    /// Batches that change their size as training goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_000))]
    pub batch_schedule: Option<Vec<BatchPhase>>,
    /// The L2 norm to which one unit's gradient is clipped.
    #[schemars(range(min = 1e-12, max = 1e12))]
    pub l2_clip_norm: f64,
    /// How a unit's gradient is brought within that norm.
    #[serde(default, skip_serializing_if = "Clipping::is_flat")]
    pub clipping: Clipping,
    /// How weights follow the noisy gradient.
    pub optimizer: Optimizer,
    /// The step size over time.
    pub learning_rate: LearningRate,
}

impl Training {
    /// The phases in order, whichever way they were written. Empty only in a file that is not a valid plan.
    #[must_use]
    pub fn phases(&self) -> Vec<BatchPhase> {
        match (&self.batch_schedule, self.steps, self.expected_batch_size) {
            (Some(phases), _, _) => phases.clone(),
            (None, Some(steps), Some(expected_batch_size)) => vec![BatchPhase { steps, expected_batch_size }],
            _ => Vec::new(),
        }
    }

    /// The number of steps over all phases.
    #[must_use]
    pub fn total_steps(&self) -> u64 {
        self.phases().iter().map(|phase| phase.steps).fold(0, u64::saturating_add)
    }
}

/// Steps that share a batch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchPhase {
    /// Number of steps.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub steps: u64,
    /// Units a step draws on average; also the constant its gradient sum is divided by.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub expected_batch_size: u64,
}

/// What the model learns to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The next token.
    CausalLm,
    /// Runs of tokens cut out of a text, 15 % of it in runs of 3 on average (T5).
    SpanCorruption,
    /// The rest of a text after a cut at a random place (T5).
    PrefixLm,
    /// Masked tokens: 15 % of a text, of which 80 % are hidden, 10 % exchanged and 10 % left (BERT).
    MaskedLm,
    /// The same, and whether the second half of the text follows the first or the halves are exchanged (BERT).
    MaskedLmNextSentence,
}

/// How weights follow the noisy gradient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// Adam with decoupled weight decay.
    Adamw(AdamW),
    /// Stochastic gradient descent.
    Sgd(Sgd),
    /// Adafactor: second moments of a matrix by row and column, steps in proportion to the weights.
    Adafactor(Adafactor),
    /// LAMB: Adam with decoupled weight decay whose step is as long as the weights, tensor by tensor.
    Lamb(Lamb),
}

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdamW {
    /// Decay of the first moment.
    #[serde(default = "beta1")]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta1: f64,
    /// Decay of the second moment.
    #[serde(default = "beta2")]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta2: f64,
    /// Added to the root of the second moment.
    #[serde(default = "epsilon")]
    #[schemars(range(min = 1e-30, max = 1.0))]
    pub epsilon: f64,
    /// Weight decay per step, times the learning rate. Matrices decay; vectors (biases and gains) do not.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e3))]
    pub weight_decay: f64,
    /// Takes the noise's known variance out of the second moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dp_bias_correction: Option<DpBiasCorrection>,
}

/// The second moment without the variance that the noise adds to it (DP-AdamBC, Tang et al. 2023).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DpBiasCorrection {
    /// Least value of the corrected second moment; its root takes the place of `epsilon`.
    #[serde(default = "floor")]
    #[schemars(range(min = 1e-30, max = 1.0))]
    pub floor: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self {
            beta1: beta1(),
            beta2: beta2(),
            epsilon: epsilon(),
            weight_decay: 0.0,
            dp_bias_correction: None,
        }
    }
}

fn floor() -> f64 {
    1e-8
}

fn beta1() -> f64 {
    0.9
}

fn beta2() -> f64 {
    0.99
}

fn epsilon() -> f64 {
    1e-8
}

/// Stochastic gradient descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sgd {
    /// Share of the last update carried on; 0 for none.
    #[serde(default)]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub momentum: f64,
}

/// Adafactor (Shazeer & Stern 2018).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adafactor {
    /// Power c of the second moment's decay, 1 − t⁻ᶜ at step t.
    #[serde(default = "decay")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
    pub decay: f64,
    /// Largest root mean square of a tensor's update before the learning rate.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub clipping_threshold: f64,
    /// Added to squared gradients.
    #[serde(default = "tiny")]
    #[schemars(range(min = 1e-38, max = 1.0))]
    pub epsilon: f64,
    /// Whether a tensor's step is multiplied with the root mean square of its weights.
    #[serde(default = "yes")]
    pub scale_by_weights: bool,
    /// Least root mean square that a tensor's weights count as.
    #[serde(default = "least_scale")]
    #[schemars(range(min = 1e-12, max = 1.0))]
    pub least_scale: f64,
    /// Weight decay per step, times the tensor's learning rate. Matrices decay; vectors do not.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e3))]
    pub weight_decay: f64,
}

impl Default for Adafactor {
    fn default() -> Self {
        Self {
            decay: decay(),
            clipping_threshold: one(),
            epsilon: tiny(),
            scale_by_weights: yes(),
            least_scale: least_scale(),
            weight_decay: 0.0,
        }
    }
}

fn decay() -> f64 {
    0.8
}

fn one() -> f64 {
    1.0
}

fn tiny() -> f64 {
    1e-30
}

fn yes() -> bool {
    true
}

fn least_scale() -> f64 {
    1e-3
}

/// LAMB (You et al. 2020).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lamb {
    /// Decay of the first moment.
    #[serde(default = "beta1")]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta1: f64,
    /// Decay of the second moment.
    #[serde(default = "beta2")]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta2: f64,
    /// Added to the root of the second moment.
    #[serde(default = "lamb_epsilon")]
    #[schemars(range(min = 1e-30, max = 1.0))]
    pub epsilon: f64,
    /// Weight decay, inside the step whose length is scaled. Matrices decay; vectors do not.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e3))]
    pub weight_decay: f64,
}

impl Default for Lamb {
    fn default() -> Self {
        Self { beta1: beta1(), beta2: beta2(), epsilon: lamb_epsilon(), weight_decay: 0.0 }
    }
}

fn lamb_epsilon() -> f64 {
    1e-6
}

/// The step size over time: linear warm-up to the peak, then decay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LearningRate {
    /// Largest value.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub peak: f64,
    /// Steps of linear growth to the peak.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000))]
    pub warmup_steps: u64,
    /// What follows.
    #[serde(default)]
    pub decay: Decay,
}

/// How the step size falls after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// It stays at the peak.
    #[default]
    Constant,
    /// Half a cosine, to zero at the last step.
    Cosine,
    /// A straight line, to zero at the last step.
    Linear,
    /// The square of a straight line, to zero at the last step.
    Quadratic,
    /// The peak times √(warm-up steps / step): a base rate r of T5 is a peak of r/√(warm-up steps).
    Rsqrt,
}
