//! Sums of clipped gradients that several ranks share.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use super::grid_sum::Integers;
use super::lot::Group;
use super::sum::ClippedPart;
use super::summing::Summing;
use super::{ClippedSum, Lot, PrivateGradient, StepError};
use crate::ranks::{DividedSum, Ranks, Shards, Stretches};
use network::nn::{Kernels, SumTile, Weights};
use network::tensor::Tensor;

/// Sums over the examples of all ranks. Each rank gets its own pieces of the sum.
///
/// A rank without examples takes part too: its sum is zero, and its pieces get their noise.
///
/// # Errors
/// As this rank's own sum; [`StepError::Overflow`] if a sum of any rank, or of all together, does
/// not fit 64 bits.
pub(super) fn sum_of_all(
    own: Result<ClippedSum, StepError>,
    shards: &Shards,
) -> Result<ClippedSum, StepError> {
    let ranks = shards.ranks();
    let largest = largest_on(ranks);
    let fits = |sum: &ClippedSum| sum.parts.iter().flatten().all(|integer| integer.unsigned_abs() <= largest);
    let own = own.and_then(|sum| if fits(&sum) { Ok(sum) } else { Err(StepError::Overflow) });
    if ranks.any(own.is_err()) {
        return own.and(Err(StepError::Overflow));
    }
    let own = own?;
    Ok(ClippedSum {
        parts: shards.sum(&own.parts),
        pieces: Some(Arc::clone(shards.pieces())),
        unclipped_halves: ranks.total(own.unclipped_halves.into()) as i64,
        ..own
    })
}

/// The largest integer of a rank whose sum over all ranks fits.
fn largest_on(ranks: &Ranks) -> u64 {
    (1_u64 << 62) / ranks.count() as u64
}

/// Sums over the examples of all ranks as [`sum_of_all`] does, in rounds in which each worker computes one group. The ranks add up each
/// stretch of the parameters as soon as it is computed, so that no rank ever has the whole sum.
///
/// # Errors
/// [`StepError::Overflow`] on all ranks if a sum does not fit 64 bits.
pub(super) fn sum_in_rounds<B: Kernels>(
    summing: &Summing<'_>,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    shards: &Shards,
) -> Result<ClippedSum, StepError> {
    let ranks = shards.ranks();
    let groups = summing.groups(lot, weights);
    let largest = largest_on(ranks) / B::workers() as u64;
    let compute = |weights: &Weights<B>, group: &Group<'_>, send: &mut dyn FnMut(Vec<i64>)| {
        let mut overflows = false;
        let mut send = |integers: Vec<i64>| {
            overflows |= integers.iter().any(|integer| integer.unsigned_abs() > largest);
            send(integers);
        };
        let mut sum = Sent::new(summing.grid_step(), &mut send);
        lot.compute(group, groups.len(), weights, |weights, batches| {
            summing.add(weights, batches, lot.recompute, &mut sum)
        });
        let added = sum.finish(shards);
        Added { overflows: added.overflows || overflows, ..added }
    };
    let rounds: Vec<&[Group<'_>]> = groups.chunks(B::workers()).collect();
    let most = ranks.numbers(rounds.len() as u64).into_iter().max().unwrap_or(0);
    let (mut all, mut own) = (DividedSum::zero(ranks, shards.elements()), Added::default());
    for round in 0..most as usize {
        match rounds.get(round).and_then(|round| round.split_first()) {
            Some((first, others)) => own.join(add_round(&mut all, weights, first, others, &compute)),
            None => (0..all.stretches()).for_each(|stretch| all.add_zeros(stretch)),
        }
    }
    if ranks.any(own.overflows || !all.fits()) {
        return Err(StepError::Overflow);
    }
    let order = order_of_all(shards, &own.order);
    Ok(ClippedSum {
        parts: all.into_pieces(shards, &order),
        pieces: Some(Arc::clone(shards.pieces())),
        grid_step: summing.grid_step(),
        l2_clip_norm: summing.l2_clip_norm(),
        unclipped_halves: ranks.total(own.unclipped_halves.into()) as i64,
    })
}

