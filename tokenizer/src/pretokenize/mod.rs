//! Pre-tokenizers, which split a normalized text into words. No token crosses the bounds of words.

mod bert;
mod byte_level;
mod fast;
mod marks;
mod metaspace;
mod scripts;
mod split;
mod whitespace;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::byte_alphabet::spell_bytes;
use crate::stage::{self, Kinds};

use bert::BertPreTokenizer;
pub use bert::bert_words;
use byte_level::ByteLevel;
pub use byte_level::byte_level_words;
pub(crate) use fast::{Marks, Spelling, WordFinder};
pub(crate) use marks::{METASPACE, MarkCuts, next_blank, next_mark};
pub use metaspace::{Metaspace, PrependScheme};
use split::Matches;
use whitespace::WhitespaceSplit;

/// A pre-tokenizer. A new one is registered in [`KINDS`].
pub(crate) trait PreTokenize: Debug + Send + Sync {
    /// Returns the text with the signs that are put in before it is cut, such as `▁` for a blank. `is_first` says that
    /// the text is the beginning of the input. A pre-tokenizer that changes the text here also writes [`Self::align`].
    fn mark<'a>(&self, text: &'a str, _is_first: bool) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }

    /// Changes the text as [`Self::mark`] does, and keeps for each character its place in the input, from which offsets
    /// are computed. The default changes nothing: it is right only for a pre-tokenizer with the default of
    /// [`Self::mark`].
    fn align(&self, _text: &mut AlignedText) {}

    /// Hands the places of the words of a marked text to `take`, in order. No word is empty.
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>));

    /// Returns the pre-tokenizer as a `tokenizer.json` writes it.
    fn json(&self) -> Value;

    /// Whether each byte of a word becomes a character of GPT-2's alphabet, here or in the model.
    fn spells_bytes(&self) -> bool {
        false
    }

    /// Whether words stay as they are, except for the spelling of bytes.
    fn is_identity(&self) -> bool {
        false
    }

    /// Returns the rules for marks, if the pre-tokenizer puts them in place of blanks.
    fn metaspace(&self) -> Option<&Metaspace> {
        None
    }

    /// Whether the pre-tokenizer does nothing but cut a text.
    fn only_cuts(&self) -> bool {
        false
    }

    /// Returns the pattern, if the pre-tokenizer does nothing but cut a text so that each of its matches is a word.
    fn matches(&self) -> Option<Matches<'_>> {
        None
    }

    /// Whether the pre-tokenizer does nothing but cut a text by GPT-2's rule.
    fn cuts_as_gpt2(&self) -> bool {
        false
    }
}

/// The field of a sequence that lists its stages.
const LIST: &str = "pretokenizers";

/// Every pre-tokenizer that a `tokenizer.json` can name. A build that reads no such file, such as that of the web page,
/// leaves this table out.
const KINDS: Kinds<dyn PreTokenize> = Kinds {
    part: "pre_tokenizer",
    list: LIST,
    read: &[
        ("Metaspace", |part| Ok(Arc::new(Metaspace::read(part)?))),
        ("BertPreTokenizer", |_| Ok(Arc::new(BertPreTokenizer))),
        ("WhitespaceSplit", |_| Ok(Arc::new(WhitespaceSplit))),
        ("Whitespace", whitespace::Whitespace::read),
        ("ByteLevel", ByteLevel::read),
        ("Split", split::Split::read),
        ("Punctuation", split::CutAt::punctuation),
        ("Digits", split::CutAt::digits),
        ("CharDelimiterSplit", split::CutAt::delimiter),
        ("UnicodeScripts", scripts::UnicodeScripts::read),
    ],
};

/// Pre-tokenizers, each of which cuts the words of the one before it. Without any, a text is one word.
#[derive(Debug, Default)]
pub(crate) struct PreTokenizer {
    stages: Vec<Arc<dyn PreTokenize>>,
    /// Whether the model spells the bytes of words, so that the last stage does not.
    model_spells: bool,
}

impl PreTokenizer {
    /// Reads the field `pre_tokenizer` of a `tokenizer.json`.
    ///
    /// # Errors
    /// If a pre-tokenizer is not supported.
    pub(crate) fn read(part: &Value) -> Result<Self, FormatError> {
        Ok(Self { stages: KINDS.read(part)?, model_spells: false })
    }

    /// Leaves the spelling of bytes to the model.
    pub(crate) fn leave_bytes_to_model(&mut self) {
        self.model_spells = true;
    }

    /// Returns the pre-tokenizer of BERT, which drops blanks and makes each punctuation mark a word.
    pub(crate) fn bert() -> Self {
        Self { stages: vec![Arc::new(BertPreTokenizer)], model_spells: false }
    }

    /// Returns the pre-tokenizer of GPT-2, for a model that spells bytes. `use_regex` says that words are cut by
    /// GPT-2's rule.
    pub(crate) fn byte_level(use_regex: bool) -> Self {
        let stage = ByteLevel { add_prefix_space: false, use_regex };
        Self { stages: vec![Arc::new(stage)], model_spells: true }
    }

    /// Returns a pre-tokenizer that turns spaces into marks.
    pub(crate) fn of_metaspace(space: Metaspace) -> Self {
        Self { stages: vec![Arc::new(space)], model_spells: false }
    }

    /// Returns the pre-tokenizers of T5 and of most files made from a SentencePiece `.model`.
    pub(crate) fn t5() -> Self {
        Self { stages: vec![Arc::new(WhitespaceSplit), Arc::new(Metaspace::default())], model_spells: false }
    }

