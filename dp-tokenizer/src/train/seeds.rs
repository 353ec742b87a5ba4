//! Candidate pieces: substrings that branch to the right, weighted by the counts of the words they occur in.

/// Longest piece, in characters.
pub(super) const MAX_PIECE_CHARS: usize = 16;

/// A candidate and how much text it would cover.
pub(super) struct Seed {
    pub(super) piece: String,
    pub(super) count: f64,
    pub(super) chars: usize,
}

/// All substrings of at least two characters that are followed by two different things (or end a word and go on in
/// another), and all whole words, with their total counts. A substring that is always followed by the same character
/// would never be preferred to the longer one.
pub(super) fn seeds(words: &[(String, f64)]) -> Vec<Seed> {
    let suffixes = sorted_suffixes(words);
    let text = |&(word, at): &(u32, u32)| clip(&words[word as usize].0[at as usize..]);
    let weight = |&(word, _): &(u32, u32)| words[word as usize].1;
    let mut out = Vec::new();
    // Open groups of suffixes that share a prefix: (its length in bytes, count so far). The suffixes are sorted, so
    // groups nest like brackets.
    let mut open: Vec<(usize, f64)> = Vec::new();
    for (i, suffix) in suffixes.iter().enumerate() {
        let here = text(suffix);
        let next = suffixes.get(i + 1).map_or("", text);
        let shared = common_prefix(here, next);
        let mut count = weight(suffix);
        let whole_word = suffix.1 == 0 && here.len() == words[suffix.0 as usize].0.len();
        let deepest = open.last().map_or(0, |g| g.0);
        if whole_word && here.len() > shared && here.len() > deepest {
            push(&mut out, here, count);
        }
        // Close the groups that end with this suffix; what they counted also counts for those around them.
        while let Some(&(length, inside)) = open.last() {
            if length <= shared {
                break;
            }
            open.pop();
            count += inside;
            push(&mut out, &here[..length], count);
        }
        match open.last_mut() {
            Some((length, inside)) if *length == shared => *inside += count,
            _ => open.push((shared, count)),
        }
    }
    out
}

fn push(out: &mut Vec<Seed>, piece: &str, count: f64) {
    let chars = piece.chars().count();
    if chars >= 2 {
        out.push(Seed { piece: piece.to_owned(), count, chars });
    }
}

/// (word, byte offset) of each suffix, in the order of their first characters.
fn sorted_suffixes(words: &[(String, f64)]) -> Vec<(u32, u32)> {
    let mut suffixes: Vec<(u32, u32)> = Vec::new();
    for (index, (word, _)) in words.iter().enumerate() {
        suffixes.extend(word.char_indices().map(|(at, _)| (index as u32, at as u32)));
    }
    let text = |&(word, at): &(u32, u32)| clip(&words[word as usize].0[at as usize..]);
    // The index as tie-breaker keeps the order of additions, and so the result, independent of the sort.
    suffixes.sort_unstable_by(|a, b| text(a).cmp(text(b)).then(a.cmp(b)));
    suffixes
}

/// The first characters, as many as a piece may have.
fn clip(text: &str) -> &str {
    text.char_indices().nth(MAX_PIECE_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// Length in bytes of the longest common prefix of whole characters.
fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    (0..=same).rev().find(|&at| a.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The definition, by listing all substrings; the oracle.
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
        fn seeds_with_their_counts_are_those_of_the_definition(
            words in prop::collection::btree_map("[aé]{1,7}", 1_u8..9, 1..8)
        ) {
            let words: Vec<(String, f64)> = words.into_iter().map(|(w, c)| (w, f64::from(c))).collect();
            let mut got = BTreeMap::new();
            for seed in seeds(&words) {
                prop_assert!(got.insert(seed.piece.clone(), seed.count).is_none(), "{} twice", seed.piece);
                prop_assert_eq!(seed.chars, seed.piece.chars().count());
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
