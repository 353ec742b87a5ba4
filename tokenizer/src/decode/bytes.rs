//! Tokens that spell bytes: `ByteLevel` and `ByteFallback`.

use serde_json::{Value, json};

use super::Decode;
use crate::byte_alphabet::char_to_byte;

/// A step that reads tokens as bytes in GPT-2's alphabet.
#[derive(Debug)]
pub(super) struct ByteLevel;

impl Decode for ByteLevel {
    fn decode(&self, tokens: Vec<String>, _: usize) -> Vec<String> {
        let mut bytes = Vec::new();
        for token in tokens {
            match token.chars().map(char_to_byte).collect::<Option<Vec<u8>>>() {
                Some(spelt) => bytes.extend(spelt),
                // A special token outside the alphabet appears as it is.
                None => bytes.extend(token.bytes()),
            }
        }
        vec![String::from_utf8_lossy(&bytes).into_owned()]
    }

    fn json(&self) -> Value {
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})
    }
}

/// A step that turns runs of the tokens `<0x00>` to `<0xFF>` into characters.
#[derive(Debug)]
pub(super) struct ByteFallback;

impl Decode for ByteFallback {
    fn decode(&self, tokens: Vec<String>, _: usize) -> Vec<String> {
        let (mut out, mut bytes, mut text) = (Vec::with_capacity(tokens.len()), Vec::new(), String::new());
        let mut flush = |bytes: &mut Vec<u8>, out: &mut Vec<String>| {
            flush_bytes(bytes, &mut text);
            if !text.is_empty() {
                out.push(std::mem::take(&mut text));
            }
        };
        for token in tokens {
            match byte_of(&token) {
                Some(byte) => bytes.push(byte),
                None => {
                    flush(&mut bytes, &mut out);
                    out.push(token);
                }
            }
        }
        flush(&mut bytes, &mut out);
        out
    }

    fn json(&self) -> Value {
        json!({"type": "ByteFallback"})
    }
}

/// Returns the byte that a token `<0x00>` to `<0xFF>` stands for.
fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>').filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
}

/// Appends the bytes to `text`: as characters if they are UTF-8, else as one replacement character per byte, as in
/// Hugging Face tokenizers.
pub(super) fn flush_bytes(bytes: &mut Vec<u8>, text: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text.push_str(valid),
        Err(_) => text.extend(std::iter::repeat_n('\u{FFFD}', bytes.len())),
    }
    bytes.clear();
}
