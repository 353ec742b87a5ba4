//! Objective, batches and optimizer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Clipping;

/// Objective, batches and optimizer. Give `expected_batch_size` with `steps` or `epochs`, or `batch_schedule`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// What the model learns to predict.
    pub objective: Objective,
    /// The classes or tags to predict, in the order of the model's outputs (for classification only). They are declared
    /// public and never read from the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10_000))]
    pub labels: Option<Vec<String>>,
    /// What the texts to be written are, if each is a label or a number (text_to_text only). It decides how answers are scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// Where a text is divided into the part that is read and the part that is written (prefix_lm only). Defaults to a random place or, with
    /// `model.decoder_context`, to what the two contexts hold beside the end-of-text token of each part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_split: Option<PrefixSplit>,
    /// Where a text is divided into the two whose order is predicted (masked_lm_next_sentence only). Defaults to any place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence_split: Option<SentenceSplit>,
    /// How conversations are learnt (chat only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<Chat>,
    /// Share of each target's probability that is spread evenly over all tokens or labels (Szegedy et al. 2016).
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0, "default" = 0.0))]
    pub label_smoothing: f64,
    /// Dropout rate in training: of attention probabilities and, except in decoders with RMS norms, of embeddings and of the outputs of
    /// each part (Srivastava et al. 2014).
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0, "default" = 0.0))]
    pub dropout: f64,
    /// Mean number of units per batch. Every gradient sum is divided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub expected_batch_size: Option<u64>,
    /// How many windows of a drawn unit's text a step reads, or how many records of a user: different ones, as many as there are. Masks and
    /// spans are drawn for each, and again for a window that is repeated because the unit has fewer. Their gradients are averaged before the
    /// mean is clipped (augmentation multiplicity, De et al. 2022), so neither ε nor noise changes. Time grows as this number.
    #[serde(default = "one_view", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 64))]
    pub views_per_unit: u32,
    /// Number of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub steps: Option<u64>,
    /// Number of epochs, instead of `steps`. An epoch has units / `expected_batch_size` steps, rounded up. Epochs become steps
    /// when the plan is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub epochs: Option<u64>,
    /// Phases with different batch sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_000))]
    pub batch_schedule: Option<Vec<BatchPhase>>,
    /// The L2 norm to which the gradient of one unit is clipped.
    #[schemars(range(min = 1e-12, max = 1e12))]
    pub l2_clip_norm: f64,
    /// How the gradient of a unit is clipped.
    #[serde(default, skip_serializing_if = "Clipping::is_flat")]
    #[schemars(extend("default" = "flat"))]
    pub clipping: Clipping,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The learning-rate schedule.
    pub learning_rate: LearningRate,
    /// Which average of the weights after each step is the model. The average follows from weights that training releases anyway, so
    /// it costs no ε. Without it, the model has the weights of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaging: Option<Averaging>,
    /// Steps without noise before the first private one, on texts drawn at random from the released words with their noisy counts.
    /// They follow from what the release of the vocabulary paid for, so they cost no ε.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_start: Option<WarmStart>,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn one_view() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

impl Training {
    /// Returns the classes or tags to predict; none if tokens are predicted.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        self.labels.as_deref().unwrap_or_default()
    }

    /// Returns how conversations are learnt.
    #[must_use]
    pub fn chat(&self) -> Chat {
        self.chat.clone().unwrap_or_default()
    }

    /// Returns the phases in order, in whichever form the plan states them. Empty only in a file that is not a valid
    /// plan.
    #[must_use]
    pub fn phases(&self) -> Vec<BatchPhase> {
        match (&self.batch_schedule, self.steps, self.expected_batch_size) {
            (Some(phases), _, _) => phases.clone(),
            (None, Some(steps), Some(expected_batch_size)) => vec![BatchPhase { steps, expected_batch_size }],
            _ => Vec::new(),
        }
    }

    /// Returns the number of steps over all phases.
    #[must_use]
    pub fn total_steps(&self) -> u64 {
        self.phases().iter().map(|phase| phase.steps).fold(0, u64::saturating_add)
    }
}

