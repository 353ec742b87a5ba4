//! Decoding: tokens to text.

use crate::byte_alphabet::char_to_byte;
use crate::encode::Model;
use crate::pattern::Pattern;
use crate::pretokenize::{METASPACE, Metaspace, PrependScheme};
use crate::special_tokens::SpecialTokens;

/// How tokens are joined to a text.
#[derive(Clone, Debug)]
pub(crate) enum Decoder {
    /// That of a `.model`, and of vocabularies trained here: marks become spaces, and byte tokens become characters.
    SentencePiece {
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
    /// Marks become spaces; those of the first token go, unless no mark is put before a text.
    Metaspace(Metaspace),
    /// The mark at the end of a word becomes a space, but for the last.
    Bpe {
        /// The mark.
        suffix: String,
    },
    /// Tokens `<0x00>` to `<0xFF>` that follow each other become characters.
    ByteFallback,
    /// All tokens become one.
    Fuse,
    /// Some characters at both ends of each token go.
    Strip {
        /// The character that goes.
        content: char,
        /// So many at the start, at most.
        start: usize,
        /// So many at the end.
        stop: usize,
    },
    /// Other text takes the place of what is found in a token.
    Replace {
        /// What is sought.
        pattern: Pattern,
        /// What takes its place.
        content: String,
    },
    /// One after the other.
    Sequence(Vec<Decoder>),
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
    /// The number of last tokens whose text may become another one when further tokens come; `None` if any token's may.
    pub(crate) fn tokens_that_may_change(&self) -> Option<usize> {
        match self {
            // A contraction has up to four tokens, as in "do n ' t".
            Self::WordPiece { cleanup: Cleanup::Text, .. } => Some(4),
            // The last word has no space after it.
            Self::Bpe { .. } => Some(1),
            // What goes or is sought may lie in a token that is still to come.
            Self::Strip { stop: 1.., .. } => None,
            Self::Replace { pattern, .. } if !pattern.is_character() => None,
            Self::Sequence(stages) => {
                stages.iter().map(Self::tokens_that_may_change).try_fold(0, |most, one| Some(most.max(one?)))
            }
            _ => Some(0),
        }
    }

    /// The text of `ids`.
    pub(crate) fn decode(
        &self,
        ids: &[u32],
        model: &Model,
        byte_of: &[Option<u8>],
        special: &SpecialTokens,
    ) -> String {
        match self {
            Self::SentencePiece { drop_first_space } => {
                let surface = |id: u32| model.surface(id).or_else(|| special.name(id));
                let text = join_pieces(ids, byte_of, surface);
                let first = ids.iter().find(|id| surface(**id).is_some()).copied();
                // The text that a `.model` shows for unknown characters keeps its own space.
                let is_unknown = matches!(model, Model::SentencePiece(_)) && first == model.unk_id();
                match text.strip_prefix(' ') {
                    Some(rest) if *drop_first_space && !is_unknown => rest.to_owned(),
                    _ => text,
                }
            }
            Self::WordPiece { prefix, cleanup: Cleanup::Text } => {
                let tokens = ids.iter().filter_map(|id| model.token(*id).or_else(|| special.name(*id)));
                clean_up(tokens.enumerate().map(|(place, token)| word_piece(place, token, prefix)).collect())
            }
            _ => {
                let tokens = ids.iter().filter_map(|id| special.shown(*id).or_else(|| model.token(*id)));
                let tokens: Vec<String> = tokens.map(str::to_owned).collect();
                let most = Pattern::most_bytes(tokens.iter().map(String::len).sum());
                self.chain(tokens, most).concat()
            }
        }
    }

    /// One stage of a `tokenizer.json`, which makes at most `most` bytes of tokens that grow.
    fn chain(&self, mut tokens: Vec<String>, most: usize) -> Vec<String> {
        match self {
            Self::Spaces => vec![tokens.join(" ")],
            Self::Sequence(all) => all.iter().fold(tokens, |tokens, stage| stage.chain(tokens, most)),
            Self::Fuse => vec![tokens.concat()],
            Self::ByteLevel => vec![String::from_utf8_lossy(&spelt_bytes(&tokens)).into_owned()],
            Self::ByteFallback => byte_fallback(tokens),
            Self::WordPiece { prefix, cleanup } => {
                for (place, token) in tokens.iter_mut().enumerate() {
                    let word = word_piece(place, token, prefix);
                    *token = if *cleanup == Cleanup::Never { word } else { clean_up(word) };
                }
                tokens
            }
            Self::SentencePiece { drop_first_space } => {
                let prepend_scheme =
                    if *drop_first_space { PrependScheme::Always } else { PrependScheme::Never };
                let space = Self::Metaspace(Metaspace { prepend_scheme, ..Metaspace::default() });
                [space, Self::ByteFallback, Self::Fuse]
                    .iter()
                    .fold(tokens, |tokens, stage| stage.chain(tokens, most))
            }
            Self::Metaspace(Metaspace { replacement, prepend_scheme, .. }) => {
                for (place, token) in tokens.iter_mut().enumerate() {
                    let drops = place == 0 && *prepend_scheme != PrependScheme::Never;
                    *token = token.replace(*replacement, if drops { "" } else { " " });
                }
                tokens
            }
            Self::Bpe { suffix } => {
                let last = tokens.len().saturating_sub(1);
                for (place, token) in tokens.iter_mut().enumerate() {
                    *token = token.replace(suffix, if place == last { "" } else { " " });
                }
                tokens
            }
            Self::Strip { content, start, stop } => {
                tokens.iter_mut().for_each(|token| *token = stripped(token, *content, *start, *stop));
                tokens
            }
            Self::Replace { pattern, content } => {
                let mut length: usize = tokens.iter().map(String::len).sum();
                for token in &mut tokens {
                    let others = length - token.len();
                    if let Some(replaced) = pattern.replace(token, content, most.saturating_sub(others)) {
                        length = others + replaced.len();
                        *token = replaced;
                    }
                }
                tokens
            }
        }
    }
}

/// A token of WordPiece as it stands in the text.
fn word_piece(place: usize, token: &str, prefix: &str) -> String {
    match token.strip_prefix(prefix).filter(|_| place > 0) {
        Some(inner) => inner.to_owned(),
        None if place > 0 => format!(" {token}"),
        None => token.to_owned(),
    }
}

/// The bytes that tokens spell in GPT-2's alphabet.
fn spelt_bytes(tokens: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for token in tokens {
        match token.chars().map(char_to_byte).collect::<Option<Vec<u8>>>() {
            Some(spelt) => bytes.extend(spelt),
            // A special token outside the alphabet appears as it is.
            None => bytes.extend(token.bytes()),
        }
    }
    bytes
}

fn byte_fallback(tokens: Vec<String>) -> Vec<String> {
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

/// The byte of `<0x00>` to `<0xFF>`.
fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>').filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
}

/// `token` without up to `start` and `stop` characters `content` at its ends.
fn stripped(token: &str, content: char, start: usize, stop: usize) -> String {
    let opening = token.chars().take(start).take_while(|c| *c == content).count();
    let token = &token[opening * content.len_utf8()..];
    let closing = token.chars().rev().take(stop).take_while(|c| *c == content).count();
    token[..token.len() - closing * content.len_utf8()].to_owned()
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
