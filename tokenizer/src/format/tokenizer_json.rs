//! `tokenizer.json`, the format of Hugging Face tokenizers.

use serde_json::{Value, json};

use super::added_tokens::{added_tokens_json, read_added_tokens};
use super::decoder_json::{read_decoder, write_decoder};
use super::model_json::{read_model, write_model};
use super::sentencepiece_json::Stages;
use super::stages_json::{read_normalizer, read_pre_tokenizer, write_normalizer, write_pre_tokenizer};
use crate::FormatError;
use crate::encode::{Model, Unigram};
use crate::normalize::Normalizer;
use crate::postprocess::PostProcessor;
use crate::pretokenize::{METASPACE, PreTokenizer};
use crate::tokenizer::ids_by_place;
use crate::tokenizer::{Marks, Role, Stage, StageMark, Tokenizer, UNK, Words};

impl Tokenizer {
    /// The tokenizer as a `tokenizer.json`, which HF tokenizers loads and encodes the same with.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Stages { normalizer, pre_tokenizer, decoder } = self.stages_json();
        let mut model = write_model(&self.model);
        if let Some(mark) = self.mark() {
            mark.write(&mut model);
        }
        let file = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added_tokens_json(self),
            "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": self.post_processor.json(),
            "decoder": decoder,
            "model": model,
        });
        format!("{file:#}\n")
    }

    /// The `tokenizer_config.json` that lets `transformers` load the tokenizer beside it.
    #[must_use]
    pub fn to_config_json(&self) -> String {
        let name = |wanted: &'static str| self.special.id(wanted).map(|_| wanted);
        let token = |id: Option<u32>| id.and_then(|id| self.token(id));
        let mut file = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": token(self.pad_id()),
            "eos_token": token(self.eos_id()),
            "unk_token": token(self.unk_id().or(self.roles.of(Role::Unk))).or(name(UNK)),
            "clean_up_tokenization_spaces": false,
        });
        // Tokens of BERT's and T5's objectives, where the vocabulary has them.
        for (role, usual) in
            [(Role::Cls, "[CLS]"), (Role::Sep, "[SEP]"), (Role::Mask, "[MASK]"), (Role::Bos, "")]
        {
            if let Some(token) = token(self.roles.of(role)).or(name(usual)) {
                file[format!("{}_token", role.name())] = json!(token);
            }
        }
        let sentinels: Vec<&str> = (0..)
            .map(|at| format!("<extra_id_{at}>"))
            .map_while(|sentinel| self.special.tokens.iter().find(|token| token.1 == sentinel))
            .map(|token| token.1.as_str())
            .collect();
        if !sentinels.is_empty() {
            file["additional_special_tokens"] = json!(sentinels);
        }
        format!("{file:#}\n")
    }

    /// Reads a `tokenizer.json`.
    ///
    /// ```
    /// use tokenizer::Tokenizer;
    /// let error = Tokenizer::from_json("{").err().map(|e| e.to_string());
    /// assert!(error.is_some_and(|e| e.starts_with("tokenizer.json, line 1, column 1")));
    /// ```
    ///
    /// # Errors
    /// [`FormatError`] for a file that is damaged, or that asks for a pipeline which is not implemented.
    pub fn from_json(text: &str) -> Result<Self, FormatError> {
        let file: Value = serde_json::from_str(text).map_err(|error| FormatError::Json {
            line: error.line(),
            column: error.column(),
            reason: "not JSON, or cut off; write the file again".to_owned(),
        })?;
        let stage = |part: &'static str| Some(&file[part]).filter(|p| !p.is_null());
        let normalizer = stage("normalizer").map(read_normalizer).transpose()?;
        let mut pre_tokenizer = stage("pre_tokenizer").map(read_pre_tokenizer).transpose()?;
        let model = read_model(&file["model"], pre_tokenizer.as_ref())?;
        if let Some(pre_tokenizer) = pre_tokenizer.as_mut().filter(|_| !model.spells_bytes()) {
            pre_tokenizer.spell();
        }
        let post_processor = PostProcessor::read(&file["post_processor"])
            .map_err(|allowed| unsupported("post_processor", &file["post_processor"], allowed))?;
        let mut tokenizer = Self::of_model(model);
        tokenizer.normalizer = normalizer.map_or(Stage::Identity, Stage::Normalizer);
        let is_normalized = !matches!(tokenizer.normalizer, Stage::Identity);
        let by_place = pre_tokenizer.as_ref().is_some_and(|stages| stages.marks_by_place(is_normalized));
        tokenizer.by_place = by_place.then_some(ids_by_place);
        tokenizer.pre_tokenizer = pre_tokenizer;
        tokenizer.decoder = read_decoder(&file["decoder"])?;
        tokenizer.special = read_added_tokens(&file["added_tokens"], &tokenizer)?;
        tokenizer.words = match (marks(&file, &tokenizer), &tokenizer.model) {
            (Some(marks), Model::Bpe(model))
                if model.cuts_before_marks() && tokenizer.special.normalized().is_none() =>
            {
                Words::AtRuns(marks)
            }
            _ => Words::of(tokenizer.pre_tokenizer.as_ref()),
        };
        let size = tokenizer.vocab_size();
        if let Some(id) = post_processor.ids().find(|id| *id as usize >= size) {
            let reason = format!("post_processor adds the token {id}; allowed: ids below {size}");
            return Err(FormatError::Inconsistent { reason });
        }
        tokenizer.post_processor = post_processor;
        tokenizer.mark = StageMark::read(&file["model"]).map(Box::new);
        Ok(tokenizer)
    }

    fn stages_json(&self) -> Stages {
        let normalizer = match (&self.normalizer, &self.model) {
            (Stage::SentencePiece(normalizer), Model::SentencePiece(model)) => {
                return Stages::of(model.model(), normalizer.map());
            }
            (Stage::SentencePiece(normalizer), _) => {
                write_normalizer(&Normalizer::Precompiled(normalizer.map().clone()))
            }
            (Stage::Normalizer(normalizer), _) => write_normalizer(normalizer),
            (Stage::Identity, _) => Value::Null,
        };
        Stages {
            normalizer,
            pre_tokenizer: self.pre_tokenizer.as_ref().map_or(Value::Null, write_pre_tokenizer),
            decoder: write_decoder(&self.decoder),
        }
    }
}