/// An average of the weights after each step (Polyak & Juditsky 1992; under privacy De et al. 2022, section 4, arXiv 2204.13650).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Averaging {
    /// The mean over this share of the steps, the last ones.
    Tail(#[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))] f64),
    /// An exponential average: weights from one step earlier count this factor less. The factors are scaled to a sum of 1.
    Exponential(#[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))] f64),
}

/// Training on texts of released words before the private steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmStart {
    /// Number of steps, of 64 drawn texts or windows each.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub steps: u64,
}

impl WarmStart {
    /// Number of examples in a step.
    pub const BATCH_SIZE: u64 = 64;
    /// The number of steps that is proposed.
    pub const USUAL: Self = Self { steps: 600 };
}

/// Steps that share a batch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchPhase {
    /// Number of steps.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub steps: u64,
    /// Mean number of units per batch in this phase. Its gradient sums are divided by it.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub expected_batch_size: u64,
}

/// What the model learns to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Predict the next token.
    CausalLm,
    /// Predict removed spans: 15 % of the tokens, in spans of 3 on average (T5).
    SpanCorruption,
    /// Predict the rest of a text after a random split point (T5).
    PrefixLm,
    /// Predict 15 % of the tokens: of these, 80 % are masked, 10 % replaced at random and 10 % kept (BERT).
    MaskedLm,
    /// As `masked_lm`, and predict whether the two halves of the text are in order (BERT).
    MaskedLmNextSentence,
    /// Predict the label of a text, or of two.
    SequenceClassification,
    /// Predict which of the labels a text has: any number. In a table, commas separate them.
    MultiLabelClassification,
    /// Predict the tag of each word, such as B-Disease, I-Disease and O.
    TokenClassification,
    /// Write the target after reading the text.
    TextToText,
    /// Continue conversations: lists of messages, which the chat template of the tokenizer makes text.
    Chat,
}

impl Objective {
    /// Returns whether the objective predicts labels, which the plan lists.
    #[must_use]
    pub fn has_labels(self) -> bool {
        matches!(
            self,
            Self::SequenceClassification | Self::MultiLabelClassification | Self::TokenClassification
        )
    }

    /// Returns whether the objective reads more of a record than its text. A record is then an example by itself.
    #[must_use]
    pub fn reads_fields(self) -> bool {
        self.has_labels() || matches!(self, Self::TextToText | Self::Chat)
    }
}

/// What the texts to be written are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answers {
    /// Each is one of these labels: words, as T5 writes classes. They are declared public and never read from the data. Scored by accuracy, F1
    /// and Matthews' correlation of the written texts, and of the likeliest label.
    Labels(#[schemars(length(min = 1, max = 1_000))] Vec<String>),
    /// Each is a number, which is rounded to a multiple of this one, as T5 does with 0.2 for STS-B (Raffel et al. 2020, section 2.4). Scored by
    /// the correlations of Pearson and Spearman.
    Numbers(#[schemars(extend("minimum" = 1e-6, "maximum" = 1e6))] f64),
}

impl Answers {
    /// Returns the labels; none if answers are numbers.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        match self {
            Self::Labels(labels) => labels,
            Self::Numbers(_) => &[],
        }
    }
}

/// Where a text is divided into two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SentenceSplit {
    /// After a token `.`, `!` or `?`, one of them at random. A text without one before its end is divided at any place. A record of two
    /// sentences is thus a pair, and counts as one unit.
    SentenceEnd,
}

/// The number of tokens of text of each part of a window. The end-of-text token of each part comes on top. A shorter text is divided in the
/// same proportion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefixSplit {
    /// Tokens that are read. `model.context` is at least one more.
    #[schemars(range(min = 1, max = 131_071))]
    pub read: u32,
    /// Tokens that are written. `model.decoder_context` is at least one more.
    #[schemars(range(min = 1, max = 131_071))]
    pub written: u32,
}

/// How conversations are learnt. `chat_template.jinja` or `tokenizer_config.json` beside the tokenizer has the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Chat {
    /// Which tokens are predicted.
    pub learn: Learn,
    /// Which end of a conversation is cut if it is longer than `model.context`.
    pub truncation_side: Side,
    /// The day that templates with `strftime_now` are told, as 2026-01-31. Without it, they find no such function.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub date: Option<String>,
}

/// Which tokens of a conversation are predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Learn {
    /// What the assistant says, with the end of its turns. All else is read and gives no gradient.
    #[default]
    Answers,
    /// Every token.
    All,
}

