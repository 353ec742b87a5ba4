//! What training starts from: random weights of a size, or a public checkpoint, and what of it is trained.

use serde::{Deserialize, Serialize};

use super::Size;
use crate::messages::refuse;
use crate::{
    Family, Initial, Lora, MadeFrom, Model, Objective, PlanError, PlanFile, PublicTokenizer, Tokenizer,
    Trainable,
};

/// Most tokens of a text that a checkpoint usually gets: its own limit makes a step of short texts many times as expensive.
pub const USUAL_CONTEXT: u32 = 256;
/// The usual learning rate for a checkpoint's weights.
pub const USUAL_RATE: f64 = 3e-4;

/// What training starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Start {
    /// The checkpoint that the plan names, or random weights of the size with the least predicted loss.
    #[default]
    Proposed,
    /// Random weights of this size.
    Random(&'static Size),
    /// The checkpoint that the plan names, or this one, of which this is trained.
    Checkpoint(Option<&'static Checkpoint>, Trained),
}

/// What of a checkpoint is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trained {
    /// Adapters beside the usual matrices (LoRA).
    Lora,
    /// The head for labels alone.
    Head,
    /// All weights.
    All,
}

impl Trained {
    /// Names it for a sentence.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Lora => "adapters (LoRA)",
            Self::Head => "the head alone",
            Self::All => "all weights",
        }
    }

    /// Makes a plan train this of its checkpoint.
    pub fn apply(self, file: &mut PlanFile) {
        file.model.trainable = match self {
            Self::Lora => Trainable::Lora(Lora::usual(file.model.family)),
            Self::Head => Trainable::Head,
            Self::All => Trainable::All,
        };
    }

    /// Returns what of a checkpoint can be trained for an objective: a head of its own has only a classification.
    #[must_use]
    pub fn choices(objective: Objective) -> &'static [Self] {
        match objective {
            Objective::SequenceClassification
            | Objective::MultiLabelClassification
            | Objective::TokenClassification => &[Self::Head, Self::Lora, Self::All],
            _ => &[Self::Lora, Self::All],
        }
    }
}

/// A public checkpoint of a language model, in the folder of its name beside the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpoint {
    /// Name on the command line, and of the folder in a plan.
    pub name: &'static str,
    /// Description for people.
    pub label: &'static str,
    /// Name on the Hugging Face hub.
    pub hub: &'static str,
    /// Perplexity by word on WikiText-2 without any training on it, as published: Radford et al. 2019, table 3.
    pub perplexity: f64,
    d_model: u32,
    layers: u32,
    heads: u32,
}

/// Number of tokens of GPT-2's tokenizer.
const VOCABULARY: u32 = 50_257;

/// The checkpoints that are offered by name, from the smallest. Any other can be named in a plan.
pub const CHECKPOINTS: [Checkpoint; 3] = [
    checkpoint("gpt2", "GPT-2 small (124 million parameters)", "openai-community/gpt2", 29.41, [768, 12, 12]),
    checkpoint(
        "gpt2-medium",
        "GPT-2 medium (355 million parameters)",
        "openai-community/gpt2-medium",
        22.76,
        [1024, 24, 16],
    ),
    checkpoint(
        "gpt2-large",
        "GPT-2 large (774 million parameters)",
        "openai-community/gpt2-large",
        19.93,
        [1280, 36, 20],
    ),
];

const fn checkpoint(
    name: &'static str,
    label: &'static str,
    hub: &'static str,
    perplexity: f64,
    [d_model, layers, heads]: [u32; 3],
) -> Checkpoint {
    Checkpoint { name, label, hub, perplexity, d_model, layers, heads }
}

impl Checkpoint {
    /// Returns the checkpoint that a plan starts from, if it is one of these.
    #[must_use]
    pub fn of(file: &PlanFile) -> Option<&'static Self> {
        let Initial::Checkpoint(folder) = &file.model.initial else { return None };
        CHECKPOINTS.iter().find(|known| known.name == folder)
    }

    /// Makes a language model's plan start from the checkpoint and train this of it, as `trainer-native init` does.
    pub fn apply(&self, file: &mut PlanFile, trained: Trained) {
        let made_from = MadeFrom::PublicText;
        file.model = Model {
            family: Family::Gpt2,
            d_model: self.d_model,
            layers: self.layers,
            heads: self.heads,
            d_ff: 4 * self.d_model,
            context: USUAL_CONTEXT,
            initial: Initial::Checkpoint(self.name.to_owned()),
            checkpoint_made_from: Some(made_from),
            trainable: Trainable::All,
            decoder_context: None,
            kv_heads: None,
            d_head: None,
            untied: false,
            config: serde_json::Map::new(),
            history: None,
            hidden: None,
            pooling: None,
        };
        trained.apply(file);
        let path = format!("{}/tokenizer.json", self.name);
        file.tokenizer = Tokenizer::Public(PublicTokenizer { path, made_from });
        // No words are released.
        file.training.warm_start = None;
        file.privacy.arithmetic = None;
        file.performance.physical_batch = None;
        file.training.learning_rate.peak = USUAL_RATE;
    }

    /// Says what the checkpoint predicts before any training.
    #[must_use]
    pub fn before_training(&self) -> String {
        format!(
            "Before any training, {} predicts WikiText-2 with {:.2} nats a word (perplexity {}, Radford et al. 2019, table 3)",
            self.label,
            libm::log(self.perplexity),
            self.perplexity
        )
    }
}

impl Start {
    /// Makes a plan start so. Returns the size that is given.
    pub(super) fn apply(self, file: &mut PlanFile) -> Result<Option<&'static Size>, PlanError> {
        let (checkpoint, trained) = match self {
            Self::Proposed => return Ok(None),
            Self::Random(size) => return Ok(Some(size)),
            Self::Checkpoint(checkpoint, trained) => (checkpoint, trained),
        };
        if !Trained::choices(file.training.objective).contains(&trained) {
            let allowed = "adapters or all weights: only a classification has a head of its own";
            return refuse("model.trainable", "\"head\"", allowed, "choose one of them, or a classification");
        }
        match checkpoint {
            Some(_) if file.training.objective != Objective::CausalLm => {
                let given = "a checkpoint of a language model";
                let fix = "name a checkpoint for this objective in the plan";
                refuse("model.initial", given, "one that learns the plan's training.objective", fix)
            }
            Some(checkpoint) => {
                checkpoint.apply(file, trained);
                Ok(None)
            }
            None if file.model.initial == Initial::Random => {
                let fix = "name a checkpoint";
                refuse("model.initial", "random weights", "a checkpoint, of which a part is trained", fix)
            }
            None => {
                trained.apply(file);
                Ok(None)
            }
        }
    }
}

/// Returns the number of tokens, as far as it is known: that of a public tokenizer which is not GPT-2's counts as that of bytes.
pub(super) fn vocabulary(file: &PlanFile) -> u32 {
    Checkpoint::of(file).map_or_else(|| file.tokenizer.least_vocabulary(), |_| VOCABULARY)
}
