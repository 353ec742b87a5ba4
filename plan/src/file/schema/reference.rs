//! Writes the field reference from the schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::describe::{allowed, variants};
use super::{DESCRIBED, resolve_in};

/// Returns every field of a plan as Markdown: a table of the plain top-level fields, then a section for each of the
/// others.
#[must_use]
pub fn reference() -> String {
    let (mut plain, mut sections) = (Table::default(), String::new());
    let mut explained = BTreeMap::new();
    for (name, field) in properties(&DESCRIBED) {
        let inner = inner(field);
        if inner["properties"].is_object() || inner["oneOf"].is_array() {
            let mut table = Table { rows: String::new(), explained };
            table.choices(field, name);
            table.fields(field, name);
            let optional =
                if is_required(&DESCRIBED, name) || !field["default"].is_null() { "" } else { " (optional)" };
            // Writing to a string cannot fail.
            let _ = write!(sections, "\n### `{name}`{optional}\n\n{}\n\n{}", meaning(field), table.text());
            explained = table.explained;
        } else {
            plain.row(name, &value(field), &default(&DESCRIBED, name, field), field);
        }
    }
    plain.text() + &sections
}

#[derive(Default)]
struct Table {
    rows: String,
    /// Definitions with choices, and the field under which these choices were listed.
    explained: BTreeMap<&'static str, String>,
}

impl Table {
    fn text(&self) -> String {
        format!("| field | value | default | meaning |\n|---|---|---|---|\n{}", self.rows)
    }

    fn fields(&mut self, outer: &'static Value, path: &str) {
        let schema = inner(outer);
        for (name, field) in properties(schema) {
            let path = format!("{path}.{name}");
            let default = default(schema, name, field);
            if let Some(first) = definition(field).and_then(|name| self.explained.get(name)) {
                let value = format!("as `{first}`");
                self.row(&path, &value, &default, field);
                continue;
            }
            let value = if inner(field)["oneOf"].is_array() { "one of:".to_owned() } else { value(field) };
            self.row(&path, &value, &default, field);
            self.choices(field, &path);
            self.fields(field, &path);
            if field["items"].is_object() {
                self.fields(&field["items"], &format!("{path}[]"));
            }
        }
    }

    /// Adds one row per choice, each followed by the fields of the choice.
    fn choices(&mut self, field: &'static Value, path: &str) {
        let schema = inner(field);
        let choices = schema["oneOf"].as_array().into_iter().flatten();
        for (variant, choice) in variants(schema).iter().zip(choices) {
            let _ = writeln!(self.rows, "| | `{}` | | {} |", variant.written(), meaning(choice));
            if let Some(content) = variant.content {
                self.fields(content, &format!("{path}.{}", variant.name));
            }
        }
        if let Some(name) = definition(field).filter(|_| schema["oneOf"].is_array()) {
            self.explained.insert(name, path.to_owned());
        }
    }

    fn row(&mut self, path: &str, value: &str, default: &str, described: &'static Value) {
        let _ = writeln!(self.rows, "| `{path}` | {value} | {default} | {} |", meaning(described));
    }
}

/// Describes the allowed values, without the limit that every whole number of a plan has.
fn value(field: &'static Value) -> String {
    allowed(field).replace(" and ≤ 9007199254740991", "").replace('|', "\\|")
}

fn default(schema: &Value, name: &str, field: &Value) -> String {
    match &field["default"] {
        Value::Object(_) => "see below".to_owned(),
        Value::Null if is_required(schema, name) => "**required**".to_owned(),
        Value::Null => "none".to_owned(),
        value => format!("`{value}`"),
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().into_iter().flatten().any(|required| required == name)
}

fn meaning(described: &Value) -> String {
    described["description"].as_str().unwrap_or_default().replace('\n', " ")
}

/// Returns the schema of a field, whether the field is optional or not.
fn inner(outer: &'static Value) -> &'static Value {
    resolve_in(&DESCRIBED, outer["anyOf"].get(0).unwrap_or(outer))
}

/// Returns the name of the definition that a field refers to.
fn definition(field: &'static Value) -> Option<&'static str> {
    field["anyOf"].get(0).unwrap_or(field)["$ref"].as_str()
}

fn properties(schema: &'static Value) -> impl Iterator<Item = (&'static str, &'static Value)> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, field)| (name.as_str(), field))
}
