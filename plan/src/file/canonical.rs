//! One spelling for equal plans, so that equal plans have equal hashes.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Writes JSON in one form: keys sorted, no blanks, every float in its shortest round-trip form.
pub(crate) fn to_json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Returns the SHA-256 of a text in lower-case hexadecimal digits.
pub(crate) fn sha256_hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

// Keys are sorted here because the order of serde_json depends on a Cargo feature that any crate may switch on.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => write_list(items.iter().map(|item| (None, item)), ['[', ']'], out),
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().map(|(key, item)| (Some(key.as_str()), item)).collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            write_list(sorted.into_iter(), ['{', '}'], out);
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_list<'a>(
    items: impl Iterator<Item = (Option<&'a str>, &'a Value)>,
    [open, close]: [char; 2],
    out: &mut String,
) {
    out.push(open);
    for (index, (key, item)) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        if let Some(key) = key {
            out.push_str(&Value::from(key).to_string());
            out.push(':');
        }
        write(item, out);
    }
    out.push(close);
}
