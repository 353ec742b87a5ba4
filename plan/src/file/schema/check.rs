//! Checks a JSON value against the schema and explains the first place where it does not fit.
//!
//! Ranges and names are stated in the attributes of the types alone. Editors, this check and the documentation read them
//! from the schema that the types generate. This check knows the part of JSON Schema that the types use.

use serde_json::{Map, Value};

use super::describe::{Variant, allowed, example, meaning, names, variants};
use super::{SCHEMA, resolve};
use crate::PlanError;
use crate::messages::{hint, nearest, refuse, shown};

/// Accepts a value that fits the schema.
pub(crate) fn check(value: &Value) -> Result<(), PlanError> {
    check_at(value, &SCHEMA, "")
}

/// Accepts a value that fits the field of this name of a plan.
pub(crate) fn check_field(value: &Value, name: &str) -> Result<(), PlanError> {
    check_at(value, &SCHEMA["properties"][name], name)
}

fn check_at(value: &Value, outer: &'static Value, path: &str) -> Result<(), PlanError> {
    let schema = resolve(outer);
    if let Some(choices) = schema["anyOf"].as_array() {
        return match choices.first() {
            Some(choice) if !value.is_null() => check_at(value, choice, path),
            _ => Ok(()),
        };
    }
    if schema["oneOf"].is_array() {
        return check_variant(value, schema, path);
    }
    if !has_type(value, &schema["type"]) {
        return Err(wrong_type(value, schema, path));
    }
    match value {
        Value::Object(fields) => check_object(fields, schema, path),
        Value::Array(items) => {
            check_length(value, items.len(), ["minItems", "maxItems"], schema, path)?;
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| check_at(item, &schema["items"], &format!("{path}[{index}]")))
        }
        Value::String(text) => check_length(value, text.len(), ["minLength", "maxLength"], schema, path),
        Value::Number(number) => check_range(value, number.as_f64(), schema, path),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn check_object(fields: &Map<String, Value>, schema: &'static Value, path: &str) -> Result<(), PlanError> {
    let Some(known) = schema["properties"].as_object() else { return Ok(()) };
    if let Some(stranger) = fields.keys().find(|name| !known.contains_key(*name)) {
        return Err(unknown_field(stranger, schema, path));
    }
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(name) = required.find(|name| !fields.contains_key(*name)) {
        let fix = format!("add \"{name}\"{}", meaning(&known[name]));
        return refuse(&join(path, name), "missing", &allowed(&known[name]), &fix);
    }
    fields.iter().try_for_each(|(name, field)| check_at(field, &known[name], &join(path, name)))
}

fn check_variant(value: &Value, schema: &'static Value, path: &str) -> Result<(), PlanError> {
    let variants = variants(schema);
    let (given, inner) = match value {
        Value::String(name) => (Some(name), None),
        Value::Object(fields) if fields.len() == 1 => {
            let (name, inner) = fields.iter().next().unzip();
            (name, inner)
        }
        _ => (None, None),
    };
    let Some(given) = given else { return Err(wrong_type(value, schema, path)) };
    match (variants.iter().find(|variant| variant.name == given), inner) {
        (Some(Variant { content: Some(content), .. }), Some(inner)) => {
            check_at(inner, content, &join(path, given))
        }
        (Some(Variant { content: None, .. }), None) => Ok(()),
        (found, _) => Err(PlanError::Field {
            path: path.to_owned(),
            given: if inner.is_some() { format!("{{{}: …}}", quoted(given)) } else { quoted(given) },
            allowed: allowed(schema),
            fix: match found {
                Some(variant) => format!("write {}", variant.written()),
                None => hint::for_variant(path, given).unwrap_or_else(|| suggestion(given, &variants)),
            },
        }),
    }
}

fn suggestion(given: &str, variants: &[Variant]) -> String {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
    match nearest(given, &names) {
        Some(name) => format!("did you mean {}?", quoted(name)),
        None => "choose one of these".to_owned(),
    }
}

fn unknown_field(stranger: &str, schema: &'static Value, path: &str) -> PlanError {
    let known = names(schema);
    let fix = hint::for_field(path, stranger).unwrap_or_else(|| match nearest(stranger, &known) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => "remove it".to_owned(),
    });
    PlanError::field(&join(path, stranger), "unknown field", &known.join(", "), &fix)
}

fn wrong_type(value: &Value, schema: &'static Value, path: &str) -> PlanError {
    let numeric = schema["minimum"].is_number() || schema["exclusiveMinimum"].is_number();
    let fix = match value {
        Value::Number(number) if numeric && number.as_f64().is_some_and(|x| x.fract() != 0.0) => {
            "write a whole number".to_owned()
        }
        Value::Number(number) if numeric && number.as_f64().is_some_and(|x| x.abs() < 9e15) => {
            format!("write {:.0}, without point or exponent", number.as_f64().unwrap_or_default())
        }
        Value::Number(_) if numeric => "write a smaller whole number".to_owned(),
        Value::String(text) if numeric && serde_json::from_str::<f64>(text).is_ok() => {
            "remove the quotation marks".to_owned()
        }
        Value::Null if numeric => "write a finite number: JSON has no NaN or infinity".to_owned(),
        _ => format!("write it like this: {}", example(schema)),
    };
    let path = if path.is_empty() { "plan" } else { path };
    PlanError::field(path, shown(value), &allowed(schema), &fix)
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Array(choices) => choices.iter().any(|choice| has_type(value, choice)),
        Value::String(name) => match name.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_u64() || value.is_i64(),
            "null" => value.is_null(),
            _ => false,
        },
        _ => true,
    }
}

fn check_range(
    value: &Value,
    number: Option<f64>,
    schema: &'static Value,
    path: &str,
) -> Result<(), PlanError> {
    let bound = |name: &str| schema[name].as_f64();
    let x = number.unwrap_or(f64::NAN);
    let fits_below = bound("maximum").is_none_or(|most| x <= most)
        && bound("exclusiveMaximum").is_none_or(|ceiling| x < ceiling);
    let fits_above = bound("minimum").is_none_or(|least| x >= least)
        && bound("exclusiveMinimum").is_none_or(|floor| x > floor);
    if fits_below && fits_above {
        return Ok(());
    }
    let direction = if fits_below { "raise" } else { "lower" };
    let fix = hint::for_range(path).unwrap_or_else(|| format!("{direction} it into that range"));
    refuse(path, shown(value), &allowed(schema), &fix)
}

fn check_length(
    value: &Value,
    length: usize,
    [least, most]: [&str; 2],
    schema: &'static Value,
    path: &str,
) -> Result<(), PlanError> {
    let length = length as u64;
    let fits = schema[least].as_u64().is_none_or(|least| length >= least)
        && schema[most].as_u64().is_none_or(|most| length <= most);
    if fits {
        return Ok(());
    }
    let given = if length == 0 { format!("{} (empty)", shown(value)) } else { format!("length {length}") };
    let fix = if length == 0 { "fill it in, or leave the field out" } else { "make it shorter" };
    refuse(path, given, &allowed(schema), fix)
}

/// Appends a field's name. A name that is not a plain word is quoted, so that the message stays on one line.
fn join(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    match (plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}[{}]", quoted(name)),
    }
}

fn quoted(text: &str) -> String {
    shown(&Value::from(text))
}