/// An end of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The beginning.
    Left,
    /// The end.
    #[default]
    Right,
}

/// The optimizer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// Adam with decoupled weight decay.
    Adamw(AdamW),
    /// Stochastic gradient descent.
    Sgd(Sgd),
    /// Adafactor: factored second moments, with steps scaled to the size of the weights.
    Adafactor(Adafactor),
    /// LAMB: AdamW with each step scaled, per tensor, to the norm of the weights.
    Lamb(Lamb),
}

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdamW {
    /// Decay rate of the first moment.
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta1: f64,
    /// Decay rate of the second moment.
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta2: f64,
    /// Added to the square root of the second moment.
    #[schemars(range(min = 1e-30, max = 1.0))]
    pub epsilon: f64,
    /// Weight decay per step, multiplied by the learning rate. Applies to matrices, not to vectors (biases and gains).
    #[schemars(range(min = 0.0, max = 1e3))]
    pub weight_decay: f64,
    /// Subtracts the known variance of the noise from the second moment (DP-AdamBC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dp_bias_correction: Option<DpBiasCorrection>,
}

/// The second moment without the variance that the noise adds to it (DP-AdamBC, Tang et al. 2023).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DpBiasCorrection {
    /// Minimum of the corrected second moment. Its square root replaces `epsilon`.
    #[serde(default = "floor")]
    #[schemars(range(min = 1e-30, max = 1.0))]
    pub floor: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weight_decay: 0.0, dp_bias_correction: None }
    }
}

fn floor() -> f64 {
    1e-8
}

/// Stochastic gradient descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sgd {
    /// Momentum coefficient; 0 for none.
    #[serde(default)]
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub momentum: f64,
}

/// Adafactor (Shazeer & Stern 2018).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Adafactor {
    /// Exponent c in the decay rate of the second moment, 1 − t⁻ᶜ at step t.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
    pub decay: f64,
    /// Maximum root mean square of a tensor's update before the learning rate.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub clipping_threshold: f64,
    /// Added to squared gradients.
    #[schemars(range(min = 1e-38, max = 1.0))]
    pub epsilon: f64,
    /// Whether each tensor's step is multiplied by the root mean square of its weights.
    pub scale_by_weights: bool,
    /// Minimum root mean square assumed for a tensor's weights.
    #[schemars(range(min = 1e-12, max = 1.0))]
    pub least_scale: f64,
    /// Weight decay per step, multiplied by the tensor's learning rate. Applies to matrices, not to vectors.
    #[schemars(range(min = 0.0, max = 1e3))]
    pub weight_decay: f64,
}

impl Default for Adafactor {
    fn default() -> Self {
        Self {
            decay: 0.8,
            clipping_threshold: 1.0,
            epsilon: 1e-30,
            scale_by_weights: true,
            least_scale: 1e-3,
            weight_decay: 0.0,
        }
    }
}

/// LAMB (You et al. 2020).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lamb {
    /// Decay rate of the first moment.
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta1: f64,
    /// Decay rate of the second moment.
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub beta2: f64,
    /// Added to the square root of the second moment.
    #[schemars(range(min = 1e-30, max = 1.0))]
    pub epsilon: f64,
    /// Weight decay, added to the step before it is scaled. Applies to matrices, not to vectors.
    #[schemars(range(min = 0.0, max = 1e3))]
    pub weight_decay: f64,
}

impl Default for Lamb {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.99, epsilon: 1e-6, weight_decay: 0.0 }
    }
}

/// The learning-rate schedule: linear warm-up to the peak, then decay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LearningRate {
    /// Peak learning rate.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub peak: f64,
    /// Steps of linear warm-up to the peak.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000))]
    pub warmup_steps: u64,
    /// The schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
}

/// The schedule after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// Stays at the peak.
    #[default]
    Constant,
    /// Half a cosine, down to zero at the last step.
    Cosine,
    /// Linear, down to zero at the last step.
    Linear,
    /// The square of the linear schedule, down to zero at the last step.
    Quadratic,
    /// Peak × √(warm-up steps / step). A T5 base rate r is a peak of r / √(warm-up steps).
    Rsqrt,
}
