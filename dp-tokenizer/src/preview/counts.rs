//! Counts the words of a text without noise, to compare a release with them. The counts have no privacy: they are for
//! the eyes of the text's owner.

use std::collections::HashSet;

use mechanisms::Words;

use crate::count::{is_public_item, items};
use crate::preview::Bin;
use crate::unit::Piece;
use rustc_hash::FxHashMap;

/// The bytes of text on which bytes per token are measured.
const SAMPLE: usize = 1 << 18;
/// The characters at the beginning of the text that are shown in tokens.
const SENTENCE: usize = 120;

#[derive(Clone, Copy, Default)]
struct Count {
    occurrences: u64,
    units: u64,
    /// The last unit that held the word, plus 1; 0 means none.
    last: u64,
}

/// The words, and how often they occur.
#[derive(Default)]
pub(super) struct Counts {
    split: Words,
    words: FxHashMap<Box<str>, Count>,
    units: u64,
    total: u64,
    /// The number of pieces, by the bit length of their number of distinct words.
    sizes: [u64; 32],
    sample: String,
}

/// A release compared with the raw counts.
pub(super) struct Known {
    pub(super) released: u64,
    pub(super) coverage: f64,
    pub(super) lost: Vec<(String, u64)>,
}

impl Counts {
    pub(super) fn new(split: Words) -> Self {
        Self { split, ..Self::default() }
    }

    /// Counts a piece. Pieces of one user count as several units if they do not follow one another.
    pub(super) fn take(&mut self, piece: &Piece) {
        self.units = self.units.max(piece.unit + 1);
        if self.sample.len() < SAMPLE {
            self.sample.push_str(&piece.text);
            self.sample.push('\n');
        }
        let mut distinct = 0_u32;
        items(&piece.text, self.split, |item| {
            self.total += 1;
            let count = match self.words.get_mut(item) {
                Some(count) => count,
                None => self.words.entry(item.into()).or_default(),
            };
            count.occurrences += 1;
            if count.last != piece.unit + 1 {
                count.last = piece.unit + 1;
                count.units += 1;
                distinct += 1;
            }
        });
        self.sizes[(32 - distinct.leading_zeros()).min(31) as usize] += 1;
    }

    pub(super) fn units(&self) -> u64 {
        self.units
    }

    pub(super) fn distinct(&self) -> u64 {
        self.words.len() as u64
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn sample(&self) -> &str {
        &self.sample
    }

    /// Returns the beginning of the text.
    pub(super) fn first_sentence(&self) -> String {
        self.sample.lines().next().unwrap_or_default().chars().take(SENTENCE).collect()
    }

    /// Returns the number of distinct words of a typical unit: the upper end of the bin with the median.
    pub(super) fn typical_items(&self) -> u32 {
        let half = self.sizes.iter().sum::<u64>().div_ceil(2);
        let mut below = 0;
        let bits = self.sizes.iter().position(|&size| {
            below += size;
            below >= half
        });
        (1_u32 << bits.unwrap_or(1)).saturating_sub(1).max(1)
    }

    /// Returns the most frequent words with their counts, by falling count.
    pub(super) fn most_frequent(&self, most: usize) -> Vec<(String, f64)> {
        let mut all: Vec<(&str, u64)> = self.words.iter().map(|(word, c)| (&**word, c.occurrences)).collect();
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all.into_iter().take(most).map(|(word, count)| (word.to_owned(), count as f64)).collect()
    }

    /// Compares the released words with all words.
    pub(super) fn compare(&mut self, released: &[(String, f64)]) -> Known {
        let names: HashSet<&str> = released.iter().map(|word| word.0.as_str()).collect();
        let (mut kept, mut covered, mut lost) = (0, 0, Vec::new());
        for (word, count) in &mut self.words {
            // From here on, `last` says whether the word was released.
            count.last = u64::from(names.contains(&**word));
            if count.last == 1 || is_public_item(word) {
                covered += count.occurrences;
            } else {
                lost.push((word.to_string(), count.units));
            }
            kept += count.last;
        }
        lost.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Known { released: kept, coverage: covered as f64 / self.total.max(1) as f64, lost }
    }

    /// Returns words by the number of units that hold them, without public words. [`Counts::compare`] must be called
    /// before.
    pub(super) fn bins<E>(&self, probability: impl Fn(f64) -> Result<Option<f64>, E>) -> Result<Vec<Bin>, E> {
        let mut bins = [(0_u64, 0_u64); 64];
        for (word, count) in &self.words {
            if !is_public_item(word) {
                let bin = &mut bins[count.units.max(1).ilog2() as usize];
                bin.0 += 1;
                bin.1 += count.last;
            }
        }
        let filled = (0_i32..).zip(bins).filter(|(_, (words, _))| *words > 0);
        filled
            .map(|(power, (words, released))| {
                let least = libm::exp2(f64::from(power));
                // The bin holds the numbers from 2^p to 2^(p+1) − 1.
                let units = f64::sqrt(least * (2.0 * least - 1.0));
                Ok(Bin { units, words, released, probability: probability(units)? })
            })
            .collect()
    }
}
