//! The stages before the model in a `tokenizer.json`: normalizer and pre-tokenizer.

use std::sync::Arc;

use serde_json::{Value, json};

use super::base64;
use super::tokenizer_json::{shortened, unsupported};
use crate::FormatError;
use crate::normalize::{
    self, BertNormalizer, ByteLevel, Charsmap, Nmt, Normalizer, Prepend, Replace, Rewrite, Strip,
    StripAccents,
};
use crate::pattern::Pattern;
use crate::pretokenize::{
    self, Behavior, Cut, CutAt, Metaspace, PreTokenizer, PrependScheme, Split, UnicodeScripts, Whitespace,
};

/// Reads the pattern of a stage.
pub(super) fn read_pattern(stage: &'static str, part: &Value) -> Result<Pattern, FormatError> {
    Pattern::read(&part["pattern"]).map_err(|reason| {
        let pattern = part["pattern"].to_string();
        FormatError::Inconsistent { reason: format!("{stage}, pattern {}: {reason}", shortened(&pattern)) }
    })
}

pub(super) fn read_normalizer(part: &Value) -> Result<Normalizer, FormatError> {
    for kind in ["Precompiled", "ByteLevel"] {
        // Each may make a text several times as long.
        if count(part, kind) > 1 {
            return Err(FormatError::Inconsistent {
                reason: format!("normalizer: {kind} twice; allowed: once"),
            });
        }
    }
    read_stage(part)
}

/// How many stages of a kind there are.
fn count(part: &Value, kind: &str) -> usize {
    let within = part["normalizers"].as_array().into_iter().flatten().map(|part| count(part, kind));
    usize::from(part["type"] == kind) + within.sum::<usize>()
}

fn read_stage(part: &Value) -> Result<Normalizer, FormatError> {
    const ALLOWED: &str = "null, BertNormalizer, Precompiled, Lowercase, NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, \
                           StripAccents, Nmt, ByteLevel, or a Sequence of them";
    let refused = || unsupported("normalizer", part, ALLOWED);
    let of_file = |stage: Arc<dyn Rewrite>| Ok(Normalizer::OfFile(normalize::OfFile(stage)));
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
        "Prepend" => {
            let prepend = part["prepend"].as_str().ok_or_else(refused)?.to_owned();
            of_file(Arc::new(Prepend { prepend }))
        }
        "Replace" => {
            let content = part["content"].as_str().ok_or_else(refused)?.to_owned();
            of_file(Arc::new(Replace { pattern: read_pattern("normalizer Replace", part)?, content }))
        }
        "Strip" => {
            of_file(Arc::new(Strip { left: flag("strip_left", true), right: flag("strip_right", true) }))
        }
        "StripAccents" => of_file(Arc::new(StripAccents)),
        "Nmt" => of_file(Arc::new(Nmt)),
        "ByteLevel" => of_file(Arc::new(ByteLevel)),
        "Sequence" => {
            let all = part["normalizers"].as_array().ok_or_else(refused)?;
            Ok(Normalizer::Sequence(all.iter().map(read_stage).collect::<Result<_, _>>()?))
        }
        _ => Err(refused()),
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
        Normalizer::OfFile(stage) => stage.0.json(),
        Normalizer::Sequence(all) => {
            json!({"type": "Sequence", "normalizers": all.iter().map(write_normalizer).collect::<Vec<_>>()})
        }
    }
}

pub(super) fn read_metaspace(part: &Value) -> Option<Metaspace> {
    let replacement = one_character(part["replacement"].as_str()?)?;
    // Files of before 2023 have a flag instead of the scheme.
    let prepend_scheme = match (part["prepend_scheme"].as_str(), part["add_prefix_space"].as_bool()) {
        (Some("always"), _) | (None, None | Some(true)) => PrependScheme::Always,
        (Some("first"), _) => PrependScheme::First,
        (Some("never"), _) | (None, Some(false)) => PrependScheme::Never,
        _ => return None,
    };
    Some(Metaspace { replacement, prepend_scheme, split: part["split"].as_bool().unwrap_or(true) })
}

