//! Pre-tokenisers: how a normalised text is cut into words, over which no token reaches.

mod bert;
mod byte_level;
mod metaspace;

pub use bert::bert_words;
pub use byte_level::{byte_level_words, byte_to_char, char_to_byte};
pub use metaspace::{METASPACE, Metaspace, PrependScheme};
