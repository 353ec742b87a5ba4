//! The tools that the checks need besides Rust: found, else installed where that is allowed, else named with the command
//! that installs them.

pub mod browser;
pub mod mpi;
pub mod native;
pub mod tools;
pub mod vulkan;
pub mod wasm;
