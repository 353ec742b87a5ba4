//! Regular expressions in the stages of a `tokenizer.json`: the first line is the expression, the rest is text. What is read
//! encodes the text, with the same ids as with offsets, and no offset is beyond the text. An expression that becomes an automaton
//! divides the text as one that is searched for by backtracking does.
#![no_main]

use tokenizer::{OffsetUnit, Tokenizer};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const BEHAVIORS: [&str; 5] = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];

/// The places at which a text is divided; none if the expression is refused.
fn places(expression: &str, behavior: &str, text: &str) -> Option<Vec<(usize, usize)>> {
    let file = json!({
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": false},
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"},
    });
    let tokenizer = Tokenizer::from_json(&file.to_string()).ok()?;
    Some(tokenizer.encode_with_offsets(text, OffsetUnit::Bytes).offsets)
}

fuzz_target!(|input: &str| {
    // The time grows with the square of a text in which an expression finds nothing.
    if input.len() > 2000 {
        return;
    }
    let (expression, text) = input.split_once('\n').unwrap_or((input, "a B1, \u{e9}  \n\u{2581}x"));
    let behavior = BEHAVIORS[expression.len() % BEHAVIORS.len()];
    // An empty look-behind, which is true everywhere, needs the search.
    if let Some(searched) = places(&format!("(?:{expression})(?<=)"), behavior, text)
        && let Some(found) = places(expression, behavior, text)
    {
        assert_eq!(found, searched, "{expression}");
    }
    let pattern = json!({"Regex": expression});
    let file = json!({
        "added_tokens": [{"id": 3, "content": "ab", "single_word": true, "lstrip": true, "rstrip": true, "normalized": true}],
        "normalizer": {"type": "Replace", "pattern": &pattern, "content": "c \u{e9}"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": &pattern, "behavior": behavior, "invert": text.len() % 2 == 1},
            {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "first"},
        ]},
        "decoder": {"type": "Replace", "pattern": &pattern, "content": ""},
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1, "\u{2581}": 2}, "unk_token": "<unk>"},
    });
    let Ok(tokenizer) = Tokenizer::from_json(&file.to_string()) else { return };
    let found = tokenizer.encode_with_offsets(text, OffsetUnit::Bytes);
    assert_eq!(found.ids, tokenizer.encode(text));
    assert!(found.offsets.iter().all(|(from, to)| from <= to && *to <= text.len()));
    let _ = tokenizer.decode(&found.ids);
});
