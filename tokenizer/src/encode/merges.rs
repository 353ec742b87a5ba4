//! Merging of symbols by rank.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

use rustc_hash::{FxBuildHasher, FxHashMap};

/// The most symbols among which the best merge is found by linear search. With more, a queue finds it.
const SHORT: usize = 128;
/// The most symbols of most words. Tables of this length are set up faster.
const FEW: usize = 16;
/// The number of symbols that are merged at a time in a long word.
const WINDOW: usize = 1 << 11;
const NEVER: u32 = u32::MAX;

/// The merges of a BPE model. Of all possible merges in a word, the one of lowest rank is made first, and of several of this rank
/// the leftmost one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merges {
    /// Pair of symbols → rank and merged symbol.
    pairs: FxHashMap<u64, (u32, u32)>,
    /// A bit for each hash of a pair. Few pairs merge, and this table, unlike `pairs`, is small enough for a processor's cache.
    filter: Vec<u64>,
    /// A symbol and the first unmerged symbol of a right part → the lowest rank of such a merge. `None` if the text does not tell
    /// the first symbols of merged ones. Made for the first long word.
    over: OnceLock<Option<FxHashMap<u64, u32>>>,
}

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// Returns the place and the bit of a pair in a filter of this length, which is a power of two.
#[inline]
fn bit(pair: u64, length: usize) -> (usize, u64) {
    let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((hash >> 20) as usize & length.wrapping_sub(1), 1 << (hash >> 58))
}

/// Symbols of a word as a linked list, with the queue of their merges.
struct Queue<'a> {
    merges: &'a Merges,
    symbols: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Rank, place of the left symbol, both symbols and the merged one.
    queue: BinaryHeap<Reverse<Proposal>>,
}

type Proposal = (u32, u32, u32, u32, u32);

const GONE: u32 = u32::MAX;

impl<'a> Queue<'a> {
    fn new(merges: &'a Merges, symbols: &[u32]) -> Self {
        let count = symbols.len() as u32;
        let mut queue = Self {
            merges,
            symbols: symbols.to_vec(),
            next: (1..=count).collect(),
            previous: (0..=count).map(|at| at.wrapping_sub(1)).collect(),
            queue: BinaryHeap::new(),
        };
        for left in 0..count {
            queue.propose(left, left + 1);
        }
        queue
    }

    fn propose(&mut self, left: u32, right: u32) {
        let of = |at: u32| self.symbols.get(at as usize);
        let Some((&a, &b)) = of(left).zip(of(right)) else { return };
        if let Some((rank, merged)) = self.merges.find(a, b) {
            self.queue.push(Reverse((rank, left, a, b, merged)));
        }
    }

    /// Takes the next merge that its symbols still allow.
    fn pop(&mut self) -> Option<Proposal> {
        loop {
            let Reverse(proposal) = self.queue.pop()?;
            let (_, left, a, b, _) = proposal;
            let right = self.next[left as usize];
            if self.symbols[left as usize] == a && self.symbols.get(right as usize) == Some(&b) {
                return Some(proposal);
            }
        }
    }

    /// Makes a merge, and proposes those with the merged symbol. Returns the place after it.
    fn make(&mut self, proposal: Proposal) -> u32 {
        let (_, left, _, _, merged) = proposal;
        let right = self.next[left as usize];
        let after = self.next[right as usize];
        self.symbols[left as usize] = merged;
        self.symbols[right as usize] = GONE;
        self.next[left as usize] = after;
        self.previous[after as usize] = left;
        self.propose(left, after);
        self.propose(self.previous[left as usize], left);
        after
    }

    /// Appends the symbols before the place `end`.
    fn write(&self, end: u32, out: &mut Vec<u32>) {
        out.extend(self.symbols[..end as usize].iter().filter(|symbol| **symbol != GONE));
    }
}

/// The number of ranks of which the lowest one is kept.
const BLOCK: usize = 16;

/// The merges of at most N symbols, each with the next one.
struct Ranks<const N: usize> {
    of: [u32; N],
    merged: [u32; N],
    /// The lowest rank of each block.
    lowest: [u32; SHORT / BLOCK],
}

impl<const N: usize> Ranks<N> {
    fn new() -> Self {
        Self { of: [NEVER; N], merged: [0; N], lowest: [NEVER; SHORT / BLOCK] }
    }

    #[inline]
    fn find_lowest(&mut self, block: usize) {
        self.lowest[block] = self.of[BLOCK * block..][..BLOCK].iter().copied().fold(NEVER, u32::min);
    }

    #[inline]
    fn set(&mut self, at: usize, merge: Option<(u32, u32)>) {
        let before = self.of[at];
        (self.of[at], self.merged[at]) = merge.unwrap_or((NEVER, 0));
        let lowest = &mut self.lowest[at / BLOCK];
        if self.of[at] <= *lowest {
            *lowest = self.of[at];
        } else if before == *lowest {
            self.find_lowest(at / BLOCK);
        }
    }

