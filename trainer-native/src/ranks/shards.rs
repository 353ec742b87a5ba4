//! Each rank's part of a model's parameters, in the manner of ZeRO.
//!
//! All trained parameters lie one after the other. They are cut into as many blocks of one length as there are ranks. A rank gets
//! the sums of its block, adds their noise, and keeps the optimizer's state for it.
//!
//! # References
//! Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training trillion parameter models", stage 1,
//! <https://arxiv.org/abs/1910.02054>.

use std::ops::Range;
use std::sync::Arc;

use pulp::bytemuck;

use super::Ranks;
use crate::nn::{Kernels, ParamSpec};
use crate::tensor::Tensor;

/// Numbers that all ranks send together in one message.
const MESSAGE: usize = 1 << 22;

/// A stretch of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub param: usize,
    pub range: Range<usize>,
}

/// The parts of all ranks, as one of them sees them.
#[derive(Clone, Debug)]
pub(crate) struct Shards {
    ranks: Ranks,
    /// Where each parameter begins; one more entry than parameters.
    starts: Arc<[usize]>,
    /// Elements of each block. The last blocks may reach past the parameters.
    block: usize,
    pieces: Arc<[Piece]>,
    specs: Arc<[ParamSpec]>,
}

impl Shards {
    /// Cuts the trained parameters.
    pub fn new(ranks: Ranks, specs: &[ParamSpec]) -> Self {
        let mut starts = vec![0];
        for spec in specs {
            starts.push(starts[starts.len() - 1] + spec.len());
        }
        let block = starts[specs.len()].div_ceil(ranks.count());
        let own = ranks.rank() * block..(ranks.rank() + 1) * block;
        let pieces: Arc<[Piece]> = pieces(&starts, own).collect();
        let specs = pieces.iter().map(|piece| spec_of(piece, &specs[piece.param])).collect();
        Self { ranks, starts: starts.into(), block, pieces, specs }
    }

    /// All ranks.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// The pieces of this rank's block, in the parameters' order.
    pub fn pieces(&self) -> &Arc<[Piece]> {
        &self.pieces
    }

    /// Specifications of the pieces. Those of a matrix are matrices of one row.
    pub fn specs(&self) -> &Arc<[ParamSpec]> {
        &self.specs
    }

    /// Elements of all parameters.
    pub fn elements(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The pieces of values of all parameters.
    pub fn own<B: Kernels>(&self, values: &[Tensor<B, 1>]) -> Vec<Tensor<B, 1>> {
        let piece = |piece: &Piece| values[piece.param].clone().slice([piece.range.clone()]);
        self.pieces.iter().map(piece).collect()
    }

    /// The pieces of the sums over all ranks. Sums wrap; the caller sees to it that none does.
    pub fn sum(&self, parts: &[Vec<i64>]) -> Vec<Vec<i64>> {
        let mut own = vec![0; self.block];
        for chunk in self.chunks() {
            let mut blocks = vec![0; chunk.len() * self.ranks.count()];
            for (rank, block) in blocks.chunks_exact_mut(chunk.len()).enumerate() {
                let begin = rank * self.block + chunk.start;
                let mut rest = block;
                for piece in pieces(&self.starts, begin..begin + chunk.len()) {
                    let (head, tail) = rest.split_at_mut(piece.range.len());
                    head.copy_from_slice(&parts[piece.param][piece.range]);
                    rest = tail;
                }
            }
            self.ranks.messages.sum_scatter(&blocks, &mut own[chunk]);
        }
        self.cut(&own)
    }

    /// Values of all parameters, from every rank's pieces.
    pub fn gather(&self, own: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
        let mut own: Vec<f32> = own.into_iter().flatten().collect();
        own.resize(self.block, 0.0);
        let lengths = self.starts.windows(2).map(|bounds| bounds[1] - bounds[0]);
        let mut whole: Vec<Vec<f32>> = lengths.map(|length| vec![0.0; length]).collect();
        for chunk in self.chunks() {
            let mut blocks = vec![0.0; chunk.len() * self.ranks.count()];
            self.ranks
                .messages
                .all_gather(bytemuck::cast_slice(&own[chunk.clone()]), bytemuck::cast_slice_mut(&mut blocks));
            for (rank, block) in blocks.chunks_exact(chunk.len()).enumerate() {
                let begin = rank * self.block + chunk.start;
                let mut rest = block;
                for piece in pieces(&self.starts, begin..begin + chunk.len()) {
                    let (head, tail) = rest.split_at(piece.range.len());
                    whole[piece.param][piece.range].copy_from_slice(head);
                    rest = tail;
                }
            }
        }
        whole
    }

    /// Stretches of a block that are sent at a time.
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> {
        let (length, end) = ((MESSAGE / self.ranks.count()).max(1), self.block);
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

/// The pieces of parameters at these places.
fn pieces(starts: &[usize], places: Range<usize>) -> impl Iterator<Item = Piece> {
    let first = starts.partition_point(|&start| start <= places.start).saturating_sub(1);
    let Range { start, end } = places;
    let params = starts.windows(2).enumerate().skip(first).take_while(move |(_, bounds)| bounds[0] < end);
    params.filter_map(move |(param, bounds)| {
        let range = bounds[0].max(start) - bounds[0]..bounds[1].min(end).saturating_sub(bounds[0]);
        (!range.is_empty()).then_some(Piece { param, range })
    })
}

/// The specification of a piece: of the same name, and a matrix if the parameter is one, since vectors do not decay.
fn spec_of(piece: &Piece, spec: &ParamSpec) -> ParamSpec {
    let shape = if spec.shape.len() > 1 { vec![1, piece.range.len()] } else { vec![piece.range.len()] };
    ParamSpec { shape, ..spec.clone() }
}
