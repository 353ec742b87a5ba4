//! The stages of a `tokenizer.json`, which their kinds read and write.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::FormatError;

/// Reads a stage from its part of the file.
pub(crate) type Read<S> = fn(&Value) -> Result<Arc<S>, FormatError>;

/// All kinds of a stage.
pub(crate) struct Kinds<S: ?Sized + 'static> {
    /// The name of the part of the file.
    pub(crate) part: &'static str,
    /// The field of a `Sequence` that lists its stages.
    pub(crate) list: &'static str,
    /// The reader of each `type`.
    pub(crate) read: &'static [(&'static str, Read<S>)],
}

impl<S: ?Sized> Kinds<S> {
    /// Reads the stages of a part of the file, those of sequences one after another.
    ///
    /// # Errors
    /// If a kind is unknown, or refuses its part.
    pub(crate) fn read(&self, part: &Value) -> Result<Vec<Arc<S>>, FormatError> {
        if part.is_null() {
            return Ok(Vec::new());
        }
        let name = part["type"].as_str().unwrap_or_default();
        if let (Some(all), "Sequence") = (part[self.list].as_array(), name) {
            return all.iter().try_fold(Vec::new(), |mut stages, one| {
                stages.extend(self.read(one)?);
                Ok(stages)
            });
        }
        match self.read.iter().find(|known| known.0 == name) {
            Some((_, read)) => Ok(vec![read(part)?]),
            None => {
                let names: Vec<&str> = self.read.iter().map(|known| known.0).collect();
                let allowed = format!("null, {}, or a Sequence of them", names.join(", "));
                Err(FormatError::unsupported(self.part, part, allowed))
            }
        }
    }
}

/// Returns stages as the file has them. Several become a sequence in the field `list`. The function does not name their
/// kinds, so that a program that only writes files does not contain them all.
pub(crate) fn write<S: ?Sized>(stages: &[Arc<S>], list: &str, json_of: impl Fn(&S) -> Value) -> Value {
    match stages {
        [] => Value::Null,
        [one] => json_of(one),
        all => {
            let all: Vec<Value> = all.iter().map(|one| json_of(one)).collect();
            let mut part = json!({"type": "Sequence"});
            part[list] = all.into();
            part
        }
    }
}

/// Reads a flag of a stage.
pub(crate) fn flag(part: &Value, name: &str, default: bool) -> bool {
    part[name].as_bool().unwrap_or(default)
}

/// Reads a text of a stage.
pub(crate) fn text(part: &Value, name: &str) -> Result<String, FormatError> {
    part[name].as_str().map(str::to_owned).ok_or_else(|| lacking(part, name, "a text"))
}

/// Reads a single character of a stage.
pub(crate) fn character(part: &Value, name: &str) -> Result<char, FormatError> {
    let mut chars = part[name].as_str().unwrap_or_default().chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(lacking(part, name, "a single character")),
    }
}

/// Returns the error of a stage that lacks a field, or has a value there that is not `allowed`.
pub(crate) fn lacking(part: &Value, name: &str, allowed: &str) -> FormatError {
    let kind = part["type"].as_str().unwrap_or_default();
    FormatError::inconsistent(format!("{kind}: {name} is {}; allowed: {allowed}", part[name]))
}
