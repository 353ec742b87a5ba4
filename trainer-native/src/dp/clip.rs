//! Per-example clipping and the clipped sum.

use mechanisms::{Bounded, L2Sensitivity, MechanismError};
use plan::{Automatic, Clipping};

use super::PerExampleNorms;
use super::norms::{Squares, norms, norms_by_group};
use crate::nn::{GradRecord, Kernels, ParamSpec};
use crate::tensor::{Bool, DType, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData, from_host};

/// A sum over examples of gradients of norm at most C. It cannot be read; only [`super::privatize`] opens it.
pub struct ClippedSum<B: Kernels> {
    pub(super) parts: Vec<Tensor<B, 1>>,
    l2_clip_norm: f64,
    /// Sum over examples of ½ where the gradient was within the bound, −½ where it was not.
    votes: f32,
}

impl<B: Kernels> ClippedSum<B> {
    /// The sum over no example.
    pub fn zero(specs: &[ParamSpec], l2_clip_norm: f64, dtype: FloatDType, device: &B::Device) -> Self {
        let zero = |spec: &ParamSpec| from_host(vec![0.0; spec.len()], [spec.len()], dtype, device);
        Self { parts: specs.iter().map(zero).collect(), l2_clip_norm, votes: 0.0 }
    }

    /// The sum over the examples of both, which must be disjoint.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let parts = self.parts.into_iter().zip(other.parts).map(|(a, b)| a + b).collect();
        let l2_clip_norm = self.l2_clip_norm.max(other.l2_clip_norm);
        Self { parts, l2_clip_norm, votes: self.votes + other.votes }
    }

    /// Whether gradients were within the bound, as a sum that one example moves by a half.
    ///
    /// # Errors
    /// None but in a broken build: a half is a sensitivity.
    pub fn votes(&self) -> Result<Bounded<Vec<f32>>, MechanismError> {
        Ok(Bounded::new(vec![self.votes], L2Sensitivity::new(0.5)?))
    }

    /// States what adding or removing one example can change.
    ///
    /// # Errors
    /// If the clip norm is not a positive number.
    pub fn bounded(self) -> Result<Bounded<Self>, MechanismError> {
        let sensitivity = L2Sensitivity::new(self.l2_clip_norm)?;
        Ok(Bounded::new(self, sensitivity))
    }
}

/// Sum over the first `examples` rows of their gradients, each scaled to a norm of at most `l2_clip_norm`.
///
/// Rows beyond `examples` are padding and count zero times whatever they hold; so does a row whose norm is not a finite number.
pub fn clip<B: Kernels>(
    records: Vec<GradRecord<B>>,
    norms: PerExampleNorms,
    examples: usize,
    l2_clip_norm: f64,
    specs: &[ParamSpec],
) -> ClippedSum<B> {
    let scales = Scales::flat(&norms, examples, l2_clip_norm, specs);
    let mut sums = Sums::new(specs);
    sums.add(records, Some(&scales));
    sums.clipped(&scales)
}

/// What the gradients of each row are multiplied by before they are summed.
pub(super) struct Scales {
    /// Of each group of parameters, one a row.
    factors: Vec<Vec<f32>>,
    /// The group of each parameter.
    groups: Vec<usize>,
    /// Rows of which a norm is not a finite number.
    poisoned: Vec<bool>,
    l2_clip_norm: f64,
    votes: f32,
}

impl Scales {
    /// As the plan says to clip, from the squared norms of all trained parameters.
    pub fn new<B: Kernels>(
        clipping: Clipping,
        squares: &Squares<B>,
        examples: usize,
        bound: f64,
        specs: &[ParamSpec],
    ) -> Self {
        match clipping {
            Clipping::Flat | Clipping::Adaptive(_) => Self::flat(&norms(squares), examples, bound, specs),
            Clipping::Automatic(Automatic { stability }) => {
                Self::automatic(&norms(squares), examples, bound, stability, specs)
            }
            Clipping::PerLayer => Self::by_layer(squares, examples, bound, specs),
        }
    }

