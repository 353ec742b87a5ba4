//! Certifies plans, sweeps, evolutions and paraphrases: their privacy events and the bounds on their ε.

mod alternatives;
mod certified;
mod earlier;
mod evolution;
mod paraphrase;
mod plan;
mod summary;
mod sweep;

pub use certified::{CertifiedPlan, PassPlace, Phase, TokenizerRelease};
pub use evolution::CertifiedEvolution;
pub use paraphrase::CertifiedParaphrase;
pub use sweep::{CertifiedSweep, SweepSetting};
