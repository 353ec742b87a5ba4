//! Training text on its way to the model: unit → window → example.
//!
//! | type | what it is |
//! |---|---|
//! | `UnitText` | a stretch of one privacy unit's text |
//! | `Dataset` | the tokens of all units, cut into windows as `WindowSpec` says |
//! | `UnitWindow` | one window of a sampled unit |
//! | [`Example`] | what the objective makes of one window, or of one record |
//! | `LabelledRecord` | a record with a label or a target, which becomes one example as a whole |
//!
//! A unit's text is its tokens in order, with the end-of-text token after each record. Where the unit is a piece of N words,
//! the token follows each piece: what a piece becomes depends on no other piece. A window belongs to one unit. For next-token prediction each token is a target in at most one window: a window begins with the last token of
//! the unit's window before it, or with the end-of-text token. For the other objectives windows are disjoint.
//!
//! A sampled unit contributes exactly one of its windows to a step. Its gradient is clipped once, so the step's
//! sensitivity is the clip norm, however long the unit is.
//!
//! Text is encoded into memory, in one process. On several ranks, text stays in its files unless they are compressed, and a record
//! is read and encoded where it is sampled. The tokens of a token file stay on disk, too. No private token is written to the run
//! folder.

mod canaries;
mod corpus;
mod dataset;
mod digest;
mod kept;
mod labelled;
mod overlap;
mod sampler;
mod text_index;
mod texts;
mod token_file;

pub(crate) use canaries::{Canaries, CanaryTokens, Secret};
pub use canaries::{Occurrences, Pattern, Planting, Secrets};
pub(crate) use corpus::{
    EVALUATION, PublicText, UnitText, Units, check_other_text, evaluation_source, public_file,
    read_evaluation, read_public_file, read_records, read_units, training_source,
};
pub(crate) use dataset::{Dataset, UnitWindow, WindowSpec};
pub(crate) use labelled::{Answer, LabelledFields, LabelledRecord, LabelledRecords, LabelledSet};
pub(crate) use overlap::{check_apart, check_earlier, check_records, public_sketch};
pub(crate) use sampler::Sampler;
pub(crate) use text_index::TextIndex;
pub(crate) use texts::Texts;

#[cfg(test)]
mod tests;