    /// To a norm of at most `l2_clip_norm`; see [`clip`].
    fn flat(norms: &PerExampleNorms, examples: usize, l2_clip_norm: f64, specs: &[ParamSpec]) -> Self {
        let factors = factors(norms, examples, |norm| clip_factor(norm, l2_clip_norm));
        let within = |norm: &f64| if *norm <= l2_clip_norm { 0.5_f32 } else { -0.5 };
        let votes = norms.0.iter().take(examples).map(within).sum();
        let poisoned = poisoned(std::slice::from_ref(norms));
        Self { factors: vec![factors], groups: vec![0; specs.len()], poisoned, l2_clip_norm, votes }
    }

    /// To a norm just below `l2_clip_norm`, short ones up: C/(‖g‖ + γ).
    ///
    /// # References
    /// Bu et al. 2022, "Automatic clipping", <https://arxiv.org/abs/2206.07136>.
    fn automatic(
        norms: &PerExampleNorms,
        examples: usize,
        l2_clip_norm: f64,
        stability: f64,
        specs: &[ParamSpec],
    ) -> Self {
        let factors = factors(norms, examples, |norm| rounded_down(l2_clip_norm / (norm + stability)));
        let poisoned = poisoned(std::slice::from_ref(norms));
        Self { factors: vec![factors], groups: vec![0; specs.len()], poisoned, l2_clip_norm, votes: 0.0 }
    }

    /// The part of each of L layers by itself to a norm of at most C/√L, so that all together have one of at most C. A
    /// layer is what shares a name up to its last part: a weight and its bias.
    fn by_layer<B: Kernels>(
        squares: &Squares<B>,
        examples: usize,
        l2_clip_norm: f64,
        specs: &[ParamSpec],
    ) -> Self {
        let mut layers: Vec<&str> = specs.iter().map(layer).collect();
        layers.sort_unstable();
        layers.dedup();
        let place = |spec: &ParamSpec| layers.binary_search(&layer(spec)).unwrap_or_default();
        let groups: Vec<usize> = specs.iter().map(place).collect();
        // The last factor covers the rounding of the root.
        let bound = l2_clip_norm / (layers.len() as f64).sqrt() * (1.0 - 1e-12);
        let norms = norms_by_group(squares, layers.len(), |param| groups[param.0]);
        let factors =
            norms.iter().map(|norms| factors(norms, examples, |norm| clip_factor(norm, bound))).collect();
        Self { factors, groups, poisoned: poisoned(&norms), l2_clip_norm, votes: 0.0 }
    }
}

/// Sums over rows, while the records come in.
pub(super) struct Sums<'a, B: Kernels> {
    parts: Vec<Option<Tensor<B, 1>>>,
    specs: &'a [ParamSpec],
}

impl<'a, B: Kernels> Sums<'a, B> {
    /// Of no record.
    pub fn new(specs: &'a [ParamSpec]) -> Self {
        Self { parts: vec![None; specs.len()], specs }
    }

    /// Takes records in: their rows as they are, or scaled.
    pub fn add(&mut self, records: Vec<GradRecord<B>>, scales: Option<&Scales>) {
        let records = match scales {
            Some(scales) => without_poisoned(records, &scales.poisoned),
            None => records,
        };
        for record in records {
            let index = record.param().0;
            let (spec, part) = (&self.specs[index], &mut self.parts[index]);
            assert!(part.is_none(), "{} has two records; its norm would be wrong", spec.name);
            let factors = scales.map(|scales| scales.factors[scales.groups[index]].as_slice());
            *part = Some(weighted_sum(record, factors, spec));
        }
    }

    /// The sums of rows that were scaled.
    pub fn clipped(self, scales: &Scales) -> ClippedSum<B> {
        ClippedSum { parts: self.all(), l2_clip_norm: scales.l2_clip_norm, votes: scales.votes }
    }

