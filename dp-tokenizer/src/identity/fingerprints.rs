//! Keyed hashes of records and of runs of words.

use super::key::{BLANK, mix};
use super::letters::{Sign, each_sign};
use super::{Key, PHRASE_LETTERS, Passage, RUN_CHARACTERS, RUN_WORDS, TELLING_WORDS, WORD_LETTERS};

/// The weight at which a run is complete. A word weighs [`RUN_CHARACTERS`], a character of a script without blanks
/// [`RUN_WORDS`].
const RUN_WEIGHT: u64 = RUN_WORDS * RUN_CHARACTERS;

/// A hash that is read of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fingerprint {
    /// A run of words.
    Run {
        /// The record in which it begins, counted from 0.
        record: u64,
        /// The hash of the run.
        hash: u64,
        /// Whether the run ends in the same record.
        is_within: bool,
    },
    /// A record, at its end. Runs that begin in it and end in a later one come after it.
    Record {
        /// The number of the record, from 0.
        record: u64,
        /// The hash of its letters; [`None`] if it has none.
        hash: Option<u64>,
        /// The length, which decides how much an equal record of another text tells.
        length: Length,
    },
}

/// The length of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// So short that the record may occur in any two texts ("Thank you.").
    #[default]
    Short,
    /// At least [`PHRASE_LETTERS`] letters. Parts of one corpus have such records in common by chance, but other texts
    /// hardly ever.
    Phrase,
    /// At least [`TELLING_WORDS`] words, or as much text in scripts without blanks. An equal record is no coincidence.
    Sentence,
}

impl Fingerprint {
    /// Returns the number of the record, or of that in which the run begins.
    pub(super) fn record(self) -> u64 {
        match self {
            Self::Run { record, .. } | Self::Record { record, .. } => record,
        }
    }

    /// Returns the fingerprint as that of the record with this number.
    pub(super) fn of_record(mut self, number: u64) -> Self {
        match &mut self {
            Self::Run { record, .. } | Self::Record { record, .. } => *record = number,
        }
        self
    }
}

/// A place in a text.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The hash of all letters before the place.
    hash: u64,
    letters: u64,
    /// The weight of all words before the place.
    weight: u64,
    record: u64,
}

/// The most words that have begun and whose runs are not complete. Each but the last weighs at least [`RUN_WORDS`], and
/// all together less than [`RUN_WEIGHT`].
const MAX_BEGUN: usize = 32;
const _: () = assert!(RUN_WEIGHT / RUN_WORDS < MAX_BEGUN as u64);

/// Places in the order in which they were added.
#[derive(Debug, Default)]
struct Begun {
    places: [Place; MAX_BEGUN],
    first: usize,
    count: usize,
}

impl Begun {
    fn push(&mut self, place: Place) {
        self.places[(self.first + self.count) % MAX_BEGUN] = place;
        self.count += 1;
    }

    fn first(&self) -> Option<&Place> {
        (self.count > 0).then(|| self.at(0))
    }

    fn at(&self, place: usize) -> &Place {
        &self.places[(self.first + place) % MAX_BEGUN]
    }

    fn remove_first(&mut self) {
        self.first = (self.first + 1) % MAX_BEGUN;
        self.count -= 1;
    }
}

/// Reads a text and hands out its fingerprints.
#[derive(Debug)]
pub struct Fingerprints<'key> {
    key: &'key Key,
    here: Place,
    /// The number of letters of the word that has begun.
    in_word: u32,
    /// The beginnings of the words whose runs are not complete.
    begun: Begun,
    record_begin: Place,
}

impl<'key> Fingerprints<'key> {
    /// Starts at the beginning of a text.
    #[must_use]
    pub fn new(key: &'key Key) -> Self {
        Self::from_record(key, 0)
    }

    /// Starts at the beginning of a record of a text.
    pub(super) fn from_record(key: &'key Key, record: u64) -> Self {
        let (here, begun) = (Place { record, ..Place::default() }, Begun::default());
        Self { key, here, in_word: 0, begun, record_begin: here }
    }

    /// Returns the records of the words whose runs are not complete.
    pub(super) fn begun(&self) -> impl Iterator<Item = u64> {
        (0..self.begun.count).map(|place| self.begun.at(place).record)
    }

