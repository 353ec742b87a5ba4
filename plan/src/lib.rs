//! `plan.json`: the verified contract between the planner and the trainer.
//!
//! [`PlanFile`] is the file as a user wrote it, [`Plan`] is a valid plan, and [`CertifiedPlan`] is a plan with its
//! privacy cost. The trainer accepts only the last, and only [`Plan::certify`] makes one.
//!
//! | folder | content |
//! |---|---|
//! | `file` | `plan.json`, `sweep.json`, `evolution.json` and `paraphrase.json`: one file a section, their schema, and the checks up to a valid [`Plan`] |
//! | `certify` | the privacy events of a plan, a sweep, an evolution or a paraphrase, their certified ε, [`CertifiedPlan`], [`CertifiedSweep`], [`CertifiedEvolution`] and [`CertifiedParaphrase`] |
//! | `advise` | estimates of time and memory, and proposals within a budget |
//! | `messages` | refusals and their wording |
//! | `statement` | the plan in words, for people outside of the field |
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

mod advise;
mod certify;
mod file;
mod messages;
pub mod statement;

pub use advise::{
    Advice, CHECKPOINTS, Candidate, Checkpoint, Compute, Cost, MACHINES, Machine, PARAMETERS_A_MESSAGE,
    Prediction, RankCost, RankSpeed, RankStart, SIZES, SMALL_MESSAGES, Size, Start, TextSize, Trained,
    USUAL_CONTEXT, USUAL_RATE, UnitsWith, Unknown, UserScheme, advise, usual_batch, usual_steps,
};
pub use certify::{
    CertifiedEvolution, CertifiedParaphrase, CertifiedPlan, CertifiedSweep, PassPlace, Phase, SweepSetting,
    TokenizerRelease,
};
pub use file::schema::{self, reference};
pub use file::{
    Adafactor, AdamW, Adaptive, AllTrials, Answers, Arithmetic, Automatic, Averaging, BatchPhase,
    CandidateSource, Chat, Clipping, CyclicPoisson, Data, Decay, Device, DpBiasCorrection, Evaluation,
    EvolutionFile, ExtendedTokenizer, Family, Initial, LARGEST_WHOLE_SUM, LabelHistogram, Lamb, Learn,
    LearningRate, Lora, MadeFrom, Model, NoiseMultipliers, Objective, Optimizer, ParaphraseFile, Performance,
    Plan, PlanFile, PoissonOfExamples, Pooling, Precision, PrefixSplit, Privacy, ProcessSettings,
    PublicTokenizer, SUMS_A_MESSAGE, Sampling, SentenceSplit, Sgd, Side, Source, SweepFile, SweepTrials,
    SyntheticPrivacy, Tokenizer, TokenizerModel, Trainable, TrainedTokenizer, Training, TrialCount,
    TruncatedPoisson, VERSION, Vary, VaryField, Visibility, WarmStart, exact_is_free,
};
pub use mechanisms::{Encoding, Format, PrivacyUnit, ReleaseMethod, Words};
pub use messages::{PlanError, Remedy};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
