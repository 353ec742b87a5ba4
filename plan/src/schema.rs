//! The JSON Schema of `plan.json`: made from the types, and the one place where ranges are stated.

use std::sync::LazyLock;

use serde_json::Value;

/// The schema as checked in at `plan/schema/plan.v1.json`; a test holds it equal to [`generated`].
pub const TEXT: &str = include_str!("../schema/plan.v1.json");

/// The schema made from the types of this build.
#[must_use]
pub fn generated() -> Value {
    schemars::schema_for!(crate::PlanFile).to_value()
}

/// [`TEXT`], parsed once. Null only if the checked-in file were not JSON, which a test excludes.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

/// Follows a reference to its definition.
pub(crate) fn resolve(schema: &'static Value) -> &'static Value {
    let reference = schema["$ref"].as_str().map(|reference| reference.trim_start_matches('#'));
    reference.and_then(|pointer| SCHEMA.pointer(pointer)).unwrap_or(schema)
}
