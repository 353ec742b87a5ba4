//! `plan.json`: the verified contract between the planner and the trainer.
//!
//! [`PlanFile`] is what a user wrote, [`Plan`] is what makes sense, [`CertifiedPlan`] is what its privacy
//! costs. The trainer accepts nothing but the last, and only [`Plan::certify`] makes one.
//!
//! ```
//! use plan::{Plan, PlanFile};
//! let text = include_str!("../presets/quickstart.json");
//! let certified = Plan::try_from(PlanFile::parse(text)?)?.certify()?;
//! assert!(certified.epsilon().upper <= 8.0);
//!
//! let slip = text.replace("\"delta\"", "\"delat\"");
//! let refusal = PlanFile::parse(&slip).unwrap_err().to_string();
//! assert!(refusal.starts_with("privacy.delat: unknown field"));
//! assert!(refusal.ends_with("did you mean \"delta\"?"));
//! # Ok::<(), plan::PlanError>(())
//! ```

mod advice;
mod alternatives;
mod canonical;
mod certified;
mod certify;
mod check;
mod clipping;
mod consistent;
mod cost;
mod data;
mod describe;
mod error;
mod family;
mod file;
mod hint;
mod lineage;
mod memory;
mod model;
mod nearest;
mod performance;
mod privacy;
mod reference;
pub mod schema;
mod size;
mod solve;
mod summary;
mod sweep;
mod tokenizer;
mod training;
mod valid;

pub use advice::{Advice, Candidate, Compute, advise};
pub use certified::{CertifiedPlan, PassPlace, Phase, TokenizerRelease};
pub use clipping::{Adaptive, Automatic, Clipping};
pub use cost::{Cost, MACHINES, Machine, RankCost, RankSpeed};
pub use data::{Data, Evaluation, Format, LabelHistogram, Source, Visibility};
pub use error::PlanError;
pub use family::Family;
pub use file::{PlanFile, VERSION};
pub use lineage::MadeFrom;
pub use mechanisms::{PrivacyUnit, ReleaseMethod, Words};
pub use model::{Initial, Lora, Model, Trainable};
pub use performance::{Device, Performance, Precision};
pub use privacy::{Arithmetic, NoiseMultipliers, Privacy, Sampling, TruncatedPoisson};
pub use reference::reference;
pub use size::{SIZES, Size};
pub use solve::{Remedy, Unknown};
pub use sweep::{AllTrials, CertifiedSweep, Setting, SweepFile, SweepTrials, TrialCount, Vary, VaryField};
pub use tokenizer::{ExtendedTokenizer, PublicTokenizer, Tokenizer, TokenizerModel, TrainedTokenizer};
pub use training::{
    Adafactor, AdamW, BatchPhase, Chat, Decay, DpBiasCorrection, Lamb, Learn, LearningRate, Objective,
    Optimizer, Sgd, Side, Training,
};
pub use valid::Plan;
