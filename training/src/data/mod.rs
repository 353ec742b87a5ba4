//! Training text on its way to the model: unit → window → example.
//!
//! | type | what it is |
//! |---|---|
//! | `UnitText` | a stretch of one privacy unit's text |
//! | `Dataset` | the tokens of all units, cut into windows as `WindowSpec` says |
//! | `SampledUnit` | the windows that a sampled unit contributes to a step |
//! | [`network::Example`] | what the objective makes of a unit's windows, or of its records |
//! | `LabelledRecord` | a record with a label or a target, which becomes one example as a whole |
//!
//! | files in reading order | content |
//! |---|---|
//! | `unit_text`, `labelled_record`, `digest` | what is read from a record, and its digest |
//! | `places`, `divided` | text that stays in its files, of which each rank reads its own share |
//! | `text_index`, `texts`, `labelled` | text and records, in memory or in their files |
//! | `units` | the training text, and public text beside it |
//! | `overlap`, `corpus` | reads what a plan names, and refuses public text that is also private |
//! | `window_spec`, `token_file`, `dataset` | tokens and windows |
//! | `sampler`, `views`, `canaries` | the units of a step; the windows of a unit; planted text for audits |
//!
//! A unit's text is its tokens in order, with the end-of-text token after each record. Where the unit is a piece of N words,
//! the token follows each piece: what a piece becomes depends on no other piece. A window belongs to one unit. For next-token prediction each token is a target in at most one window: a window begins with the last token of
//! the unit's window before it, or with the end-of-text token. For the other objectives windows are disjoint. What training reads is full:
//! the windows of a unit that has several begin at even distances, and may share tokens.
//!
//! A sampled unit contributes one of its windows to a step, or up to `training.views_per_unit` of them. Their gradients are averaged
//! and the mean is clipped once, so the step's sensitivity is the clip norm, however long the unit is. With `poisson_of_examples`, up to
//! `examples_per_unit` of a unit's windows are sampled and clipped by themselves, and the event is that of all of them.
//!
//! One process encodes a text of up to 32 MB into memory. A larger one, and any on several ranks, stays in its files unless they are
//! compressed: a record is read and encoded when it is sampled. The tokens of a token file stay on disk, too. No private token is
//! written to the run folder.

mod canaries;
mod corpus;
mod dataset;
mod digest;
mod divided;
mod kept;
mod labelled;
mod labelled_record;
mod overlap;
mod places;
mod record_json;
mod sampler;
mod text_index;
mod texts;
mod token_file;
mod unit_text;
mod units;
mod views;
mod window_spec;

pub use canaries::Canaries;
pub(crate) use canaries::CanaryTokens;
pub use canaries::Secret;
pub use canaries::{Occurrences, Pattern, Planting, Secrets};
pub use corpus::check_other_text;
pub use corpus::read_records;
pub(crate) use corpus::{
    evaluation_source, is_large, public_file, read_checked, read_evaluation, read_public_file,
    training_source, vocabulary_source,
};
pub(crate) use corpus::{read_private, read_texts};
pub use corpus::{read_units, text_bytes};
pub use dataset::Dataset;
pub(crate) use dataset::SampledUnit;
pub(crate) use labelled::{LabelledFields, LabelledRecords, LabelledSet};
pub(crate) use labelled_record::{Answer, LabelledRecord};
pub use overlap::{Compared, check_apart};
pub(crate) use overlap::{
    check_earlier, check_private, check_records, public_sketch, sketch_of_texts, text_of,
};
pub use record_json::set_field;
pub(crate) use sampler::BatchSampler;
pub(crate) use text_index::TextIndex;
pub(crate) use texts::Texts;
pub use unit_text::UnitText;
pub(crate) use units::PublicText;
pub use units::Units;
pub(crate) use views::{BoundedExamples, DrawnUnit, choose, own};
pub use window_spec::WindowSpec;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;
