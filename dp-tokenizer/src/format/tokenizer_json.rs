//! `tokenizer.json`, the format of Hugging Face tokenizers.

use serde_json::{Value, json};

use super::FormatError;
use super::model_json::{read_model, write_model};
use super::stages_json::{
    read_decoder, read_normalizer, read_pre_tokenizer, write_decoder, write_normalizer, write_pre_tokenizer,
};
use crate::encode::{Model, Unigram};
use crate::format::sentencepiece::PieceKind;
use crate::normalize::Normalizer;
use crate::pretokenize::{Metaspace, PreTokenizer};
use crate::tokenizer::{SpecialTokens, Stage, Tokenizer, UNK};

impl Tokenizer {
    /// The tokenizer as a `tokenizer.json`, which HF tokenizers loads and encodes the same with.
    #[must_use]
    pub fn to_json(&self) -> String {
        let file = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added_tokens_json(),
            "normalizer": self.normalizer_json(),
            "pre_tokenizer": self.pre_tokenizer_json(),
            "post_processor": self.post_processor,
            "decoder": write_decoder(&self.decoder),
            "model": write_model(&self.model),
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
            "unk_token": token(self.unk_id()).or(name(UNK)),
            "clean_up_tokenization_spaces": false,
        });
        // Tokens of BERT's and T5's objectives, where the vocabulary has them.
        for (role, token) in [("cls_token", "[CLS]"), ("sep_token", "[SEP]"), ("mask_token", "[MASK]")] {
            if let Some(token) = name(token) {
                file[role] = json!(token);
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
        let stage = |part: &'static str| Some(&file[part]).filter(|p| !p.is_null());
        let normalizer = stage("normalizer").map(read_normalizer).transpose()?;
        let pre_tokenizer = stage("pre_tokenizer").map(read_pre_tokenizer).transpose()?;
        let model = read_model(&file["model"], pre_tokenizer.as_ref())?;
        let mut special = Vec::new();
        for token in file["added_tokens"].as_array().into_iter().flatten() {
            special.push(read_added_token(token, &model, normalizer.is_some())?);
        }
        let mut tokenizer = Self::of_model(model);
        tokenizer.normalizer = normalizer.map_or(Stage::Identity, Stage::Normalizer);
        tokenizer.pre_tokenizer = pre_tokenizer;
        tokenizer.decoder = read_decoder(&file["decoder"])?;
        tokenizer.special = SpecialTokens::new(special);
        tokenizer.post_processor = file["post_processor"].clone();
        Ok(tokenizer)
    }

    fn added_tokens_json(&self) -> Vec<Value> {
        let mut added: Vec<Value> =
            self.special.tokens.iter().map(|(id, name)| added_token(*id, name)).collect();
        if let Model::SentencePiece(model) = &self.model {
            // Hugging Face has no kinds of pieces: what is not learnt is an added token there.
            let pieces = (0u32..).zip(&model.model().pieces);
            let kinds = [PieceKind::Unknown, PieceKind::Control, PieceKind::UserDefined];
            added.extend(
                pieces.filter(|(_, p)| kinds.contains(&p.kind)).map(|(id, p)| added_token(id, &p.text)),
            );
        }
        added
    }

    fn normalizer_json(&self) -> Value {
        match &self.normalizer {
            Stage::Identity => Value::Null,
            Stage::Normalizer(normalizer) => write_normalizer(normalizer),
            Stage::SentencePiece(normalizer) => {
                write_normalizer(&Normalizer::Precompiled(normalizer.map().clone()))
            }
        }
    }

    fn pre_tokenizer_json(&self) -> Value {
        let of_sentencepiece = PreTokenizer::Sequence(vec![
            PreTokenizer::WhitespaceSplit,
            PreTokenizer::Metaspace(Metaspace::default()),
        ]);
        match (&self.pre_tokenizer, &self.normalizer) {
            (Some(pre_tokenizer), _) => write_pre_tokenizer(pre_tokenizer),
            (None, Stage::SentencePiece(_)) => write_pre_tokenizer(&of_sentencepiece),
            (None, _) => Value::Null,
        }
    }
}

fn added_token(id: u32, name: &str) -> Value {
    json!({
        "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true,
    })
}

pub(super) fn unsupported(part: &'static str, found: &Value, allowed: &'static str) -> FormatError {
    let mut found = found.to_string();
    if found.len() > 200 {
        found = found.chars().take(200).chain("…".chars()).collect();
    }
    FormatError::Unsupported { part, found, allowed }
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

fn read_added_token(
    token: &Value,
    model: &Model,
    has_normalizer: bool,
) -> Result<(u32, String), FormatError> {
    for flag in ["single_word", "lstrip", "rstrip", "normalized"] {
        // Without a normalizer it does not matter whether a token is sought before or after it.
        if token[flag] == true && (flag != "normalized" || has_normalizer) {
            return Err(unsupported(
                "added_tokens",
                token,
                "tokens whose flags other than special are all false",
            ));
        }
    }
    let content = token["content"].as_str().unwrap_or_default();
    let id = token["id"].as_u64().and_then(|id| u32::try_from(id).ok());
    // The token is the model's own, or stands beyond its last one.
    let fits = |id: u32| {
        model.id(content) == Some(id) || (id as usize >= model.len() && model.id(content).is_none())
    };
    match id {
        Some(id) if !content.is_empty() && fits(id) => Ok((id, content.to_owned())),
        _ => Err(FormatError::Inconsistent {
            reason: format!(
                "added token {content:?} has another id in model.vocab, or another token has its id"
            ),
        }),
    }
}
