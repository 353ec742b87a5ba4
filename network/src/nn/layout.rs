//! The list of a model's parameters, and the purpose of each.

use std::sync::Arc;

use super::{Initializer, ParamId, ParamSpec, Stored};

/// The parameters of a model in their order.
#[derive(Clone, Debug)]
pub struct Layout {
    specs: Arc<[ParamSpec]>,
    sites: Arc<[Site]>,
}

/// The purpose of a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub part: Part,
    pub kind: Kind,
}

/// The role of a parameter in its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The matrix of a linear layer inside the model.
    Matrix(Stored),
    /// The gain of a norm.
    Gain,
    /// Tables, biases and the layers that make the logits.
    Other,
}

/// A part of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The part before the blocks that can be trained alone: embeddings, and the encoder of an
    /// encoder–decoder.
    Input,
    /// The block of this index.
    Block(usize),
    /// The part after the blocks.
    Output,
    /// The head for tokens. A backbone may get a head for labels in its place.
    Head,
    /// A head for labels. It is always trained, because it may start at random while all other
    /// parameters come from a checkpoint.
    Labels,
}

impl Layout {
    /// Returns the names, shapes and initial values of the parameters.
    #[must_use]
    pub fn specs(&self) -> &Arc<[ParamSpec]> {
        &self.specs
    }

    /// Returns the parameters without those of the heads for tokens, to be continued by a head for
    /// labels.
    #[must_use]
    pub fn body(&self) -> ParamList {
        let heads = self.sites.iter().position(|site| site.part == Part::Head);
        let length = heads.unwrap_or(self.sites.len());
        let (specs, sites) = (self.specs[..length].to_vec(), self.sites[..length].to_vec());
        ParamList { specs, sites, part: Part::Labels }
    }

    /// Returns each parameter with its purpose.
    pub(super) fn sites(&self) -> impl Iterator<Item = (&ParamSpec, Site)> {
        self.specs.iter().zip(self.sites.iter().copied())
    }
}

/// The list of parameters while a model is built. Names are those of Hugging Face.
pub struct ParamList {
    specs: Vec<ParamSpec>,
    sites: Vec<Site>,
    part: Part,
}

impl Default for ParamList {
    fn default() -> Self {
        Self { specs: Vec::new(), sites: Vec::new(), part: Part::Input }
    }
}

impl ParamList {
    /// Completes the list.
    #[must_use]
    pub fn finish(self) -> Layout {
        Layout { specs: self.specs.into(), sites: self.sites.into() }
    }

    /// Assigns the following parameters to this part. Heads come last.
    pub fn enter(&mut self, part: Part) {
        self.part = part;
    }

    /// Adds a parameter that does not belong to a linear layer.
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], initial: Initializer) -> ParamId {
        self.push(name.into(), shape, initial, Kind::Other)
    }

    /// Adds a parameter of this kind.
    pub(super) fn push(
        &mut self,
        name: String,
        shape: &[usize],
        initial: Initializer,
        kind: Kind,
    ) -> ParamId {
        self.specs.push(ParamSpec { name, shape: shape.to_vec(), initial });
        self.sites.push(Site { part: self.part, kind });
        ParamId(self.specs.len() - 1)
    }
}