    /// Returns the place of the leftmost merge of the lowest rank, if there is a merge.
    #[inline]
    fn leftmost_lowest(&self) -> Option<usize> {
        let lowest = self.lowest.iter().copied().fold(NEVER, u32::min);
        let block = self.lowest.iter().position(|rank| *rank == lowest).filter(|_| lowest != NEVER)?;
        let of = &self.of[BLOCK * block..][..BLOCK];
        Some(BLOCK * block + of.iter().position(|rank| *rank == lowest)?)
    }
}

impl Merges {
    /// Returns merges, each as its pair of symbols, its rank and the merged symbol. Of a pair that occurs twice, the last one counts.
    pub(crate) fn new(merges: impl Iterator<Item = ((u32, u32), u32, u32)>) -> Self {
        let mut pairs = FxHashMap::with_capacity_and_hasher(merges.size_hint().0, FxBuildHasher);
        pairs.extend(merges.map(|((left, right), rank, merged)| (pair(left, right), (rank, merged))));
        // Eight bits for each pair.
        let mut filter = vec![0; pairs.len().div_ceil(8).next_power_of_two()];
        let length = filter.len();
        for pair in pairs.keys() {
            let (place, bit) = bit(*pair, length);
            filter[place] |= bit;
        }
        Self { pairs, filter, over: OnceLock::new() }
    }

    /// Returns the rank and the result of the merge of two symbols, if there is one.
    #[inline]
    pub(super) fn find(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        let pair = pair(left, right);
        let (place, bit) = bit(pair, self.filter.len());
        if self.filter.get(place)? & bit == 0 { None } else { self.pairs.get(&pair).copied() }
    }

    /// Merges the symbols from `start` on. `first` returns a function from a merged symbol to the first of those of which it was
    /// merged, or `None` if that cannot be told.
    pub(crate) fn merge<F: Fn(u32) -> Option<u32>>(
        &self,
        start: usize,
        out: &mut Vec<u32>,
        first: impl Fn() -> Option<F>,
    ) {
        match out.len() - start {
            0..=1 => {}
            2..=FEW => self.merge_by_scan::<FEW>(start, out),
            count if count <= SHORT => self.merge_by_scan::<SHORT>(start, out),
            count if count > WINDOW => match self.over.get_or_init(|| Some(self.find_over(first()?))) {
                Some(over) => self.merge_in_windows(WINDOW, start, out, over),
                None => self.merge_by_queue(start, out, &mut || false),
            },
            _ => self.merge_by_queue(start, out, &mut || false),
        }
    }

    fn find_over(&self, first: impl Fn(u32) -> Option<u32>) -> FxHashMap<u64, u32> {
        let mut over = FxHashMap::default();
        for (pair_of, &(rank, _)) in &self.pairs {
            let (left, right) = ((pair_of >> 32) as u32, *pair_of as u32);
            if let Some(first) = first(right) {
                let lowest = over.entry(pair(left, first)).or_insert(rank);
                *lowest = rank.min(*lowest);
            }
        }
        over
    }

    /// Merges the symbols from `start` on, at most N, by looking for the lowest rank each time, leftmost first.
    fn merge_by_scan<const N: usize>(&self, start: usize, out: &mut Vec<u32>) {
        let symbols = &mut out[start..];
        let count = symbols.len();
        let mut ranks = Ranks::<N>::new();
        let (mut next, mut previous) = ([0_u8; N], [0_u8; N]);
        for at in 0..count {
            (next[at], previous[at]) = (at as u8 + 1, (at as u8).wrapping_sub(1));
            if let Some(found) = symbols.get(at + 1).and_then(|after| self.find(symbols[at], *after)) {
                (ranks.of[at], ranks.merged[at]) = found;
            }
        }
        (0..count.div_ceil(BLOCK)).for_each(|block| ranks.find_lowest(block));
        while let Some(at) = ranks.leftmost_lowest() {
            let right = usize::from(next[at]);
            let after = usize::from(next[right]);
            symbols[at] = ranks.merged[at];
            symbols[right] = GONE;
            next[at] = after as u8;
            ranks.set(right, None);
            ranks.set(at, symbols.get(after).and_then(|symbol| self.find(symbols[at], *symbol)));
            if after < count {
                previous[after] = at as u8;
            }
            if at > 0 {
                let before = usize::from(previous[at]);
                ranks.set(before, self.find(symbols[before], symbols[at]));
            }
        }
        let mut end = start;
        for at in start..start + count {
            if out[at] != GONE {
                out[end] = out[at];
                end += 1;
            }
        }
        out.truncate(end);
    }