    /// Whether these are the pre-tokenizers of T5.
    pub(crate) fn is_t5(&self) -> bool {
        let [first, second] = self.stages.as_slice() else { return false };
        second.metaspace() == Some(&Metaspace::default()) && first.json() == WhitespaceSplit.json()
    }

    /// Returns the rules for marks, if nothing is done but to put marks in place of blanks.
    pub(crate) fn metaspace(&self) -> Option<&Metaspace> {
        let [one] = self.stages.as_slice() else { return None };
        one.metaspace()
    }

    /// Whether words reach the model in GPT-2's alphabet of bytes.
    pub(crate) fn is_byte_level(&self) -> bool {
        self.stages.last().is_some_and(|last| last.spells_bytes())
    }

    /// Returns the pre-tokenizers as a `tokenizer.json` writes them.
    pub(crate) fn json(&self) -> Value {
        stage::write(&self.stages, LIST, PreTokenize::json)
    }

    /// Returns the fastest way to find the words.
    pub(crate) fn words(&self) -> WordFinder {
        match self.stages.as_slice() {
            [] => WordFinder::Whole,
            [one] if !self.spells(0) => match one.metaspace() {
                Some(space) if space.replacement == METASPACE && space.split => WordFinder::AtBlanks(*space),
                None if one.cuts_as_gpt2() => WordFinder::ByteLevel,
                None if one.matches().is_some() => WordFinder::Matches,
                None if one.only_cuts() => WordFinder::Cuts,
                _ => WordFinder::Stages,
            },
            _ if self.is_t5() => WordFinder::Opened,
            [cuts @ .., last] => {
                let number = cuts.len();
                let only_cuts = |stage: &Arc<dyn PreTokenize>| stage.only_cuts();
                let ends_with_cut = last.only_cuts() || last.is_identity() && !self.spells(number);
                match ends_with_cut && cuts.iter().all(only_cuts) {
                    true if number == 1 && !last.only_cuts() && self.matches().is_some() => {
                        WordFinder::Matches
                    }
                    true => WordFinder::Cuts,
                    false => WordFinder::Stages,
                }
            }
        }
    }

    /// Returns the pattern of the first stage, if each of its matches is a word.
    fn matches(&self) -> Option<Matches<'_>> {
        self.stages.first()?.matches()
    }

    /// Hands the place of each word at `place` of `text` to `take`, in order, where all stages from `number` on only cut.
    fn each_place(&self, number: usize, text: &str, place: Range<usize>, take: &mut dyn FnMut(Range<usize>)) {
        match self.stages.get(number).filter(|stage| stage.only_cuts()) {
            None => take(place),
            Some(stage) => stage.cut(&text[place.clone()], &mut |part| {
                let part = place.start + part.start..place.start + part.end;
                match self.stages.get(number + 1).is_some_and(|next| next.only_cuts()) {
                    true => self.each_place(number + 1, text, part, take),
                    false => take(part),
                }
            }),
        }
    }

    /// Whether a mark goes before each word that comes from the beginning of the input, which only the words' places tell:
    /// a normalizer can make several words of one character, or drop the first ones.
    pub(crate) fn marks_by_place(&self, is_normalized: bool) -> bool {
        let is_first = |space: &Metaspace| space.prepend_scheme == PrependScheme::First;
        let earlier_stages = usize::from(!is_normalized);
        self.stages.iter().skip(earlier_stages).any(|stage| stage.metaspace().is_some_and(is_first))
    }

    /// Whether this stage spells the bytes of its words.
    fn spells(&self, number: usize) -> bool {
        let is_models = self.model_spells && number + 1 == self.stages.len();
        self.stages[number].spells_bytes() && !is_models
    }

    /// Hands each word of `text` to `take`, in order. `is_first` says that the text is the beginning of the input.
    pub(crate) fn each_word(&self, text: &str, is_first: bool, take: &mut dyn FnMut(&str)) {
        self.each_word_from(0, text, is_first, take);
    }

    fn each_word_from(&self, number: usize, text: &str, is_first: bool, take: &mut dyn FnMut(&str)) {
        let Some(stage) = self.stages.get(number).filter(|_| !text.is_empty()) else { return take(text) };
        let marked = stage.mark(text, is_first);
        let (spells, next) = (self.spells(number), number + 1);
        let is_last = match &self.stages[next..] {
            [] => true,
            [last] => last.is_identity() && !self.spells(next),
            _ => false,
        };
        stage.cut(&marked, &mut |place| {
            let opens = is_first && place.start == 0;
            let word = &marked[place];
            match (spells, is_last) {
                (false, true) => take(word),
                (true, true) => take(&spell_bytes(word)),
                (true, false) => self.each_word_from(next, &spell_bytes(word), opens, take),
                (false, false) => self.each_word_from(next, word, opens, take),
            }
        });
    }

    /// Hands on words as [`Self::each_word`] does, each with the places that it comes from.
    pub(crate) fn each_aligned(&self, text: AlignedText, take: &mut dyn FnMut(&AlignedText)) {
        self.each_aligned_from(0, text, take);
    }

    fn each_aligned_from(&self, number: usize, mut text: AlignedText, take: &mut dyn FnMut(&AlignedText)) {
        let Some(stage) = self.stages.get(number).filter(|_| !text.text.is_empty()) else {
            return take(&text);
        };
        stage.align(&mut text);
        stage.cut(&text.text, &mut |place| {
            let mut word = text.part(place);
            if self.spells(number) {
                word.spell_bytes();
            }
            self.each_aligned_from(number + 1, word, take);
        });
    }
}

/// Returns the range of `part`, a slice of `text`.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}
