//! Certifies plans, sweeps and evolutions: their privacy events and the bounds on their ε.

mod alternatives;
mod certified;
mod earlier;
mod evolution;
mod plan;
mod summary;
mod sweep;

pub use certified::{CertifiedPlan, PassPlace, Phase, TokenizerRelease};
pub use evolution::CertifiedEvolution;
pub use sweep::{CertifiedSweep, SweepSetting};
