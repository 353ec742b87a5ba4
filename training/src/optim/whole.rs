//! Sums over whole parameters, which may be divided among several ranks.

use std::ops::Range;

use pulp::bytemuck;

use crate::ranks::{FromRank, Shards, block_rows, row_length, share_of};
use network::nn::{Kernels, ParamSpec};
use network::tensor::{FloatDType, Tensor, from_host, to_host};

/// The parameters of an optimizer, whole or in pieces.
///
/// A sum adds up the blocks of a parameter ([`block_rows`]) in their order, so it has the same bits
/// for any number of ranks.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    /// The parameter of each piece.
    params: Vec<ParamSpec>,
    shards: Option<Shards>,
}

/// The values over which a sum runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Over {
    /// The elements of each parameter.
    Elements,
    /// One value for each row of each matrix.
    Rows,
    /// The elements of each column of each matrix.
    Columns,
}

impl Over {
    /// Returns the number of values in a block and in its sum. Only matrices have rows and columns.
    fn block(self, param: &ParamSpec) -> Option<(usize, usize)> {
        let (rows, length) = (block_rows(param), row_length(param));
        let is_matrix = param.shape.len() == 2;
        match self {
            Self::Elements => Some((rows * length, 1)),
            Self::Rows => is_matrix.then_some((rows, 1)),
            Self::Columns => is_matrix.then_some((rows * length, length)),
        }
    }
}

impl Whole {
    /// Creates the parameters of a single process, which has all of them whole.
    pub fn params(specs: &[ParamSpec]) -> Self {
        Self { params: specs.to_vec(), shards: None }
    }

    /// Creates this rank's pieces of the parameters.
    pub fn pieces(shards: &Shards) -> Self {
        let param = |piece: &crate::ranks::Piece| shards.params()[piece.param].clone();
        Self { params: shards.pieces().iter().map(param).collect(), shards: Some(shards.clone()) }
    }

    /// Returns all parameters, whole.
    pub fn all(&self) -> &[ParamSpec] {
        self.shards.as_ref().map_or(&self.params, Shards::params)
    }

    /// Returns the index of a piece's parameter.
    pub fn number(&self, piece: usize) -> usize {
        self.shards.as_ref().map_or(piece, |shards| shards.pieces()[piece].param)
    }

    /// Returns the parameter of a piece.
    pub fn param(&self, piece: usize) -> &ParamSpec {
        &self.params[piece]
    }

    /// Returns this rank's part of a tensor of `length` elements that is divided among the ranks.
    pub fn share(&self, length: usize) -> Range<usize> {
        let ranks = self.shards.as_ref().map(Shards::ranks);
        ranks.map_or(0..length, |ranks| share_of(length, ranks.rank(), ranks.count()))
    }

    /// Joins tensors of these lengths, of which each rank has one part ([`Self::share`]).
    pub fn join<B: Kernels>(&self, own: &[Tensor<B, 1>], lengths: &[usize]) -> Vec<Tensor<B, 1>> {
        let (Some(shards), Some(first)) = (&self.shards, own.first()) else { return own.to_vec() };
        let sent: Vec<f32> = own.iter().cloned().flat_map(to_host).collect();
        let mut whole = vec![Vec::new(); lengths.len()];
        let ranks = shards.ranks();
        for (rank, bytes) in ranks.exchange(bytemuck::cast_slice(&sent)).iter().enumerate() {
            let mut values = bytemuck::pod_collect_to_vec::<u8, f32>(bytes).into_iter();
            for (whole, &length) in whole.iter_mut().zip(lengths) {
                whole.extend(values.by_ref().take(share_of(length, rank, ranks.count()).len()));
            }
        }
        let device = first.device();
        whole.into_iter().map(|values| host(values, &device)).collect()
    }

    /// Returns, for each piece, the sum over its whole parameter, or `None` if there is nothing to
    /// add up.
    ///
    /// # Shapes
    /// - values: one a piece, `[elements]` or `[rows]`, and none for a vector without rows and columns
    /// - returns: one a piece, `[1]` or `[columns]`
    pub fn sums<B: Kernels>(
        &self,
        over: Over,
        values: impl Iterator<Item = Option<Tensor<B, 1>>>,
        device: &B::Device,
    ) -> Vec<Option<Tensor<B, 1>>> {
        let all = self.all_sums(over, values, device);
        match &self.shards {
            Some(shards) => shards.pieces().iter().map(|piece| all[piece.param].clone()).collect(),
            None => all,
        }
    }

    /// Returns the sums of [`Self::sums`], one for each parameter.
    pub(crate) fn all_sums<B: Kernels>(
        &self,
        over: Over,
        values: impl Iterator<Item = Option<Tensor<B, 1>>>,
        device: &B::Device,
    ) -> Vec<Option<Tensor<B, 1>>> {
        let of_blocks = |(values, param): (Option<Tensor<B, 1>>, &ParamSpec)| {
            let (block, width) = over.block(param)?;
            Some((block_sums(values?, block, width), width))
        };
        let own: Vec<Option<(Tensor<B, 1>, usize)>> = values.zip(&self.params).map(of_blocks).collect();
        let total = |sums: Tensor<B, 1>, width: usize| {
            let blocks = sums.dims()[0] / width;
            sums.reshape([blocks, width]).sum_dim(0).reshape([width])
        };
        let Some(shards) = &self.shards else {
            return own.into_iter().map(|own| own.map(|(sums, width)| total(sums, width))).collect();
        };
        let sent: Vec<f32> = own.iter().flatten().flat_map(|(sums, _)| to_host(sums.clone())).collect();
        let mut all = vec![Vec::new(); shards.params().len()];
        for FromRank { pieces, specs, values } in shards.exchange(&sent) {
            let mut values = values.into_iter();
            for (piece, spec) in pieces.iter().zip(&specs) {
                let param = &shards.params()[piece.param];
                let Some((_, width)) = over.block(param) else { continue };
                let blocks = spec.shape[0].div_ceil(block_rows(param));
                all[piece.param].extend(values.by_ref().take(blocks * width));
            }
        }
        let of_all = |(sums, param): (Vec<f32>, &ParamSpec)| {
            let (_, width) = over.block(param)?;
            Some(total(host(sums, device), width))
        };
        all.into_iter().zip(shards.params()).map(of_all).collect()
    }
}

fn host<B: Kernels>(values: Vec<f32>, device: &B::Device) -> Tensor<B, 1> {
    let length = values.len();
    from_host(values, [length], FloatDType::F32, device)
}

/// Returns the sum of each block of values, one block after the other.
///
/// # Shapes
/// - values: `[n]`, in rows of `width`
/// - returns: `[ceil(n / block) · width]`
fn block_sums<B: Kernels>(values: Tensor<B, 1>, block: usize, width: usize) -> Tensor<B, 1> {
    let length = values.dims()[0];
    let whole = length / block * block;
    let sum = |values: Tensor<B, 1>, block: usize| {
        let blocks = values.dims()[0] / block;
        // Sums along the last axis are faster.
        match width {
            1 => values.reshape([blocks, block]).sum_dim(1).reshape([blocks]),
            _ => values.reshape([blocks, block / width, width]).sum_dim(1).reshape([blocks * width]),
        }
    };
    if whole == length {
        return sum(values, block);
    }
    let last = sum(values.clone().narrow(0, whole, length - whole), length - whole);
    if whole == 0 {
        return last;
    }
    Tensor::cat(vec![sum(values.narrow(0, 0, whole), block), last], 0)
}
