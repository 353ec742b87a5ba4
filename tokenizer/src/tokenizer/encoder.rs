//! Encoding of many texts in a row, with a cache of words.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::Tokenizer;
use crate::encode::WordCache;
use crate::pretokenize::{Spelling, WordFinder};
use crate::short_key::SHORT_BYTES;

/// A tokenizer with a cache of words; see [`Tokenizer::encoder`].
pub struct Encoder<'a> {
    pub(crate) tokenizer: &'a Tokenizer,
    cache: WordCache,
    word: String,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        Self { tokenizer, cache: tokenizer.caches.take(), word: String::new() }
    }
}

impl Drop for Encoder<'_> {
    fn drop(&mut self) {
        self.tokenizer.caches.give_back(std::mem::take(&mut self.cache));
    }
}

/// Caches of words that no encoder uses now. The next encoders start with them.
#[derive(Default)]
pub(super) struct IdleCaches(Mutex<Vec<WordCache>>);

impl IdleCaches {
    /// The most caches that are kept. Each takes up to about 10 MB.
    const MAX_IDLE: usize = 16;

    fn take(&self) -> WordCache {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, cache: WordCache) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A cache is in an unknown state after a panic.
        if idle.len() < Self::MAX_IDLE && !std::thread::panicking() {
            idle.push(cache);
        }
    }
}

impl Encoder<'_> {
    /// Returns the ids of `text`.
    pub fn encode(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.append(text, &mut ids);
        ids
    }

    /// Appends the ids of `text` to `ids`: special tokens as they are, and the text between them stage by stage.
    pub(super) fn append(&mut self, text: &str, ids: &mut Vec<u32>) {
        let tokenizer = self.tokenizer;
        tokenizer.special.each_part(text, |place, id| match (id, tokenizer.by_place) {
            (Some(id), _) => ids.push(id),
            (None, Some(encode)) => encode(tokenizer, &text[place.clone()], place.start, ids),
            (None, None) => self.normalize(&text[place.clone()], place.start == 0, ids),
        });
    }

    /// Normalizes a text, and finds the special tokens that are sought in normalized text.
    fn normalize(&mut self, text: &str, is_first: bool, ids: &mut Vec<u32>) {
        let normal = match self.tokenizer.words {
            WordFinder::AtRuns(..) => Cow::Borrowed(text),
            _ => self.tokenizer.normalizer.normalize(text),
        };
        match self.tokenizer.special.normalized() {
            None => self.words(&normal, is_first, ids),
            Some(tokens) => tokens.each_part(&normal, |place, id| match id {
                Some(id) => ids.push(id),
                None => self.words(&normal[place.clone()], is_first && place.start == 0, ids),
            }),
        }
    }

    /// Cuts a normalized text into words, and appends the ids of each, from the cache if it knows them.
    fn words(&mut self, text: &str, is_first: bool, ids: &mut Vec<u32>) {
        let Self { cache, word: spelt, tokenizer } = self;
        let Tokenizer { words, pre_tokenizer, model, .. } = *tokenizer;
        // A model may cut a whole text otherwise than a word of it, so a whole text always goes to the model.
        let longest = if matches!(words, WordFinder::Whole) { 0 } else { SHORT_BYTES };
        words.each(pre_tokenizer, text, is_first, |word| {
            if word.key != 0 && cache.recall(word.key, ids) {
                return;
            }
            if word.spelling == Spelling::AsWritten && word.place.len() > longest {
                return model.encode_cached(word.text, word.place, cache, ids);
            }
            cache.extend_within(word.text.as_bytes(), word.place.clone(), ids, |ids| {
                spelt.clear();
                word.spell(spelt);
                model.encode(spelt, ids);
            });
        });
    }
}
