//! The model and the tokenizer that training starts from.

use std::path::Path;

use network::pretrained;
use plan::{Family, Lora, Objective, Trainable, USUAL_CONTEXT};
use serde_json::{Value, json};
use training::RunError;
use training::chat::ChatTemplate;
use training::store::files;

use super::{Choices, Task, beside};

/// Number of units below which too few words would pass the threshold of a release.
pub(super) const LEAST_UNITS_FOR_WORDS: u64 = 2000;
/// The same beside a public prior, which spells the words that are not released.
pub(super) const LEAST_UNITS_WITH_PRIOR: u64 = 500;
/// Number of units from which a vocabulary of 8000 tokens pays off.
const MANY_UNITS: u64 = 50_000;
/// Most tokens of a conversation, unless the user says otherwise.
const CONTEXT_OF_CHAT: u64 = 512;

/// The declaration about the checkpoint in a plan that starts from one.
pub(crate) const PUBLIC: &str = "public_text";

/// The model that training starts from.
pub(super) struct Start {
    pub tokenizer: Value,
    pub model: Value,
    pub objective: Value,
    pub learning_rate: f64,
    pub dropout: f64,
}

impl Start {
    pub fn of(choices: &Choices, out: &Path) -> Result<Self, RunError> {
        if !choices.prior.is_empty() && (choices.checkpoint.is_some() || choices.task != Task::LanguageModel)
        {
            return Err(RunError::Refused(
                "--prior: only a language model without a checkpoint learns a vocabulary from it; fix: remove it".to_owned(),
            ));
        }
        if !choices.prior.is_empty() && choices.units < LEAST_UNITS_WITH_PRIOR {
            return Err(RunError::Refused(format!(
                "--prior: of fewer than {LEAST_UNITS_WITH_PRIOR} units, too few words can be released for a vocabulary; fix: remove it, and the \
                 model reads bytes"
            )));
        }
        match (&choices.checkpoint, choices.task) {
            (Some(folder), _) => Self::checkpoint(choices, folder, out),
            (None, Task::LanguageModel) => Self::random(choices, out),
            (None, Task::Synthesis) => {
                Ok(Self::from_words_by_label("bpe", decoder(64, 2, 2, 64), "text_to_text"))
            }
            (None, Task::Classification) if choices.units >= LEAST_UNITS_FOR_WORDS => {
                Ok(Self::from_words_by_label("wordpiece", encoder(64, 1, 4, 64), "sequence_classification"))
            }
            (None, task) => {
                let or_more = match task {
                    Task::Classification => format!(
                        "; without one, {LEAST_UNITS_FOR_WORDS} units or more are needed, to start from words counted by label"
                    ),
                    _ => String::new(),
                };
                Err(RunError::Refused(format!(
                    "--checkpoint: {} needs a model that knows the language, or it learns next to nothing from private text: give the \
                     folder of a checkpoint of one of these families: {}{or_more}",
                    task.name(),
                    families(task).join(", ")
                )))
            }
        }
    }

    fn checkpoint(choices: &Choices, folder: &Path, out: &Path) -> Result<Self, RunError> {
        let task = choices.task;
        let tokenizer = folder.join(files::TOKENIZER);
        if !tokenizer.is_file() {
            return Err(RunError::Refused(format!(
                "--checkpoint: {} has no {}; save the checkpoint's tokenizer there (AutoTokenizer.from_pretrained(…).save_pretrained(…))",
                folder.display(),
                files::TOKENIZER
            )));
        }
        let described = pretrained::describe(folder)?;
        let family = described.family;
        let Some(objective) = objective(task, family) else {
            return Err(RunError::Refused(format!(
                "--checkpoint: {} is a {}, which is not for {}; give the folder of a checkpoint of one of these families: {}",
                folder.display(),
                family.name(),
                // Labels alone stand for it.
                if task.classifies() { "--labels".to_owned() } else { task.name() },
                families(task).join(", ")
            )));
        };
        if task == Task::Chat {
            ChatTemplate::beside(&tokenizer, None)
                .map_err(|error| RunError::Refused(format!("--checkpoint: {error}")))?;
        }
        let mut model = serde_json::to_value(&described).unwrap_or_default();
        model["initial"] = json!({ "checkpoint": beside(out, folder)? });
        model["checkpoint_made_from"] = json!(PUBLIC);
        let most = if task == Task::Chat { CONTEXT_OF_CHAT } else { USUAL_CONTEXT.into() };
        model["context"] = json!(u64::from(described.context).min(most));
        // A classifier says itself what it trains.
        let writes = !task.classifies() && task != Task::Tags;
        if writes {
            model["trainable"] = json!(Trainable::Lora(Lora::usual(family)));
        }
        Ok(Self {
            tokenizer: json!({ "public": { "path": beside(out, &tokenizer)?, "made_from": PUBLIC } }),
            model,
            objective: json!(objective),
            learning_rate: plan::USUAL_RATE,
            dropout: if writes { pretrained::dropout(folder)? } else { 0.0 },
        })
    }

