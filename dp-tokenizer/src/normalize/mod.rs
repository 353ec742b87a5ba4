//! Normalisers: what happens to a text before it is cut into words.

mod bert;
mod charsmap;

pub use bert::BertNormalizer;
pub use charsmap::Charsmap;
