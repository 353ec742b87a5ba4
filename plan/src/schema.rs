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

/// [`generated`] without what only a reader needs: the program checks plans with it, and the page downloads it. Fields that
/// a plan must have keep the first sentence of their description, which the refusal of a plan without them quotes.
#[must_use]
pub fn rules() -> Value {
    let mut rules = generated();
    remove_annotations(&mut rules, false);
    rules
}

fn remove_annotations(schema: &mut Value, is_required: bool) {
    let Value::Object(fields) = schema else {
        return schema.as_array_mut().into_iter().flatten().for_each(|item| remove_annotations(item, false));
    };
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = first_sentence(text).to_owned();
    }
    // A field of one of these names is an object; the annotation is a text.
    fields.retain(|name, value| match name.as_str() {
        "description" => is_required || !value.is_string(),
        "format" | "title" | "$schema" => !value.is_string(),
        _ => true,
    });
    let required = fields.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    for (name, value) in fields.iter_mut() {
        match value {
            Value::Object(properties) if name == "properties" => properties
                .iter_mut()
                .for_each(|(name, property)| remove_annotations(property, is_required(name))),
            value => remove_annotations(value, false),
        }
    }
}

/// The rules as checked in, parsed once. Null only if the file were not JSON, which a test excludes.
pub(crate) static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../schema/rules.v1.json")).unwrap_or_default());

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

/// A description up to the first full stop.
pub(crate) fn first_sentence(text: &str) -> &str {
    let sentence = text.split([';', '\n']).next().unwrap_or_default();
    sentence.split_once(". ").map_or(sentence.trim_end_matches('.'), |(first, _)| first)
}