    /// The sums of rows as they are: the baseline. Padding contributes 0 by its zero loss weight.
    pub fn plain(self) -> ClippedSum<B> {
        ClippedSum { parts: self.all(), l2_clip_norm: f64::INFINITY, votes: 0.0 }
    }

    fn all(self) -> Vec<Tensor<B, 1>> {
        let parts = self.parts.into_iter().zip(self.specs);
        parts.map(|(part, spec)| part.unwrap_or_else(|| panic!("{} has no record", spec.name))).collect()
    }
}

/// The factor of each row: 0 for padding and where the norm is not a finite number.
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
fn poisoned(norms: &[PerExampleNorms]) -> Vec<bool> {
    let rows = norms.first().map_or(0, |norms| norms.0.len());
    (0..rows).map(|row| norms.iter().any(|norms| !norms.0[row].is_finite())).collect()
}

/// The records with zeros in place of poisoned rows: 0·NaN is NaN, so a factor of 0 would not keep them out of a sum.
fn without_poisoned<B: Kernels>(records: Vec<GradRecord<B>>, poisoned: &[bool]) -> Vec<GradRecord<B>> {
    if !poisoned.contains(&true) {
        return records;
    }
    let blank = |record: GradRecord<B>| {
        let rows: Tensor<B, 1, Bool> = Tensor::from_data(TensorData::from(poisoned), &record.device());
        record.without(&rows)
    };
    records.into_iter().map(blank).collect()
}

/// The largest factor ≤ 1 that brings a gradient of this norm within the bound.
fn clip_factor(norm: f64, l2_clip_norm: f64) -> f32 {
    if norm <= l2_clip_norm { 1.0 } else { rounded_down(l2_clip_norm / norm) }
}

fn rounded_down(exact: f64) -> f32 {
    let rounded = exact as f32;
    if f64::from(rounded) <= exact { rounded } else { rounded.next_down() }
}

/// Sum over examples of factor × gradient, flat.
fn weighted_sum<B: Kernels>(
    record: GradRecord<B>,
    factors: Option<&[f32]>,
    spec: &ParamSpec,
) -> Tensor<B, 1> {
    let device = record.device();
    let of =
        |factors: &[f32], dtype: DType| from_host(factors.to_vec(), [factors.len()], dtype.into(), &device);
    let scale = |values: Tensor<B, 3>| match factors {
        Some(factors) => {
            let factors = of(factors, values.dtype());
            B::scale_examples(values, factors)
        }
        None => values,
    };
    let sum = match record {
        GradRecord::Explicit { grads, .. } => match factors {
            Some(factors) => {
                let factors = of(factors, grads.dtype());
                B::weighted_sum(grads, factors).unsqueeze()
            }
            None => grads.sum_dim(0),
        },
        GradRecord::Product { input, grad, .. } => {
            // The narrower factor takes the scaling.
            let (input, grad) =
                if input.dims()[2] < grad.dims()[2] { (scale(input), grad) } else { (input, scale(grad)) };
            B::product(rows(input).transpose(), rows(grad))
        }
        GradRecord::Lookup { tokens, grad, .. } => {
            let table = Tensor::zeros([spec.shape[0], spec.shape[1]], (&device, grad.dtype()));
            scatter(table, tokens, scale(grad))
        }
        GradRecord::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
            let head = B::product(rows(logits_grad).transpose(), rows(scale(hidden)));
            scatter(head, tokens, scale(grad))
        }
    };
    let [rows, columns] = sum.dims();
    sum.reshape([rows * columns])
}

/// Adds the gradients of looked-up rows to a table.
fn scatter<B: Kernels>(table: Tensor<B, 2>, tokens: Tensor<B, 2, Int>, grad: Tensor<B, 3>) -> Tensor<B, 2> {
    let lookup = rows(grad);
    let tokens = tokens.reshape([lookup.dims()[0]]);
    table.select_assign(0, tokens, lookup, IndexingUpdateOp::Add)
}

/// `[batch, seq, d]` → `[batch·seq, d]`
fn rows<B: Kernels>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, seq, d] = values.dims();
    values.reshape([batch * seq, d])
}
