//! The stages of a `.model` as a `tokenizer.json` has them.

use serde_json::{Value, json};

use crate::normalize::precompiled_json;
use crate::pretokenize::{METASPACE, PreTokenizer};
use crate::sentencepiece::{ModelType, NormalizerSpec, PieceKind, SentencePieceModel};

/// The normalizer, pre-tokenizer and decoder. Rules without a counterpart are left out. The writer of a file checks
/// that it reads the same.
pub(super) struct Stages {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) decoder: Value,
}

impl Stages {
    pub(super) fn of(file: &SentencePieceModel) -> Self {
        let spec = &file.normalizer;
        let precompiled =
            (!spec.precompiled_charsmap.is_empty()).then(|| precompiled_json(&spec.precompiled_charsmap));
        let crosses_blanks = file.pieces.iter().any(|piece| {
            piece.kind == PieceKind::Normal && piece.text.chars().skip(1).any(|c| c == METASPACE)
        });
        let is_by_word = matches!(file.model_type, ModelType::Unigram | ModelType::Word) && !crosses_blanks;
        // With a map, blanks are spaces by now. T5 and other models are published in this form.
        if let Some(normalizer) = precompiled.clone()
            && is_by_word
            && spec.add_dummy_prefix
            && spec.remove_extra_whitespaces
        {
            let pre_tokenizer = PreTokenizer::t5().json();
            return Self { normalizer, pre_tokenizer, decoder: decoder(true) };
        }
        let pre_tokenizer = if is_by_word {
            json!({
                "type": "Metaspace", "replacement": METASPACE, "prepend_scheme": "never", "split": true,
            })
        } else {
            Value::Null
        };
        Self {
            normalizer: normalizer(spec, precompiled),
            pre_tokenizer,
            decoder: decoder(spec.add_dummy_prefix),
        }
    }
}

fn normalizer(spec: &NormalizerSpec, precompiled: Option<Value>) -> Value {
    let replace = |regex: &str, content: &str| json!({"type": "Replace", "pattern": {"Regex": regex}, "content": content});
    let mut all: Vec<Value> = precompiled.into_iter().collect();
    if spec.remove_extra_whitespaces {
        // A mark at the end looks like a space to SentencePiece.
        all.extend([replace("\\A +|[ \u{2581}]+\\z", ""), replace(" {2,}", " ")]);
    }
    if spec.add_dummy_prefix {
        all.push(json!({"type": "Prepend", "prepend": METASPACE}));
    }
    if spec.escape_whitespaces {
        all.push(json!({"type": "Replace", "pattern": {"String": " "}, "content": METASPACE}));
    }
    json!({"type": "Sequence", "normalizers": all})
}

fn decoder(drops_first_space: bool) -> Value {
    let mut all = vec![
        json!({"type": "Replace", "pattern": {"String": METASPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if drops_first_space {
        all.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    json!({"type": "Sequence", "decoders": all})
}
