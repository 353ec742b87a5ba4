//! The privacy events of a plan or a sweep, their certified ε, and the certified plan.

mod alternatives;
mod certified;
mod earlier;
mod plan;
mod summary;
mod sweep;

pub use certified::{CertifiedPlan, PassPlace, Phase, TokenizerRelease};
pub use sweep::{CertifiedSweep, SweepSetting};
