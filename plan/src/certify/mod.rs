//! Certifies plans and sweeps: their privacy events and the bounds on their ε.

mod alternatives;
mod certified;
mod earlier;
mod plan;
mod summary;
mod sweep;

pub use certified::{CertifiedPlan, PassPlace, Phase, TokenizerRelease};
pub use sweep::{CertifiedSweep, SweepSetting};
