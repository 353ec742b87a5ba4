//! Merging of symbols by rank.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Bpe, pair};

/// The most symbols among which the best merge is found by linear search. With more, a queue finds it.
const SHORT: usize = 48;

impl Bpe {
    /// Merges the symbols from `start` on, lowest rank first.
    pub(super) fn merge(&self, start: usize, out: &mut Vec<u32>) {
        if out.len() - start > SHORT {
            self.merge_by_queue(start, out, &mut || false)
        } else {
            self.merge_by_scan(start, out)
        }
    }

    /// Merges the symbols from `start` on by looking for the lowest rank each time, leftmost first.
    pub(super) fn merge_by_scan(&self, start: usize, out: &mut Vec<u32>) {
        const NEVER: (u32, u32) = (u32::MAX, 0);
        let mut merges = [NEVER; SHORT];
        let merge_at = |symbols: &[u32], at: usize| match symbols.get(at..at + 2) {
            Some(two) => self.ranks.get(&pair(two[0], two[1])).copied().unwrap_or(NEVER),
            None => NEVER,
        };
        let mut count = out.len() - start;
        for (at, merge) in merges.iter_mut().enumerate().take(count) {
            *merge = merge_at(&out[start..], at);
        }
        while let Some((at, merge)) = (0..count).map(|i| (i, merges[i])).min_by_key(|(_, merge)| merge.0) {
            if merge.0 == NEVER.0 {
                break;
            }
            out[start + at] = merge.1;
            out.remove(start + at + 1);
            merges.copy_within(at + 2..count, at + 1);
            count -= 1;
            merges[at] = merge_at(&out[start..], at);
            if at > 0 {
                merges[at - 1] = merge_at(&out[start..], at - 1);
            }
        }
    }

    /// Merges as [`Self::merge_by_scan`] does, with a queue over a linked list: in time n log n, for long words. A
    /// merge is left out at a step if `drops` says so.
    pub(super) fn merge_by_queue(&self, start: usize, out: &mut Vec<u32>, drops: &mut dyn FnMut() -> bool) {
        const GONE: u32 = u32::MAX;
        let mut symbols = out.split_off(start);
        let count = symbols.len();
        let mut next: Vec<usize> = (1..=count).collect();
        let mut previous: Vec<usize> = (0..count).map(|i| i.wrapping_sub(1)).collect();
        let (mut queue, mut dropped) = (BinaryHeap::new(), Vec::new());
        let propose = |symbols: &[u32], left: usize, right: usize, queue: &mut BinaryHeap<_>| {
            let Some((&a, &b)) = symbols.get(left).zip(symbols.get(right)) else { return };
            if let Some(&(rank, merged)) = self.ranks.get(&pair(a, b)) {
                queue.push(Reverse((rank, left, a, b, merged)));
            }
        };
        for left in 0..count {
            propose(&symbols, left, left + 1, &mut queue);
        }
        while let Some(proposed) = queue.pop() {
            let Reverse((_, left, a, b, merged)) = proposed;
            let right = next[left];
            // A proposal is stale once one of its symbols has merged with another.
            if symbols[left] != a || symbols.get(right) != Some(&b) {
                continue;
            }
            // A merge that is left out at one step can be made at the next.
            if drops() {
                dropped.push(proposed);
                continue;
            }
            queue.extend(dropped.drain(..));
            symbols[left] = merged;
            symbols[right] = GONE;
            next[left] = next[right];
            if let Some(back) = previous.get_mut(next[right]) {
                *back = left;
            }
            propose(&symbols, left, next[left], &mut queue);
            propose(&symbols, previous[left], left, &mut queue);
        }
        out.extend(symbols.into_iter().filter(|id| *id != GONE));
    }
}
