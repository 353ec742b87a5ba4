//! Carries out a certified plan: trains a language model under differential privacy, on Burn.
//!
//! [`run`] is the main path. The engine is built from explicit layers (`layer`, `model`) whose backward pass leaves a
//! record, from which `dp` takes per-example norms and the clipped sum without materialising a gradient per example.

pub mod audit;
pub mod certificate;
mod charging;
pub mod checkpoint;
pub mod cli;
pub mod data;
pub mod device;
pub mod dp;
pub mod durable;
pub mod engine;
mod error;
pub mod eval;
pub mod export;
mod folder;
pub mod generate;
pub mod ledger;
mod memory;
pub mod model;
pub mod nn;
pub mod objective;
pub mod optim;
pub mod pretrained;
mod progress;
pub mod report;
pub mod run;
mod stop;
pub mod telemetry;
pub mod tensor;
pub mod verify;
mod vocabulary;

pub use error::RunError;
