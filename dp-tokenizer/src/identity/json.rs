//! The text of conversations, whatever their JSON.

use serde_json::Value;

/// The strings of a JSON value, but for the roles of messages, one a line: in the order of lists, and by the names of fields.
///
/// ```
/// use dp_tokenizer::identity::strings_of_json;
/// let one = strings_of_json(r#"[{"role": "user", "content": "Hi \u00e9"}]"#);
/// assert_eq!(one, strings_of_json(r#"[{"content": "Hi é", "role": "human"}]"#));
/// ```
#[must_use]
pub fn strings_of_json(json: &str) -> String {
    let mut out = String::new();
    match serde_json::from_str(json) {
        Ok(value) => collect(&value, &mut out),
        Err(_) => out.push_str(json),
    }
    out
}

fn collect(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, out)),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().filter(|(name, _)| *name != "role").collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            fields.into_iter().for_each(|(_, value)| collect(value, out));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_whatever_their_order_and_roles_do_not() {
        let one = strings_of_json(r#"[{"role": "user", "name": "Ann", "content": "Hi"}, "bye"]"#);
        assert_eq!(one, "Hi\nAnn\nbye\n");
        assert_eq!(one, strings_of_json(r#"[{"content": "Hi", "name": "Ann", "role": "human"}, "bye"]"#));
        assert_ne!(one, strings_of_json(r#"["bye", {"content": "Hi", "name": "Ann"}]"#));
        assert_eq!(strings_of_json("no JSON"), "no JSON");
    }
}
