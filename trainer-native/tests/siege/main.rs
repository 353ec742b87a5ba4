//! Attacks on the statements of the certificate. Each input was once accepted. Now it is refused,
//! or the certificate states exactly what was checked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod conditions;
mod figures;
mod files;
mod stages;
mod texts;
