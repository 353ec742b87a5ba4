//! The division of a model's parameters among ranks, in the manner of ZeRO.
//!
//! All trained parameters are concatenated and cut into as many stretches as there are ranks, of
//! about equal length. A rank gets the sums of its stretch, adds their noise, and keeps the
//! optimizer's state for it. If only blocks of rows may be cut apart, the parameters of each shape
//! are cut separately, so that ranks have equal shares of elements and of rows.
//!
//! # References
//! Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training trillion parameter models", stage 1,
//! <https://arxiv.org/abs/1910.02054>.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pulp::bytemuck;

use super::Ranks;
use network::nn::{Kernels, ParamSpec};
use network::tensor::Tensor;

/// Number of values that all ranks send together in one message.
const MESSAGE: usize = plan::PARAMETERS_A_MESSAGE as usize;

/// Number of parameters up to which a rank keeps a whole sum until it has computed all of its micro-batches.
const LARGEST_WHOLE_SUM: usize = if cfg!(test) { 1 << 9 } else { plan::LARGEST_WHOLE_SUM as usize };

/// A stretch of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub param: usize,
    pub range: Range<usize>,
}

/// The places at which parameters may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// Between any two elements.
    Elements,
    /// Between blocks of whole rows, so that sums over whole parameters can be added up block by block. See [`block_rows`].
    Blocks,
}

/// The stretches of all ranks, as seen by one of them.
#[derive(Clone, Debug)]
pub(crate) struct Shards {
    ranks: Ranks,
    params: Arc<[ParamSpec]>,
    /// Beginning of each parameter, and the end of the last one.
    starts: Arc<[usize]>,
    grain: Grain,
    pieces_by_rank: Arc<[Vec<Piece>]>,
    pieces: Arc<[Piece]>,
    specs: Arc<[ParamSpec]>,
    largest_whole_sum: usize,
}

/// The values that a rank sent, and the specifications of its pieces.
pub(crate) struct FromRank {
    /// See [`Shards::specs`].
    pub specs: Vec<ParamSpec>,
    /// See [`Shards::pieces`].
    pub pieces: Vec<Piece>,
    pub values: Vec<f32>,
}

impl Shards {
    /// Cuts the trained parameters.
    pub fn new(ranks: Ranks, params: Arc<[ParamSpec]>, grain: Grain) -> Self {
        let mut starts = vec![0];
        for spec in params.iter() {
            starts.push(starts[starts.len() - 1] + spec.len());
        }
        let count = ranks.count();
        let of_rank = |rank| match grain {
            Grain::Elements => pieces(&starts, share_of(starts[params.len()], rank, count)).collect(),
            Grain::Blocks => blocks(&params, rank, count),
        };
        let pieces_by_rank: Arc<[Vec<Piece>]> = (0..count).map(of_rank).collect();
        let pieces: Arc<[Piece]> = pieces_by_rank[ranks.rank()].as_slice().into();
        let specs = pieces.iter().map(|piece| spec_of(piece, &params[piece.param], grain)).collect();
        let starts = starts.into();
        let largest_whole_sum = LARGEST_WHOLE_SUM;
        Self { ranks, params, starts, grain, pieces_by_rank, pieces, specs, largest_whole_sum }
    }

    /// Returns the ranks that share the parameters.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Returns the parameters, in their order.
    pub fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    /// Returns this rank's pieces, in the parameters' order.
    pub fn pieces(&self) -> &Arc<[Piece]> {
        &self.pieces
    }

    /// Returns the pieces of each rank, in the parameters' order.
    pub(crate) fn pieces_by_rank(&self) -> &[Vec<Piece>] {
        &self.pieces_by_rank
    }

    /// Specifications of the pieces. A piece of a matrix is a matrix of its rows, or of a single
    /// row if rows are cut.
    pub fn specs(&self) -> &Arc<[ParamSpec]> {
        &self.specs
    }

