//! Language models: a [`model`] is a forward pass over the operators of [`nn`], whose backward
//! passes leave a record per example instead of a gradient. It reads no text, no plan file and no
//! ledger, and adds no noise.
//!
//! [`tensor`] is the only module that names Burn; [`device`] chooses a backend at run time.

pub mod device;
mod example;
pub mod head;
pub mod lengths;
pub mod model;
pub mod nn;
pub mod tensor;

pub use example::{Example, ExampleError};
