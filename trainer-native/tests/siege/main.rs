//! Attacks on what the certificate says. Each input was once accepted; now it is refused, or the certificate says exactly what was
//! checked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod conditions;
mod figures;
mod files;
mod stages;
mod texts;