    /// Reads the next passage.
    pub fn read(&mut self, passage: Passage<'_>, take: &mut impl FnMut(Fingerprint)) {
        let mut rest = passage.text;
        while !rest.is_empty() {
            let ascii = rest.bytes().take_while(u8::is_ascii).count();
            let (now, later) = rest.split_at(ascii);
            self.ascii(now.as_bytes(), take);
            let others = later.bytes().take_while(|byte| !byte.is_ascii()).count();
            let (now, later) = later.split_at(others);
            now.chars().for_each(|c| each_sign(c, |sign| self.sign(sign, take)));
            rest = later;
        }
        if passage.ends_record {
            self.end_record(take);
        }
    }

    fn ascii(&mut self, mut bytes: &[u8], take: &mut impl FnMut(Fingerprint)) {
        while !bytes.is_empty() {
            // A word is hashed by itself, so that its multiplications need not wait for those of the word before.
            let (mut hash, mut letters, mut ends) = (0_u64, 0, false);
            let most = WORD_LETTERS - self.in_word;
            let mut rest = bytes.iter();
            while let Some(byte) = rest.next() {
                let value = self.key.ascii(*byte);
                if value > BLANK {
                    if letters == most {
                        ends = true;
                        break;
                    }
                    hash = hash.wrapping_mul(self.key.base()).wrapping_add(value);
                    letters += 1;
                } else if value == BLANK {
                    ends = true;
                    break;
                }
                bytes = rest.as_slice();
            }
            if letters > 0 {
                self.letters(hash, letters);
            }
            if ends {
                // A letter for which the word has no room begins the next one.
                let is_blank = bytes.first().is_some_and(|byte| self.key.ascii(*byte) == BLANK);
                bytes = &bytes[usize::from(is_blank)..];
                self.end_word(take);
            }
        }
    }

    fn sign(&mut self, sign: Sign, take: &mut impl FnMut(Fingerprint)) {
        match sign {
            Sign::Blank => self.end_word(take),
            Sign::Letter(c) => self.letter(self.key.value(c), take),
            Sign::Unspaced(c) => {
                self.end_word(take);
                self.letter(self.key.value(c), take);
                self.in_word = 0;
                self.complete(RUN_WORDS, take);
            }
        }
    }

    fn letter(&mut self, value: u64, take: &mut impl FnMut(Fingerprint)) {
        if self.in_word == WORD_LETTERS {
            self.end_word(take);
        }
        self.letters(value, 1);
    }

    /// Adds letters to a word, at least one.
    fn letters(&mut self, hash: u64, letters: u32) {
        if self.in_word == 0 {
            self.begun.push(self.here);
        }
        self.in_word += letters;
        self.here.hash = self.here.hash.wrapping_mul(self.key.power(u64::from(letters))).wrapping_add(hash);
        self.here.letters += u64::from(letters);
    }

    fn end_word(&mut self, take: &mut impl FnMut(Fingerprint)) {
        if std::mem::take(&mut self.in_word) > 0 {
            self.complete(RUN_CHARACTERS, take);
        }
    }

    /// Ends a word of this weight, and hands out the runs that it completes.
    fn complete(&mut self, weight: u64, take: &mut impl FnMut(Fingerprint)) {
        self.here.weight += weight;
        while let Some(begin) = self.begun.first().filter(|begin| self.since(begin) >= RUN_WEIGHT) {
            let is_within = begin.record == self.here.record;
            take(Fingerprint::Run { record: begin.record, hash: self.hash_from(begin), is_within });
            self.begun.remove_first();
        }
    }

    fn since(&self, begin: &Place) -> u64 {
        self.here.weight - begin.weight
    }

    fn hash_from(&self, begin: &Place) -> u64 {
        let length = self.here.letters - begin.letters;
        let before = begin.hash.wrapping_mul(self.key.power(length));
        mix(self.here.hash.wrapping_sub(before) ^ length.wrapping_mul(self.key.secret() | 1))
    }

    fn length_from(&self, begin: &Place) -> Length {
        if self.since(begin) >= TELLING_WORDS * RUN_CHARACTERS {
            Length::Sentence
        } else if self.here.letters - begin.letters >= PHRASE_LETTERS {
            Length::Phrase
        } else {
            Length::Short
        }
    }

