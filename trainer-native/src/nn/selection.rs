//! Which parameters are trained: all, the last blocks, or low-rank adapters beside frozen matrices.
//!
//! Layers know nothing of this: they compute with the effective matrices, and what their backward pass leaves for a
//! matrix W = W₀ + s·P·Q is turned into what belongs to P and Q: with dW = Lᵀ·R an example's gradient,
//! dP = s·dW·Qᵀ = Lᵀ·(s·R·Qᵀ) and dQ = s·Pᵀ·dW = (s·L·P)ᵀ·R, both again products over positions.
//!
//! # References
//! Hu et al. 2021, "LoRA", <https://arxiv.org/abs/2106.09685>; names as Hugging Face's PEFT.

use std::sync::Arc;

use super::{Initial, ParamId, ParamSpec};
use crate::nn::GradRecord;
use crate::tensor::{Backend, Tensor};

/// A choice of parameters that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model.trainable: {0}")]
pub struct SelectionError(String);

/// What becomes of a parameter of the model.
#[derive(Clone, Copy, Debug)]
enum Role {
    Frozen,
    /// Trained as it is, at this place of the trained list.
    Whole(usize),
    Adapted(Adapter),
}

/// Places of an adapter's matrices in the trained list.
#[derive(Clone, Copy, Debug)]
struct Adapter {
    /// `[rank, d_in]`
    a: usize,
    /// `[d_out, rank]`
    b: usize,
}

/// The trained parameters and how they follow from the model's.
#[derive(Clone, Debug)]
pub struct Selection {
    specs: Arc<[ParamSpec]>,
    roles: Vec<Role>,
    /// s: alpha over the rank.
    scale: f64,
    /// Whether matrices are stored `[d_in, d_out]` instead of `[d_out, d_in]`.
    conv1d: bool,
}

/// Ends or parts of names of what is looked up or makes the logits: no adapter is put beside it.
const TABLES: [&str; 7] =
    ["embed", "wte", "wpe", "shared", "relative_attention_bias", "lm_head", "output.weight"];

impl Selection {
    /// The choice of a plan; `None` where all parameters are trained.
    ///
    /// # Errors
    /// [`SelectionError`] if a target is no linear layer's matrix, or no block is among the last so many.
    pub fn new(
        trainable: &plan::Trainable,
        specs: &[ParamSpec],
        layers: usize,
        conv1d: bool,
    ) -> Result<Option<Self>, SelectionError> {
        match trainable {
            plan::Trainable::All => Ok(None),
            plan::Trainable::LastLayers(count) => {
                let first = layers.saturating_sub(*count as usize);
                Ok(Some(Self::whole(specs, |spec| is_late(&spec.name, first, specs), conv1d)))
            }
            plan::Trainable::Lora(lora) => Self::lora(lora, specs, conv1d).map(Some),
        }
    }

    fn whole(specs: &[ParamSpec], chosen: impl Fn(&ParamSpec) -> bool, conv1d: bool) -> Self {
        let mut list = Vec::new();
        let mut role = |spec: &ParamSpec| {
            if !chosen(spec) {
                return Role::Frozen;
            }
            list.push(spec.clone());
            Role::Whole(list.len() - 1)
        };
        let roles = specs.iter().map(&mut role).collect();
        Self { specs: list.into(), roles, scale: 1.0, conv1d }
    }

    fn lora(lora: &plan::Lora, specs: &[ParamSpec], conv1d: bool) -> Result<Self, SelectionError> {
        for target in &lora.targets {
            if !specs.iter().any(|spec| is_target(spec, target)) {
                let linear = specs.iter().filter(|spec| is_linear(spec));
                let mut known: Vec<&str> =
                    linear.filter_map(|spec| module(spec)?.rsplit('.').next()).collect();
                known.sort_unstable();
                known.dedup();
                let known = known.join(", ");
                return Err(SelectionError(format!("no matrix is named \"{target}\"; allowed: {known}")));
            }
        }
        let rank = lora.rank as usize;
        let mut list: Vec<ParamSpec> = Vec::new();
        let mut role = |spec: &ParamSpec| {
            let Some(module) = module(spec).filter(|_| lora.targets.iter().any(|t| is_target(spec, t)))
            else {
                return Role::Frozen;
            };
            let [d_in, d_out] =
                if conv1d { [spec.shape[0], spec.shape[1]] } else { [spec.shape[1], spec.shape[0]] };
            // B starts at 0, so the first step starts from the checkpoint itself; A as PEFT's, of variance 1/(3·d_in).
            let std = 1.0 / (3.0 * d_in as f64).sqrt();
            let part = |name: &str, shape: [usize; 2], initial| ParamSpec {
                name: format!("{module}.{name}.weight"),
                shape: shape.to_vec(),
                initial,
            };
            list.push(part("lora_A", [rank, d_in], Initial::Normal { std }));
            list.push(part("lora_B", [d_out, rank], Initial::Constant(0.0)));
            Role::Adapted(Adapter { a: list.len() - 2, b: list.len() - 1 })
        };
        let roles = specs.iter().map(&mut role).collect();
        Ok(Self { specs: list.into(), roles, scale: lora.alpha / f64::from(lora.rank), conv1d })
    }

