//! What an evolution and a paraphrase share: their public and private inputs, and the records that they write.

pub(crate) mod inputs;
pub(crate) mod records;
