//! The parts that models are made of: operators over a tape, their parameters, and the records of per-example gradients.
//!
//! An operator holds the addresses of its parameters, not their values. It owns its forward pass, its backward pass and the
//! [`GradRecord`] of each parameter. A model is a forward pass over a `Pass`; see [`crate::model`].

mod cache;
mod kernels;
mod layout;
mod lora;
mod op;
mod record;
mod selection;
mod table_grads;
mod tape;
mod weights;

pub use cache::Cache;
pub use kernels::piece_length;
pub use kernels::{AdamStep, AdamTensors, CachedKeys, Kernels, Mask};
pub use layout::{Layout, LinearSpec, ParamList, Part};
pub use lora::Adapter;
pub use op::*;
pub use record::GradRecord;
pub use record::materialize_if_cheaper;
pub use selection::{Selection, SelectionError};
pub use tape::{Pass, Var};
pub use weights::{Initial, ParamId, ParamSpec, Weights};
