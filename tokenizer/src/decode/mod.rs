//! Decoding: tokens to text.

mod bytes;
mod marks;
mod text;
mod wordpiece;

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::FormatError;
use crate::encode::Model;
use crate::pattern::Pattern;
use crate::pretokenize::{METASPACE, Metaspace};
use crate::special_tokens::SpecialTokens;
use crate::stage::{self, Kinds};
use bytes::flush_bytes;
use wordpiece::{WordPiece, clean_up, word_piece};

/// A step of decoding. A new one is registered in [`KINDS`].
pub(crate) trait Decode: Debug + Send + Sync {
    /// Returns the tokens that the step makes of `tokens`. A step that can lengthen them keeps to `limit` bytes in all.
    fn decode(&self, tokens: Vec<String>, limit: usize) -> Vec<String>;

    /// Returns the number of last tokens whose text may change when further tokens come; `None` if any token's may.
    fn tokens_that_may_change(&self) -> Option<usize> {
        Some(0)
    }

    /// Returns the step as a `tokenizer.json` writes it.
    fn json(&self) -> Value;
}

/// The field of a sequence that lists its stages.
const LIST: &str = "decoders";

/// Every step of decoding that a `tokenizer.json` can name. A build that reads no such file, such as that of the web
/// page, leaves this table out.
const KINDS: Kinds<dyn Decode> = Kinds {
    part: "decoder",
    list: LIST,
    read: &[
        ("Metaspace", |part| Ok(Arc::new(Metaspace::read(part)?))),
        ("ByteLevel", |_| Ok(Arc::new(bytes::ByteLevel))),
        ("WordPiece", WordPiece::read),
        ("BPEDecoder", marks::Bpe::read),
        ("ByteFallback", |_| Ok(Arc::new(bytes::ByteFallback))),
        ("Fuse", |_| Ok(Arc::new(text::Fuse))),
        ("Strip", text::Strip::read),
        ("Replace", text::Replace::read),
    ],
};

/// Which spaces a decoder drops at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeadingSpaces {
    /// None.
    Kept,
    /// That of the first token, which the pre-tokenizer added.
    First,
    /// One of each token before other text, as SentencePiece does where its normalizer removes spaces.
    OfEach,
}

/// The way in which tokens are joined to a text.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// The decoder of a `.model`, and of vocabularies trained here: marks become spaces, and byte tokens become
    /// characters.
    SentencePiece {
        /// The spaces at the beginning that are no part of the text.
        dropped: LeadingSpaces,
    },
    /// The decoder of BERT's own tools. It puts a space before each token without the prefix, and removes spaces that
    /// English spelling does not have.
    Bert {
        /// The prefix of tokens inside a word.
        prefix: String,
    },
    /// The steps of a `tokenizer.json`, whose tokens are joined at the end.
    Steps(Vec<Arc<dyn Decode>>),
}

impl Decoder {
    /// Reads the field `decoder` of a `tokenizer.json`.
    ///
    /// # Errors
    /// If a decoder is not supported.
    pub(crate) fn read(part: &Value) -> Result<Self, FormatError> {
        let spaces: Arc<dyn Decode> = Arc::new(text::Spaces);
        Ok(Self::Steps(if part.is_null() { vec![spaces] } else { KINDS.read(part)? }))
    }

    /// Returns the decoder of tokens that spell bytes in GPT-2's alphabet.
    pub(crate) fn byte_level() -> Self {
        Self::Steps(vec![Arc::new(bytes::ByteLevel)])
    }

    /// Returns the decoder as a `tokenizer.json` writes it.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::SentencePiece { dropped } => {
                let scheme = if *dropped == LeadingSpaces::Kept { "never" } else { "always" };
                let space = json!({"type": "Metaspace", "replacement": METASPACE, "prepend_scheme": scheme, "split": true});
                json!({"type": "Sequence", "decoders": [space, {"type": "ByteFallback"}, {"type": "Fuse"}]})
            }
            Self::Bert { prefix } => json!({"type": "WordPiece", "prefix": prefix, "cleanup": true}),
            // Without a step, tokens are joined; null would put spaces between them.
            Self::Steps(steps) if steps.is_empty() => json!({"type": "Sequence", "decoders": []}),
            Self::Steps(steps) => stage::write(steps, LIST, Decode::json),
        }
    }

    /// Returns the number of last tokens whose text may change when further tokens come; `None` if any token's may.
    pub(crate) fn tokens_that_may_change(&self) -> Option<usize> {
        match self {
            Self::SentencePiece { .. } => Some(0),
            // A contraction has up to four tokens, as in "do n ' t".
            Self::Bert { .. } => Some(4),
            Self::Steps(steps) => {
                steps.iter().try_fold(0, |most, step| Some(most.max(step.tokens_that_may_change()?)))
            }
        }
    }

    /// Returns the text of `ids`.
    pub(crate) fn decode(
        &self,
        ids: &[u32],
        model: &Model,
        byte_of: &[Option<u8>],
        special: &SpecialTokens,
    ) -> String {
        match self {
            Self::SentencePiece { dropped } => {
                let surface = |id: u32| model.surface(id).or_else(|| special.name(id));
                let text = join_pieces(ids, byte_of, surface);
                let shown = || ids.iter().copied().filter(|id| surface(*id).is_some());
                // The text that a `.model` shows for unknown characters keeps its own space.
                let is_unknown =
                    |id: u32| matches!(model, Model::SentencePiece(_)) && model.unk_id() == Some(id);
                let opens = |id: u32| {
                    !is_unknown(id) && surface(id).is_some_and(|piece| piece.starts_with(METASPACE))
                };
                let is_space = |id: u32| surface(id).is_some_and(|piece| piece.chars().eq([METASPACE]));
                let lone = match dropped {
                    LeadingSpaces::OfEach => shown().take_while(|id| is_space(*id)).count(),
                    _ => 0,
                };
                let of_next = *dropped != LeadingSpaces::Kept && shown().nth(lone).is_some_and(opens);
                let spaces = lone + usize::from(of_next);
                (0..spaces).fold(text.as_str(), |rest, _| rest.strip_prefix(' ').unwrap_or(rest)).to_owned()
            }
            Self::Bert { prefix } => {
                let tokens = ids.iter().filter_map(|id| model.token(*id).or_else(|| special.name(*id)));
                clean_up(tokens.enumerate().map(|(place, token)| word_piece(place, token, prefix)).collect())
            }
            Self::Steps(steps) => {
                let tokens = ids.iter().filter_map(|id| special.shown(*id).or_else(|| model.token(*id)));
                let tokens: Vec<String> = tokens.map(str::to_owned).collect();
                let limit = Pattern::byte_limit(tokens.iter().map(String::len).sum());
                steps.iter().fold(tokens, |tokens, step| step.decode(tokens, limit)).concat()
            }
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
