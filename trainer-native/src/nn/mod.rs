//! The parts that models are made of: operators, their parameters, and the records of per-example gradients.
//!
//! An operator holds the addresses of its parameters, not their values. Its forward pass returns the output and what its
//! backward pass needs; its backward pass returns the input gradient and leaves a [`GradRecord`] for each parameter.

mod kernels;
mod op;
mod record;
mod selection;
#[cfg(test)]
mod tests;
mod weights;

pub use kernels::{AdamStep, AdamTensors, Kernels, NoiseSource};
pub use op::*;
pub use record::{GradRecord, materialize_if_cheaper};
pub use selection::{Selection, SelectionError};
pub use weights::{Initial, ParamId, ParamSpec, Weights};
