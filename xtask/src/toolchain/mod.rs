//! Finds the tools that the checks need besides Rust. A missing tool is installed if that is allowed; otherwise the
//! command that installs it is named.

pub mod browser;
pub mod mpi;
pub mod native;
pub mod tools;
pub mod vulkan;
pub mod wasm;
