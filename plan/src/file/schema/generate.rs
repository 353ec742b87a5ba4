//! Generates the schema from the types.

use serde_json::Value;

use super::first_sentence;

/// Returns the schema made from the types of this build.
#[must_use]
pub fn generated() -> Value {
    schemars::schema_for!(crate::PlanFile).to_value()
}

/// Returns [`generated`] without the parts that only a reader needs. The program checks plans with the result, and the
/// page downloads it. Fields that a plan must have keep the first sentence of their description, which the refusal of a
/// plan without them quotes.
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
    // A field that has one of these names is an object; an annotation is a text.
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
