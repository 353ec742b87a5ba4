//! What the checks need beside Rust: found, or installed where that is allowed, or asked for exactly.

pub mod browser;
pub mod tools;
pub mod wasm;