    fn end_record(&mut self, take: &mut impl FnMut(Fingerprint)) {
        self.end_word(take);
        let begin = self.record_begin;
        let has_letters = self.here.letters > begin.letters;
        take(Fingerprint::Record {
            record: self.here.record,
            hash: has_letters.then(|| self.hash_from(&begin)),
            length: self.length_from(&begin),
        });
        self.here.record += 1;
        self.record_begin = self.here;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(key: &Key, records: &[&str]) -> Vec<Fingerprint> {
        let (mut reader, mut found) = (Fingerprints::new(key), Vec::new());
        records.iter().for_each(|text| reader.read(Passage::record(text), &mut |one| found.push(one)));
        found
    }

    fn runs(key: &Key, records: &[&str]) -> Vec<u64> {
        let hash = |one: Fingerprint| match one {
            Fingerprint::Run { hash, .. } => Some(hash),
            Fingerprint::Record { .. } => None,
        };
        all(key, records).into_iter().filter_map(hash).collect()
    }

    const WORDS: &str = "a1 b2 c3 d4 e5 f6 g7 h8 i9 j10 k11 l12 m13 n14 o15";

    #[test]
    fn a_run_has_thirteen_words_or_twenty_characters_and_other_records_have_the_same_runs() {
        let key = Key::public();
        assert_eq!(runs(&key, &[WORDS]).len(), 3);
        let cut = WORDS.split_at(20);
        for [with, without] in [[" c3, ", " c3,"], [" — c3 (d4) ", "—c3(d4)"]] {
            let marked = |marks: &str| WORDS.replacen(" c3 ", marks, 1);
            assert_eq!(runs(&key, &[&marked(with)]), runs(&key, &[&marked(without)]));
        }
        assert_eq!(runs(&key, &[WORDS]), runs(&key, &[cut.0, cut.1]));
        assert_eq!(runs(&key, &[WORDS]), runs(&key, &[&WORDS.to_uppercase().replace(' ', " - \n")]));
        assert_ne!(runs(&key, &[WORDS]), runs(&Key::new([1, 3]), &[WORDS]));
        let unspaced: String = "一二三四五六七八九十".repeat(2);
        assert_eq!(runs(&key, &[&unspaced]).len(), 1);
        assert_eq!(runs(&key, &["一二三四五六七八九十"]).len(), 0);
        // Ten characters weigh six and a half words.
        assert_eq!(runs(&key, &["一二三四五六七八九十 a b c d e f g"]).len(), 1);
        // A word of any length is no hiding place.
        let long = "x".repeat(13 * 20 + 20);
        assert_eq!(runs(&key, &[&long]).len(), 2);
        // A long word is cut at the same letters whatever their form.
        let long: String = ('a'..='z').cycle().take(300).collect();
        let wide: String =
            long.bytes().filter_map(|c| char::from_u32(0xFF41 + u32::from(c - b'a'))).collect();
        for mixed in
            [&wide, &(wide[..3 * 21].to_owned() + &long[21..]), &(long[..21].to_owned() + &wide[3 * 21..])]
        {
            assert_eq!(runs(&key, &[mixed]), runs(&key, &[&long]));
        }
    }

    #[test]
    fn a_record_is_known_by_its_letters_and_a_passage_may_end_anywhere() {
        let key = Key::public();
        let of = |records: &[&str]| all(&key, records);
        assert_eq!(of(&["It's 5 o'clock."]), of(&["its 5 oclock"]));
        let Fingerprint::Record { hash, length, .. } = of(&["—"])[0] else { panic!() };
        assert_eq!((hash, length), (None, Length::Short));
        for (text, want) in [
            ("a b c d e f g", Length::Short),
            ("a b c d e f g h", Length::Sentence),
            ("an, important: ques ti", Length::Short),
            ("an important quest io", Length::Phrase),
            ("一二三四五六七八九十一二三", Length::Sentence),
        ] {
            let Fingerprint::Record { length, .. } = of(&[text])[0] else { panic!() };
            assert_eq!(length, want, "{text}");
        }
        let (mut reader, mut found) = (Fingerprints::new(&key), Vec::new());
        for (text, ends_record) in [("a1 b", false), ("2 c3", false), ("", true), (&WORDS[8..], true)] {
            reader.read(Passage { text, ends_record }, &mut |one| found.push(one));
        }
        assert_eq!(found, of(&["a1 b2 c3", &WORDS[8..]]));
        let places = found.iter().filter_map(|one| match one {
            Fingerprint::Run { record, is_within, .. } => Some((*record, *is_within)),
            Fingerprint::Record { .. } => None,
        });
        assert_eq!(places.collect::<Vec<_>>(), [(0, false), (0, false), (0, false)]);
    }
}
