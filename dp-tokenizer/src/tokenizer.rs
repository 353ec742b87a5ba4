//! The tokenizer: text to ids and back.

use crate::encode::{DoubleArray, Unigram, WordCache, byte_token};

/// Stands for a blank inside tokens, as in SentencePiece.
pub(crate) const BLANK: char = '\u{2581}';

/// The token that fills up short sequences.
pub const PAD: &str = "<pad>";
/// The token that ends a text.
pub const EOS: &str = "</s>";
/// The token for what the vocabulary lacks.
pub const UNK: &str = "<unk>";

/// Text to token ids and back.
///
/// Blanks become `▁`, text is cut before each `▁`, and each part is segmented by the model. With byte fallback,
/// decoding gives back the text that was encoded, except that a literal `▁` comes back as a blank.
///
/// ```
/// use dp_tokenizer::train::{UnigramConfig, unigram};
/// let words = [("▁the".to_owned(), 50.0), ("▁then".to_owned(), 9.0)];
/// let tokenizer = unigram(&words, &UnigramConfig { vocab_size: 400, ..Default::default() })?.tokenizer;
/// let ids = tokenizer.encode("then the café");
/// assert_eq!(tokenizer.decode(&ids), "then the café");
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
pub struct Tokenizer {
    pub(crate) model: Unigram,
    pub(crate) special: SpecialTokens,
    byte_of: Vec<Option<u8>>,
}

/// Tokens that are never cut and never made from ordinary text pieces.
pub(crate) struct SpecialTokens {
    pub(crate) tokens: Vec<(u32, String)>,
    trie: DoubleArray,
}

impl SpecialTokens {
    pub(crate) fn new(tokens: Vec<(u32, String)>) -> Self {
        let names: Vec<&str> = tokens.iter().map(|t| t.1.as_str()).collect();
        Self { trie: DoubleArray::new(&names), tokens }
    }

    /// The first special token in `text`: where it starts, where it ends, its id.
    fn find(&self, text: &str) -> Option<(usize, usize, u32)> {
        text.as_bytes().iter().enumerate().find_map(|(at, _)| {
            let mut longest = None;
            self.trie.prefixes(&text.as_bytes()[at..], |length, index| longest = Some((length, index)));
            longest.map(|(length, index)| (at, at + length, self.tokens[index as usize].0))
        })
    }

    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        self.tokens.iter().find(|t| t.1 == name).map(|t| t.0)
    }
}

impl Tokenizer {
    pub(crate) fn new(model: Unigram, special: SpecialTokens) -> Self {
        let mut byte_of = vec![None; model.pieces().len()];
        if model.falls_back_to_bytes() {
            for byte in 0..=255 {
                if let Some(id) = model.id(&byte_token(byte)) {
                    byte_of[id as usize] = Some(byte);
                }
            }
        }
        Self { model, special, byte_of }
    }

    /// The ids of `text`. No token is added at either end.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.encoder().encode(text)
    }

    /// An encoder that remembers words, for many texts in a row on one thread.
    #[must_use]
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder { tokenizer: self, cache: WordCache::default(), word: String::new() }
    }

    /// The text of `ids`. Special tokens appear by name; ids beyond the vocabulary are left out; bytes that form no
    /// character appear as U+FFFD.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut text = String::new();
        let mut bytes = Vec::new();
        for &id in ids {
            if let Some(&Some(byte)) = self.byte_of.get(id as usize) {
                bytes.push(byte);
                continue;
            }
            flush_bytes(&mut bytes, &mut text);
            if let Some(piece) = self.token(id) {
                text.extend(piece.chars().map(|c| if c == BLANK { ' ' } else { c }));
            }
        }
        flush_bytes(&mut bytes, &mut text);
        text
    }

    /// How many tokens there are; ids are below this.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.model.pieces().len()
    }

    /// The token with this id, as written in the vocabulary.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<&str> {
        self.model.pieces().get(id as usize).map(|p| p.0.as_str())
    }

    /// The id of a token written as in the vocabulary.
    #[must_use]
    pub fn id(&self, token: &str) -> Option<u32> {
        self.model.id(token)
    }

    /// The id of `<pad>`.
    #[must_use]
    pub fn pad_id(&self) -> Option<u32> {
        self.special.id(PAD)
    }

    /// The id of `</s>`, which ends a text.
    #[must_use]
    pub fn eos_id(&self) -> Option<u32> {
        self.special.id(EOS)
    }

    /// The id that starts a text: the same token as ends one.
    #[must_use]
    pub fn bos_id(&self) -> Option<u32> {
        self.eos_id()
    }

    /// The id of `<unk>`.
    #[must_use]
    pub fn unk_id(&self) -> Option<u32> {
        self.model.unknown_id()
    }
}

/// All the bytes as text if they are UTF-8, else a replacement character each, as HF tokenizers does.
fn flush_bytes(bytes: &mut Vec<u8>, text: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text.push_str(valid),
        Err(_) => text.extend(std::iter::repeat_n('\u{FFFD}', bytes.len())),
    }
    bytes.clear();
}

/// A tokenizer with a memory for words; see [`Tokenizer::encoder`].
pub struct Encoder<'a> {
    tokenizer: &'a Tokenizer,
    cache: WordCache,
    word: String,
}

impl Encoder<'_> {
    /// The ids of `text`.
    pub fn encode(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        let mut rest = text;
        while let Some((start, end, id)) = self.tokenizer.special.find(rest) {
            self.encode_plain(&rest[..start], &mut ids);
            ids.push(id);
            rest = &rest[end..];
        }
        self.encode_plain(rest, &mut ids);
        ids
    }

    /// Text without special tokens: cut before each blank (or literal `▁`), each part on its own.
    fn encode_plain(&mut self, text: &str, ids: &mut Vec<u32>) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let blank = first == ' ' || first == BLANK;
            let skip = if blank { first.len_utf8() } else { 0 };
            let end = rest[skip..].find([' ', BLANK]).map_or(rest.len(), |at| skip + at);
            self.word.clear();
            if blank {
                self.word.push(BLANK);
            }
            self.word.push_str(&rest[skip..end]);
            let (word, model) = (&self.word, &self.tokenizer.model);
            self.cache.extend(word.as_bytes(), ids, |out| model.encode(word, out));
            rest = &rest[end..];
        }
    }
}
