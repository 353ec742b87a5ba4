//! Finds the tools that the checks need besides Rust. Otherwise it installs them if that is
//! allowed, or names the command that installs them.

pub mod browser;
pub mod mpi;
pub mod native;
pub mod tools;
pub mod vulkan;
pub mod wasm;