    /// Returns the number of elements of all parameters.
    pub fn elements(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Returns this rank's pieces of the values of all parameters.
    pub fn own<B: Kernels>(&self, values: &[Tensor<B, 1>]) -> Vec<Tensor<B, 1>> {
        let piece = |piece: &Piece| values[piece.param].clone().slice([piece.range.clone()]);
        self.pieces.iter().map(piece).collect()
    }

    /// Returns whether ranks sum up micro-batch by micro-batch, so that none ever has a whole sum. Sums of fewer parameters take less
    /// memory than the messages.
    pub fn divide_sums(&self) -> bool {
        self.ranks.are_several() && self.elements() > self.largest_whole_sum
    }

    /// Sets the number of parameters above which ranks divide sums.
    pub fn divide_sums_above(&mut self, parameters: usize) {
        self.largest_whole_sum = parameters;
    }

    /// Returns the pieces of the sums over all ranks. Sums wrap; the caller has to exclude
    /// overflow.
    pub fn sum(&self, parts: &[Vec<i64>]) -> Vec<Vec<i64>> {
        let mut own = vec![0; self.longest()];
        for chunk in self.chunks() {
            let mut blocks = vec![0; chunk.len() * self.ranks.count()];
            for (rank, block) in blocks.chunks_exact_mut(chunk.len()).enumerate() {
                let mut rest = block;
                for piece in self.pieces_in(rank, &chunk) {
                    let (head, tail) = rest.split_at_mut(piece.range.len());
                    head.copy_from_slice(&parts[piece.param][piece.range]);
                    rest = tail;
                }
            }
            self.ranks.messages.sum_scatter(&blocks, &mut own[chunk]);
        }
        self.cut(&own)
    }

    /// Collects every rank's pieces, and returns the values of all parameters.
    pub fn gather(&self, own: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
        let mut own: Vec<f32> = own.into_iter().flatten().collect();
        own.resize(self.longest(), 0.0);
        let lengths = self.starts.windows(2).map(|bounds| bounds[1] - bounds[0]);
        let mut whole: Vec<Vec<f32>> = lengths.map(|length| vec![0.0; length]).collect();
        for chunk in self.chunks() {
            let mut blocks = vec![0.0; chunk.len() * self.ranks.count()];
            self.ranks
                .messages
                .all_gather(bytemuck::cast_slice(&own[chunk.clone()]), bytemuck::cast_slice_mut(&mut blocks));
            for (rank, block) in blocks.chunks_exact(chunk.len()).enumerate() {
                let mut rest = block;
                for piece in self.pieces_in(rank, &chunk) {
                    let (head, tail) = rest.split_at(piece.range.len());
                    whole[piece.param][piece.range].copy_from_slice(head);
                    rest = tail;
                }
            }
        }
        whole
    }

    /// Collects values of all ranks on the first one: passes the rank and the next of its values to `take`. `lengths` are the numbers of
    /// values of each rank. All ranks call this together.
    pub fn collect(&self, own: &[f32], lengths: &[usize], mut take: impl FnMut(usize, &[f32])) {
        let (ranks, longest) = (&self.ranks, lengths.iter().copied().max().unwrap_or(0));
        let each = (MESSAGE / ranks.count()).clamp(1, longest.max(1));
        for begin in (0..longest).step_by(each) {
            let mut sent = own.get(begin..own.len().min(begin + each)).unwrap_or_default().to_vec();
            sent.resize(each, 0.0);
            let mut all = vec![0.0; if ranks.is_first() { each * ranks.count() } else { 0 }];
            ranks.messages.gather(bytemuck::cast_slice(&sent), bytemuck::cast_slice_mut(&mut all));
            for ((rank, block), length) in all.chunks_exact(each).enumerate().zip(lengths) {
                take(rank, &block[..length.saturating_sub(begin).min(each)]);
            }
        }
    }

    /// Exchanges values, and returns those of each rank, by rank.
    pub fn exchange(&self, own: &[f32]) -> Vec<FromRank> {
        let sent = self.ranks.exchange(bytemuck::cast_slice(own)).into_iter().enumerate();
        let from = |(rank, bytes): (usize, Vec<u8>)| {
            let pieces = self.pieces_by_rank[rank].clone();
            let spec = |piece: &Piece| spec_of(piece, &self.params[piece.param], self.grain);
            FromRank {
                specs: pieces.iter().map(spec).collect(),
                pieces,
                values: bytemuck::pod_collect_to_vec(&bytes),
            }
        };
        sent.map(from).collect()
    }

    /// Returns the part of a rank's pieces that lies in a part of its stretch.
    pub(super) fn pieces_in(
        &self,
        rank: usize,
        chunk: &Range<usize>,
    ) -> impl Iterator<Item = Piece> + use<'_> {
        let Range { start, end } = *chunk;
        let mut next = 0;
        self.pieces_by_rank[rank].iter().filter_map(move |piece| {
            // The place of the piece in the stretch.
            let begin = next;
            next += piece.range.len();
            let first = piece.range.start;
            let range = first + start.max(begin) - begin..first + end.min(next).saturating_sub(begin);
            (!range.is_empty()).then_some(Piece { param: piece.param, range })
        })
    }

