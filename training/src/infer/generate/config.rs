//! Reads and writes `generation_config.json`: the tokens that end a text, and the usual way to draw tokens.

use std::path::Path;

use network::pretrained::PretrainedCheckpoint;
use serde_json::{Value, json};
use tokenizer::{Role, Tokenizer};

use super::{Beams, DecodingStrategy, EarlyStopping, TokenSampling};
use crate::objective::{Generation, Objective, Task, begin_of_text, end_of_text};
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
    listed.iter().filter_map(id).collect()
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

/// Settings that are not applied, though they change what `transformers` generates, each with its value that changes nothing.
const NOT_APPLIED: [(&str, f64); 21] = [
    ("bad_words_ids", 0.0),
    ("begin_suppress_tokens", 0.0),
    ("constraints", 0.0),
    ("diversity_penalty", 0.0),
    ("dola_layers", 0.0),
    ("encoder_no_repeat_ngram_size", 0.0),
    ("encoder_repetition_penalty", 1.0),
    ("exponential_decay_length_penalty", 0.0),
    ("force_words_ids", 0.0),
    ("guidance_scale", 1.0),
    ("is_assistant", 0.0),
    ("max_time", 0.0),
    ("min_length", 0.0),
    ("num_beam_groups", 1.0),
    ("num_return_sequences", 1.0),
    ("penalty_alpha", 0.0),
    ("renormalize_logits", 0.0),
    ("sequence_bias", 0.0),
    ("suppress_tokens", 0.0),
    ("token_healing", 0.0),
    ("watermarking_config", 0.0),
];

/// Such settings of drawing alone.
const NOT_APPLIED_TO_DRAWING: [(&str, f64); 5] =
    [("epsilon_cutoff", 0.0), ("eta_cutoff", 0.0), ("num_beams", 1.0), ("top_h", 0.0), ("typical_p", 1.0)];

/// How a checkpoint's settings generate text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsualGeneration {
    /// The way in which tokens are chosen, if the settings state one.
    pub strategy: Option<DecodingStrategy>,
    /// As [`GenerationOptions::min_tokens`](super::GenerationOptions::min_tokens).
    pub min_tokens: usize,
    /// As [`GenerationOptions::repetition_penalty`](super::GenerationOptions::repetition_penalty).
    pub repetition_penalty: Option<f64>,
    /// As [`GenerationOptions::no_repeat_ngram`](super::GenerationOptions::no_repeat_ngram).
    pub no_repeat_ngram: usize,
    /// As [`GenerationOptions::last_token`](super::GenerationOptions::last_token).
    pub last_token: Option<u32>,
    /// Settings that are not applied, though they may change the text in `transformers`.
    pub not_applied: Vec<&'static str>,
}

impl UsualGeneration {
    /// Returns the settings of the checkpoint that a finished run started from. Those of how tokens are chosen are left out if
    /// `is_chosen`: something else says it.
    ///
    /// # Errors
    /// [`RunError`] for a file that cannot be read.
    pub fn of_run(folder: &Path, is_chosen: bool) -> Result<Self, RunError> {
        Ok(Self::of(&read(folder)?, is_chosen))
    }

    pub(super) fn of(config: &Value, is_chosen: bool) -> Self {
        let mut settings = Settings { config, not_applied: Vec::new() };
        let above_0 = |value: &Value| value.as_f64().filter(|value| *value > 0.0);
        let own = Self {
            strategy: if is_chosen { None } else { settings.strategy() },
            min_tokens: settings.read("min_new_tokens", count).unwrap_or_default(),
            repetition_penalty: settings.read("repetition_penalty", above_0),
            no_repeat_ngram: settings.read("no_repeat_ngram_size", count).unwrap_or_default(),
            last_token: settings.read("forced_eos_token_id", id),
            not_applied: Vec::new(),
        };
        settings.name(&NOT_APPLIED);
        settings.not_applied.sort_unstable();
        Self { not_applied: settings.not_applied, ..own }
    }
}

/// Settings as they are read.
struct Settings<'a> {
    config: &'a Value,
    not_applied: Vec<&'static str>,
}

