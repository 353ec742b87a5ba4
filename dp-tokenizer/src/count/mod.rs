//! What is counted: the items of a text, and which of them each unit holds.

mod items;
mod units;

pub use items::{MAX_ITEM_CHARS, is_public_item, items, public_items};
pub(crate) use units::UnitItems;
