//! Carries out a certified plan: trains a language model under differential privacy, on Burn.
//!
//! The engine is built from explicit layers (`layer`, `model`) whose backward pass leaves a record, from which `dp`
//! takes per-example norms and the clipped sum without materialising a gradient per example.

pub mod device;
pub mod dp;
pub mod engine;
pub mod layer;
pub mod model;
pub mod optim;
pub mod tensor;