pub(super) fn write_metaspace(space: &Metaspace) -> Value {
    let scheme = match space.prepend_scheme {
        PrependScheme::Always => "always",
        PrependScheme::First => "first",
        PrependScheme::Never => "never",
    };
    json!({"type": "Metaspace", "replacement": space.replacement, "prepend_scheme": scheme, "split": space.split})
}

pub(super) fn read_pre_tokenizer(part: &Value) -> Result<PreTokenizer, FormatError> {
    const ALLOWED: &str = "null, Metaspace, BertPreTokenizer, WhitespaceSplit, Whitespace, ByteLevel, Split, Punctuation, \
                           Digits, CharDelimiterSplit, UnicodeScripts, or a Sequence of them";
    let refused = || unsupported("pre_tokenizer", part, ALLOWED);
    let of_file = |stage: Arc<dyn Cut>| Ok(PreTokenizer::OfFile(pretokenize::OfFile(stage)));
    let inconsistent = |reason| FormatError::Inconsistent { reason };
    match part["type"].as_str().unwrap_or_default() {
        "BertPreTokenizer" => Ok(PreTokenizer::Bert),
        "WhitespaceSplit" => Ok(PreTokenizer::WhitespaceSplit),
        "Metaspace" => read_metaspace(part).map(PreTokenizer::Metaspace).ok_or_else(refused),
        "ByteLevel" => Ok(PreTokenizer::ByteLevel {
            add_prefix_space: part["add_prefix_space"].as_bool().unwrap_or(true),
            use_regex: part["use_regex"].as_bool().unwrap_or(true),
            spells: false,
        }),
        "Split" => of_file(Arc::new(Split {
            pattern: read_pattern("pre_tokenizer Split", part)?,
            behavior: Behavior::read(&part["behavior"]).ok_or_else(refused)?,
            invert: part["invert"].as_bool().unwrap_or(false),
        })),
        "Punctuation" => match &part["behavior"] {
            Value::Null => of_file(Arc::new(CutAt::Punctuation(Behavior::Isolated))),
            name => of_file(Arc::new(CutAt::Punctuation(Behavior::read(name).ok_or_else(refused)?))),
        },
        "Digits" => {
            let individual = part["individual_digits"].as_bool().unwrap_or(false);
            of_file(Arc::new(CutAt::Digits { individual }))
        }
        "CharDelimiterSplit" => {
            let delimiter = part["delimiter"].as_str().and_then(one_character).ok_or_else(refused)?;
            of_file(Arc::new(CutAt::Delimiter(delimiter)))
        }
        "Whitespace" => of_file(Arc::new(Whitespace::new().map_err(inconsistent)?)),
        "UnicodeScripts" => of_file(Arc::new(UnicodeScripts::new().map_err(inconsistent)?)),
        "Sequence" => {
            let mut stages = Vec::new();
            for each in part["pretokenizers"].as_array().ok_or_else(refused)? {
                match read_pre_tokenizer(each)? {
                    PreTokenizer::Sequence(inner) => stages.extend(inner),
                    one => stages.push(one),
                }
            }
            // The bytes are spelt before the next stage; those of the last one are the model's concern.
            let last = stages.len().saturating_sub(1);
            stages.iter_mut().take(last).for_each(PreTokenizer::spell);
            Ok(PreTokenizer::Sequence(stages))
        }
        _ => Err(refused()),
    }
}

/// The character that a text is.
pub(super) fn one_character(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let (first, None) = (chars.next()?, chars.next()) else { return None };
    Some(first)
}

pub(super) fn write_pre_tokenizer(pre_tokenizer: &PreTokenizer) -> Value {
    match pre_tokenizer {
        PreTokenizer::Bert => json!({"type": "BertPreTokenizer"}),
        PreTokenizer::WhitespaceSplit => json!({"type": "WhitespaceSplit"}),
        PreTokenizer::Metaspace(space) => write_metaspace(space),
        PreTokenizer::ByteLevel { add_prefix_space, use_regex, .. } => json!({
            "type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": use_regex,
        }),
        PreTokenizer::OfFile(stage) => stage.0.json(),
        PreTokenizer::Sequence(all) => {
            json!({"type": "Sequence", "pretokenizers": all.iter().map(write_pre_tokenizer).collect::<Vec<_>>()})
        }
    }
}
