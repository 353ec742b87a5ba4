//! The parts that models are made of: operators over a tape, their parameters, and the records of per-example gradients.
//!
//! An operator holds the addresses of its parameters, not their values. It owns its forward pass, its backward pass and the
//! [`GradRecord`] of each parameter. A model is a forward pass over a `ForwardPass`; see [`crate::model`].
//!
//! The files in reading order; each uses only files above it:
//!
//! | files | content |
//! |---|---|
//! | `kernels` | the functions that a device computes in its own way |
//! | `param`, `layout` | a parameter, and the list of a model's parameters |
//! | `record`, `table_grads` | the records that a backward pass leaves for each parameter |
//! | `lora`, `selection`, `weights` | the parameters that are trained, and the values of all |
//! | `cache`, `dropout` | what a pass for generation keeps, and what a pass for training drops |
//! | `tape` | a pass: the values of a batch, and how gradients flow back |
//! | `op` | one file for each operator: its parameters, its forward and its backward pass |

mod cache;
mod dropout;
mod kernels;
mod layout;
mod lora;
mod op;
mod param;
mod record;
mod selection;
mod table_grads;
mod tape;
mod weights;

pub use cache::Cache;
pub use kernels::{
    AdamStep, AdamTensors, Attended, BlockedAttention, CachedKeys, GradientFactors, Kernels, Mask, SumTile,
    has_matrix_unit, piece_length, zeros_in_memory,
};
pub use layout::{Layout, ParamList, Part};
pub use lora::Adapter;
pub use op::*;
pub use param::{Initializer, ParamId, ParamSpec, Stored};
pub use record::{GradRecord, is_cheaper_whole, materialize_if_cheaper};
pub use selection::{Selection, SelectionError};
pub use tape::{ForwardPass, Var};
pub use weights::Weights;
