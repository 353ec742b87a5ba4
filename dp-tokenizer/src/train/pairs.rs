//! Learns merges: the most frequent pair of neighbors becomes one symbol, repeatedly.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::TrainError;
use rustc_hash::FxHashMap;

type Map<V> = FxHashMap<(u32, u32), V>;

/// Symbols, and the merges that formed the longer ones.
pub(super) struct Merges {
    /// All symbols, each once, the given ones first.
    pub(super) symbols: Vec<String>,
    /// Pairs of symbols, in the order in which they were learnt.
    pub(super) merges: Vec<(u32, u32)>,
}

/// Converts counts to integers, so that sums do not drift, depend on their order, or overflow.
///
/// All are multiplied by the same power of two, chosen so that their sum, weighted by word length, stays below 2^100. A count
/// keeps all of its 53 bits unless it is 2^47 times smaller than the sum.
fn to_integers(words: &[(Vec<u32>, f64)]) -> Result<Vec<i128>, TrainError> {
    let total: f64 = words.iter().map(|(symbols, count)| symbols.len() as f64 * count).sum();
    if !total.is_finite() {
        let largest = (0..words.len()).max_by(|a, b| words[*a].1.total_cmp(&words[*b].1)).unwrap_or(0);
        return Err(TrainError::BadCount { index: largest, count: words[largest].1 });
    }
    let bound = 2f64.powi(100);
    let mut scale = 1.0;
    while total * scale * 2.0 < bound && scale < bound {
        scale *= 2.0;
    }
    while total * scale >= bound {
        scale /= 2.0;
    }
    Ok(words.iter().map(|(_, count)| (count * scale) as i128).collect())
}

/// Learns merges until there are `limit` symbols or no neighbors are left.
///
/// `words` are indices into `symbols`; `join` returns the text of a merged symbol, or `None` if there must be no such
/// symbol. Of equally frequent pairs, the one with the smaller indices comes first, so the result depends on the
/// arguments alone.
pub(super) fn learn(
    words: Vec<(Vec<u32>, f64)>,
    symbols: Vec<String>,
    limit: usize,
    join: impl Fn(&str, &str) -> Option<String>,
) -> Result<Merges, TrainError> {
    let counts = to_integers(&words)?;
    let words = words.into_iter().map(|w| w.0).zip(counts).collect();
    let ids = (0..).zip(&symbols).map(|(id, symbol)| (symbol.clone(), id)).collect();
    let mut state = State::new(words);
    let mut learnt = Merges { symbols, merges: Vec::new() };
    let mut ids: HashMap<String, u32> = ids;
    while learnt.symbols.len() < limit {
        let Some(pair) = state.most_frequent() else { break };
        let Some(text) = join(&learnt.symbols[pair.0 as usize], &learnt.symbols[pair.1 as usize]) else {
            continue;
        };
        // Two ways to the same text give one symbol, but each way is a merge of its own.
        let merged = *ids.entry(text).or_insert_with_key(|text| {
            learnt.symbols.push(text.clone());
            learnt.symbols.len() as u32 - 1
        });
        learnt.merges.push(pair);
        state.merge(pair, merged);
    }
    Ok(learnt)
}

struct State {
    words: Vec<(Vec<u32>, i128)>,
    counts: Map<i128>,
    /// The words in which each pair stands, or stood.
    places: Map<Vec<u32>>,
    /// The pairs by count. An entry may be out of date, which shows when it comes up.
    queue: BinaryHeap<(i128, Reverse<(u32, u32)>)>,
    /// The changes of pairs' counts by a merge.
    changes: Vec<((u32, u32), i128)>,
}

fn neighbors(symbols: &[u32]) -> impl Iterator<Item = (u32, u32)> + '_ {
    symbols.windows(2).map(|two| (two[0], two[1]))
}

impl State {
    fn new(words: Vec<(Vec<u32>, i128)>) -> Self {
        let (mut counts, mut places) = (Map::<i128>::default(), Map::<Vec<u32>>::default());
        for (index, (symbols, count)) in (0..).zip(&words) {
            for pair in neighbors(symbols) {
                *counts.entry(pair).or_default() += count;
                let places = places.entry(pair).or_default();
                if places.last() != Some(&index) {
                    places.push(index);
                }
            }
        }
        let queue = counts.iter().map(|(pair, count)| (*count, Reverse(*pair))).collect();
        Self { words, counts, places, queue, changes: Vec::new() }
    }

    fn most_frequent(&mut self) -> Option<(u32, u32)> {
        while let Some((count, Reverse(pair))) = self.queue.pop() {
            let now = self.counts.get(&pair).copied().unwrap_or(0);
            if now <= 0 {
                continue;
            }
            if now == count {
                return Some(pair);
            }
            self.queue.push((now, Reverse(pair)));
        }
        None
    }