    /// Names, shapes and starts of the trained parameters.
    #[must_use]
    pub fn specs(&self) -> &Arc<[ParamSpec]> {
        &self.specs
    }

    /// Whether nothing of parameters 0 up to `last` is trained.
    pub(super) fn is_frozen_up_to(&self, last: ParamId) -> bool {
        self.roles[..=last.0].iter().all(|role| matches!(role, Role::Frozen))
    }

    /// The records of the trained parameters, from those of the model's, under their places in the trained list.
    pub(super) fn records<B: Backend>(
        &self,
        trained: &[Tensor<B, 1>],
        records: Vec<GradRecord<B>>,
    ) -> Vec<GradRecord<B>> {
        let mut kept = Vec::with_capacity(self.specs.len());
        for record in records {
            match (self.roles[record.param().0], record) {
                (Role::Frozen, _) => {}
                (Role::Whole(place), record) => kept.push(record.of(ParamId(place))),
                (Role::Adapted(adapter), GradRecord::Product { input, grad, .. }) => {
                    kept.extend(self.low_rank(trained, adapter, input, grad));
                }
                // Without a record the adapter is refused where the sums are made.
                (Role::Adapted(_), _) => {}
            }
        }
        kept
    }

    /// Records of A and B from the two factors of their matrix's gradient, `left` along its rows.
    fn low_rank<B: Backend>(
        &self,
        trained: &[Tensor<B, 1>],
        Adapter { a, b }: Adapter,
        left: Tensor<B, 3>,
        right: Tensor<B, 3>,
    ) -> [GradRecord<B>; 2] {
        // The factor along the inputs and the one along the outputs.
        let (inputs, outputs) = if self.conv1d { (left, right) } else { (right, left) };
        let down = times(&inputs, self.matrix(trained, a).transpose(), self.scale);
        let up = times(&outputs, self.matrix(trained, b), self.scale);
        [
            GradRecord::Product { param: ParamId(a), input: up, grad: inputs },
            GradRecord::Product { param: ParamId(b), input: outputs, grad: down },
        ]
    }

    /// The model's parameters that follow from trained values, with their places, given what they were at the start.
    pub(super) fn effective<B: Backend>(
        &self,
        trained: &[Tensor<B, 1>],
        base: &[Tensor<B, 1>],
    ) -> Vec<(usize, Tensor<B, 1>)> {
        let follow = |(place, role): (usize, &Role)| match *role {
            Role::Frozen => None,
            Role::Whole(at) => Some((place, trained[at].clone())),
            Role::Adapted(Adapter { a, b }) => {
                let change = self.matrix(trained, b).matmul(self.matrix(trained, a));
                let change = if self.conv1d { change.transpose() } else { change };
                let length = base[place].dims()[0];
                Some((place, base[place].clone() + change.reshape([length]) * self.scale))
            }
        };
        self.roles.iter().enumerate().filter_map(follow).collect()
    }

    /// The trained values that leave the model's as they are; `fresh` has new adapters.
    pub(super) fn start<B: Backend>(
        &self,
        fresh: Vec<Tensor<B, 1>>,
        base: &[Tensor<B, 1>],
    ) -> Vec<Tensor<B, 1>> {
        let mut values = fresh;
        for (role, base) in self.roles.iter().zip(base) {
            if let Role::Whole(at) = *role {
                values[at] = base.clone();
            }
        }
        values
    }

    fn matrix<B: Backend>(&self, trained: &[Tensor<B, 1>], place: usize) -> Tensor<B, 2> {
        let shape = &self.specs[place].shape;
        trained[place].clone().reshape([shape[0], shape[1]])
    }
}

/// `[batch, seq, d]` times `[d, n]`, scaled.
fn times<B: Backend>(values: &Tensor<B, 3>, matrix: Tensor<B, 2>, scale: f64) -> Tensor<B, 3> {
    let [batch, seq, d] = values.dims();
    let n = matrix.dims()[1];
    (values.clone().reshape([batch * seq, d]).matmul(matrix) * scale).reshape([batch, seq, n])
}

/// The name of the layer whose matrix this is.
fn module(spec: &ParamSpec) -> Option<&str> {
    spec.name.strip_suffix(".weight")
}

fn is_linear(spec: &ParamSpec) -> bool {
    spec.shape.len() == 2 && module(spec).is_some() && !TABLES.iter().any(|table| spec.name.contains(table))
}

fn is_target(spec: &ParamSpec, target: &str) -> bool {
    let named = |module: &str| module == target || module.ends_with(&format!(".{target}"));
    is_linear(spec) && module(spec).is_some_and(named)
}

/// Whether a parameter belongs to block `first` or a later one, or follows the blocks. Of encoder and decoder, the
/// decoder's blocks count.
fn is_late(name: &str, first: usize, specs: &[ParamSpec]) -> bool {
    let of_decoder = specs.iter().any(|spec| spec.name.starts_with("decoder."));
    if of_decoder && name.starts_with("encoder.") {
        return false;
    }
    let block = name.split('.').find_map(|part| part.parse::<usize>().ok());
    match block {
        Some(block) if name.starts_with("cls.") || block >= first => true,
        Some(_) => false,
        None => !["embed", "wte", "wpe", "shared"].iter().any(|table| name.contains(table)),
    }
}
