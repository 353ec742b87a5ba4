//! `privacy.json` in one line.

use serde_json::Value;

/// The statement of a file, or a text if the file is damaged.
pub(super) fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::from("not valid JSON"))
}

/// A statement in one line, with ε rounded up. Null means that there is no file.
pub(super) fn in_words(privacy: &Value) -> String {
    let text = |field: &str| privacy[field].as_str().unwrap_or("unstated").to_owned();
    match (&privacy["private"], privacy["epsilon"]["upper"].as_f64(), &privacy["delta"]) {
        (Value::Bool(true), Some(epsilon), Value::Number(delta)) => format!(
            "ε ≤ {:.4} at δ = {delta} for one {} ({}), by {}, {} words released; --json shows all",
            (epsilon * 1e4).ceil() / 1e4,
            text("unit"),
            text("relation"),
            text("method"),
            privacy["released_words"],
        ),
        (Value::Bool(false), ..) => format!("NOT PRIVATE: {}", text("reason")),
        _ if privacy.is_null() => "no privacy.json beside it".to_owned(),
        _ => "NOT KNOWN: the privacy.json beside it is damaged; train again, or take it from where the tokenizer is from"
            .to_owned(),
    }
}
