//! Finds candidate pieces: right-branching substrings, with the counts of the words that contain them, and their
//! positions.

use std::ops::Range;

/// The most characters of a piece.
pub(super) const MAX_PIECE_CHARS: usize = 16;

/// The most characters of a word that the trainer uses.
pub(super) const MAX_WORD_CHARS: usize = 255;

/// The start of a piece.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The number of the word.
    pub(super) word: u32,
    /// The byte of the word at which the piece starts.
    pub(super) at: u16,
    /// The character of the word at which the piece starts.
    pub(super) from: u8,
}

/// A candidate with its count.
#[derive(Clone)]
pub(super) struct Seed {
    pub(super) count: f64,
    pub(super) chars: u8,
    /// The range of the candidate's places among the starts of all suffixes.
    places: Range<u32>,
}

/// Candidates, and the starts of all suffixes of words in suffix order, where the positions of a candidate are consecutive.
pub(super) struct Seeds {
    places: Vec<Place>,
    /// Each character that occurs, in order.
    pub(super) characters: Vec<Seed>,
    /// Candidates of more characters, in the order of their last places.
    pub(super) longer: Vec<Seed>,
}

impl Seeds {
    /// Returns all characters, all substrings that are followed by two different things (or end a word and go on in
    /// another), and all whole words. A substring that is always followed by the same character would never be
    /// preferred to the longer one. Words have at most [`MAX_WORD_CHARS`] characters.
    pub(super) fn of(words: &[(String, f64)]) -> Self {
        let places = sorted_suffixes(words);
        Self { characters: characters(words, &places), longer: longer(words, &places), places }
    }

    pub(super) fn places(&self, seed: &Seed) -> &[Place] {
        &self.places[seed.places.start as usize..seed.places.end as usize]
    }
}

fn characters(words: &[(String, f64)], places: &[Place]) -> Vec<Seed> {
    let mut start = 0;
    let character = |place: &Place| words[place.word as usize].0[place.at as usize..].chars().next();
    let runs = places.chunk_by(|a, b| character(a) == character(b));
    runs.map(|run| {
        let from = start;
        start += run.len() as u32;
        let count = run.iter().map(|place| words[place.word as usize].1).sum();
        Seed { count, chars: 1, places: from..start }
    })
    .collect()
}

fn longer(words: &[(String, f64)], places: &[Place]) -> Vec<Seed> {
    let mut found = Vec::new();
    let text = |place: &Place| clip(&words[place.word as usize].0[place.at as usize..]);
    let mut push = |piece: &str, count: f64, places: Range<u32>| {
        let chars = piece.chars().count() as u8;
        if chars > 1 {
            found.push(Seed { count, chars, places });
        }
    };
    // The open groups of suffixes that share a prefix: (the prefix's length in bytes, count so far, first place). The
    // suffixes are sorted, so groups nest like brackets.
    let mut open: Vec<(usize, f64, u32)> = Vec::new();
    let mut next = places.first().map_or("", text);
    for (rank, place) in (0_u32..).zip(places) {
        let here = next;
        next = places.get(rank as usize + 1).map_or("", text);
        let shared = common_prefix(here, next);
        let (mut count, mut first) = (words[place.word as usize].1, rank);
        let whole_word = place.at == 0 && here.len() == words[place.word as usize].0.len();
        let deepest = open.last().map_or(0, |group| group.0);
        if whole_word && here.len() > shared && here.len() > deepest {
            push(here, count, rank..rank + 1);
        }
        // Close the groups that end with this suffix; what they counted also counts for those around them.
        while let Some(&(length, inside, begin)) = open.last() {
            if length <= shared {
                break;
            }
            open.pop();
            count += inside;
            first = begin;
            push(&here[..length], count, begin..rank + 1);
        }
        match open.last_mut() {
            Some((length, inside, _)) if *length == shared => *inside += count,
            _ => open.push((shared, count, first)),
        }
    }
    found
}

