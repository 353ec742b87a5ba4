//! The JSON Schema of `plan.json`: made from the types, and the one place where ranges are stated.

pub(crate) mod check;
mod describe;
mod generate;
mod reference;

use std::sync::LazyLock;

use serde_json::Value;

pub use generate::{generated, rules};
pub use reference::reference;

/// The schema as checked in at `plan/schema/plan.v1.json`; a test holds it equal to [`generated`].
pub const TEXT: &str = include_str!("../../../schema/plan.v1.json");

/// The rules as checked in, parsed once. Null only if the file were not JSON, which a test excludes.
pub(crate) static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../schema/rules.v1.json")).unwrap_or_default());

/// [`TEXT`], parsed once.
pub(crate) static DESCRIBED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

/// Follows a reference to its definition.
pub(crate) fn resolve(schema: &'static Value) -> &'static Value {
    resolve_in(&SCHEMA, schema)
}

/// Follows a reference to its definition in `root`.
pub(crate) fn resolve_in(root: &'static Value, schema: &'static Value) -> &'static Value {
    let reference = schema["$ref"].as_str().map(|reference| reference.trim_start_matches('#'));
    reference.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

/// Returns a description up to the first full stop.
pub(crate) fn first_sentence(text: &str) -> &str {
    let sentence = text.split([';', '\n']).next().unwrap_or_default();
    sentence.split_once(". ").map_or(sentence.trim_end_matches('.'), |(first, _)| first)
}
