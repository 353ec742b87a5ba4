//! BPE without its merges: a word's tokens are found from left to right, the longest first.
//!
//! Tokens are those of a word if each two neighbors are what BPE makes of their bytes alone. In the word as in a part of it, merges
//! are made in the same order until one crosses an end of the part. So the first merge over the bounds of such tokens would be
//! made in the bytes of two of them alone, and neighbors in the word's tokens stay apart alone. One list of tokens at most fits each
//! beginning of a word, so that a place where the search once failed is not tried again.
//!
//! Only tokens are known that BPE makes by merges of growing rank, as training makes them. A word with another token has no list of known
//! tokens, and is left to merging.

use super::DoubleArray;

/// The most bytes of a word: the bits of the places where the search failed.
const MOST_BYTES: usize = 127;
const NONE: u32 = u32::MAX;

/// How BPE makes a token from its own bytes.
#[derive(Clone, Copy, Debug)]
struct Made {
    left: u32,
    right: u32,
    /// The rank of the last merge plus 1; 0 for a symbol and [`NONE`] for a token that BPE does not make.
    rank: u32,
}

#[derive(Debug)]
pub(super) struct LongestFirst {
    trie: DoubleArray,
    made: Vec<Made>,
    /// For each token, the next shorter one with which it begins, or [`NONE`].
    shorter: Vec<u32>,
    lengths: Vec<u8>,
}

impl LongestFirst {
    /// Returns the tables of merges, each a pair of tokens and the merged one, by rank.
    /// `bytes` are those of each token, none if it is more than [`MOST_BYTES`] or not made of symbols. `find` returns the rank of a pair.
    pub(super) fn new(
        mut bytes: Vec<Vec<u8>>,
        symbols: impl Iterator<Item = u32>,
        merges: impl Iterator<Item = ((u32, u32), u32)>,
        find: impl Fn(u32, u32) -> Option<u32>,
    ) -> Self {
        let unmade = Made { left: NONE, right: NONE, rank: NONE };
        let mut made = vec![unmade; bytes.len()];
        symbols.for_each(|symbol| made[symbol as usize].rank = 0);
        for (rank, ((left, right), token)) in (0..).zip(merges) {
            // Of a pair that is listed twice, the last rank counts. A part that is made later can be merged only out of order.
            let is_unmade = |token: u32| made[token as usize].rank == NONE;
            let is_new = is_unmade(token) && !is_unmade(left) && !is_unmade(right);
            if is_new && find(left, right) == Some(rank) && stay_apart(&made, &find, left, right, rank + 1) {
                made[token as usize] = Made { left, right, rank: rank + 1 };
            }
        }
        for (made, bytes) in made.iter().zip(&mut bytes) {
            if made.rank == NONE {
                bytes.clear();
            }
        }
        let trie = DoubleArray::new(&bytes);
        let shorter = bytes.iter().map(|bytes| {
            let mut shorter = NONE;
            trie.prefixes(bytes, |length, token| {
                shorter = if length < bytes.len() { token } else { shorter }
            });
            shorter
        });
        let shorter = shorter.collect();
        Self { trie, made, shorter, lengths: bytes.iter().map(|bytes| bytes.len() as u8).collect() }
    }

    /// Appends the tokens of `word`; false, with nothing appended, if it is long or has no list of known tokens.
    pub(super) fn encode(
        &self,
        word: &[u8],
        find: impl Fn(u32, u32) -> Option<u32>,
        out: &mut Vec<u32>,
    ) -> bool {
        let (start, mut at, mut failed) = (out.len(), 0, 0_u128);
        if word.len() > MOST_BYTES {
            return false;
        }
        let longest = |at: usize| {
            let mut longest = NONE;
            self.trie.prefixes(&word[at..], |_, token| longest = token);
            longest
        };
        let mut token = longest(0);
        while at < word.len() {
            if token == NONE {
                // No token fits here.
                failed |= 1 << at;
                let Some(last) = (out.len() > start).then(|| out.pop()).flatten() else { return false };
                at -= usize::from(self.lengths[last as usize]);
                token = self.shorter[last as usize];
                continue;
            }
            let end = at + usize::from(self.lengths[token as usize]);
            let last = out[start..].last().copied();
            let fits = |last| stay_apart(&self.made, &find, last, token, NONE);
            if failed >> end & 1 == 0 && last.is_none_or(fits) {
                out.push(token);
                at = end;
                token = longest(at);
            } else {
                token = self.shorter[token as usize];
            }
        }
        true
    }
}

/// Whether BPE, by merges below `limit`, a rank plus 1, makes these two tokens of their bytes and no merge over their bounds.
fn stay_apart(
    made: &[Made],
    find: &impl Fn(u32, u32) -> Option<u32>,
    mut left: u32,
    mut right: u32,
    limit: u32,
) -> bool {
    // The ranks at which both become part of a longer token. Going back in time, the token that was made last is taken apart.
    let (mut left_until, mut right_until) = (limit, limit);
    loop {
        // Of two merges of one pair that overlap, the left one is made.
        if find(left, right).is_some_and(|rank| rank + 1 < left_until && rank < right_until) {
            return false;
        }
        let (of_left, of_right) = (made[left as usize], made[right as usize]);
        if of_left.rank > of_right.rank {
            (left, left_until) = (of_left.right, of_left.rank);
        } else if of_right.rank > 0 {
            (right, right_until) = (of_right.left, of_right.rank);
        } else {
            return true;
        }
    }
}
