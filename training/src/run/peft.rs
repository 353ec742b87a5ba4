//! Low-rank adapters in the format of Hugging Face's PEFT, to be loaded beside the checkpoint that a run started from.
//!
//! # References
//! <https://huggingface.co/docs/peft/developer_guides/checkpoint>

use std::path::Path;

use plan::{Initial, Objective, Tokenizer, Trainable};
use serde_json::{Value, json};

use crate::RunError;
use crate::train::Trainer;
use network::nn::{Kernels, Stored};
use network::tensor_file::{Formatted, NumberFormat, PrivacyMark, write_model};

/// Returns `adapter_config.json`; `None` if the run trains no adapters, if its table of tokens
/// grew, since the model is then more than a checkpoint with adapters, or if its head is of no class
/// of `transformers`.
pub(crate) fn config<B: Kernels>(plan: &plan::Plan, trainer: &Trainer<B>) -> Option<Value> {
    let (Trainable::Lora(lora), Initial::Checkpoint(base)) = (&plan.model().trainable, &plan.model().initial)
    else {
        return None;
    };
    if matches!(plan.tokenizer(), Tokenizer::Extend(_)) || plan.model().pooling.is_some() {
        return None;
    }
    let adapted = trainer.adapted();
    let input_first = adapted.iter().any(|(_, stored)| *stored == Stored::InOut);
    let modules: Vec<&str> = adapted.iter().map(|(module, _)| *module).collect();
    let mut heads: Vec<&str> =
        trainer.trained_whole().into_iter().filter_map(|name| name.split('.').next()).collect();
    heads.dedup();
    let task = match plan.training().objective {
        Objective::CausalLm | Objective::Chat => Some("CAUSAL_LM"),
        Objective::SpanCorruption | Objective::PrefixLm | Objective::TextToText => Some("SEQ_2_SEQ_LM"),
        Objective::SequenceClassification | Objective::MultiLabelClassification => Some("SEQ_CLS"),
        Objective::TokenClassification => Some("TOKEN_CLS"),
        Objective::MaskedLm | Objective::MaskedLmNextSentence => None,
    };
    Some(json!({
        "peft_type": "LORA",
        "task_type": task,
        "base_model_name_or_path": base,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": modules,
        "modules_to_save": (!heads.is_empty()).then_some(heads),
        "fan_in_fan_out": input_first,
        "init_lora_weights": true,
        "inference_mode": true,
    }))
}

/// Writes `adapter_model.safetensors`: the matrices A and B of each adapter, and a head that is trained with them.
pub fn write<B: Kernels>(trainer: &Trainer<B>, path: &Path, mark: &PrivacyMark) -> Result<(), RunError> {
    let tensors = trainer.trained();
    let names: Vec<String> =
        tensors.iter().map(|tensor| format!("base_model.model.{}", tensor.name)).collect();
    let views = tensors.iter().map(|tensor| Formatted { tensor, format: NumberFormat::F32 });
    Ok(write_model(path, names.iter().map(String::as_str).zip(views).collect(), mark)?)
}
