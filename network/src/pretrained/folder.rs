//! Tells what a folder holds by the names of its files and tensors.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::Metadata;
use serde_json::{Value, json};

use super::{CONFIG_FILE_NAME, INDEX_FILE_NAME, MODEL_FILE_NAME};

/// Reads the folder's `config.json` from its bytes.
///
/// `transformers` 5 writes for every T5 that its head is the token table. When it reads a T5, it takes the file's own
/// head if there is one. The returned configuration states which of the two applies.
pub(super) fn config_of(folder: &Path, bytes: &[u8]) -> Result<Value, String> {
    let mut config: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("{CONFIG_FILE_NAME}: {error}"))?;
    let kind = config["model_type"].as_str();
    if !matches!(kind, Some("t5" | "mt5")) || !config.is_object() {
        return Ok(config);
    }
    let is_scaled = config.get("scale_decoder_outputs").is_none_or(|scaled| *scaled == true);
    let may_be_own = kind == Some("mt5") || !is_scaled;
    match (config["tie_word_embeddings"] == false, has_tensor(folder, "lm_head.weight")) {
        (false, None | Some(true)) if may_be_own => config["tie_word_embeddings"] = json!(false),
        (true, Some(false)) => {
            config["tie_word_embeddings"] = json!(true);
            let scaled = config["scale_decoder_outputs"] == true;
            config["scale_decoder_outputs"] = json!(scaled);
        }
        _ => {}
    }
    Ok(config)
}

/// Returns whether the folder's tensors include one of this name; `None` if they cannot be read.
fn has_tensor(folder: &Path, name: &str) -> Option<bool> {
    if let Ok(mut file) = durable::open(&folder.join(MODEL_FILE_NAME)) {
        let start = start_of(&mut file).ok()?;
        let metadata: Metadata = serde_json::from_slice(start.get(8..)?).ok()?;
        return Some(metadata.info(name).is_some());
    }
    let index: Value = serde_json::from_slice(&durable::read(&folder.join(INDEX_FILE_NAME)).ok()?).ok()?;
    Some(index["weight_map"].as_object()?.contains_key(name))
}

/// Reads the length of a file's header and the header, which is at most as long as the format allows.
pub(super) fn start_of(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start)?;
    let header = start.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)).min(100_000_000);
    file.by_ref().take(header).read_to_end(&mut start)?;
    Ok(start)
}

/// Describes a folder with another kind of model, and what to give instead.
pub(super) fn what_it_is(folder: &Path) -> Option<String> {
    const ADAPTERS: &str = "adapter_config.json";
    if folder.join(ADAPTERS).exists() {
        return Some(format!(
            "it holds adapters alone ({ADAPTERS}), which change another model; merge them into it with peft: \
             AutoPeftModel.from_pretrained(\"DIR\").merge_and_unload().save_pretrained(\"OUT\"), with the class of the model's task"
        ));
    }
    let names =
        std::fs::read_dir(folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let gguf = names.filter(|name| name.ends_with(".gguf")).min()?;
    Some(format!(
        "it holds {gguf}, a model for llama.cpp, which is not read here; give the checkpoint that it was made from, with \
         {CONFIG_FILE_NAME} and {MODEL_FILE_NAME}"
    ))
}

/// Describes what to do about a folder without `model.safetensors`.
pub(super) fn without_tensors(folder: &Path) -> String {
    let pickled = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
    match pickled.into_iter().find(|name| folder.join(name).exists()) {
        Some(name) => format!(
            "it has {name}, which is not read here, because reading such a file can run code; write {MODEL_FILE_NAME} with \
             transformers: AutoModel.from_pretrained(\"DIR\").save_pretrained(\"DIR\"), with the class of the model's task"
        ),
        None => what_it_is(folder)
            .unwrap_or_else(|| format!("it has no {MODEL_FILE_NAME}; fetch all files of the checkpoint")),
    }
}
