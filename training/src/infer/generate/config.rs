//! Reads and writes `generation_config.json`: the tokens that end a text, and the usual way to draw tokens.

use std::path::Path;

use serde_json::Value;

use super::TokenSampling;
use crate::store::files;
use crate::{RunError, vocabulary};

/// Reads the file of a run; returns `Value::Null` if the model generates no text.
pub(crate) fn read(folder: &Path) -> Result<Value, RunError> {
    Ok(durable::read_json(&folder.join(files::GENERATION_CONFIG))?.unwrap_or_default())
}

/// Returns the tokens that end a text.
pub(crate) fn ends(config: &Value) -> Vec<u32> {
    let ids = &config["eos_token_id"];
    let listed = ids.as_array().map_or(std::slice::from_ref(ids), Vec::as_slice);
    listed.iter().filter_map(|id| u32::try_from(id.as_u64()?).ok()).collect()
}

/// The tokens around a text of a finished run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextBounds {
    /// The tokens that the run's tokenizer puts before a text.
    pub first: Vec<u32>,
    /// The tokens that end a text.
    pub ends: Vec<u32>,
}

impl TextBounds {
    /// Reads the tokens from a run folder.
    ///
    /// # Errors
    /// [`RunError`] for files that cannot be read.
    pub fn of_run(folder: &Path) -> Result<Self, RunError> {
        let first = vocabulary::read(folder)?.first_ids();
        Ok(Self { first, ends: ends(&read(folder)?) })
    }
}

/// Returns how tokens are drawn by the settings of the checkpoint that a finished run started from, or `None` if these
/// do not say that tokens are drawn.
///
/// # Errors
/// [`RunError`] for a file that cannot be read.
pub fn sampling_of_run(folder: &Path) -> Result<Option<TokenSampling>, RunError> {
    let config = read(folder)?;
    if config["do_sample"] != true {
        return Ok(None);
    }
    let temperature = config["temperature"].as_f64().filter(|temperature| *temperature > 0.0).unwrap_or(1.0);
    let top_k = config["top_k"].as_u64().and_then(|k| usize::try_from(k).ok()).filter(|k| *k > 0);
    let top_p = config["top_p"].as_f64().filter(|share| *share > 0.0 && *share < 1.0);
    Ok(Some(TokenSampling { temperature, top_k, top_p }))
}

/// Adds settings of the run's checkpoint to those that the run writes: how tokens are drawn, and further tokens that
/// end a text.
pub(crate) fn keep(own: &mut Value, checkpoint: &Value, vocab_size: usize) {
    for (name, value) in checkpoint.as_object().into_iter().flatten() {
        let is_kept =
            !name.ends_with("_token_id") && !name.starts_with('_') && name != "transformers_version";
        if is_kept && own.get(name).is_none() {
            own[name] = value.clone();
        }
    }
    let mut all = ends(own);
    let further = ends(checkpoint).into_iter().filter(|id| (*id as usize) < vocab_size);
    all.extend(further.collect::<Vec<_>>());
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|id| seen.insert(*id));
    own["eos_token_id"] = match all[..] {
        [one] => one.into(),
        _ => all.into(),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The settings are those of Llama 3's file.
    #[test]
    fn settings_of_a_checkpoint_are_kept_beside_the_run_s_own_tokens() {
        let mut own = json!({ "eos_token_id": 9, "pad_token_id": 0, "bos_token_id": 1 });
        let checkpoint = json!({
            "_from_model_config": true, "transformers_version": "5", "bos_token_id": 7, "eos_token_id": [8, 9, 10, 99],
            "do_sample": true, "temperature": 0.6, "top_p": 0.9, "max_length": 4096
        });
        keep(&mut own, &checkpoint, 50);
        let wanted = json!({
            "eos_token_id": [9, 8, 10], "pad_token_id": 0, "bos_token_id": 1, "do_sample": true, "temperature": 0.6, "top_p": 0.9,
            "max_length": 4096
        });
        assert_eq!(own, wanted);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(sampling_of_run(folder.path()).unwrap(), None);
        let write = |config: &Value| {
            std::fs::write(folder.path().join(files::GENERATION_CONFIG), config.to_string()).unwrap();
            sampling_of_run(folder.path()).unwrap()
        };
        let drawn = TokenSampling { temperature: 0.6, top_k: None, top_p: Some(0.9) };
        assert_eq!(write(&own), Some(drawn));
        own["do_sample"] = json!(false);
        assert_eq!(write(&own), None);
        let mut alone = json!({ "eos_token_id": 3 });
        keep(&mut alone, &Value::Null, 50);
        assert_eq!((ends(&alone), &alone["eos_token_id"]), (vec![3], &json!(3)));
    }
}
