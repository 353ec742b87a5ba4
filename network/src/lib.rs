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
pub mod pretrained;
pub mod tensor;
pub mod tensor_file;
#[cfg(test)]
#[path = "../tests/vectors/mod.rs"]
#[allow(dead_code, reason = "other crates include this file too")]
mod vectors;

#[cfg(test)]
extern crate self as network;

pub use example::{Example, ExampleError};