/// Returns the starts of the suffixes of all words, in suffix order.
fn sorted_suffixes(words: &[(String, f64)]) -> Vec<Place> {
    // The key beside each place is the suffix's first eight bytes, which settle most comparisons.
    let mut suffixes: Vec<(u64, Place)> = Vec::new();
    for (word, (text, _)) in (0..).zip(words) {
        suffixes.extend(text.char_indices().zip(0..).map(|((at, _), from)| {
            let head = text.as_bytes()[at..].iter().take(8);
            let key =
                head.zip((0..8).rev()).fold(0, |key, (&byte, place)| key | u64::from(byte) << (8 * place));
            (key, Place { word, at: at as u16, from })
        }));
    }
    let rest = |place: &Place| &words[place.word as usize].0.as_bytes()[place.at as usize..];
    // The place as a tie-breaker keeps the order of additions, and so the result, independent of the sort.
    let tie = |place: &Place| (place.word, place.at);
    suffixes.sort_unstable_by(|(a_key, a), (b_key, b)| {
        a_key.cmp(b_key).then_with(|| rest(a).cmp(rest(b))).then_with(|| tie(a).cmp(&tie(b)))
    });
    suffixes.into_iter().map(|(_, place)| place).collect()
}

/// Returns the first characters, at most as many as a piece may have.
fn clip(text: &str) -> &str {
    if text.len() <= MAX_PIECE_CHARS {
        return text;
    }
    text.char_indices().nth(MAX_PIECE_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// Returns the length in bytes of the longest common prefix of whole characters.
fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    (0..=same).rev().find(|&at| a.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Returns the candidates by their definition, from a list of all substrings: the oracle.
    fn by_definition(words: &[(String, f64)]) -> BTreeMap<String, f64> {
        let mut found: BTreeMap<String, (f64, BTreeSet<Option<char>>)> = BTreeMap::new();
        for (word, count) in words {
            let chars: Vec<char> = word.chars().collect();
            for start in 0..chars.len() {
                for end in start + 2..=chars.len().min(start + MAX_PIECE_CHARS) {
                    let entry = found.entry(chars[start..end].iter().collect()).or_default();
                    entry.0 += count;
                    entry.1.insert(chars.get(end).copied());
                }
            }
        }
        let whole: BTreeSet<&String> = words.iter().map(|w| &w.0).collect();
        found
            .into_iter()
            .filter(|(piece, (_, next))| next.len() > 1 || whole.contains(piece))
            .map(|(piece, (count, _))| (piece, count))
            .collect()
    }

    proptest! {
        #[test]
        fn seeds_with_their_counts_and_places_are_those_of_the_definition(
            words in prop::collection::btree_map("[aé]{1,7}|[a]{12,20}", 1_u8..9, 1..8)
        ) {
            let words: Vec<(String, f64)> = words.into_iter().map(|(w, c)| (w, f64::from(c))).collect();
            let seeds = Seeds::of(&words);
            let mut got = BTreeMap::new();
            for seed in &seeds.longer {
                let texts: BTreeSet<String> = seeds.places(seed).iter().map(|place| {
                    words[place.word as usize].0.chars().skip(place.from.into()).take(seed.chars.into()).collect()
                }).collect();
                prop_assert_eq!(texts.len(), 1);
                let piece = texts.into_iter().next().unwrap();
                prop_assert_eq!(seed.chars as usize, piece.chars().count());
                let places = seeds.places(seed).iter().map(|place| (place.word, place.at));
                prop_assert_eq!(places.clone().collect::<BTreeSet<_>>().len(), places.len());
                let count: f64 = places.map(|(word, _)| words[word as usize].1).sum();
                prop_assert!((count - seed.count).abs() < 1e-9);
                prop_assert!(got.insert(piece.clone(), seed.count).is_none(), "{} twice", piece);
            }
            let want = by_definition(&words);
            // Substrings with one continuation are only kept where the same suffix ends several words.
            for (piece, count) in &want {
                prop_assert!((got.get(piece).copied().unwrap_or(-1.0) - count).abs() < 1e-9, "{} {:?}", piece, got);
            }
            for piece in got.keys() {
                let ends = words.iter().filter(|(w, _)| w.ends_with(piece.as_str())).count();
                prop_assert!(want.contains_key(piece) || ends > 1, "{}", piece);
            }
        }
    }
}
