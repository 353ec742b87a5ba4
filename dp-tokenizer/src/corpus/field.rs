//! What a field of records is.

/// What a field of a file's first records holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A text or a number.
    Value,
    /// A list of texts or numbers.
    Values,
    /// A list of objects, with the names of the first one's fields.
    Objects(Vec<String>),
}

/// A field of a file's first records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; `a.b` is the field `b` of the object `a`.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
}
