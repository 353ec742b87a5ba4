//! The files of `tiktoken`: a line for each token with its bytes in base64 and its rank. A rank is the id, and the order of merges.
//!
//! # References
//! The patterns and special tokens are in the programs that read such files: `tiktoken_ext/openai_public.py` of tiktoken 0.12,
//! `tokenizer.py` of Llama 3, `tokenization_qwen.py` of Qwen.

use std::collections::HashMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::FormatError;
use crate::byte_alphabet::byte_to_char;
use crate::tokenizer::Tokenizer;

const NAME: &str = "tiktoken file";

const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A vocabulary that is known by its number of tokens.
struct Known {
    name: &'static str,
    tokens: usize,
    /// The pattern of words; `None` for GPT-2's.
    pattern: Option<&'static str>,
    special: &'static [(&'static str, u32)],
}

const KNOWN: [Known; 7] = [
    Known { name: "r50k_base", tokens: 50_256, pattern: None, special: &[("<|endoftext|>", 50_256)] },
    Known { name: "Whisper", tokens: 50_257, pattern: None, special: &[("<|endoftext|>", 50_257)] },
    Known { name: "p50k_base", tokens: 50_280, pattern: None, special: &[("<|endoftext|>", 50_256)] },
    Known {
        name: "cl100k_base",
        tokens: 100_256,
        pattern: Some(CL100K),
        special: &[
            ("<|endoftext|>", 100_257),
            ("<|fim_prefix|>", 100_258),
            ("<|fim_middle|>", 100_259),
            ("<|fim_suffix|>", 100_260),
            ("<|endofprompt|>", 100_276),
        ],
    },
    Known {
        name: "Llama 3",
        tokens: 128_000,
        pattern: Some(CL100K),
        // The others are reserved, or differ between its versions.
        special: &[
            ("<|begin_of_text|>", 128_000),
            ("<|end_of_text|>", 128_001),
            ("<|start_header_id|>", 128_006),
            ("<|end_header_id|>", 128_007),
            ("<|eot_id|>", 128_009),
        ],
    },
    Known {
        name: "Qwen",
        tokens: 151_643,
        pattern: Some(QWEN),
        special: &[("<|endoftext|>", 151_643), ("<|im_start|>", 151_644), ("<|im_end|>", 151_645)],
    },
    Known {
        name: "o200k_base",
        tokens: 199_998,
        pattern: Some(O200K),
        special: &[("<|endoftext|>", 199_999), ("<|endofprompt|>", 200_018)],
    },
];

/// Whether the first line is that of a tiktoken file.
#[must_use]
pub fn is_tiktoken(bytes: &[u8]) -> bool {
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    std::str::from_utf8(first).is_ok_and(|line| read_line(line.trim_end_matches('\r')).is_some())
}

/// Reads a tokenizer with the pattern and the special tokens of the vocabulary that has so many tokens.
///
/// # Errors
/// For a line that is no token with its rank, for two tokens of one rank, and for an unknown vocabulary, whose pattern no file states.
pub fn read(bytes: &[u8]) -> Result<Tokenizer, FormatError> {
    let ranks = read_ranks(bytes)?;
    let known = KNOWN.iter().find(|known| known.tokens == ranks.len()).ok_or_else(|| {
        let names: Vec<String> = KNOWN.iter().map(|known| format!("{} ({})", known.name, known.tokens)).collect();
        let reason = format!(
            "it has {} tokens and does not state how text is cut into words, which is known for {}; give the tokenizer.json of \
             this model",
            ranks.len(),
            names.join(", ")
        );
        FormatError::malformed(NAME, ranks.len() as u64, reason)
    })?;
    Tokenizer::from_json(&tokenizer_json(&ranks, known).to_string())
}

fn read_line(line: &str) -> Option<(Vec<u8>, u32)> {
    let (token, rank) = line.split_once(' ')?;
    let token = BASE64_STANDARD.decode(token).ok().filter(|token| !token.is_empty())?;
    Some((token, rank.parse().ok()?))
}