impl Settings<'_> {
    /// Reads a setting. What is no value of it here is not applied.
    fn read<T>(&mut self, name: &'static str, value: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let given = &self.config[name];
        let read = value(given);
        if read.is_none() && !given.is_null() {
            self.not_applied.push(name);
        }
        read
    }

    /// Names settings that are not applied.
    fn name(&mut self, settings: &[(&'static str, f64)]) {
        let is_inert = |(name, inert): &&(&str, f64)| match &self.config[*name] {
            Value::Null => true,
            Value::Bool(value) => f64::from(*value) == *inert,
            Value::Array(list) => list.is_empty(),
            value => value.as_f64() == Some(*inert),
        };
        let named = settings.iter().filter(|setting| !is_inert(setting)).map(|(name, _)| *name);
        self.not_applied.extend(named.collect::<Vec<_>>());
    }

    fn strategy(&mut self) -> Option<DecodingStrategy> {
        let draws = self.read("do_sample", Value::as_bool);
        if draws == Some(true) {
            self.name(&NOT_APPLIED_TO_DRAWING);
            let share = |value: &Value| value.as_f64().filter(|share| (0.0..=1.0).contains(share));
            let above_0 = |value: &Value| value.as_f64().filter(|value| *value > 0.0);
            return Some(DecodingStrategy::Sample(TokenSampling {
                temperature: self.read("temperature", above_0).unwrap_or(1.0),
                // transformers draws among 50 tokens unless told otherwise.
                top_k: Some(self.read("top_k", count).unwrap_or(50)).filter(|k| *k > 0),
                // At 0, the likeliest token remains.
                top_p: self.read("top_p", share).filter(|p| *p < 1.0).map(|p| p.max(f64::MIN_POSITIVE)),
                min_p: self.read("min_p", share).filter(|p| *p > 0.0),
            }));
        }
        match self.read("num_beams", count) {
            Some(width) if width > 1 => Some(DecodingStrategy::Search(Beams {
                width,
                length_penalty: self.read("length_penalty", Value::as_f64).unwrap_or(1.0),
                early_stopping: self.read("early_stopping", stopping).unwrap_or(EarlyStopping::Unlikely),
            })),
            _ => draws.map(|_| DecodingStrategy::Sample(TokenSampling::GREEDY)),
        }
    }
}

fn id(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|count| usize::try_from(count).ok())
}

fn stopping(value: &Value) -> Option<EarlyStopping> {
    match value {
        Value::Bool(true) => Some(EarlyStopping::Full),
        Value::Bool(false) => Some(EarlyStopping::Unlikely),
        value => (value == "never").then_some(EarlyStopping::Impossible),
    }
}

/// Settings that are applied.
const APPLIED: [&str; 16] = [
    "decoder_start_token_id",
    "do_sample",
    "early_stopping",
    "eos_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "min_new_tokens",
    "min_p",
    "no_repeat_ngram_size",
    "num_beams",
    "repetition_penalty",
    "stop_strings",
    "temperature",
    "top_k",
    "top_p",
];

/// Returns the settings of a checkpoint: its `generation_config.json` or, as older ones have none, those in its `config.json`.
///
/// # Errors
/// [`RunError`] for a file that is not JSON.
pub(crate) fn of_checkpoint(checkpoint: &PretrainedCheckpoint) -> Result<Value, RunError> {
    let own = checkpoint.generation_config()?;
    if !own.is_null() {
        return Ok(own);
    }
    let others = NOT_APPLIED.iter().chain(&NOT_APPLIED_TO_DRAWING).map(|(name, _)| *name);
    let stated = |name: &'static str| Some((name.to_owned(), checkpoint.config().get(name)?.clone()));
    Ok(APPLIED.into_iter().chain(others).filter_map(stated).collect())
}

/// Returns the settings that follow from how the texts of a run begin and end.
///
/// # Errors
/// [`RunError::Refused`] if the tokenizer has no end-of-text token.
pub(crate) fn of_texts(objective: &Objective, tokenizer: &Tokenizer) -> Result<Value, RunError> {
    let eos = end_of_text(tokenizer)?;
    let mut settings = json!({ "eos_token_id": eos, "pad_token_id": tokenizer.pad_id() });
    match objective.generation() {
        Generation::Continuation | Generation::Answer { .. } => {
            settings["bos_token_id"] = json!(begin_of_text(tokenizer)?);
        }
        Generation::FromDecoder { start, first } => {
            settings["decoder_start_token_id"] = json!(start);
            if let Some(first) = first {
                settings["bos_token_id"] = json!(first);
                settings["forced_bos_token_id"] = json!(first);
            }
        }
        Generation::Turn { end } => {
            if end != eos {
                settings["eos_token_id"] = json!([end, eos]);
            }
            if let Some(bos) = tokenizer.stated_id(Role::Bos) {
                settings["bos_token_id"] = json!(bos);
            }
        }
        Generation::None => {
            if let Some(start) = objective.task().and_then(Task::decoder_start) {
                settings["decoder_start_token_id"] = json!(start);
            }
        }
    }
    Ok(settings)
}

