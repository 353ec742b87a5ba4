//! The model in a `tokenizer.json`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::gpt2::{from_entries, split_merge};
use super::json_list::JsonList;
use crate::FormatError;
use crate::byte_alphabet::byte_to_char;
use crate::encode::{
    Alphabet, Bpe, Encode, Model, SentencePiece, Unigram, WordLevel, WordPiece, WordPieceConfig, WordRules,
    implied_merges,
};
use crate::sentencepiece::{ModelType, PieceKind};
use crate::vocabulary::Vocabulary;

/// The model of a file. Its lists are read when their tables are made.
#[derive(Default, Deserialize)]
pub(super) struct ModelPart<'a> {
    #[serde(borrow)]
    vocab: Option<&'a RawValue>,
    #[serde(borrow)]
    merges: Option<&'a RawValue>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl ModelPart<'_> {
    /// Returns all but the lists.
    pub(super) fn others(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.others))
    }
}

/// Added tokens of the file that are in its vocabulary, but not in the model.
pub(super) type Apart = HashSet<String>;

/// Reads the model, whose fields beside the lists are `model`. `byte_level` says that words reach it in GPT-2's alphabet of bytes.
/// Added tokens are set apart from a vocabulary whose ids have a gap, as in files of GPT-4: they are found before the model, which
/// needs ids without a gap.
pub(super) fn read_model(
    lists: &ModelPart<'_>,
    model: &Value,
    added: &Value,
    byte_level: bool,
) -> Result<(Model, Apart), FormatError> {
    let has_pieces = lists.vocab.is_some_and(|vocab| vocab.get().starts_with('['));
    // Files from before 2020 do not name the type.
    let guessed = match model {
        _ if has_pieces => "Unigram",
        _ if lists.merges.is_some() => "BPE",
        _ if model["max_input_chars_per_word"].is_null() => "WordLevel",
        _ => "WordPiece",
    };
    let kind = model["type"].as_str().unwrap_or(guessed);
    if kind == "Unigram" {
        return Ok((Model::Unigram(read_unigram(lists, model)?), Apart::new()));
    }
    let mut apart = Apart::new();
    let mut read_vocab = || read_vocab(lists, added, &mut apart);
    let read = match kind {
        "WordPiece" => Ok(Model::WordPiece(read_wordpiece(read_vocab()?, model)?)),
        "WordLevel" => {
            let unk_token = model["unk_token"].as_str().unwrap_or("<unk>");
            let lacking = || {
                FormatError::inconsistent(format!(
                    "model.vocab lacks the unknown token {unk_token:?}; add it"
                ))
            };
            Ok(Model::WordLevel(WordLevel::new(read_vocab()?, unk_token).ok_or_else(lacking)?))
        }
        "BPE" => Ok(Model::Bpe(read_bpe(lists, model, &mut read_vocab, byte_level)?)),
        _ => Err(FormatError::unsupported(
            "model.type",
            &model["type"],
            "\"Unigram\", \"WordPiece\", \"WordLevel\" or \"BPE\"",
        )),
    };
    read.map(|model| (model, apart))
}

fn read_vocab(lists: &ModelPart<'_>, added: &Value, apart: &mut Apart) -> Result<Vocabulary, FormatError> {
    let malformed = || FormatError::inconsistent("model.vocab must map each token to its id");
    let entries = lists.vocab.and_then(|vocab| entries(vocab.get())).ok_or_else(malformed)?;
    let read = |entries: &[(Cow<'_, str>, u32)]| {
        let entries = entries.iter().map(|(token, id)| (token.as_ref(), *id));
        from_entries(entries, "tokenizer.json, model.vocab")
    };
    if let Ok(vocabulary) = read(&entries) {
        return Ok(vocabulary);
    }
    // Of a token that is listed twice, the last id counts.
    let last: BTreeMap<Cow<'_, str>, u32> = entries.into_iter().collect();
    let has_gap = last.values().any(|id| *id as usize >= last.len());
    for token in added.as_array().into_iter().flatten().filter(|_| has_gap) {
        let name = token["content"].as_str().unwrap_or_default();
        if last.get(name).is_some_and(|id| token["id"] == *id) {
            apart.insert(name.to_owned());
        }
    }
    let entries: Vec<_> = last.into_iter().filter(|entry| !apart.contains(entry.0.as_ref())).collect();
    read(&entries)
}

/// Reads the tokens and ids of an object.
fn entries(vocab: &str) -> Option<Vec<(Cow<'_, str>, u32)>> {
    let (mut list, mut entries) = (JsonList::new(vocab), Vec::new());
    while vocab.starts_with('{') && list.bracket(b'}').is_none() {
        entries.push((list.string()?, list.id()?));
    }
    vocab.starts_with('{').then_some(entries)
}

fn read_unigram(lists: &ModelPart<'_>, model: &Value) -> Result<Unigram, FormatError> {
    let vocab = lists.vocab.map_or("null", RawValue::get);
    let pieces: Vec<(String, f64)> = serde_json::from_str(vocab)
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

fn read_wordpiece(vocabulary: Vocabulary, model: &Value) -> Result<WordPiece, FormatError> {
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
    WordPiece::new(vocabulary, config).ok_or(refused)
}

fn read_bpe(
    lists: &ModelPart<'_>,
    model: &Value,
    read_vocab: &mut dyn FnMut() -> Result<Vocabulary, FormatError>,
    byte_level: bool,
) -> Result<Bpe, FormatError> {
    if !(model["dropout"].is_null() || model["dropout"].as_f64() == Some(0.0)) {
        return Err(FormatError::unsupported(
            "model.dropout",
            &model["dropout"],
            "null or 0: with dropout, ids are drawn at random",
        ));
    }
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
    let vocabulary = read_vocab()?;
    let unk_token = model["unk_token"].as_str().map(str::to_owned);
    let alphabet = if byte_level && (unk_token.is_none() || knows_all_bytes(&vocabulary, &rules)) {
        Alphabet::Bytes
    } else {
        Alphabet::Characters { unk_token, fuse_unk: flag("fuse_unk"), byte_fallback: flag("byte_fallback") }
    };
    let list = lists.merges.map_or("null", RawValue::get);
    if !list.starts_with('[') {
        return Err(FormatError::inconsistent("model.merges must be a list"));
    }
    let (mut merges, mut is_malformed) = (JsonList::new(list), false);
    let each = std::iter::from_fn(|| {
        let merge = (merges.next() != Some(b']')).then(|| read_merge(&mut merges))?;
        is_malformed |= merge.is_none();
        merge
    });
    let bpe = Bpe::with_rules(vocabulary, each, alphabet, rules);
    if is_malformed {
        return Err(FormatError::inconsistent(
            "each of model.merges must be \"left right\" or [left, right]",
        ));
    }
    bpe.map_err(|e| FormatError::inconsistent(e.to_string()))
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

/// Reads `"left right"` or `["left", "right"]`.
fn read_merge<'a>(list: &mut JsonList<'a>) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    if list.bracket(b'[').is_some() {
        let two = (list.string()?, list.string()?);
        return list.bracket(b']').map(|()| two);
    }
    match list.string()? {
        Cow::Borrowed(line) => split_merge(line).map(|(left, right)| (left.into(), right.into())),
        Cow::Owned(line) => {
            split_merge(&line).map(|(left, right)| (left.to_owned().into(), right.to_owned().into()))
        }
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
        "merges": model.merges().collect::<Vec<_>>(),
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
