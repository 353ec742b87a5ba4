//! The stages around the model in a `tokenizer.json`: normalizer, pre-tokenizer, decoder.

use serde_json::{Value, json};

use super::tokenizer_json::unsupported;
use super::{FormatError, base64};
use crate::decode::{Cleanup, Decoder};
use crate::normalize::{BertNormalizer, Charsmap, Normalizer};
use crate::pretokenize::{Metaspace, PreTokenizer, PrependScheme};

pub(super) fn read_normalizer(part: &Value) -> Result<Normalizer, FormatError> {
    const ALLOWED: &str =
        "null, BertNormalizer, Precompiled, Lowercase, NFC, NFD, NFKC, NFKD, or a Sequence of them";
    let flag = |name: &str, default| part[name].as_bool().unwrap_or(default);
    match part["type"].as_str().unwrap_or_default() {
        "BertNormalizer" => Ok(Normalizer::Bert(BertNormalizer {
            clean_text: flag("clean_text", true),
            handle_chinese_chars: flag("handle_chinese_chars", true),
            strip_accents: part["strip_accents"].as_bool(),
            lowercase: flag("lowercase", true),
        })),
        "Precompiled" => {
            let map = part["precompiled_charsmap"].as_str().and_then(base64::decode).ok_or_else(|| {
                FormatError::Inconsistent {
                    reason: "normalizer.precompiled_charsmap is not base64".to_owned(),
                }
            })?;
            Ok(Normalizer::Precompiled(Charsmap::from_bytes(&map)?))
        }
        "Lowercase" => Ok(Normalizer::Lowercase),
        "NFC" => Ok(Normalizer::Nfc),
        "NFD" => Ok(Normalizer::Nfd),
        "NFKC" => Ok(Normalizer::Nfkc),
        "NFKD" => Ok(Normalizer::Nfkd),
        "Sequence" => {
            let all =
                part["normalizers"].as_array().ok_or_else(|| unsupported("normalizer", part, ALLOWED))?;
            Ok(Normalizer::Sequence(all.iter().map(read_normalizer).collect::<Result<_, _>>()?))
        }
        _ => Err(unsupported("normalizer", part, ALLOWED)),
    }
}

pub(super) fn write_normalizer(normalizer: &Normalizer) -> Value {
    match normalizer {
        Normalizer::Bert(bert) => json!({
            "type": "BertNormalizer",
            "clean_text": bert.clean_text,
            "handle_chinese_chars": bert.handle_chinese_chars,
            "strip_accents": bert.strip_accents,
            "lowercase": bert.lowercase,
        }),
        Normalizer::Precompiled(map) => {
            json!({"type": "Precompiled", "precompiled_charsmap": base64::encode(&map.to_bytes())})
        }
        Normalizer::Lowercase => json!({"type": "Lowercase"}),
        Normalizer::Nfc => json!({"type": "NFC"}),
        Normalizer::Nfd => json!({"type": "NFD"}),
        Normalizer::Nfkc => json!({"type": "NFKC"}),
        Normalizer::Nfkd => json!({"type": "NFKD"}),
        Normalizer::Sequence(all) => {
            json!({"type": "Sequence", "normalizers": all.iter().map(write_normalizer).collect::<Vec<_>>()})
        }
    }
}

fn read_metaspace(part: &Value) -> Option<Metaspace> {
    let mut mark = part["replacement"].as_str()?.chars();
    let (replacement, None) = (mark.next()?, mark.next()) else { return None };
    // Files of before 2023 have a flag instead of the scheme.
    let prepend_scheme = match (part["prepend_scheme"].as_str(), part["add_prefix_space"].as_bool()) {
        (Some("always"), _) | (None, None | Some(true)) => PrependScheme::Always,
        (Some("first"), _) => PrependScheme::First,
        (Some("never"), _) | (None, Some(false)) => PrependScheme::Never,
        _ => return None,
    };
    Some(Metaspace { replacement, prepend_scheme, split: part["split"].as_bool().unwrap_or(true) })
}

fn write_metaspace(space: &Metaspace) -> Value {
    let scheme = match space.prepend_scheme {
        PrependScheme::Always => "always",
        PrependScheme::First => "first",
        PrependScheme::Never => "never",
    };
    json!({"type": "Metaspace", "replacement": space.replacement, "prepend_scheme": scheme, "split": space.split})
}

