//! Reads the text of conversations from their JSON, whatever its fields.

use serde_json::Value;

/// Returns the strings of a JSON value, one a line: in the order of lists, and by the names of fields. Other parts
/// count too if they may hold text: the numbers of a message's content, and names of fields and roles that have blanks.
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
        Ok(value) => collect(&value, false, &mut out),
        Err(_) => out.push_str(json),
    }
    out
}

fn collect(value: &Value, is_content: bool, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, is_content, out)),
        Value::Object(fields) => {
            let is_word = |text: &str| !text.trim().contains(char::is_whitespace);
            let is_role = |name: &str, value: &Value| name == "role" && value.as_str().is_some_and(is_word);
            let mut fields: Vec<_> = fields.iter().filter(|(name, value)| !is_role(name, value)).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in fields {
                if !is_word(name) {
                    out.push_str(name);
                    out.push('\n');
                }
                collect(value, is_content || name == "content", out);
            }
        }
        Value::Number(number) if is_content => {
            out.push_str(&number.to_string());
            out.push('\n');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_counts_wherever_it_stands() {
        for json in [
            r#"[{"role": "user", "content": "was seen on 7"}]"#,
            r#"[{"role": "was seen on 7", "content": null}]"#,
            r#"{"was seen on": "7"}"#,
            r#"[["was", {"content": ["seen on", {"b": 7}], "turn": 3}]]"#,
        ] {
            let words = strings_of_json(json).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words, "was seen on 7", "{json}");
        }
    }

    #[test]
    fn fields_count_whatever_their_order_and_roles_do_not() {
        let one = strings_of_json(r#"[{"role": "user", "name": "Ann", "content": "Hi"}, "bye"]"#);
        assert_eq!(one, "Hi\nAnn\nbye\n");
        assert_eq!(one, strings_of_json(r#"[{"content": "Hi", "name": "Ann", "role": "human"}, "bye"]"#));
        assert_ne!(one, strings_of_json(r#"["bye", {"content": "Hi", "name": "Ann"}]"#));
        assert_eq!(strings_of_json("no JSON"), "no JSON");
    }
}