    /// Returns the number of elements of the longest stretch.
    pub(super) fn longest(&self) -> usize {
        let length = |pieces: &Vec<Piece>| pieces.iter().map(|piece| piece.range.len()).sum();
        self.pieces_by_rank.iter().map(length).max().unwrap_or(0)
    }

    /// Returns the parts of a stretch that are sent one at a time.
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> {
        let (length, end) = ((MESSAGE / self.ranks.count()).max(1), self.longest());
        (0..end).step_by(length).map(move |begin| begin..(begin + length).min(end))
    }

    fn cut<T: Copy>(&self, own: &[T]) -> Vec<Vec<T>> {
        let mut begin = 0;
        let piece = |piece: &Piece| {
            let values = own[begin..begin + piece.range.len()].to_vec();
            begin += values.len();
            values
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// Returns the pieces of parameters at these places.
fn pieces(starts: &[usize], places: Range<usize>) -> impl Iterator<Item = Piece> {
    let first = starts.partition_point(|&start| start <= places.start).saturating_sub(1);
    let Range { start, end } = places;
    let params = starts.windows(2).enumerate().skip(first).take_while(move |(_, bounds)| bounds[0] < end);
    params.filter_map(move |(param, bounds)| {
        let range = bounds[0].max(start) - bounds[0]..bounds[1].min(end).saturating_sub(bounds[0]);
        (!range.is_empty()).then_some(Piece { param, range })
    })
}

/// Returns the specification of a piece. It has the parameter's name, and is a matrix if the
/// parameter is one, because vectors do not decay.
fn spec_of(piece: &Piece, spec: &ParamSpec, grain: Grain) -> ParamSpec {
    let length = piece.range.len();
    let shape = match (spec.shape.len(), grain) {
        (..2, _) => vec![length],
        (_, Grain::Elements) => vec![1, length],
        (_, Grain::Blocks) => [&[length / row_length(spec)], &spec.shape[1..]].concat(),
    };
    ParamSpec { shape, ..spec.clone() }
}

/// Returns the places of a rank among `length` consecutive ones.
pub(crate) fn share_of(length: usize, rank: usize, count: usize) -> Range<usize> {
    let each = length.div_ceil(count);
    (rank * each).min(length)..((rank + 1) * each).min(length)
}

/// Returns the pieces of a rank in blocks of rows: about `1/count` of the elements of all
/// parameters of each shape.
fn blocks(params: &[ParamSpec], rank: usize, count: usize) -> Vec<Piece> {
    let mut by_shape: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
    for (param, spec) in params.iter().enumerate().filter(|(_, spec)| !spec.is_empty()) {
        by_shape.entry(&spec.shape).or_default().push(param);
    }
    let of_shape = |alike: Vec<usize>| {
        let spec = &params[alike[0]];
        let (length, block) = (spec.len(), block_rows(spec) * row_length(spec));
        let cut = |rank: usize| {
            let place = ((alike.len() * length) as u128 * rank as u128 / count as u128) as usize;
            let blocks = (place % length + block / 2) / block;
            place / length * length + (blocks * block).min(length)
        };
        let starts: Vec<usize> = (0..=alike.len()).map(|place| place * length).collect();
        let pieces: Vec<Piece> = pieces(&starts, cut(rank)..cut(rank + 1)).collect();
        pieces.into_iter().map(move |piece| Piece { param: alike[piece.param], ..piece })
    };
    let mut pieces: Vec<Piece> = by_shape.into_values().flat_map(of_shape).collect();
    pieces.sort_by_key(|piece| piece.param);
    pieces
}

/// Largest number of blocks of a matrix.
const BLOCKS: usize = 64;

/// Returns the number of rows of each block of a parameter; the last block may have fewer. It
/// depends only on the parameter, so that sums over blocks do not depend on the number of ranks. A
/// vector is one block, and each of its elements is a row.
pub(crate) fn block_rows(spec: &ParamSpec) -> usize {
    let rows = spec.shape.first().copied().unwrap_or(1);
    let rows = if spec.shape.len() > 1 { rows.div_ceil(BLOCKS) } else { rows };
    rows.max(1)
}

/// Returns the number of elements in each row of a parameter.
pub(crate) fn row_length(spec: &ParamSpec) -> usize {
    spec.shape.iter().skip(1).product::<usize>().max(1)
}
