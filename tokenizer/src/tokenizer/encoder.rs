//! Encoding of many texts in a row, with a cache of words.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::{BLANK, Stage, Tokenizer};
use crate::encode::{Model, SentencePiece, WordCache};
use crate::pretokenize::{Metaspace, OF_T5, PreTokenizer, byte_level_words};
use crate::short_key::{MARK, SHORT_BYTES, short_key, short_word};

/// Longer words, in bytes, are not sought in the cache.
const LONGEST_WORD: usize = 64;

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
    /// Most that are kept. Each takes up to some 10 MB.
    const MOST: usize = 16;

    fn take(&self) -> WordCache {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, cache: WordCache) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A cache is in an unknown state after a panic.
        if idle.len() < Self::MOST && !std::thread::panicking() {
            idle.push(cache);
        }
    }
}

impl Encoder<'_> {
    /// The ids of `text`.
    pub fn encode(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.append(text, &mut ids);
        ids
    }

    /// Appends the ids of `text` to `ids`.
    pub(super) fn append(&mut self, text: &str, ids: &mut Vec<u32>) {
        self.tokenizer.special.each_part(text, |place, id| match id {
            Some(id) => ids.push(id),
            None => match self.tokenizer.by_place {
                Some(encode) => encode(self.tokenizer, &text[place.clone()], place.start, ids),
                None => self.encode_plain(&text[place.clone()], place.start == 0, ids),
            },
        });
    }

    /// Text without special tokens, through all stages.
    fn encode_plain(&mut self, text: &str, is_first: bool, ids: &mut Vec<u32>) {
        if let (Some(marks), Model::Bpe(model)) = (self.tokenizer.marks, &self.tokenizer.model)
            && model.cuts_before_marks()
            && self.tokenizer.special.normalized().is_none()
        {
            return self.encode_marked(marks.are_due(text, is_first), text, ids);
        }
        let normal = match &self.tokenizer.normalizer {
            Stage::Identity => Cow::Borrowed(text),
            Stage::Normalizer(normalizer) => normalizer.normalize(text),
            Stage::SentencePiece(normalizer) => Cow::Owned(normalizer.normalize(text)),
        };
        match self.tokenizer.special.normalized() {
            None => self.encode_normal(&normal, is_first, ids),
            Some(tokens) => tokens.each_part(&normal, |place, id| match id {
                Some(id) => ids.push(id),
                None => self.encode_normal(&normal[place.clone()], is_first && place.start == 0, ids),
            }),
        }
    }

    /// Normalized text without special tokens.
    fn encode_normal(&mut self, text: &str, is_first: bool, ids: &mut Vec<u32>) {
        let Tokenizer { pre_tokenizer, model, .. } = self.tokenizer;
        match pre_tokenizer {
            Some(PreTokenizer::Metaspace(space @ Metaspace { replacement: BLANK, split: true, .. })) => {
                let first = match space.is_due(is_first) && !text.starts_with([' ', BLANK]) {
                    true => next_blank(text, 0),
                    false => 0,
                };
                let (first, others) = text.split_at(first);
                if !first.is_empty() {
                    self.encode_any(&[space.replacement.encode_utf8(&mut [0; 4]), first].concat(), ids);
                }
                self.encode_blanks(others, ids);
            }
            Some(PreTokenizer::ByteLevel { add_prefix_space: false, use_regex: true, spells: false }) => {
                let mut from = 0;
                for word in byte_level_words(text) {
                    let place = from..from + word.len();
                    from = place.end;
                    self.cache.extend_within(text.as_bytes(), place, ids, |out| model.encode(word, out));
                }
            }
            Some(PreTokenizer::Sequence(all)) if *all == OF_T5 => self.encode_split(text, is_first, ids),
            Some(words) => words.each_word(text, is_first, &mut |word| self.encode_any(word, ids)),
            None => match model {
                Model::SentencePiece(model) if model.cuts_at_blanks() => self.encode_summed(model, text, ids),
                _ => self.encode_any(text, ids),
            },
        }
    }

    /// A word, which may be a whole text.
    fn encode_any(&mut self, word: &str, ids: &mut Vec<u32>) {
        let model = &self.tokenizer.model;
        match model {
            Model::Bpe(bpe) if bpe.cuts_before_marks() && word.len() > SHORT_BYTES => {
                let mut rest = word;
                while !rest.is_empty() {
                    // A mark after a mark may be merged with it.
                    let opening = rest.len() - rest.trim_start_matches(BLANK).len();
                    let (part, others) = rest.split_at(next_mark(rest, opening));
                    self.cache.extend(part.as_bytes(), ids, |out| model.encode(part, out));
                    rest = others;
                }
            }
            // A longer word does not recur.
            _ if word.len() > LONGEST_WORD => model.encode(word, ids),
            _ => self.cache.extend(word.as_bytes(), ids, |out| model.encode(word, out)),
        }
    }

    /// Word by word, each with the score sum of the words before it. Most words do not depend on it and are cached.
    fn encode_summed(&mut self, model: &SentencePiece, text: &str, ids: &mut Vec<u32>) {
        let bytes = text.as_bytes();
        let (first, mut from, mut sum) = (ids.len(), 0, 0.0);
        while from < bytes.len() {
            let (end, start) = (next_mark(text, from + 1), ids.len());
            let mut is_known = false;
            if end - from <= SHORT_BYTES && model.is_far_from_reset(sum) {
                let key = short_key(bytes, from, end - from);
                is_known = self.cache.recall(key, ids);
                if !is_known && model.sure_pieces(&text[from..end], ids) {
                    self.cache.remember(key, &ids[start..]);
                    is_known = true;
                }
            }
            sum = match is_known {
                true => model.add(sum, &ids[start..]),
                false => model.encode_after(sum, &text[from..end], first, ids),
            };
            from = end;
        }
    }

    /// Splits before each blank or literal `▁`, without a copy of the text.
    fn encode_blanks(&mut self, text: &str, ids: &mut Vec<u32>) {
        let bytes = text.as_bytes();
        let mut from = 0;
        while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
            // Most words are short and cached.
            let word = rest.first_chunk().and_then(short_word);
            from = match word.filter(|(_, key)| self.cache.recall(*key, ids)) {
                Some((length, _)) => from + length,
                None => self.encode_word(text, from, ids),
            };
        }
    }

    /// Text whose blanks become marks, by words that open with a blank or a mark, without a copy of cached ones. Blanks in a row
    /// belong to one word, since their marks may be merged. `due`: a mark goes before the text.
    fn encode_marked(&mut self, due: bool, text: &str, ids: &mut Vec<u32>) {
        let bytes = text.as_bytes();
        let mut from = if due { self.encode_opening(text, ids) } else { 0 };
        while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
            // A word of one byte may be the first of several blanks.
            let word = rest.first_chunk().and_then(short_word).filter(|(length, _)| *length > 1);
            from = match word.filter(|(_, key)| self.cache.recall(*key, ids)) {
                Some((length, _)) => from + length,
                None => self.encode_marked_word(text, from, ids),
            };
        }
    }

    /// Encodes the first word with a mark before it and returns its end.
    fn encode_opening(&mut self, text: &str, ids: &mut Vec<u32>) -> usize {
        let end = end_of_marked(text, 0);
        self.word.clear();
        self.word.push(BLANK);
        push_marked(&mut self.word, &text[..end]);
        let Self { cache, word, tokenizer } = self;
        cache.extend(word.as_bytes(), ids, |out| tokenizer.model.encode(word, out));
        end
    }

    /// Encodes the word that starts at `from` and returns its end.
    fn encode_marked_word(&mut self, text: &str, from: usize, ids: &mut Vec<u32>) -> usize {
        let Self { cache, word, tokenizer } = self;
        let end = end_of_marked(text, from);
        let encode = |out: &mut Vec<u32>| {
            word.clear();
            push_marked(word, &text[from..end]);
            tokenizer.model.encode(word, out);
        };
        cache.extend_within(text.as_bytes(), from..end, ids, encode);
        end
    }

    /// Words between blanks, each with a mark before it, without a copy of cached ones.
    fn encode_split(&mut self, text: &str, is_first: bool, ids: &mut Vec<u32>) {
        let Self { cache, word, tokenizer } = self;
        if text.contains(BLANK) {
            let words = PreTokenizer::Sequence(OF_T5.to_vec());
            return words.each_word(text, is_first, &mut |word| {
                cache.extend(word.as_bytes(), ids, |out| tokenizer.model.encode(word, out));
            });
        }
        for part in text.split_whitespace() {
            let encode = |out: &mut Vec<u32>| {
                word.clear();
                word.push(BLANK);
                word.push_str(part);
                tokenizer.model.encode(word, out);
            };
            let from = part.as_ptr() as usize - text.as_ptr() as usize;
            cache.extend_within(text.as_bytes(), from..from + part.len(), ids, encode);
        }
    }

    /// Encodes the word that starts at `from` and returns its end.
    fn encode_word(&mut self, text: &str, from: usize, ids: &mut Vec<u32>) -> usize {
        let bytes = text.as_bytes();
        let Self { cache, word, tokenizer } = self;
        let opens_with_mark = bytes[from] == MARK && text[from..].starts_with(BLANK);
        let skip = if opens_with_mark { BLANK.len_utf8() } else { 1 };
        let end = next_blank(text, from + skip);
        let body = match bytes[from] {
            b' ' => Some(from + 1),
            _ if opens_with_mark => Some(from + skip),
            _ => None,
        };
        let mut encode = |out: &mut Vec<u32>| match body {
            Some(body) => {
                word.clear();
                word.push(BLANK);
                word.push_str(&text[body..end]);
                tokenizer.model.encode(word, out);
            }
            None => tokenizer.model.encode(&text[from..end], out),
        };
        if end - from <= SHORT_BYTES || bytes[from] == b' ' || !opens_with_mark {
            cache.extend_within(bytes, from..end, ids, encode);
        } else {
            encode(ids);
        }
        end
    }
}

/// The end of the word at `from`: of blanks and marks, and of what follows them up to the next.
fn end_of_marked(text: &str, from: usize) -> usize {
    let rest = &text[from..];
    let opening = rest.len() - rest.trim_start_matches([' ', BLANK]).len();
    next_blank(text, from + opening)
}

/// Appends a text with marks for its blanks.
fn push_marked(out: &mut String, text: &str) {
    for (at, part) in text.split(' ').enumerate() {
        if at > 0 {
            out.push(BLANK);
        }
        out.push_str(part);
    }
}

/// The position of the next `▁` from `at` on.
fn next_mark(text: &str, mut at: usize) -> usize {
    while let Some(found) = memchr::memchr(MARK, &text.as_bytes()[at..]) {
        at += found;
        if text[at..].starts_with(BLANK) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// The position of the next blank or literal `▁` from `at` on.
fn next_blank(text: &str, mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b' ', MARK, &text.as_bytes()[at..]) {
        at += found;
        if text[at..].starts_with([BLANK, ' ']) {
            return at;
        }
        at += 1;
    }
    text.len()
}