/// Computes one group on each worker, and adds up their integers with those of all ranks. The first worker is this thread, because only
/// this one may send messages.
fn add_round<B: Kernels>(
    all: &mut DividedSum,
    weights: &Weights<B>,
    first: &Group<'_>,
    others: &[Group<'_>],
    compute: &(impl Fn(&Weights<B>, &Group<'_>, &mut dyn FnMut(Vec<i64>)) -> Added + Sync),
) -> Added {
    std::thread::scope(|scope| {
        let start = |group| {
            let (send, receive) = sync_channel(1);
            let weights = weights.clone();
            // The receiver is gone only if this thread panicked.
            let work = move || compute(&weights, group, &mut |integers| drop(send.send(integers)));
            (receive, scope.spawn(work))
        };
        let others: Vec<_> = others.iter().map(start).collect();
        let mut stretch = 0;
        let mut added = compute(weights, first, &mut |mut integers: Vec<i64>| {
            for (receive, _) in &others {
                // Nothing comes from a worker that panicked; see below.
                let other: Vec<i64> = receive.recv().unwrap_or_default();
                integers.iter_mut().zip(other).for_each(|(sum, other)| *sum = sum.wrapping_add(other));
            }
            all.add(stretch, integers);
            stretch += 1;
        });
        for (_, worker) in others {
            added.join(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        added
    })
}

/// Returns the order in which the parameters of all ranks are handed over. A rank without examples does not know it.
///
/// # Panics
/// If two ranks have different orders, which is an error in a model of the crate `network`.
fn order_of_all(shards: &Shards, own: &[usize]) -> Vec<usize> {
    let sent: Vec<u8> = own.iter().flat_map(|&param| (param as u32).to_le_bytes()).collect();
    let all = shards.ranks().exchange(&sent);
    let mut orders = all.iter().filter(|order| !order.is_empty());
    let Some(order) = orders.next() else { return (0..shards.params().len()).collect() };
    assert!(orders.all(|other| other == order), "ranks hand over parameters in different orders");
    let param = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes) as usize;
    order.chunks_exact(4).map(param).collect()
}

/// What a rank, or one of its workers, added to a sum.
#[derive(Default)]
struct Added {
    /// The parameters in the order in which they were handed over.
    order: Vec<usize>,
    overflows: bool,
    unclipped_halves: i64,
}

impl Added {
    fn join(&mut self, other: Self) {
        assert!(
            self.order.is_empty() || self.order == other.order,
            "groups hand over parameters in different orders"
        );
        self.order = other.order;
        self.overflows |= other.overflows;
        self.unclipped_halves += other.unclipped_halves;
    }
}

/// Number of elements of an example's whole gradient that become integers at once.
const AT_ONCE: usize = if cfg!(test) { 1 << 10 } else { 1 << 18 };

/// A worker's integers, which it hands over stretch by stretch.
struct Sent<'a> {
    stretches: Stretches<'a>,
    grid_step: f64,
    added: Added,
    /// Integers of the current parameter from element `first` on, which are not complete.
    band: Vec<i64>,
    first: usize,
}

impl<'a> Sent<'a> {
    fn new(grid_step: f64, send: &'a mut dyn FnMut(Vec<i64>)) -> Self {
        let stretches = Stretches::new(send);
        Self { stretches, grid_step, added: Added::default(), band: Vec::new(), first: 0 }
    }

    fn begin(&mut self, param: usize) {
        if self.added.order.last() != Some(&param) {
            self.added.order.push(param);
            self.first = 0;
        }
    }

    /// # Panics
    /// If parameters are missing, which is an error in a model of the crate `network`.
    fn finish(self, shards: &Shards) -> Added {
        assert!(
            self.stretches.finish() == shards.elements(),
            "not each element of a gradient was handed over once"
        );
        self.added
    }
}

impl Integers for Sent<'_> {
    fn add<B: Kernels>(&mut self, part: ClippedPart<B>) {
        self.begin(part.param);
        let (length, added) = (part.sum.dims()[0], &mut self.added);
        self.stretches.push(length, |range: Range<usize>, integers| {
            let values = part.sum.clone();
            let values = if range.len() < length { values.slice([range]) } else { values };
            added.overflows |= !B::add_on_grid(values, self.grid_step, integers);
        });
    }

    fn add_truncated<B: Kernels>(
        &mut self,
        param: usize,
        first: usize,
        gradient: Tensor<B, 1>,
        factor: f64,
        room: u128,
    ) -> u128 {
        self.begin(param);
        let (length, begin) = (gradient.dims()[0], first - self.first);
        self.band.resize(self.band.len().max(begin + length), 0);
        B::add_truncated(gradient.unsqueeze(), factor / self.grid_step, room, &mut self.band[begin..], length)
    }

    fn add_tile(&mut self, param: usize, tile: SumTile<'_>, pitch: usize) {
        self.begin(param);
        let begin = tile.rows.start * pitch - self.first;
        self.band.resize(self.band.len().max(begin + tile.rows.len() * pitch), 0);
        tile.add_to(&mut self.band[begin..], pitch);
    }

    fn grid_step(&self) -> f64 {
        self.grid_step
    }

    fn at_once(&self) -> usize {
        AT_ONCE
    }

    fn complete(&mut self, param: usize, end: usize) {
        self.begin(param);
        // What nothing was added to is zero, and not held.
        self.stretches.push(end - self.first, |range, integers| {
            let held = self.band.get(range.start..range.end.min(self.band.len())).unwrap_or_default();
            integers[..held.len()].copy_from_slice(held);
        });
        self.band.clear();
        self.first = end;
    }

    fn count(&mut self, unclipped_halves: i64) {
        self.added.unclipped_halves += unclipped_halves;
    }
}

impl<B: Kernels> PrivateGradient<B> {
    /// Returns the same pieces, with the sum of squares over all ranks.
    pub(super) fn with_all_squares(self, shards: &Shards) -> Self {
        // The sum of squares is below 2¹²⁷, because each element's square is below 2⁶⁴.
        let squares = shards.ranks().total(self.squares as i128) as u128;
        Self { squares, elements: shards.elements(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: by hand. Tiles of zeros are not handed over; in a table that is only looked up, they are most.
    #[test]
    fn a_sum_whose_tiles_are_missing_is_zero_there_and_not_held() {
        let (mut integers, mut send_all) = (Vec::new(), Vec::new());
        let mut send = |part: Vec<i64>| send_all.push(part);
        let mut sum = Sent::new(1.0, &mut send);
        let tile = SumTile { rows: 5_000..5_002, columns: 1..3, sums: &[1, 2, 3, 4] };
        sum.complete(0, 5_000 * 4);
        sum.add_tile(0, tile, 4);
        sum.complete(0, 10_000 * 4);
        assert!(sum.band.capacity() <= 64, "{}", sum.band.capacity());
        assert_eq!(sum.stretches.finish(), 10_000 * 4);
        send_all.into_iter().for_each(|part| integers.extend(part));
        let places: Vec<(usize, i64)> =
            integers.into_iter().enumerate().filter(|(_, integer)| *integer != 0).collect();
        assert_eq!(places, [(20_001, 1), (20_002, 2), (20_005, 3), (20_006, 4)]);
    }
}
