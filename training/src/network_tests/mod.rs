//! Private gradients of every operator and family of networks, against one example at a time.

pub(crate) mod keys;
mod models;
mod operators;
mod output_bias;
mod recorded;
mod rms_decoders;
mod tasks;
#[path = "../../../network/tests/vectors/mod.rs"]
pub(crate) mod testing;
