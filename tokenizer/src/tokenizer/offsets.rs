//! Encoding with the offsets of tokens in the text.

use crate::aligned_text::{AlignedText, Span};
use crate::encode::Token;
use crate::encoding::{Encoding, OffsetUnit};

use super::{Encoder, Tokenizer};

impl Tokenizer {
    /// Returns the ids of `text` with offsets, as in Hugging Face's `Encoding.offsets`, or for a `.model` as in
    /// SentencePiece.
    ///
    /// ```
    /// use tokenizer::{OffsetUnit, Tokenizer, format::vocab_txt, normalize::BertNormalizer};
    /// let vocabulary = vocab_txt::read("[UNK]\nthe\ncafe\n##s\n.\n".as_bytes())?;
    /// let tokenizer = Tokenizer::bert(vocabulary, BertNormalizer::uncased())?;
    /// let found = tokenizer.encode_with_offsets("Thé cafés.", OffsetUnit::Characters);
    /// assert_eq!(found.ids, tokenizer.encode("Thé cafés."));
    /// assert_eq!(found.offsets, [(0, 3), (4, 8), (8, 9), (9, 10)]);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn encode_with_offsets(&self, text: &str, unit: OffsetUnit) -> Encoding {
        self.encoder().encode_with_offsets(text, unit)
    }

    /// `encoding` with the tokens that the post-processor of a `tokenizer.json` puts around a text, as BERT's `[CLS]`
    /// and `[SEP]`. Hugging Face calls this `add_special_tokens`. Their offsets are 0. Without a post-processor, it
    /// stays as it is.
    /// stays as it is.
    ///
    /// ```
    /// use tokenizer::{Encoding, Tokenizer, format::vocab_txt, normalize::BertNormalizer};
    /// let vocabulary = vocab_txt::read("[UNK]\n[CLS]\n[SEP]\nhi\n".as_bytes())?;
    /// let tokenizer = Tokenizer::bert(vocabulary, BertNormalizer::uncased())?;
    /// let text = Encoding { ids: tokenizer.encode("Hi"), ..Encoding::default() };
    /// assert_eq!(tokenizer.post_process(text).ids, [1, 3, 2]);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn post_process(&self, encoding: Encoding) -> Encoding {
        self.post_processor.surround(encoding)
    }

    /// Whether [`Self::post_process`] adds tokens.
    #[must_use]
    pub fn adds_special_tokens(&self) -> bool {
        !self.post_processor.ids().is_empty()
    }
}

impl Encoder<'_> {
    /// Returns the ids of `text` with offsets; see [`Tokenizer::encode_with_offsets`].
    pub fn encode_with_offsets(&mut self, text: &str, unit: OffsetUnit) -> Encoding {
        let tokenizer = self.tokenizer;
        let (mut found, mut tokens) = (Found::default(), Vec::new());
        each_part(tokenizer, text, &mut |part| match part {
            Part::Added { id, matched, span } => found.push_added(tokenizer, id, matched, span),
            Part::Word(word) => {
                tokens.clear();
                tokenizer.model.tokens(&word.text, &mut tokens);
                found.push_tokens(word, &tokens);
            }
        });
        found.finish(tokenizer, text, unit)
    }
}

/// Appends the ids of a part of a text that starts at `origin` and has no special tokens, with the places of its words.
pub(crate) fn ids_by_place(tokenizer: &Tokenizer, part: &str, origin: usize, ids: &mut Vec<u32>) {
    each_normalized_part(tokenizer, AlignedText::new(part, origin), &mut |part| match part {
        Part::Added { id, .. } => ids.push(id),
        Part::Word(word) => tokenizer.model.encode(&word.text, ids),
    });
}

/// An encoding in the making.
#[derive(Default)]
pub(crate) struct Found {
    encoding: Encoding,
    /// Added tokens that took blanks around them: their positions in the list of ids, and the text that they took.
    widened: Vec<(usize, String)>,
}

impl Found {
    /// Appends an added token, which was found as the text `matched`.
    pub(crate) fn push_added(&mut self, tokenizer: &Tokenizer, id: u32, matched: &str, span: Span) {
        if tokenizer.special.name(id) != Some(matched) {
            self.widened.push((self.encoding.ids.len(), matched.to_owned()));
        }
        self.encoding.ids.push(id);
        self.encoding.offsets.push(span);
    }

    /// Appends the tokens of a word.
    pub(crate) fn push_tokens(&mut self, word: &AlignedText, tokens: &[Token]) {
        for &Token { id, start, end } in tokens {
            self.encoding.ids.push(id);
            self.encoding.offsets.push(word.span(start..end));
        }
    }

    /// Returns the encoding of `text`, with offsets in `unit`.
    pub(crate) fn finish(self, tokenizer: &Tokenizer, text: &str, unit: OffsetUnit) -> Encoding {
        let Self { encoding: mut found, widened } = self;
        if unit == OffsetUnit::Characters && !text.is_ascii() {
            let before = characters_before(text);
            for (start, end) in &mut found.offsets {
                (*start, *end) = (before[*start], before[*end]);
            }
        }
        // An added token may have taken blanks around it.
        tokenizer.post_processor.trim(&mut found, &|at, id| {
            let matched = widened.binary_search_by_key(&at, |widened| widened.0).ok();
            matched.map(|n| widened[n].1.as_str()).or_else(|| tokenizer.token(id)).unwrap_or_default()
        });
        found
    }
}

/// A part of a text.
pub(crate) enum Part<'a> {
    /// An added token, the text that it was found as, and its place.
    Added { id: u32, matched: &'a str, span: Span },
    /// A word, which the model cuts into tokens.
    Word(&'a AlignedText),
}

/// Hands the parts of a text to `take`, in order.
pub(crate) fn each_part(tokenizer: &Tokenizer, text: &str, take: &mut dyn FnMut(Part<'_>)) {
    tokenizer.special.each_part(text, |place, id| match id {
        Some(id) => take(Part::Added { id, matched: &text[place.clone()], span: (place.start, place.end) }),
        None => {
            let (from, part) = (place.start, &text[place]);
            each_normalized_part(tokenizer, AlignedText::new(part, from), take);
        }
    });
}

/// Takes a text without special tokens through all stages but the model, and hands its parts to `take`.
fn each_normalized_part(tokenizer: &Tokenizer, mut text: AlignedText, take: &mut dyn FnMut(Part<'_>)) {
    tokenizer.normalizer.align(&mut text);
    let words = |text: AlignedText, take: &mut dyn FnMut(Part<'_>)| {
        tokenizer.pre_tokenizer.each_aligned(text, &mut |word| take(Part::Word(word)));
    };
    match tokenizer.special.normalized() {
        None => words(text, take),
        Some(tokens) => tokens.each_part(&text.text, |place, id| match id {
            Some(id) => {
                let span = text.span(place.clone());
                take(Part::Added { id, matched: &text.text[place], span });
            }
            None => words(text.part(place), take),
        }),
    }
}

/// Returns, for each byte and the end, the number of characters that begin before it.
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
