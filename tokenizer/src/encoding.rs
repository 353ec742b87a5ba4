//! The result of encoding.

/// The unit of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values, as Python indexes text.
    Characters,
}

/// The ids of a text, with offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids.
    pub ids: Vec<u32>,
    /// For each id, start and end of its part of the text. Neighboring ids may have the same part, where one character
    /// became several tokens. Text that a normalizer dropped belongs to no id. Empty if no offsets were asked for.
    pub offsets: Vec<(usize, usize)>,
}
