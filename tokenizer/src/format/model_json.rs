//! The model in a `tokenizer.json`.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::gpt2::{from_entries, split_merge};
use crate::FormatError;
use crate::byte_alphabet::byte_to_char;
use crate::encode::{
    Alphabet, Bpe, Encode, Model, SentencePiece, Unigram, WordLevel, WordPiece, WordPieceConfig, WordRules,
    implied_merges,
};
use crate::sentencepiece::{ModelType, PieceKind};
use crate::vocabulary::Vocabulary;

/// Reads the model. `byte_level` says that words reach it in GPT-2's alphabet of bytes.
pub(super) fn read_model(model: &Value, byte_level: bool) -> Result<Model, FormatError> {
    // Files from before 2020 do not name the type.
    let guessed = match model {
        _ if model["vocab"].is_array() => "Unigram",
        _ if !model["merges"].is_null() => "BPE",
        _ if model["max_input_chars_per_word"].is_null() => "WordLevel",
        _ => "WordPiece",
    };
    match model["type"].as_str().unwrap_or(guessed) {
        "Unigram" => Ok(Model::Unigram(read_unigram(model)?)),
        "WordPiece" => Ok(Model::WordPiece(read_wordpiece(model)?)),
        "WordLevel" => {
            let unk_token = model["unk_token"].as_str().unwrap_or("<unk>");
            let lacking = || {
                FormatError::inconsistent(format!(
                    "model.vocab lacks the unknown token {unk_token:?}; add it"
                ))
            };
            Ok(Model::WordLevel(WordLevel::new(read_vocab(model)?, unk_token).ok_or_else(lacking)?))
        }
        "BPE" => Ok(Model::Bpe(read_bpe(model, byte_level)?)),
        _ => Err(FormatError::unsupported(
            "model.type",
            &model["type"],
            "\"Unigram\", \"WordPiece\", \"WordLevel\" or \"BPE\"",
        )),
    }
}

fn read_vocab(model: &Value) -> Result<Vocabulary, FormatError> {
    let entries: BTreeMap<String, u32> = serde_json::from_value(model["vocab"].clone())
        .map_err(|_| FormatError::inconsistent("model.vocab must map each token to its id"))?;
    from_entries(entries, "tokenizer.json, model.vocab")
}

fn read_unigram(model: &Value) -> Result<Unigram, FormatError> {
    let pieces: Vec<(String, f64)> = serde_json::from_value(model["vocab"].clone())
        .map_err(|_| FormatError::inconsistent("model.vocab must be a list of [piece, score]"))?;
    if pieces.iter().any(|p| !p.1.is_finite()) {
        return Err(FormatError::inconsistent("model.vocab holds a score that is not a finite number"));
    }
    let mut names = HashSet::new();
    if let Some(twice) = pieces.iter().find(|p| !names.insert(p.0.as_str())) {
        return Err(FormatError::inconsistent(format!("model.vocab holds {:?} twice", twice.0)));
    }
    let unknown = match &model["unk_id"] {
        Value::Null => None,
        id => Some(id.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
            FormatError::inconsistent(format!(
                "model.unk_id = {id}; allowed: the place of a piece, a whole number"
            ))
        })?),
    };
    let byte_fallback = model["byte_fallback"].as_bool().unwrap_or(false);
    if unknown.is_none() && !byte_fallback {
        return Err(FormatError::inconsistent(
            "model.unk_id is missing, so characters without a piece would vanish; set it to the place of the unknown piece",
        ));
    }
    Unigram::new(pieces, unknown, byte_fallback).ok_or_else(|| {
        FormatError::inconsistent(
            "model.unk_id must name a piece, and byte_fallback needs all of <0x00> to <0xFF>",
        )
    })
}

fn read_wordpiece(model: &Value) -> Result<WordPiece, FormatError> {
    let default = WordPieceConfig::default();
    let text = |name: &str, default: String| model[name].as_str().map_or(default, str::to_owned);
    let longest = model["max_input_chars_per_word"].as_u64().and_then(|n| usize::try_from(n).ok());
    let config = WordPieceConfig {
        unk_token: text("unk_token", default.unk_token),
        continuing_prefix: text("continuing_subword_prefix", default.continuing_prefix),
        max_word_chars: longest.unwrap_or(default.max_word_chars),
    };
    let refused =
        FormatError::inconsistent(format!("model.vocab lacks the unknown token {:?}", config.unk_token));
    WordPiece::new(read_vocab(model)?, config).ok_or(refused)
}

fn read_bpe(model: &Value, byte_level: bool) -> Result<Bpe, FormatError> {
    if !(model["dropout"].is_null() || model["dropout"].as_f64() == Some(0.0)) {
        return Err(FormatError::unsupported(
            "model.dropout",
            &model["dropout"],
            "null or 0: with dropout, ids are drawn at random",
        ));
    }
    let pairs: Option<Vec<_>> = match &model["merges"] {
        Value::Array(pairs) => pairs.iter().map(read_merge).collect(),
        _ => return Err(FormatError::inconsistent("model.merges must be a list")),
    };
    let merges = pairs.ok_or_else(|| {
        FormatError::inconsistent("each of model.merges must be \"left right\" or [left, right]")
    })?;
    let flag = |name: &str| model[name].as_bool().unwrap_or(false);
    let text = |name: &str| model[name].as_str().unwrap_or_default().to_owned();
    let rules = WordRules {
        ignore_merges: flag("ignore_merges"),
        continuing_prefix: text("continuing_subword_prefix"),
        word_suffix: text("end_of_word_suffix"),
    };
    let has_affixes = !rules.continuing_prefix.is_empty() || !rules.word_suffix.is_empty();
    if has_affixes && flag("byte_fallback") {
        let found = json!({"continuing_subword_prefix": model["continuing_subword_prefix"], "end_of_word_suffix": model["end_of_word_suffix"]});
        return Err(FormatError::unsupported("model (BPE) with byte_fallback", &found, "null or empty"));
    }
    let vocabulary = read_vocab(model)?;
    let unk_token = model["unk_token"].as_str().map(str::to_owned);
    let alphabet = if byte_level && (unk_token.is_none() || knows_all_bytes(&vocabulary, &rules)) {
        Alphabet::Bytes
    } else {
        Alphabet::Characters { unk_token, fuse_unk: flag("fuse_unk"), byte_fallback: flag("byte_fallback") }
    };
    Bpe::with_rules(vocabulary, merges, alphabet, rules).map_err(|e| FormatError::inconsistent(e.to_string()))
}

