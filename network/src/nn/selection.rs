//! Selects the parameters that are trained: all, the last blocks, the gains of the norms, the attention of a decoder to an encoder,
//! the head for labels, or low-rank adapters beside frozen matrices.

use std::sync::Arc;

use super::layout::{Kind, Part, Site};
use super::{Adapter, Layout, ParamId, ParamSpec};

/// A selection of parameters that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model.trainable: {0}")]
pub struct SelectionError(String);

/// The way in which a parameter of the model is trained.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Frozen,
    /// The parameter itself, at this place among the trained parameters.
    Whole(ParamId),
    /// The parameter's adapter.
    Adapted(Adapter),
}

/// The trained parameters, and the way in which the model's parameters follow from them.
#[derive(Clone, Debug)]
pub struct Selection {
    specs: Arc<[ParamSpec]>,
    /// The role of each parameter of the model.
    roles: Vec<Role>,
}

impl Selection {
    /// Returns the selection of a plan for a model of `layers` blocks, or `None` if all parameters
    /// are trained.
    ///
    /// # Errors
    /// [`SelectionError`] if a target is not the matrix of a linear layer, or if the model lacks the selected part.
    pub fn new(
        trainable: &plan::Trainable,
        layout: &Layout,
        layers: usize,
    ) -> Result<Option<Self>, SelectionError> {
        match trainable {
            plan::Trainable::All => Ok(None),
            plan::Trainable::LastLayers(count) => {
                let first = layers.saturating_sub(*count as usize);
                Ok(Some(Self::whole(layout, |_, site| match site.part {
                    Part::Input => false,
                    Part::Block(block) => block >= first,
                    Part::Output | Part::Head | Part::Labels => true,
                })))
            }
            plan::Trainable::Norms => {
                if !layout.sites().any(|(_, site)| site.kind == Kind::Gain) {
                    return Err(SelectionError("\"norms\", but this model has none".to_owned()));
                }
                let is_chosen =
                    |_: &ParamSpec, site: Site| site.kind == Kind::Gain || site.part == Part::Labels;
                Ok(Some(Self::whole(layout, is_chosen)))
            }
            plan::Trainable::CrossAttention => {
                if !layout.specs().iter().any(is_cross_attention) {
                    return Err(SelectionError(
                        "\"cross_attention\", but this model has no decoder that reads an encoder's output"
                            .to_owned(),
                    ));
                }
                Ok(Some(Self::whole(layout, |spec, site| {
                    is_cross_attention(spec) || site.part == Part::Labels
                })))
            }
            plan::Trainable::Head => Ok(Some(Self::whole(layout, |_, site| site.part == Part::Labels))),
            plan::Trainable::Lora(lora) => Self::lora(lora, layout).map(Some),
        }
    }

    /// Selects the parameters that `is_chosen` accepts. They are trained themselves, without adapters.
    fn whole(layout: &Layout, is_chosen: impl Fn(&ParamSpec, Site) -> bool) -> Self {
        let mut list = Vec::new();
        let role = |(spec, site): (&ParamSpec, Site)| {
            if !is_chosen(spec, site) {
                return Role::Frozen;
            }
            list.push(spec.clone());
            Role::Whole(ParamId(list.len() - 1))
        };
        let roles = layout.sites().map(role).collect();
        Self { specs: list.into(), roles }
    }

    fn lora(lora: &plan::Lora, layout: &Layout) -> Result<Self, SelectionError> {
        let modules = || {
            layout
                .sites()
                .filter(|(_, site)| matches!(site.kind, Kind::Matrix(_)))
                .map(|(spec, _)| spec.module())
        };
        for target in &lora.targets {
            if !modules().any(|module| is_named(module, target)) {
                let mut known: Vec<&str> = modules().filter_map(|module| module.rsplit('.').next()).collect();
                known.sort_unstable();
                known.dedup();
                let known = known.join(", ");
                return Err(SelectionError(format!("no matrix is named \"{target}\"; allowed: {known}")));
            }
        }
        let mut list = Vec::new();
        let role = |(spec, site): (&ParamSpec, Site)| match site.kind {
            _ if site.part == Part::Labels => {
                list.push(spec.clone());
                Role::Whole(ParamId(list.len() - 1))
            }
            Kind::Matrix(stored) if lora.targets.iter().any(|target| is_named(spec.module(), target)) => {
                Role::Adapted(Adapter::add_to(&mut list, spec, stored, lora))
            }
            _ => Role::Frozen,
        };
        let roles = layout.sites().map(role).collect();
        Ok(Self { specs: list.into(), roles })
    }

    /// Returns the names, shapes and initial values of the trained parameters.
    #[must_use]
    pub fn specs(&self) -> &Arc<[ParamSpec]> {
        &self.specs
    }

    pub(super) fn role(&self, param: ParamId) -> Role {
        self.roles[param.0]
    }

    /// Returns the role of each of the model's parameters.
    pub(super) fn roles(&self) -> &[Role] {
        &self.roles
    }
}

/// Returns whether a parameter belongs to the attention of a decoder to an encoder's output, by the names of T5 and of
/// BART.
fn is_cross_attention(spec: &ParamSpec) -> bool {
    spec.module().split('.').any(|part| part == "EncDecAttention" || part == "encoder_attn")
}

fn is_named(module: &str, target: &str) -> bool {
    module == target || module.strip_suffix(target).is_some_and(|rest| rest.ends_with('.'))
}