    fn merge(&mut self, pair: (u32, u32), merged: u32) {
        let mut places = self.places.remove(&pair).unwrap_or_default();
        places.sort_unstable();
        places.dedup();
        self.changes.clear();
        for index in places {
            let (symbols, count) = &mut self.words[index as usize];
            if !neighbors(symbols).any(|two| two == pair) {
                continue;
            }
            self.changes.extend(neighbors(symbols).map(|old| (old, -*count)));
            replace(symbols, pair, merged);
            for new in neighbors(symbols) {
                self.changes.push((new, *count));
                if new.0 == merged || new.1 == merged {
                    self.places.entry(new).or_default().push(index);
                }
            }
        }
        // The changes are applied in the order of the pairs, so that nothing depends on how a table happens to be laid
        // out.
        self.changes.sort_unstable();
        for same in self.changes.chunk_by(|a, b| a.0 == b.0) {
            let (changed, change) = (same[0].0, same.iter().map(|one| one.1).sum::<i128>());
            if change == 0 {
                continue;
            }
            let count = self.counts.entry(changed).or_default();
            *count += change;
            if change > 0 {
                self.queue.push((*count, Reverse(changed)));
            }
        }
        self.counts.remove(&pair);
    }
}

/// Replaces each `pair` by `merged`, from left to right.
fn replace(symbols: &mut Vec<u32>, pair: (u32, u32), merged: u32) {
    let (mut read, mut write) = (0, 0);
    while read < symbols.len() {
        let is_pair = symbols[read] == pair.0 && symbols.get(read + 1) == Some(&pair.1);
        symbols[write] = if is_pair { merged } else { symbols[read] };
        read += if is_pair { 2 } else { 1 };
        write += 1;
    }
    symbols.truncate(write);
}

/// Checks counts, splits each word by `cut`, and adds up the counts of equal words, in the order of their pieces.
pub(super) fn count_pieces(
    words: &[(String, f64)],
    mut cut: impl FnMut(&str, &mut dyn FnMut(&str)),
) -> Result<BTreeMap<String, f64>, TrainError> {
    let mut pieces: BTreeMap<String, f64> = BTreeMap::new();
    // The words are taken in a fixed order, so that the order in which they are given does not change a rounding.
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by(|a, b| words[*a].0.cmp(&words[*b].0).then(words[*a].1.total_cmp(&words[*b].1)));
    for index in order {
        let (word, count) = &words[index];
        if !(count.is_finite() && *count > 0.0) {
            return Err(TrainError::BadCount { index, count: *count });
        }
        cut(word, &mut |piece| *pieces.entry(piece.to_owned()).or_default() += count);
    }
    if pieces.is_empty() { Err(TrainError::NoWords) } else { Ok(pieces) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: count all pairs anew before each merge.
    fn by_definition(
        mut words: Vec<(Vec<u32>, f64)>,
        mut symbols: Vec<String>,
        limit: usize,
    ) -> Vec<(u32, u32)> {
        let mut merges = Vec::new();
        while symbols.len() < limit {
            let mut counts: BTreeMap<(u32, u32), f64> = BTreeMap::new();
            for (word, count) in &words {
                for pair in neighbors(word) {
                    *counts.entry(pair).or_default() += count;
                }
            }
            let best = counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            let Some((pair, _)) = best else { break };
            let text = format!("{}{}", symbols[pair.0 as usize], symbols[pair.1 as usize]);
            let merged = symbols.iter().position(|s| *s == text).unwrap_or_else(|| {
                symbols.push(text);
                symbols.len() - 1
            });
            merges.push(pair);
            for (word, _) in &mut words {
                replace(word, pair, merged as u32);
            }
        }
        merges
    }

    fn letters() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    proptest! {
        #[test]
        fn incremental_counting_equals_the_definition(
            words in prop::collection::vec((prop::collection::vec(0u32..3, 1..9), 1u16..400), 1..12),
            limit in 3usize..30,
        ) {
            // Quarters add up exactly in f64, so the oracle's own sums have no rounding.
            let words: Vec<_> = words.into_iter().map(|(word, n)| (word, f64::from(n) / 4.0)).collect();
            let learnt = learn(words.clone(), letters(), limit, |l, r| Some(format!("{l}{r}"))).unwrap();
            prop_assert_eq!(learnt.merges, by_definition(words, letters(), limit));
        }
    }

    #[test]
    fn counts_beyond_32_bits_and_below_one_keep_their_order() {
        // Oracle: arithmetic. 3e9 overflows the i32 that other trainers count in.
        let words = vec![(vec![0, 1], 3e9), (vec![1, 2], 2e-9), (vec![2, 0], 3e-9)];
        let learnt = learn(words, letters(), 9, |l, r| Some(format!("{l}{r}"))).unwrap();
        assert_eq!(learnt.merges, [(0, 1), (2, 0), (1, 2)]);
        let huge = vec![(vec![0, 1], f64::MAX), (vec![1, 2], f64::MAX)];
        assert!(matches!(
            learn(huge, letters(), 9, |l, r| Some(format!("{l}{r}"))),
            Err(TrainError::BadCount { .. })
        ));
    }

    #[test]
    fn counts_that_are_no_positive_numbers_are_refused() {
        for count in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let words = [("a".to_owned(), 1.0), ("b".to_owned(), count)];
            let refused = count_pieces(&words, |word, take| take(word)).unwrap_err();
            assert!(matches!(refused, TrainError::BadCount { index: 1, .. }));
        }
        assert!(matches!(count_pieces(&[], |word, take| take(word)), Err(TrainError::NoWords)));
    }
}
