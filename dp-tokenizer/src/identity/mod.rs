//! Tells whether two texts are one, whatever their files, formats, order or spelling.
//!
//! A text is what a model learns from it: records, read by the reader that training uses. [`Fingerprints`] reads the letters and
//! digits of each record and nothing else: characters are decomposed (NFKD), case is folded, and marks, punctuation and white
//! space are dropped. It hashes them under a key in two ways:
//!
//! * each record as a whole;
//! * each **run**: [`RUN_WORDS`] words in a row, or [`RUN_CHARACTERS`] characters in scripts without blanks. Runs overlap, and cross
//!   the ends of records, so that another division into records changes few of them.
//!
//! [`compare`] compares two texts by these, record by record. [`Sketch`] keeps a sample of them, which tells whether most of one text
//! is in another.
//!
//! ```
//! use dp_tokenizer::identity::{EqualPhrases, Key, Passage, Reading, compare};
//! let key = Key::public();
//! let public = ["The patient was seen on Monday, and given two tablets of aspirin at night."];
//! let private = ["the patient WAS seen on monday and", "given two tablets of Aspirin at night;", "another record"];
//! let read = |texts: &[&str], reading: &mut Reading<'_>| {
//!     texts.iter().for_each(|text| reading.take(Passage::record(text)));
//!     Ok::<(), std::convert::Infallible>(())
//! };
//! let overlap = compare(&key, &|reading| read(&public, reading), &|reading| read(&private, reading))?;
//! assert_eq!(overlap.public.mostly_shared, 1);
//! assert!(overlap.check(EqualPhrases::Refused).is_err());
//! # Ok::<(), std::convert::Infallible>(())
//! ```

mod comparison;
mod fingerprints;
mod found;
mod json;
mod key;
mod letters;
mod share;
mod sketch;
mod tally;

pub use comparison::{EqualPhrases, Exchange, Overlap, Sharing, compare, compare_shares};
pub use fingerprints::{Fingerprint, Fingerprints, Length};
pub use json::strings_of_json;
pub use key::Key;
pub use share::{Reading, Share};
pub use sketch::Sketch;
pub use tally::Side;

/// The number of words of a run. A word ends at white space and at most punctuation; a word of more than `WORD_LETTERS`
/// letters counts as several.
pub const RUN_WORDS: u64 = 13;
/// The number of characters of a run in scripts without blanks.
pub const RUN_CHARACTERS: u64 = 20;

/// The number of letters of the longest word that counts once.
const WORD_LETTERS: u32 = 20;

/// The number of words from which on an equal record is no coincidence.
pub const TELLING_WORDS: u64 = 8;

/// The number of letters from which on an equal record of fewer words is a phrase that two corpora rarely have in
/// common.
///
/// Between different corpora, at most 0.05 % of records are equal phrases, and at least 0.12 % where a hundredth of a text is copied
/// from phrases of three words. But of the parts into which the authors of a corpus divided it to train and to evaluate, up to 1 % are,
/// by chance alone, and no measure that was tried tells these from copies: words, information, whether they are once in both texts,
/// and equal pairs within a text as a bound (`cargo bench -p dp-tokenizer --bench identity -- overlaps`). So equal phrases are
/// refused unless somebody accepts them.
pub const PHRASE_LETTERS: u64 = 18;

/// The most hashes of each kind in the sketch that stands beside a product of a public text.
pub const SKETCH: usize = 256;

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage<'a> {
    /// The text of the stretch.
    pub text: &'a str,
    /// Whether the record ends here.
    pub ends_record: bool,
}

/// Hands out the passages of a text from its beginning. It may be called several times, also on several threads at
/// once.
pub type Read<'a, E> = &'a (dyn Fn(&mut Reading<'_>) -> Result<(), E> + Sync);

impl<'a> Passage<'a> {
    /// Returns a passage that is a whole record.
    #[must_use]
    pub fn record(text: &'a str) -> Self {
        Self { text, ends_record: true }
    }
}
