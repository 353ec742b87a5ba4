//! The field reference, written from the schema.

use std::fmt::Write as _;

use serde_json::Value;

use crate::describe::{allowed, variants};
use crate::schema::{SCHEMA, resolve};

/// Every field of a plan as a Markdown table: path, allowed values, default, meaning.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from("| field | allowed | default | meaning |\n|---|---|---|---|\n");
    fields(&SCHEMA, "", &mut out);
    out
}

fn fields(outer: &'static Value, path: &str, out: &mut String) {
    let schema = resolve(outer["anyOf"].get(0).unwrap_or(outer));
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let default = match &field["default"] {
            Value::Object(_) => "below".to_owned(),
            Value::Null if required.contains(&name.as_str()) => "–".to_owned(),
            Value::Null => "none".to_owned(),
            value => format!("`{value}`"),
        };
        row(&path, &allowed(field), &default, field, out);
        choices(field, &path, out);
        fields(field, &path, out);
        if field["items"].is_object() {
            fields(&field["items"], &format!("{path}[]"), out);
        }
    }
}

fn choices(field: &'static Value, path: &str, out: &mut String) {
    let schema = resolve(field);
    for (variant, choice) in variants(schema).iter().zip(schema["oneOf"].as_array().into_iter().flatten()) {
        row(&format!("{path}: {}", variant.name), &variant.written(), "", choice, out);
        if let Some(content) = variant.content {
            fields(content, &format!("{path}.{}", variant.name), out);
        }
    }
}

fn row(path: &str, allowed: &str, default: &str, described: &'static Value, out: &mut String) {
    let meaning = described["description"].as_str().unwrap_or_default().replace('\n', " ");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "| `{path}` | {} | {default} | {meaning} |", allowed.replace('|', "\\|"));
}
