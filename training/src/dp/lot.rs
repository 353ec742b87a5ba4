//! The sampled examples of a step, and the micro-batches in which they are computed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Add;

use super::Reduce;
use crate::ranks::Shards;
use network::Example;
use network::model::{Batch, Shape};
use network::nn::{Kernels, Weights};
use network::tensor::Backend;

/// Lengths of grouped micro-batches are multiples of this.
const LENGTH_STEP: usize = 8;

/// Tokens of an example from which most gradients of matrices are held whole, which takes the memory of the model for each example
/// that is held.
const HELD_WHOLE: usize = 160;

/// Tokens of the examples whose gradients are held at a time, if these are factors.
const GROUP: usize = 512;

/// The lot of a step: one example of each sampled unit. It may be empty.
///
/// How it is cut into micro-batches affects speed and memory only.
pub(crate) struct Lot<'a, B: Backend> {
    /// The sampled examples.
    pub examples: &'a [Example],
    /// Rows of a micro-batch; the last one is padded.
    pub physical_batch: usize,
    /// Shape of a micro-batch's rows.
    pub shape: Shape,
    /// Whether the backward pass recomputes activations block by block.
    pub recompute: bool,
    /// Whether a micro-batch holds examples of similar length and is padded to that length alone.
    pub group_by_length: bool,
    /// Device of the tensors.
    pub device: &'a B::Device,
    /// The ranks that share the lot, if there are several. `examples` are then this rank's own.
    pub shards: Option<&'a Shards>,
}

impl<'a, B: Kernels> Lot<'a, B> {
    /// The sum over the micro-batches, in their order, of what `of_micro_batch` computes; `None` for an empty lot.
    pub(super) fn sum<T: Add<Output = T> + Send>(
        &self,
        weights: &Weights<B>,
        of_micro_batch: impl Fn(&Weights<B>, Batch<B>) -> T + Sync,
    ) -> Option<T> {
        let parts = self.micro_batches();
        Reduce::on_threads(B::workers()).sum(&parts, weights, |weights, part| {
            B::on_threads(spare::<B>(parts.len()), || of_micro_batch(weights, self.batch(weights, part)))
        })
    }

    /// Computes each group, in any order.
    pub(super) fn for_each(
        &self,
        groups: &[Group<'_>],
        weights: &Weights<B>,
        work: impl Fn(&Weights<B>, &mut dyn Iterator<Item = Batch<B>>) + Sync,
    ) {
        Reduce::on_threads(B::workers()).for_each(groups, weights, |weights, group| {
            self.compute(group, groups.len(), weights, &work);
        });
    }

    /// Computes one of several groups.
    pub(super) fn compute<T>(
        &self,
        group: &Group<'_>,
        groups: usize,
        weights: &Weights<B>,
        work: impl FnOnce(&Weights<B>, &mut dyn Iterator<Item = Batch<B>>) -> T,
    ) -> T {
        let batches = &mut group.0.iter().map(|part| self.batch(weights, part));
        B::on_threads(spare::<B>(groups), || work(weights, batches))
    }

    /// Returns the groups: one for each micro-batch.
    pub(super) fn groups(&self) -> Vec<Group<'a>> {
        self.micro_batches().into_iter().map(|part| Group(vec![part])).collect()
    }

    /// Returns groups in which each example is a batch of its own or, with `share`, shares one with others of the same shape.
    pub(super) fn groups_for_exact_sums(&self, share: bool) -> Vec<Group<'a>> {
        let one_by_one = Self { physical_batch: 1, ..*self };
        let alone = one_by_one.micro_batches();
        let each = alone.len().div_ceil(B::workers()).min(self.physical_batch);
        let mut groups: Vec<Group<'_>> = Vec::new();
        for part in alone {
            let tokens = part.shape.input.max(1);
            let holds_whole = self.recompute || tokens >= HELD_WHOLE;
            let most = if holds_whole { 1 } else { (GROUP / tokens).min(each) };
            match groups.last_mut() {
                Some(Group(parts)) if parts.len() < most && parts[0].shape == part.shape => parts.push(part),
                _ => groups.push(Group(vec![part])),
            }
        }
        let joined = |Group(parts)| Group(if share { joined(parts) } else { parts });
        groups.into_iter().map(joined).collect()
    }

    fn micro_batches(&self) -> Vec<MicroBatch<'a>> {
        let &Self { examples, physical_batch, shape, .. } = self;
        if !self.group_by_length {
            let whole = |examples: &'a [Example]| MicroBatch {
                examples: Cow::Borrowed(examples),
                rows: physical_batch,
                shape,
            };
            return examples.chunks(physical_batch).map(whole).collect();
        }
        let mut by_length: BTreeMap<usize, Vec<Example>> = BTreeMap::new();
        for example in examples {
            let longest = example.views().map(|view| view.input.len()).max().unwrap_or(0);
            let length = longest.max(1).next_multiple_of(LENGTH_STEP).min(shape.input);
            by_length.entry(length).or_default().push(example.clone());
        }
        let similar = |(input, examples): (usize, Vec<Example>)| {
            let shape = Shape { input, ..shape };
            let one =
                |part: &[Example]| MicroBatch { rows: part.len(), examples: part.to_vec().into(), shape };
            examples.chunks(physical_batch).map(one).collect::<Vec<_>>()
        };
        by_length.into_iter().flat_map(similar).collect()
    }

    fn batch(&self, weights: &Weights<B>, part: &MicroBatch<'_>) -> Batch<B> {
        Batch::new(&part.examples, part.rows, part.shape, weights.dtype(), self.device)
    }
}

/// Joins successive parts whose rows have one shape, so that neither has padding for the other.
fn joined(parts: Vec<MicroBatch<'_>>) -> Vec<MicroBatch<'_>> {
    let layout = |part: &MicroBatch<'_>| {
        let example = part.examples.first();
        (part.shape, example.map(|example| (example.further.len(), example.features.is_some())))
    };
    let mut all: Vec<MicroBatch<'_>> = Vec::with_capacity(parts.len());
    for part in parts {
        match all.last_mut() {
            Some(last) if layout(last) == layout(&part) => {
                last.rows += part.rows;
                last.examples.to_mut().extend(part.examples.into_owned());
            }
            _ => all.push(part),
        }
    }
    all
}

/// The threads of each worker, if there are so few parts of a lot that workers are left over.
fn spare<B: Kernels>(parts: usize) -> usize {
    B::workers() / B::workers().min(parts).max(1)
}

/// Micro-batches that a worker computes together.
pub(super) struct Group<'a>(Vec<MicroBatch<'a>>);

/// The examples of one forward and backward pass.
struct MicroBatch<'a> {
    examples: Cow<'a, [Example]>,
    /// Rows, of which those after the examples are padding.
    rows: usize,
    shape: Shape,
}
