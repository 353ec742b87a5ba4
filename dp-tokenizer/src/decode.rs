//! Decoding: tokens to text.

use crate::encode::Model;
use crate::pretokenize::{METASPACE, char_to_byte};

/// How tokens are joined to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// Marks become spaces, and byte tokens become characters.
    Metaspace {
        /// Whether the leading space of the first token was added by the pre-tokenizer.
        drop_first_space: bool,
    },
    /// Tokens spell bytes in GPT-2's alphabet.
    ByteLevel,
    /// A space goes before each token without the prefix.
    WordPiece {
        /// The prefix of tokens inside a word.
        prefix: String,
        /// How spaces before punctuation and English contractions are removed.
        cleanup: Cleanup,
    },
    /// A space goes between all tokens.
    Spaces,
}

/// How spaces that English spelling does not have are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleanup {
    /// Not at all.
    Never,
    /// Token by token, as Hugging Face decodes a `tokenizer.json`.
    Tokens,
    /// In the whole text, as BERT's own tools do.
    Text,
}

impl Decoder {
    /// The number of last tokens whose text may become another one when further tokens come.
    pub(crate) fn tokens_that_may_change(&self) -> usize {
        match self {
            // A contraction has up to four tokens, as in "do n ' t".
            Self::WordPiece { cleanup: Cleanup::Text, .. } => 4,
            _ => 0,
        }
    }

    /// The text of `ids`. `name` gives the tokens outside the model.
    pub(crate) fn decode<'a>(
        &self,
        ids: &[u32],
        model: &'a Model,
        byte_of: &[Option<u8>],
        name: impl Fn(u32) -> Option<&'a str>,
    ) -> String {
        let surface = |id: u32| model.surface(id).or_else(|| name(id));
        match self {
            Self::Metaspace { drop_first_space } => {
                let text = join_pieces(ids, byte_of, surface);
                let first = ids.iter().find(|id| surface(**id).is_some()).copied();
                // The text that a `.model` shows for unknown characters keeps its own space.
                let is_unknown = matches!(model, Model::SentencePiece(_)) && first == model.unk_id();
                match text.strip_prefix(' ') {
                    Some(rest) if *drop_first_space && !is_unknown => rest.to_owned(),
                    _ => text,
                }
            }
            Self::ByteLevel => {
                let mut bytes = Vec::new();
                for token in ids.iter().filter_map(|id| surface(*id)) {
                    match token.chars().map(char_to_byte).collect::<Option<Vec<u8>>>() {
                        Some(spelt) => bytes.extend(spelt),
                        // A special token outside the alphabet appears as it is.
                        None => bytes.extend(token.bytes()),
                    }
                }
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Self::WordPiece { prefix, cleanup } => {
                let mut text = String::new();
                for (place, token) in ids.iter().filter_map(|id| surface(*id)).enumerate() {
                    let word = match token.strip_prefix(prefix.as_str()).filter(|_| place > 0) {
                        Some(inner) => inner.to_owned(),
                        None if place > 0 => format!(" {token}"),
                        None => token.to_owned(),
                    };
                    text.push_str(&if *cleanup == Cleanup::Tokens { clean_up(word) } else { word });
                }
                if *cleanup == Cleanup::Text { clean_up(text) } else { text }
            }
            Self::Spaces => ids.iter().filter_map(|id| surface(*id)).collect::<Vec<_>>().join(" "),
        }
    }
}

fn join_pieces<'a>(ids: &[u32], byte_of: &[Option<u8>], surface: impl Fn(u32) -> Option<&'a str>) -> String {
    let mut text = String::new();
    let mut bytes = Vec::new();
    for &id in ids {
        if let Some(&Some(byte)) = byte_of.get(id as usize) {
            bytes.push(byte);
            continue;
        }
        flush_bytes(&mut bytes, &mut text);
        if let Some(piece) = surface(id) {
            text.extend(piece.chars().map(|c| if c == METASPACE { ' ' } else { c }));
        }
    }
    flush_bytes(&mut bytes, &mut text);
    text
}

/// The bytes as text if they are UTF-8, else one replacement character per byte, as in Hugging Face tokenizers.
fn flush_bytes(bytes: &mut Vec<u8>, text: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text.push_str(valid),
        Err(_) => text.extend(std::iter::repeat_n('\u{FFFD}', bytes.len())),
    }
    bytes.clear();
}

/// Spaces that English spelling does not have, in the order in which BERT's tools remove them.
fn clean_up(text: String) -> String {
    const SPACED: [(&str, &str); 10] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    SPACED
        .iter()
        .fold(text, |text, (from, to)| if text.contains(from) { text.replace(from, to) } else { text })
}
