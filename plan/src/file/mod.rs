//! What `plan.json`, `sweep.json`, `evolution.json` and `paraphrase.json` say, from text to a valid [`Plan`].

mod canonical;
mod clipping;
mod consistent;
mod data;
mod evolution;
mod family;
mod made_from;
mod memory;
mod model;
mod parameters;
mod paraphrase;
mod performance;
mod plan;
mod plan_file;
mod privacy;
pub mod schema;
mod summing;
mod sweep;
mod synthetic;
mod tokenizer;
mod training;

pub(crate) use canonical::sha256_hex;
pub use clipping::{Adaptive, Automatic, Clipping};
pub use data::{Data, Evaluation, LabelHistogram, Source, Visibility};
pub use evolution::{CandidateSource, EvolutionFile};
pub use family::Family;
pub use made_from::MadeFrom;
pub(crate) use memory::Network;
pub use memory::ProcessSettings;
pub use model::{Initial, Lora, Model, Pooling, Trainable};
pub use paraphrase::ParaphraseFile;
pub use performance::{Device, Performance, Precision};
pub use plan::Plan;
pub use plan_file::{PlanFile, VERSION};
pub use privacy::{
    Arithmetic, CyclicPoisson, NoiseMultipliers, PoissonOfExamples, Privacy, Sampling, TruncatedPoisson,
};
pub(crate) use summing::examples_at_once;
pub use summing::{LARGEST_WHOLE_SUM, SUMS_A_MESSAGE, exact_is_free};
pub use sweep::{AllTrials, SweepFile, SweepTrials, TrialCount, Vary, VaryField};
pub use synthetic::SyntheticPrivacy;
pub use tokenizer::{ExtendedTokenizer, PublicTokenizer, Tokenizer, TokenizerModel, TrainedTokenizer};
pub use training::{
    Adafactor, AdamW, Answers, Averaging, BatchPhase, Chat, Decay, DpBiasCorrection, Lamb, Learn,
    LearningRate, Objective, Optimizer, PrefixSplit, SentenceSplit, Sgd, Side, Training, WarmStart,
};
