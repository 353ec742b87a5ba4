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

/// Returns the strings that end a text.
pub(crate) fn stops(config: &Value) -> Vec<String> {
    let strings = &config["stop_strings"];
    let listed = strings.as_array().map_or(std::slice::from_ref(strings), Vec::as_slice);
    listed
        .iter()
        .filter_map(|stop| stop.as_str().filter(|stop| !stop.is_empty()))
        .map(str::to_owned)
        .collect()
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

/// Further settings that change what `transformers` draws, each with its value that changes nothing.
const NOT_APPLIED: [(&str, f64); 21] = [
    ("bad_words_ids", 0.0),
    ("begin_suppress_tokens", 0.0),
    ("diversity_penalty", 0.0),
    ("dola_layers", 0.0),
    ("encoder_no_repeat_ngram_size", 0.0),
    ("encoder_repetition_penalty", 1.0),
    ("epsilon_cutoff", 0.0),
    ("eta_cutoff", 0.0),
    ("exponential_decay_length_penalty", 0.0),
    ("force_words_ids", 0.0),
    ("guidance_scale", 1.0),
    ("min_length", 0.0),
    ("min_new_tokens", 0.0),
    ("num_beams", 1.0),
    ("penalty_alpha", 0.0),
    ("sequence_bias", 0.0),
    ("suppress_tokens", 0.0),
    ("token_healing", 0.0),
    ("top_h", 0.0),
    ("typical_p", 1.0),
    ("watermarking_config", 0.0),
];

/// How tokens are drawn by the settings of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct UsualDrawing {
    /// The way in which a token is drawn.
    pub sampling: TokenSampling,
    /// As [`GenerationOptions::repetition_penalty`](super::GenerationOptions::repetition_penalty).
    pub repetition_penalty: f64,
    /// As [`GenerationOptions::no_repeat_ngram`](super::GenerationOptions::no_repeat_ngram).
    pub no_repeat_ngram: usize,
    /// Settings that are not applied, though they would change the text in `transformers`.
    pub not_applied: Vec<&'static str>,
}

impl UsualDrawing {
    /// Returns the settings of the checkpoint that a finished run started from, or `None` if these do not say that tokens
    /// are drawn.
    ///
    /// # Errors
    /// [`RunError`] for a file that cannot be read.
    pub fn of_run(folder: &Path) -> Result<Option<Self>, RunError> {
        let config = read(folder)?;
        if config["do_sample"] != true {
            return Ok(None);
        }
        let number = |name: &str| config[name].as_f64();
        let count = |name: &str| config[name].as_u64().and_then(|count| usize::try_from(count).ok());
        // transformers draws among 50 tokens unless told otherwise.
        let top_k = Some(count("top_k").unwrap_or(50)).filter(|k| *k > 0);
        let share = |name: &str| number(name).filter(|share| *share > 0.0 && *share < 1.0);
        let above_0 = |name: &str| number(name).filter(|value| *value > 0.0).unwrap_or(1.0);
        let is_applied = |name: &str, inert: f64| match &config[name] {
            Value::Null | Value::Bool(false) => true,
            Value::Array(list) => list.is_empty(),
            value => value.as_f64() == Some(inert),
        };
        let not_applied = NOT_APPLIED.into_iter().filter(|(name, inert)| !is_applied(name, *inert));
        Ok(Some(Self {
            sampling: TokenSampling {
                temperature: above_0("temperature"),
                top_k,
                top_p: share("top_p"),
                min_p: share("min_p"),
            },
            repetition_penalty: above_0("repetition_penalty"),
            no_repeat_ngram: count("no_repeat_ngram_size").unwrap_or(0),
            not_applied: not_applied.map(|(name, _)| name).collect(),
        }))
    }
}

/// Adds settings of the run's checkpoint to those that the run writes: how tokens are drawn, and further tokens that
/// end a text.
pub(crate) fn keep(own: &mut Value, checkpoint: &Value, vocab_size: usize) {
    for (name, value) in checkpoint.as_object().into_iter().flatten() {
        let is_kept = match name.as_str() {
            // This ends texts of the greatest length and does not depend on how the run's texts begin and end.
            "forced_eos_token_id" => value.as_u64().is_some_and(|id| id < vocab_size as u64),
            "transformers_version" => false,
            _ => !name.ends_with("_token_id") && !name.starts_with('_'),
        };
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
            "forced_eos_token_id": 9, "do_sample": true, "temperature": 0.6, "top_p": 0.9, "max_length": 4096
        });
        keep(&mut own, &checkpoint, 50);
        let wanted = json!({
            "eos_token_id": [9, 8, 10], "pad_token_id": 0, "bos_token_id": 1, "forced_eos_token_id": 9, "do_sample": true, "temperature": 0.6, "top_p": 0.9,
            "max_length": 4096
        });
        assert_eq!(own, wanted);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(UsualDrawing::of_run(folder.path()).unwrap(), None);
        let write = |config: &Value| {
            std::fs::write(folder.path().join(files::GENERATION_CONFIG), config.to_string()).unwrap();
            UsualDrawing::of_run(folder.path()).unwrap()
        };
        let mut drawn = UsualDrawing {
            sampling: TokenSampling { temperature: 0.6, top_k: Some(50), top_p: Some(0.9), min_p: None },
            repetition_penalty: 1.0,
            no_repeat_ngram: 0,
            not_applied: Vec::new(),
        };
        assert_eq!(write(&own).as_ref(), Some(&drawn));
        // Qwen 2.5's file has a penalty. What changes nothing is no setting that is left out.
        own["repetition_penalty"] = json!(1.1);
        own["top_k"] = json!(0);
        own["min_p"] = json!(0.05);
        own["no_repeat_ngram_size"] = json!(3);
        own["typical_p"] = json!(0.9);
        own["num_beams"] = json!(1);
        own["suppress_tokens"] = json!([]);
        own["token_healing"] = json!(true);
        own["watermarking_config"] = json!(false);
        drawn = UsualDrawing {
            sampling: TokenSampling { top_k: None, min_p: Some(0.05), ..drawn.sampling },
            repetition_penalty: 1.1,
            no_repeat_ngram: 3,
            not_applied: vec!["token_healing", "typical_p"],
        };
        assert_eq!(write(&own), Some(drawn));
        own["do_sample"] = json!(false);
        assert_eq!(write(&own), None);
        let mut alone = json!({ "eos_token_id": 3 });
        keep(&mut alone, &json!({ "forced_eos_token_id": 50 }), 50);
        assert_eq!(alone.get("forced_eos_token_id"), None);
        assert_eq!(stops(&json!({ "stop_strings": ["\n\n", ""] })), ["\n\n"]);
        assert_eq!(stops(&json!({ "stop_strings": "END" })), ["END"]);
        assert_eq!((ends(&alone), &alone["eos_token_id"]), (vec![3], &json!(3)));
    }
}