pub(super) fn read_pre_tokenizer(part: &Value) -> Result<PreTokenizer, FormatError> {
    const ALLOWED: &str = "null, Metaspace, BertPreTokenizer, WhitespaceSplit, ByteLevel with use_regex, \
                           or a Sequence of them with ByteLevel last";
    let refused = || unsupported("pre_tokenizer", part, ALLOWED);
    match part["type"].as_str().unwrap_or_default() {
        "BertPreTokenizer" => Ok(PreTokenizer::Bert),
        "WhitespaceSplit" => Ok(PreTokenizer::WhitespaceSplit),
        "Metaspace" => read_metaspace(part).map(PreTokenizer::Metaspace).ok_or_else(refused),
        "ByteLevel" if part["use_regex"].as_bool().unwrap_or(true) => Ok(PreTokenizer::ByteLevel {
            add_prefix_space: part["add_prefix_space"].as_bool().unwrap_or(true),
        }),
        "Sequence" => {
            let all = part["pretokenizers"].as_array().ok_or_else(refused)?;
            let all: Vec<_> = all.iter().map(read_pre_tokenizer).collect::<Result<_, _>>()?;
            // After it, words would be spelt in bytes, which the stages here do not do.
            let early = all.iter().rev().skip(1).any(spells_bytes);
            if early { Err(refused()) } else { Ok(PreTokenizer::Sequence(all)) }
        }
        _ => Err(refused()),
    }
}

fn spells_bytes(pre_tokenizer: &PreTokenizer) -> bool {
    match pre_tokenizer {
        PreTokenizer::ByteLevel { .. } => true,
        PreTokenizer::Sequence(all) => all.iter().any(spells_bytes),
        _ => false,
    }
}

pub(super) fn write_pre_tokenizer(pre_tokenizer: &PreTokenizer) -> Value {
    match pre_tokenizer {
        PreTokenizer::Bert => json!({"type": "BertPreTokenizer"}),
        PreTokenizer::WhitespaceSplit => json!({"type": "WhitespaceSplit"}),
        PreTokenizer::Metaspace(space) => write_metaspace(space),
        PreTokenizer::ByteLevel { add_prefix_space } => json!({
            "type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": true,
        }),
        PreTokenizer::Sequence(all) => {
            json!({"type": "Sequence", "pretokenizers": all.iter().map(write_pre_tokenizer).collect::<Vec<_>>()})
        }
    }
}

pub(super) fn read_decoder(part: &Value) -> Result<Decoder, FormatError> {
    const ALLOWED: &str =
        "null, Metaspace, ByteLevel, WordPiece, or a Sequence of Metaspace, ByteFallback and Fuse";
    let refused = || unsupported("decoder", part, ALLOWED);
    match part["type"].as_str() {
        None if part.is_null() => Ok(Decoder::Spaces),
        Some("ByteLevel") => Ok(Decoder::ByteLevel),
        Some("WordPiece") => Ok(Decoder::WordPiece {
            prefix: part["prefix"].as_str().unwrap_or("##").to_owned(),
            cleanup: if part["cleanup"].as_bool().unwrap_or(true) { Cleanup::Tokens } else { Cleanup::Never },
        }),
        Some("Metaspace") => {
            let space = read_metaspace(part).ok_or_else(refused)?;
            Ok(Decoder::Metaspace { drop_first_space: space.prepend_scheme != PrependScheme::Never })
        }
        Some("Sequence") => {
            let mut found = None;
            for stage in part["decoders"].as_array().into_iter().flatten() {
                match stage["type"].as_str() {
                    Some("Metaspace") if found.is_none() => found = Some(read_decoder(stage)?),
                    Some("ByteFallback" | "Fuse") => {}
                    _ => return Err(refused()),
                }
            }
            found.ok_or_else(refused)
        }
        _ => Err(refused()),
    }
}

pub(super) fn write_decoder(decoder: &Decoder) -> Value {
    match decoder {
        Decoder::Spaces => Value::Null,
        Decoder::ByteLevel => {
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})
        }
        Decoder::WordPiece { prefix, cleanup } => {
            json!({"type": "WordPiece", "prefix": prefix, "cleanup": *cleanup != Cleanup::Never})
        }
        Decoder::Metaspace { drop_first_space } => {
            let prepend_scheme = if *drop_first_space { PrependScheme::Always } else { PrependScheme::Never };
            let space = write_metaspace(&Metaspace { prepend_scheme, ..Metaspace::default() });
            json!({"type": "Sequence", "decoders": [space, {"type": "ByteFallback"}, {"type": "Fuse"}]})
        }
    }
}