/// Returns the names of settings of the run's checkpoint that do not hold for its texts, which begin and end as `own` says.
pub(crate) fn replaced(own: &Value, checkpoint: &Value, vocab_size: usize) -> Vec<&'static str> {
    let is_own = |name: &str, given: &Value| given.is_null() || own[name] == *given;
    // Without this field, transformers starts a decoder from the token that begins a text.
    let start = match &checkpoint["decoder_start_token_id"] {
        Value::Null => &checkpoint["bos_token_id"],
        start => start,
    };
    let starts = own["decoder_start_token_id"].is_null() || is_own("decoder_start_token_id", start);
    let end = &checkpoint["eos_token_id"];
    let ends = end.as_array().map_or(std::slice::from_ref(end), Vec::as_slice);
    let ends = end.is_null() || ends.iter().all(|end| id(end).is_some());
    let last = &checkpoint["forced_eos_token_id"];
    let is_known = last.is_null() || id(last).is_some_and(|id| (id as usize) < vocab_size);
    let holds = [
        ("decoder_start_token_id", starts),
        ("eos_token_id", ends),
        ("forced_bos_token_id", is_own("forced_bos_token_id", &checkpoint["forced_bos_token_id"])),
        ("forced_eos_token_id", is_known),
    ];
    holds.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
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
        let usual = |config: &Value| UsualGeneration::of(config, false);
        let sampled = |how| Some(DecodingStrategy::Sample(how));
        assert_eq!(usual(&Value::Null), UsualGeneration::default());
        let plain = TokenSampling { temperature: 0.6, top_k: Some(50), top_p: Some(0.9), min_p: None };
        let mut want =
            UsualGeneration { strategy: sampled(plain), last_token: Some(9), ..UsualGeneration::default() };
        assert_eq!(usual(&own), want);
        // Qwen 2.5's file has a penalty. What changes nothing is no setting that is left out.
        let further = json!({
            "repetition_penalty": 1.1, "top_k": 0, "min_p": 0.05, "no_repeat_ngram_size": 3, "min_new_tokens": 2, "typical_p": 0.9,
            "num_beams": 1, "suppress_tokens": [], "token_healing": true, "watermarking_config": false, "temperature": "0.6"
        });
        own.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        want = UsualGeneration {
            strategy: sampled(TokenSampling { temperature: 1.0, top_k: None, min_p: Some(0.05), ..plain }),
            repetition_penalty: Some(1.1),
            no_repeat_ngram: 3,
            min_tokens: 2,
            not_applied: vec!["temperature", "token_healing", "typical_p"],
            ..want
        };
        assert_eq!(usual(&own), want);
        // Penalties hold however tokens are chosen.
        let chosen = UsualGeneration { strategy: None, not_applied: vec!["token_healing"], ..want };
        assert_eq!(UsualGeneration::of(&own, true), chosen);
        own["do_sample"] = json!(false);
        assert_eq!(
            usual(&own),
            UsualGeneration { strategy: sampled(TokenSampling::GREEDY), ..chosen.clone() }
        );
        let beams = json!({ "num_beams": 4, "length_penalty": 2.0, "early_stopping": true });
        own.as_object_mut().unwrap().extend(beams.as_object().unwrap().clone());
        let beams = Beams { width: 4, length_penalty: 2.0, early_stopping: EarlyStopping::Full };
        assert_eq!(
            usual(&own),
            UsualGeneration { strategy: Some(DecodingStrategy::Search(beams)), ..chosen }
        );
        let mut alone = json!({ "eos_token_id": 3 });
        keep(&mut alone, &json!({ "forced_eos_token_id": 50 }), 50);
        assert_eq!(alone.get("forced_eos_token_id"), None);
        assert_eq!(stops(&json!({ "stop_strings": ["\n\n", ""] })), ["\n\n"]);
        assert_eq!(stops(&json!({ "stop_strings": "END" })), ["END"]);
        assert_eq!((ends(&alone), &alone["eos_token_id"]), (vec![3], &json!(3)));
    }
}
