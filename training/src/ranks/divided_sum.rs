//! Sums over all ranks of which no rank ever has the whole.
//!
//! The values that ranks sum up are a sequence: the parameters one after the other, in the order in which a backward pass hands them over.
//! The sequence is cut into stretches, one for each message. Each rank keeps the sums of one P-th of each stretch, so that ranks can add a
//! stretch while they compute the next one. When all is added, the sums go to the ranks that own the parameters.

use std::ops::Range;

use pulp::bytemuck;

use super::{Piece, Ranks, Shards};

/// Number of values of a message. A message is large enough for the bandwidth of a network to matter more than its latency, and small
/// beside the model.
const STRETCH: usize = if cfg!(test) { 1 << 6 } else { plan::SUMS_A_MESSAGE as usize };

/// Number of sums that a rank gets at a time of the parameters that it owns.
const SENT: usize = if cfg!(test) { 50 } else { 1 << 20 };

/// This rank's part of sums over all ranks.
pub(crate) struct DividedSum {
    ranks: Ranks,
    /// The sums of this rank's part of each stretch.
    own: Vec<Vec<i64>>,
    fits: bool,
}

impl DividedSum {
    /// Sums over nothing.
    pub fn zero(ranks: &Ranks, length: usize) -> Self {
        let own = stretches(length).map(|stretch| vec![0; stretch.len().div_ceil(ranks.count())]).collect();
        Self { ranks: ranks.clone(), own, fits: true }
    }

    /// Returns the number of stretches.
    pub fn stretches(&self) -> usize {
        self.own.len()
    }

    /// Adds this rank's integers of a stretch, and those of all others. All ranks call this together. Sums of a stretch over all
    /// ranks wrap; the caller has to exclude overflow.
    pub fn add(&mut self, stretch: usize, mut integers: Vec<i64>) {
        let own = &mut self.own[stretch];
        integers.resize(own.len() * self.ranks.count(), 0);
        let mut sums = vec![0; own.len()];
        self.ranks.messages.sum_scatter(&integers, &mut sums);
        for (own, sum) in own.iter_mut().zip(sums) {
            *own = own.wrapping_add(sum);
            self.fits &= own.unsigned_abs() <= LARGEST;
        }
    }

    /// Adds zeros, and the integers of all other ranks.
    pub fn add_zeros(&mut self, stretch: usize) {
        self.add(stretch, Vec::new());
    }

    /// Returns whether all sums of this rank's part fit so far.
    pub fn fits(&self) -> bool {
        self.fits
    }

    /// Returns the sums of this rank's pieces of the parameters, which are in `order` in the sequence. All ranks call this together.
    pub fn into_pieces(self, shards: &Shards, order: &[usize]) -> Vec<Vec<i64>> {
        let (rank, count) = (self.ranks.rank(), self.ranks.count());
        let mut starts = vec![0; shards.params().len()];
        let mut end = 0;
        for &param in order {
            starts[param] = end;
            end += shards.params()[param].len();
        }
        let owned = shards.pieces();
        let mut sums: Vec<Vec<i64>> = owned.iter().map(|piece| vec![0; piece.range.len()]).collect();
        for begin in (0..shards.longest()).step_by(SENT) {
            // What a rank gets: parts of its pieces, by the ranks that have their sums, and where these are in the sequence.
            let parts_of = |of: usize| {
                shards.pieces_in(of, &(begin..begin + SENT)).flat_map(|Piece { param, range }| {
                    let start = starts[param];
                    let owners = self.owners(start + range.start..start + range.end);
                    owners.map(move |(owner, places)| (owner, param, places.start - start, places))
                })
            };
            let to = |of: usize| -> Vec<u8> {
                let own = parts_of(of).filter(|(owner, ..)| *owner == rank);
                own.flat_map(|(_, _, _, places)| bytemuck::cast_slice(self.own_at(&places)).to_vec())
                    .collect()
            };
            let to: Vec<Vec<u8>> = (0..count).map(to).collect();
            let received = self.ranks.all_to_all(&to);
            let mut received: Vec<&[u8]> = received.iter().map(Vec::as_slice).collect();
            for (owner, param, first, places) in parts_of(rank) {
                let (values, rest) = received[owner].split_at(size_of::<i64>() * places.len());
                received[owner] = rest;
                let index = owned.partition_point(|piece| piece.param < param);
                let first = first - owned[index].range.start;
                bytemuck::cast_slice_mut(&mut sums[index][first..first + places.len()])
                    .copy_from_slice(values);
            }
        }
        sums
    }

    /// Returns this rank's sums at places of the sequence that it owns.
    fn own_at(&self, places: &Range<usize>) -> &[i64] {
        let own = &self.own[places.start / STRETCH];
        let begin = places.start / STRETCH * STRETCH + self.ranks.rank() * own.len();
        &own[places.start - begin..places.end - begin]
    }

    /// Cuts places of the sequence into those of single ranks.
    fn owners(&self, places: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (own, mut next) = (&self.own, places.start);
        std::iter::from_fn(move || {
            let begin = next / STRETCH * STRETCH;
            let each = own.get(next / STRETCH).filter(|_| next < places.end)?.len();
            let rank = (next - begin) / each;
            let end = (begin + (rank + 1) * each).min(begin + STRETCH).min(places.end);
            let found = next..end;
            next = end;
            Some((rank, found))
        })
    }
}

/// The largest integer of a sum.
const LARGEST: u64 = 1 << 62;

/// Integers of this rank, which it sends stretch by stretch.
pub(crate) struct Stretches<'a> {
    stretch: Vec<i64>,
    length: usize,
    send: &'a mut dyn FnMut(Vec<i64>),
}

impl<'a> Stretches<'a> {
    pub fn new(send: &'a mut dyn FnMut(Vec<i64>)) -> Self {
        Self { stretch: Vec::with_capacity(STRETCH), length: 0, send }
    }

    /// Appends integers: `add` adds those of a range to zeros.
    pub fn push(&mut self, length: usize, mut add: impl FnMut(Range<usize>, &mut [i64])) {
        let mut begin = 0;
        while begin < length {
            let filled = self.stretch.len();
            let end = length.min(begin + STRETCH - filled);
            self.stretch.resize(filled + end - begin, 0);
            add(begin..end, &mut self.stretch[filled..]);
            begin = end;
            if self.stretch.len() == STRETCH {
                let full = std::mem::replace(&mut self.stretch, Vec::with_capacity(STRETCH));
                (self.send)(full);
            }
        }
        self.length += length;
    }

    /// Sends the last stretch, and returns the number of all integers.
    pub fn finish(self) -> usize {
        if !self.stretch.is_empty() {
            (self.send)(self.stretch);
        }
        self.length
    }
}

fn stretches(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(STRETCH).map(move |begin| begin..(begin + STRETCH).min(length))
}