/// Whether each byte is a token wherever it stands in a word, so that nothing is unknown.
fn knows_all_bytes(vocabulary: &Vocabulary, rules: &WordRules) -> bool {
    let WordRules { continuing_prefix: prefix, word_suffix: suffix, .. } = rules;
    (0..=255).map(byte_to_char).all(|c| {
        let forms =
            [format!("{c}"), format!("{c}{suffix}"), format!("{prefix}{c}"), format!("{prefix}{c}{suffix}")];
        forms.iter().all(|form| vocabulary.id(form).is_some())
    })
}

fn read_merge(merge: &Value) -> Option<(String, String)> {
    match merge {
        Value::String(line) => split_merge(line),
        Value::Array(two) => match two.as_slice() {
            [Value::String(left), Value::String(right)] => Some((left.clone(), right.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn write_vocab(vocabulary: &Vocabulary) -> Map<String, Value> {
    vocabulary.tokens().iter().zip(0u32..).map(|(token, id)| (token.clone(), id.into())).collect()
}

pub(super) fn write_model(model: &Model) -> Value {
    match model {
        Model::Unigram(model) => json!({
            "type": "Unigram",
            "unk_id": model.unk_id(),
            "vocab": model.pieces(),
            "byte_fallback": model.falls_back_to_bytes(),
        }),
        Model::WordPiece(model) => json!({
            "type": "WordPiece",
            "unk_token": model.config().unk_token,
            "continuing_subword_prefix": model.config().continuing_prefix,
            "max_input_chars_per_word": model.config().max_word_chars,
            "vocab": write_vocab(model.vocabulary()),
        }),
        Model::WordLevel(model) => json!({
            "type": "WordLevel",
            "vocab": write_vocab(model.vocabulary()),
            "unk_token": model.vocabulary().token(model.unknown_id()),
        }),
        Model::Bpe(model) => write_bpe(model),
        Model::SentencePiece(model) => write_sentencepiece(model),
    }
}

fn write_bpe(model: &Bpe) -> Value {
    let (unk_token, fuse_unk, byte_fallback) = match model.alphabet() {
        Alphabet::Bytes => (None, false, false),
        Alphabet::Characters { unk_token, fuse_unk, byte_fallback } => {
            (unk_token.clone(), *fuse_unk, *byte_fallback)
        }
    };
    let stated = |affix: &String| Some(affix.clone()).filter(|affix| !affix.is_empty());
    json!({
        "type": "BPE",
        "dropout": null,
        "unk_token": unk_token,
        "continuing_subword_prefix": stated(&model.rules().continuing_prefix),
        "end_of_word_suffix": stated(&model.rules().word_suffix),
        "fuse_unk": fuse_unk,
        "byte_fallback": byte_fallback,
        "ignore_merges": model.rules().ignore_merges,
        "vocab": write_vocab(model.vocabulary()),
        "merges": model.merges(),
    })
}

/// Returns a `.model` in Hugging Face's format. A unigram model adds scores in double precision and word by word there.
/// BPE gets the merges that its pieces imply, highest score first. Characters become BPE without merges, and words
/// become WordLevel.
fn write_sentencepiece(model: &SentencePiece) -> Value {
    let file = model.model();
    let unk_token = model.unk_id().and_then(|id| model.token(id));
    let vocab = || -> Map<String, Value> {
        file.pieces.iter().zip(0u32..).map(|(piece, id)| (piece.text.clone(), id.into())).collect()
    };
    match file.model_type {
        ModelType::Unigram => write_sentencepiece_unigram(model),
        ModelType::Word => json!({"type": "WordLevel", "vocab": vocab(), "unk_token": unk_token}),
        ModelType::Bpe | ModelType::Char => json!({
            "type": "BPE",
            "dropout": null,
            "unk_token": unk_token,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": true,
            "byte_fallback": file.byte_fallback,
            "ignore_merges": false,
            "vocab": vocab(),
            // A model with too many merges is refused when it is read.
            "merges": if file.model_type == ModelType::Bpe { implied_merges(file).unwrap_or_default() } else { Vec::new() },
        }),
    }
}

fn write_sentencepiece_unigram(model: &SentencePiece) -> Value {
    let pieces = &model.model().pieces;
    let lowest = pieces.iter().map(|p| p.score).fold(0.0, f32::min);
    let score = |kind, score| match kind {
        PieceKind::Normal => score,
        // Hugging Face has no kinds of pieces. With a score far below the others, these pieces are not found in text.
        _ => lowest * 2.0 - 100.0,
    };
    let vocab: Vec<_> = pieces.iter().map(|p| (p.text.as_str(), f64::from(score(p.kind, p.score)))).collect();
    json!({
        "type": "Unigram",
        "unk_id": model.unk_id(),
        "vocab": vocab,
        "byte_fallback": model.model().byte_fallback,
    })
}
