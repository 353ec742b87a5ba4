//! `tokenizer.json` as HF tokenizers writes it, for the pipeline this crate trains.

use serde_json::{Value, json};

use super::FormatError;
use crate::encode::Unigram;
use crate::tokenizer::{BLANK, EOS, PAD, SpecialTokens, Tokenizer, UNK};

impl Tokenizer {
    /// The tokenizer as a `tokenizer.json`, which HF tokenizers loads and encodes the same with.
    #[must_use]
    pub fn to_json(&self) -> String {
        let added: Vec<Value> = self.special.tokens.iter().map(|(id, name)| added_token(*id, name)).collect();
        // Each text part is prefixed by nothing, so that joining tokens gives the text back.
        let blanks =
            json!({"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "never", "split": true});
        let file = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added,
            "normalizer": null,
            "pre_tokenizer": blanks,
            "post_processor": null,
            "decoder": {"type": "Sequence", "decoders": [blanks, {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {
                "type": "Unigram",
                "unk_id": self.model.unknown_id(),
                "vocab": self.model.pieces(),
                "byte_fallback": self.model.falls_back_to_bytes(),
            },
        });
        format!("{file:#}\n")
    }

    /// The `tokenizer_config.json` that lets `transformers` load the tokenizer beside it.
    #[must_use]
    pub fn to_config_json(&self) -> String {
        let name = |wanted: &'static str| self.special.id(wanted).map(|_| wanted);
        let file = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": name(PAD),
            "eos_token": name(EOS),
            "unk_token": name(UNK),
            "clean_up_tokenization_spaces": false,
        });
        format!("{file:#}\n")
    }

    /// Reads a `tokenizer.json`.
    ///
    /// ```
    /// use dp_tokenizer::Tokenizer;
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
        require_null(&file, "normalizer")?;
        require_null(&file, "post_processor")?;
        check_blanks(&file["pre_tokenizer"])?;
        let model = read_unigram(&file["model"])?;
        let mut special = Vec::new();
        for token in file["added_tokens"].as_array().into_iter().flatten() {
            special.push(read_added_token(token, &model)?);
        }
        Ok(Self::new(model, SpecialTokens::new(special)))
    }
}

fn added_token(id: u32, name: &str) -> Value {
    json!({
        "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true,
    })
}

fn unsupported(part: &'static str, found: &Value, allowed: &'static str) -> FormatError {
    let mut found = found.to_string();
    if found.len() > 200 {
        found = found.chars().take(200).chain("…".chars()).collect();
    }
    FormatError::Unsupported { part, found, allowed }
}

fn require_null(file: &Value, part: &'static str) -> Result<(), FormatError> {
    if file[part].is_null() { Ok(()) } else { Err(unsupported(part, &file[part], "null")) }
}

fn check_blanks(part: &Value) -> Result<(), FormatError> {
    let expected = part["type"] == "Metaspace"
        && part["replacement"] == BLANK.to_string()
        && part["prepend_scheme"] == "never"
        && part["split"] != false;
    if expected {
        Ok(())
    } else {
        Err(unsupported("pre_tokenizer", part, "Metaspace with prepend_scheme \"never\" and split true"))
    }
}

fn read_unigram(model: &Value) -> Result<Unigram, FormatError> {
    if model["type"] != "Unigram" {
        return Err(unsupported("model.type", &model["type"], "\"Unigram\""));
    }
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

fn read_added_token(token: &Value, model: &Unigram) -> Result<(u32, String), FormatError> {
    for flag in ["single_word", "lstrip", "rstrip", "normalized"] {
        if token[flag] == true {
            return Err(unsupported(
                "added_tokens",
                token,
                "tokens whose flags, special aside, are all false",
            ));
        }
    }
    let content = token["content"].as_str().unwrap_or_default();
    let id = token["id"].as_u64().and_then(|id| u32::try_from(id).ok());
    match id {
        Some(id) if !content.is_empty() && model.id(content) == Some(id) => Ok((id, content.to_owned())),
        _ => Err(FormatError::Inconsistent {
            reason: format!("added token {content:?} is not in model.vocab under its id"),
        }),
    }
}