    /// Proposes a small model, and a vocabulary that this number of units can pay for.
    fn random(choices: &Choices, out: &Path) -> Result<Self, RunError> {
        let units = choices.units;
        let (vocab_size, width, layers) = if units < MANY_UNITS { (2048, 128, 2) } else { (8000, 256, 4) };
        let least = if choices.prior.is_empty() { LEAST_UNITS_FOR_WORDS } else { LEAST_UNITS_WITH_PRIOR };
        let has_words = units >= least;
        let mut tokenizer = match has_words {
            true => json!({
                "train": { "model": "unigram", "vocab_size": vocab_size, "release": "pooled", "words": "pairs" }
            }),
            false => json!("bytes"),
        };
        if has_words && !choices.prior.is_empty() {
            let files = choices.prior.iter().map(|path| beside(out, path)).collect::<Result<Vec<_>, _>>()?;
            tokenizer["train"]["prior"] = json!(files);
        }
        Ok(Self {
            tokenizer,
            model: decoder(width, layers, 4, if has_words { 64 } else { 256 }),
            objective: json!("causal_lm"),
            learning_rate: 1e-3,
            dropout: 0.0,
        })
    }

    /// Proposes a model that learns most from words counted by label, as those of `EXAMPLES.md` and `UTILITY.md` do.
    fn from_words_by_label(vocabulary: &str, model: Value, objective: &str) -> Self {
        Self {
            tokenizer: json!({
                "train": { "model": vocabulary, "vocab_size": 2000, "release": "pooled", "words": "pairs_by_label" }
            }),
            model,
            objective: json!(objective),
            learning_rate: 1e-3,
            dropout: 0.0,
        }
    }
}

fn decoder(width: u64, layers: u64, heads: u64, context: u64) -> Value {
    model("gpt2", width, layers, heads, context)
}

fn encoder(width: u64, layers: u64, heads: u64, context: u64) -> Value {
    model("bert", width, layers, heads, context)
}

fn model(family: &str, width: u64, layers: u64, heads: u64, context: u64) -> Value {
    json!({
        "family": family, "d_model": width, "layers": layers, "heads": heads, "d_ff": 4 * width, "context": context
    })
}

/// Returns the objective by which a family learns a task; `None` if it does not, or not by a recipe that was measured.
fn objective(task: Task, family: Family) -> Option<Objective> {
    let wanted = match task {
        Task::LanguageModel => return family.objectives().first().copied(),
        Task::Classification if family.can_pool() => Objective::SequenceClassification,
        Task::MultiLabel if family.can_pool() => Objective::MultiLabelClassification,
        Task::Classification | Task::MultiLabel => return None,
        Task::Tags => Objective::TokenClassification,
        Task::TextToText | Task::Synthesis => Objective::TextToText,
        Task::Chat => Objective::Chat,
    };
    family.objectives().contains(&wanted).then_some(wanted)
}

/// Returns the families of checkpoints that learn a task.
fn families(task: Task) -> Vec<&'static str> {
    let learns = |family: &Family| family.is_in_transformers() && objective(task, *family).is_some();
    Family::all().filter(learns).map(Family::name).collect()
}