    /// Merges as [`Self::merge_by_scan`] does, with a queue over a linked list: in time n log n, for long words. A
    /// merge is left out at a step if `drops` says so.
    pub(super) fn merge_by_queue(&self, start: usize, out: &mut Vec<u32>, drops: &mut dyn FnMut() -> bool) {
        let mut queue = Queue::new(self, &out[start..]);
        let mut dropped = Vec::new();
        while let Some(proposal) = queue.pop() {
            // A merge that is left out at one step can be made at the next.
            if drops() {
                dropped.push(Reverse(proposal));
                continue;
            }
            queue.queue.extend(dropped.drain(..));
            queue.make(proposal);
        }
        let end = (out.len() - start) as u32;
        out.truncate(start);
        queue.write(end, out);
    }

    /// Merges a long word window by window, in time and memory of a window beside the symbols: the next window begins at a place
    /// over which no merge reaches, whatever follows. A window without such a place in its second half is doubled.
    fn merge_in_windows(&self, least: usize, start: usize, out: &mut Vec<u32>, over: &FxHashMap<u64, u32>) {
        let symbols = out.split_off(start);
        let (mut from, mut size) = (0, least);
        while from < symbols.len() {
            let Some(window) = symbols.get(from..from + size).filter(|_| from + size < symbols.len()) else {
                let last = out.len();
                out.extend_from_slice(&symbols[from..]);
                return self.merge_by_queue(last, out, &mut || false);
            };
            let mut queue = Queue::new(self, window);
            let end = queue.merge_before(symbols[from + size], window, over);
            if 2 * end as usize >= size {
                queue.write(end, out);
                from += end as usize;
                size = least;
            } else {
                size *= 2;
            }
        }
    }
}

impl Queue<'_> {
    /// Merges a window before which no merge reaches. `following` is the symbol after it, and `unmerged` the symbols of the window.
    /// Returns the place up to which the symbols are those of the whole word.
    ///
    /// The symbols from the place `end` on may merge with what follows the window, so they count as unknown but for the first of
    /// their unmerged symbols. The symbol before `end` could merge with them at the rank `limit` or later. It counts as unknown too
    /// if another merge is due only after that rank, since then the order of the two is not known. Until then, no merge reaches over
    /// `end`, and the merges before it are made in the same order as in the whole word: ranks that are equal go from left to right.
    fn merge_before(&mut self, following: u32, unmerged: &[u32], over: &FxHashMap<u64, u32>) -> u32 {
        let mut end = unmerged.len() as u32;
        let limit = |queue: &Self, end: u32| {
            let after = unmerged.get(end as usize).copied().unwrap_or(following);
            let last = queue.symbols.get(queue.previous[end as usize] as usize);
            last.and_then(|last| over.get(&pair(*last, after))).copied().unwrap_or(NEVER)
        };
        let mut now = limit(self, end);
        loop {
            let proposal = self.pop();
            let rank = proposal.map_or(NEVER, |proposal| proposal.0);
            // A merge that would reach over the end is not known to be made.
            if proposal.is_some_and(|proposal| self.next[proposal.1 as usize] >= end) {
                continue;
            }
            while now < rank {
                end = self.previous[end as usize];
                if end == 0 {
                    return 0;
                }
                now = limit(self, end);
            }
            let Some(proposal) = proposal else { return end };
            if self.next[proposal.1 as usize] < end && self.make(proposal) == end {
                now = limit(self, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Random merges in random order: also those whose parts are merged at a later rank.
        #[test]
        fn windows_give_the_symbols_of_the_whole_word(
            picks in prop::collection::vec((0_usize..60, 0_usize..60, 0_u32..40), 1..60),
            letters in prop::collection::vec(0_u32..4, 0..400),
            size in 1_usize..9,
        ) {
            // A symbol is a string over four letters.
            let mut texts: Vec<Vec<u32>> = (0..4).map(|letter| vec![letter]).collect();
            let mut list = Vec::new();
            for (left, right, rank) in picks {
                let (left, right) = (left % texts.len(), right % texts.len());
                let text = [texts[left].as_slice(), &texts[right]].concat();
                let merged = texts.iter().position(|known| *known == text).unwrap_or(texts.len());
                if merged == texts.len() {
                    texts.push(text);
                }
                list.push(((left as u32, right as u32), rank, merged as u32));
            }
            let merges = Merges::new(list.into_iter());
            let over = merges.find_over(|symbol| texts[symbol as usize].first().copied());
            let (mut whole, mut scanned) = (letters.clone(), letters[..letters.len().min(SHORT)].to_vec());
            merges.merge_by_queue(0, &mut whole, &mut || false);
            let mut in_windows = letters.clone();
            merges.merge_in_windows(size, 0, &mut in_windows, &over);
            prop_assert_eq!(in_windows, &whole[..]);
            let mut queued = scanned.clone();
            merges.merge_by_queue(0, &mut queued, &mut || false);
            let mut few = scanned[..scanned.len().min(FEW)].to_vec();
            merges.merge_by_scan::<SHORT>(0, &mut scanned);
            prop_assert_eq!(scanned, queued);
            queued = few.clone();
            merges.merge_by_queue(0, &mut queued, &mut || false);
            merges.merge_by_scan::<FEW>(0, &mut few);
            prop_assert_eq!(few, queued);
        }
    }
}
