//! Encoding with the offsets of tokens in the text.

use serde_json::Value;

use crate::aligned_text::AlignedText;
use crate::encode::Token;
use crate::tokenizer::{Encoder, Stage, Tokenizer};

/// The unit of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values, as Python indexes text.
    Characters,
}

/// The ids of a text, with offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids.
    pub ids: Vec<u32>,
    /// For each id, start and end of its part of the text. Neighboring ids may have the same part, where one character became
    /// several tokens. Text that a normalizer dropped belongs to no id.
    pub offsets: Vec<(usize, usize)>,
}

impl Tokenizer {
    /// The ids of `text` with offsets, as in Hugging Face's `Encoding.offsets`, or for a `.model` as in SentencePiece.
    ///
    /// ```
    /// use dp_tokenizer::{OffsetUnit, Tokenizer, format::vocab_txt, normalize::BertNormalizer};
    /// let vocabulary = vocab_txt::read("[UNK]\nthe\ncafe\n##s\n.\n".as_bytes())?;
    /// let tokenizer = Tokenizer::bert(vocabulary, BertNormalizer::uncased())?;
    /// let found = tokenizer.encode_with_offsets("Thé cafés.", OffsetUnit::Characters);
    /// assert_eq!(found.ids, tokenizer.encode("Thé cafés."));
    /// assert_eq!(found.offsets, [(0, 3), (4, 8), (8, 9), (9, 10)]);
    /// # Ok::<(), dp_tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn encode_with_offsets(&self, text: &str, unit: OffsetUnit) -> Encoding {
        self.encoder().encode_with_offsets(text, unit)
    }
}

impl Encoder<'_> {
    /// The ids of `text` with offsets; see [`Tokenizer::encode_with_offsets`].
    pub fn encode_with_offsets(&mut self, text: &str, unit: OffsetUnit) -> Encoding {
        let mut found = Encoding::default();
        let mut from = 0;
        while let Some((start, end, id)) = self.tokenizer.special.find(&text[from..]) {
            plain(self.tokenizer, AlignedText::new(&text[from..from + start], from), &mut found);
            found.ids.push(id);
            found.offsets.push((from + start, from + end));
            from += end;
        }
        plain(self.tokenizer, AlignedText::new(&text[from..], from), &mut found);
        if unit == OffsetUnit::Characters && !text.is_ascii() {
            let before = characters_before(text);
            for (start, end) in &mut found.offsets {
                (*start, *end) = (before[*start], before[*end]);
            }
        }
        trim(self.tokenizer, &self.tokenizer.post_processor, &mut found);
        found
    }
}

/// Text without special tokens, through all stages.
fn plain(tokenizer: &Tokenizer, mut text: AlignedText, found: &mut Encoding) {
    let is_first = text.span(0..text.text.len().min(1)).0 == 0;
    match &tokenizer.normalizer {
        Stage::Identity => {}
        Stage::Normalizer(normalizer) => normalizer.align(&mut text),
        Stage::SentencePiece(normalizer) => text = normalizer.align(&text),
    }
    let mut tokens = Vec::new();
    let mut encode = |word: &AlignedText| {
        tokens.clear();
        tokenizer.model.tokens(&word.text, &mut tokens);
        for &Token { id, start, end } in &tokens {
            found.ids.push(id);
            found.offsets.push(word.span(start..end));
        }
    };
    match &tokenizer.pre_tokenizer {
        Some(words) => words.each_aligned(text, is_first, &mut encode),
        None => encode(&text),
    }
}

/// For each byte and the end, the number of characters that begin before it.
fn characters_before(text: &str) -> Vec<usize> {
    let mut count = 0;
    let mut before = Vec::with_capacity(text.len() + 1);
    for at in 0..text.len() {
        before.push(count);
        count += usize::from(text.is_char_boundary(at + 1));
    }
    before.push(count);
    before
}

/// Excludes leading and trailing spaces of tokens from their offsets, where the post-processor says so.
fn trim(tokenizer: &Tokenizer, post_processor: &Value, found: &mut Encoding) {
    match post_processor["type"].as_str() {
        Some("Sequence") => {
            for each in post_processor["processors"].as_array().into_iter().flatten() {
                trim(tokenizer, each, found);
            }
            return;
        }
        Some("ByteLevel" | "RobertaProcessing") if post_processor["trim_offsets"] != Value::Bool(false) => {}
        _ => return,
    }
    let keeps_first = post_processor["add_prefix_space"] != Value::Bool(false);
    let is_space = |c: &char| *c == 'Ġ' || c.is_whitespace();
    for (at, (id, (start, end))) in found.ids.iter().zip(&mut found.offsets).enumerate() {
        let token = tokenizer.token(*id).unwrap_or_default();
        let opening = token.chars().take_while(is_space).count();
        let closing = token.chars().rev().take_while(is_space).count();
        // A single space at the beginning of the text was added by the pre-tokenizer.
        if !((at == 0 || *start == 0) && keeps_first && opening == 1) {
            *start = (*start + opening).min(*end);
        }
        if *end >= closing {
            *end = (*end - closing).max(*start);
        }
    }
}
