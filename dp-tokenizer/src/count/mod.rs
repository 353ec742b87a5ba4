//! What is counted: the items of a text, and which of them each unit holds.
//!
//! The way of a corpus: blocks of lines are dealt to threads; each gathers `run`s, in which items have numbers of its
//! own (`intern`) and units lists of them (`tape`); `merge` brings the runs' items under one numbering, and
//! `group` the parts of each user together. What exceeds the memory lies in a temporary file all the while.

mod group;
mod intern;
mod items;
mod merge;
mod parallel;
mod run;
mod scan;
mod tape;
#[cfg(test)]
mod tests;
mod units;

pub use items::{MAX_ITEM_CHARS, is_public_item, items, public_items};
pub(crate) use scan::words_end;
pub use units::{CountOptions, UnitItems};
