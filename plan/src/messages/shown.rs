//! Formats values for messages.

use serde_json::Value;

/// Returns a value as a message shows it: short, on one line.
pub(crate) fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) if text.chars().count() > LONGEST => {
            let start: String = text.chars().take(LONGEST).collect();
            format!("{}…", one_line(&Value::from(start)))
        }
        scalar => one_line(scalar),
    }
}

// JSON escapes only the control characters of ASCII, but terminals also obey some of Unicode's.
fn one_line(value: &Value) -> String {
    value
        .to_string()
        .chars()
        .map(|c| if c.is_control() || "\u{2028}\u{2029}".contains(c) { '�' } else { c })
        .collect()
}
