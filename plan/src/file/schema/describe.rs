//! Describes parts of the schema in messages.

use serde_json::Value;

use super::{first_sentence, resolve};

/// One choice among several.
pub(crate) struct Variant {
    /// Name of the choice.
    pub(crate) name: &'static str,
    /// The schema of the choice's contents; `None` for a bare name.
    pub(crate) content: Option<&'static Value>,
}

impl Variant {
    /// Returns the choice as it is written in JSON.
    pub(crate) fn written(&self) -> String {
        match self.content {
            Some(content) => format!("{{\"{}\": {}}}", self.name, example(content)),
            None => format!("\"{}\"", self.name),
        }
    }
}

/// Returns the choices of a `oneOf`.
pub(crate) fn variants(schema: &'static Value) -> Vec<Variant> {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    choices
        .filter_map(|choice| match choice["const"].as_str() {
            Some(name) => Some(Variant { name, content: None }),
            None => {
                let (name, content) = choice["properties"].as_object()?.iter().next()?;
                Some(Variant { name, content: Some(content) })
            }
        })
        .collect()
}

/// Returns the names of an object's fields.
pub(crate) fn names(schema: &'static Value) -> Vec<&'static str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Describes the values that a field may hold.
pub(crate) fn allowed(outer: &'static Value) -> String {
    let schema = resolve(outer);
    if let Some(choice) = schema["anyOf"].get(0) {
        return allowed(choice);
    }
    if schema["oneOf"].is_array() {
        return list(variants(schema).iter().map(Variant::written).collect());
    }
    match kind(schema) {
        "object" if names(schema).is_empty() => "an object".to_owned(),
        "object" => format!("an object with {}", names(schema).join(", ")),
        "array" => match schema["items"]["type"].as_str() {
            Some("string") => "a list of texts".to_owned(),
            Some("integer" | "number") => "a list of numbers".to_owned(),
            _ => "a list of objects".to_owned(),
        },
        "integer" => format!("a whole number{}", range(schema)),
        "number" => format!("a number{}", range(schema)),
        "boolean" => "true or false".to_owned(),
        _ if schema["minLength"].is_u64() => "text that is not empty".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Returns a placeholder of the right shape.
pub(crate) fn example(outer: &'static Value) -> &'static str {
    let schema = resolve(outer);
    match kind(schema) {
        "object" => "{…}",
        "array" => "[…]",
        "integer" => "100",
        "number" => "0.5",
        "boolean" => "true",
        _ => "\"…\"",
    }
}

/// Returns the purpose of a field, in brackets: its description up to the first full stop.
pub(crate) fn meaning(schema: &'static Value) -> String {
    let sentence = first_sentence(schema["description"].as_str().unwrap_or_default());
    if sentence.is_empty() { String::new() } else { format!(" ({sentence})") }
}

fn kind(schema: &'static Value) -> &'static str {
    match &schema["type"] {
        Value::Array(choices) => choices.first().and_then(Value::as_str).unwrap_or_default(),
        other => other.as_str().unwrap_or(if schema["oneOf"].is_array() { "object" } else { "" }),
    }
}

fn range(schema: &'static Value) -> String {
    let bound = |name: &str, words: &str| match &schema[name] {
        Value::Number(number) => Some(format!("{words} {}", plain(number))),
        _ => None,
    };
    let least = bound("minimum", "≥").or_else(|| bound("exclusiveMinimum", ">"));
    let most = bound("maximum", "≤").or_else(|| bound("exclusiveMaximum", "<"));
    let both: Vec<String> = [least, most].into_iter().flatten().collect();
    if both.is_empty() { String::new() } else { format!(" {}", both.join(" and ")) }
}

fn plain(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(x) if number.is_f64() && x.fract() == 0.0 && x.abs() < 1e15 => format!("{x:.0}"),
        _ => number.to_string(),
    }
}

fn list(mut items: Vec<String>) -> String {
    match items.pop() {
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} or {last}", items.join(", ")),
        None => String::new(),
    }
}