fn read_ranks(bytes: &[u8]) -> Result<HashMap<Vec<u8>, u32>, FormatError> {
    let text = std::str::from_utf8(bytes).map_err(|_| FormatError::malformed(NAME, 1, "it is not UTF-8"))?;
    let (mut ranks, mut seen) = (HashMap::new(), std::collections::HashSet::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
        let malformed = |reason| FormatError::malformed(NAME, number, reason);
        let (token, rank) = read_line(line)
            .ok_or_else(|| malformed("a line must be a token in base64, one space and its rank"))?;
        if !seen.insert(rank) || ranks.insert(token, rank).is_some() {
            return Err(malformed("this token or this rank stands twice"));
        }
    }
    Ok(ranks)
}

/// The same tokenizer as a `tokenizer.json`. Each pair that makes a token is a merge with that token's rank.
fn tokenizer_json(ranks: &HashMap<Vec<u8>, u32>, known: &Known) -> Value {
    let spelled = |bytes: &[u8]| -> String { bytes.iter().map(|byte| byte_to_char(*byte)).collect() };
    let mut merges = Vec::new();
    for (token, rank) in ranks {
        for at in 1..token.len() {
            let (left, right) = token.split_at(at);
            if let (Some(first), Some(second)) = (ranks.get(left), ranks.get(right)) {
                merges.push(((*rank, *first, *second), [spelled(left), spelled(right)]));
            }
        }
    }
    merges.sort_unstable_by_key(|(order, _)| *order);
    // With the special tokens, whose ids leave gaps.
    let special_ids = known.special.iter().map(|(content, id)| ((*content).to_owned(), json!(id)));
    let vocabulary: serde_json::Map<String, Value> =
        ranks.iter().map(|(token, rank)| (spelled(token), json!(rank))).chain(special_ids).collect();
    let bytes = |use_regex: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex });
    let cut = match known.pattern {
        None => bytes(true),
        Some(pattern) => json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false },
            bytes(false),
        ] }),
    };
    let special = known.special.iter().map(|(content, id)| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true
        })
    });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": special.collect::<Vec<_>>(),
        "normalizer": null, "pre_tokenizer": cut, "post_processor": null, "decoder": bytes(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": true, "vocab": vocabulary,
            "merges": merges.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>()
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// A file of so many tokens: the bytes, "ab", "abc", and long tokens that no text has.
    fn file(tokens: usize) -> String {
        let all = (0..=255_u8).map(|byte| vec![byte]).chain([b"ab".to_vec(), b"abc".to_vec()]);
        let filler = (0_u32..).map(|number| [b"\xff\xfe", number.to_be_bytes().as_slice()].concat());
        let lines = all.chain(filler).take(tokens).enumerate();
        lines.map(|(rank, token)| format!("{} {rank}\n", BASE64_STANDARD.encode(token))).collect()
    }

    #[test]
    fn a_known_vocabulary_is_read_with_its_pattern_and_its_special_tokens() {
        let text = file(50_256);
        assert!(is_tiktoken(text.as_bytes()));
        let tokenizer = read(text.as_bytes()).unwrap();
        assert_eq!(tokenizer.encode("abcab a<|endoftext|>"), [257, 256, 32, 97, 50_256]);
        let tokenizer = read(file(100_256).as_bytes()).unwrap();
        // Digits are cut in threes, which no merge could show.
        assert_eq!(tokenizer.encode("abc<|endofprompt|>"), [257, 100_276]);
    }

    #[test]
    fn an_unknown_vocabulary_and_a_broken_line_are_refused() {
        let refused = |text: &str| read(text.as_bytes()).err().unwrap().to_string();
        assert!(refused(&file(1_000)).contains("it has 1000 tokens"));
        assert!(refused("YQ== 0\nYg==\n").contains("at 2"));
        assert!(refused("YQ== 0\nYg== 0\n").contains("twice"));
        assert!(!is_tiktoken(b"\x0a\x0b\x0a\x05<unk>"));
        assert!(!is_tiktoken(b"one two\n"));
    }
}