/// Whether the stages before the model make marks of blanks and do nothing else.
fn marks(file: &Value, tokenizer: &Tokenizer) -> Option<Marks> {
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": METASPACE});
    let prepend = json!({"type": "Prepend", "prepend": METASPACE});
    let normalizers = match &file["normalizer"] {
        Value::Null => &[],
        sequence if sequence["type"] == "Sequence" => sequence["normalizers"].as_array()?.as_slice(),
        one => std::slice::from_ref(one),
    };
    if let (Some(PreTokenizer::Metaspace(space)), []) = (&tokenizer.pre_tokenizer, normalizers) {
        // Where the text is cut before each mark, marks are not merged.
        return (space.replacement == METASPACE && !space.split).then_some(Marks::Metaspace(*space));
    }
    // Where no blank is left, a split at blanks leaves the text whole.
    let pre_tokenizer = &file["pre_tokenizer"];
    let splits_at_blanks = pre_tokenizer["type"] == "Split"
        && pre_tokenizer["pattern"] == json!({"String": " "})
        && pre_tokenizer["invert"] != true;
    match normalizers {
        _ if !(pre_tokenizer.is_null() || splits_at_blanks) => None,
        [one] if *one == replace => Some(Marks::Never),
        [first, second] if *first == prepend && *second == replace => Some(Marks::Always),
        _ => None,
    }
}

pub(super) fn unsupported(part: &'static str, found: &Value, allowed: &'static str) -> FormatError {
    FormatError::Unsupported { part, found: shortened(&found.to_string()), allowed }
}

/// What fits a message.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(super) fn read_unigram(model: &Value) -> Result<Unigram, FormatError> {
    let inconsistent = |reason: &str| FormatError::Inconsistent { reason: reason.to_owned() };
    let pieces: Vec<(String, f64)> = serde_json::from_value(model["vocab"].clone())
        .map_err(|_| inconsistent("model.vocab must be a list of [piece, score]"))?;
    if pieces.iter().any(|p| !p.1.is_finite()) {
        return Err(inconsistent("model.vocab holds a score that is not a finite number"));
    }
    let mut names = std::collections::HashSet::new();
    if let Some(twice) = pieces.iter().find(|p| !names.insert(p.0.as_str())) {
        return Err(FormatError::Inconsistent { reason: format!("model.vocab holds {:?} twice", twice.0) });
    }
    let unknown = model["unk_id"].as_u64().and_then(|id| u32::try_from(id).ok());
    let byte_fallback = model["byte_fallback"].as_bool().unwrap_or(false);
    Unigram::new(pieces, unknown, byte_fallback).ok_or_else(|| {
        inconsistent("model.unk_id must name a piece, and byte_fallback needs all of <0x00> to <0xFF>")
    })
}
