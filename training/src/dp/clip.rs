//! Per-example clipping: the factor of each gradient, and the clipped sum.

use std::sync::Arc;

use mechanisms::{Bounded, L2Sensitivity, MechanismError};
use plan::{Automatic, Clipping};

use super::norms::{PerExampleNorms, SquaredNorms, norms, norms_by_group};
use crate::ranks::Piece;
use network::nn::{Kernels, ParamSpec};

/// A sum of gradients, each of norm at most the clip norm, in multiples of `grid_step`. It cannot be read; only a
/// mechanism opens it.
pub(crate) struct ClippedSum {
    /// The integers of each parameter, or of each of `pieces`.
    pub(crate) parts: Vec<Vec<i64>>,
    /// The pieces of parameters, if several ranks share the sum.
    pub(super) pieces: Option<Arc<[Piece]>>,
    pub(super) grid_step: f64,
    pub(super) l2_clip_norm: f64,
    /// Twice the number of examples with a gradient within the clip norm, less the number of examples: one example moves it
    /// by 1.
    pub(super) unclipped_halves: i64,
}

impl ClippedSum {
    /// States that adding or removing one example moves the count by 1.
    ///
    /// # Errors
    /// None: 1 is a valid sensitivity.
    pub(crate) fn unclipped_halves(&self) -> Result<Bounded<i64>, MechanismError> {
        Ok(Bounded::new(self.unclipped_halves, L2Sensitivity::new(1.0)?))
    }

    /// States that adding or removing one example moves the sum by at most the clip norm.
    ///
    /// # Errors
    /// For a clip norm that is not a finite number above 0.
    pub fn bounded(self) -> Result<Bounded<Self>, MechanismError> {
        let sensitivity = L2Sensitivity::new(self.l2_clip_norm)?;
        Ok(Bounded::new(self, sensitivity))
    }
}

/// The factors by which the gradients of a micro-batch are scaled before they are summed.
pub(super) struct ClipFactors {
    /// For each group of parameters, one factor a row. The factor is 0 for padding and for a norm
    /// that is not finite.
    by_group: Vec<Vec<f32>>,
    /// The group of each parameter.
    group_of: Vec<usize>,
    /// Rows with a norm that is not finite.
    pub not_finite: Vec<bool>,
    /// See [`ClippedSum::unclipped_halves`].
    pub unclipped_halves: i64,
}

impl ClipFactors {
    /// The factors that `clipping` asks for, from the squared norms of all trained parameters. Rows from `examples` on are
    /// padding.
    ///
    /// # Panics
    /// If a parameter has not exactly one squared norm, which is an error in a model of the crate `network`.
    pub fn new<B: Kernels>(
        clipping: Clipping,
        squares: &SquaredNorms<B>,
        examples: usize,
        l2_clip_norm: f64,
        specs: &[ParamSpec],
    ) -> Self {
        let mut records = vec![0; specs.len()];
        squares.iter().for_each(|(param, _)| records[param.0] += 1);
        for (spec, records) in specs.iter().zip(records) {
            assert!(records == 1, "{} has {records} records; its norm would be wrong", spec.name);
        }
        let one_group = vec![0; specs.len()];
        match clipping {
            Clipping::Flat | Clipping::Adaptive(_) => {
                let norms = norms(squares);
                let within = |norm: &f64| if *norm <= l2_clip_norm { 1 } else { -1 };
                let unclipped_halves = norms.0.iter().take(examples).map(within).sum();
                let factors = factors(&norms, examples, |norm| clip_factor(norm, l2_clip_norm));
                Self { unclipped_halves, ..Self::of_groups(vec![factors], one_group, &[norms]) }
            }
            Clipping::Automatic(Automatic { stability }) => {
                // Bu et al. 2022, "Automatic clipping", <https://arxiv.org/abs/2206.07136>.
                let norms = norms(squares);
                let scaled = |norm| rounded_down(l2_clip_norm / (norm + stability));
                let factors = factors(&norms, examples, scaled);
                Self::of_groups(vec![factors], one_group, &[norms])
            }
            Clipping::PerLayer => Self::by_layer(squares, examples, l2_clip_norm, specs),
        }
    }

    /// Clips the part of each of L layers to a norm of at most C/√L, so that all parts together have a norm of at most C.
    /// The parameters of a layer share a name up to its last component: a weight and its bias.
    fn by_layer<B: Kernels>(
        squares: &SquaredNorms<B>,
        examples: usize,
        l2_clip_norm: f64,
        specs: &[ParamSpec],
    ) -> Self {
        let mut layers: Vec<&str> = specs.iter().map(layer).collect();
        layers.sort_unstable();
        layers.dedup();
        let index = |spec: &ParamSpec| layers.binary_search(&layer(spec)).unwrap_or_default();
        let group_of: Vec<usize> = specs.iter().map(index).collect();
        // The last factor covers the rounding of the root.
        let bound = l2_clip_norm / (layers.len() as f64).sqrt() * (1.0 - 1e-12);
        let norms = norms_by_group(squares, layers.len(), |param| group_of[param.0]);
        let factors = |norms| factors(norms, examples, |norm| clip_factor(norm, bound));
        Self::of_groups(norms.iter().map(factors).collect(), group_of, &norms)
    }

    fn of_groups(by_group: Vec<Vec<f32>>, group_of: Vec<usize>, norms: &[PerExampleNorms]) -> Self {
        Self { by_group, group_of, not_finite: not_finite(norms), unclipped_halves: 0 }
    }

    /// The factors of a parameter, one a row.
    pub(crate) fn of_param(&self, param: usize) -> &[f32] {
        &self.by_group[self.group_of[param]]
    }
}

/// The factor of each row: 0 for padding and for a norm that is not finite.
fn factors(norms: &PerExampleNorms, examples: usize, factor: impl Fn(f64) -> f32) -> Vec<f32> {
    let of =
        |(row, &norm): (usize, &f64)| if row < examples && norm.is_finite() { factor(norm) } else { 0.0 };
    norms.0.iter().enumerate().map(of).collect()
}

/// The name of a parameter's layer.
fn layer(spec: &ParamSpec) -> &str {
    spec.name.rsplit_once('.').map_or(spec.name.as_str(), |(layer, _)| layer)
}

/// Rows of which any norm is not finite.
fn not_finite(norms: &[PerExampleNorms]) -> Vec<bool> {
    let rows = norms.first().map_or(0, |norms| norms.0.len());
    (0..rows).map(|row| norms.iter().any(|norms| !norms.0[row].is_finite())).collect()
}

/// The largest factor ≤ 1 that brings a gradient of this norm within the clip norm.
fn clip_factor(norm: f64, l2_clip_norm: f64) -> f32 {
    if norm <= l2_clip_norm { 1.0 } else { rounded_down(l2_clip_norm / norm) }
}

fn rounded_down(exact: f64) -> f32 {
    let rounded = exact as f32;
    if f64::from(rounded) <= exact { rounded } else { rounded.next_down() }
}
