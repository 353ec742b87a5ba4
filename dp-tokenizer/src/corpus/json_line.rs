//! One line of a JSON Lines file. Only the text and user fields are stored.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Record;

/// Reads the record of a JSON object. An error says what is wrong and how to fix it, without quoting the line.
pub(crate) fn parse(line: &str, text_field: &str, user_field: Option<&str>) -> Result<Record, String> {
    let mut json = serde_json::Deserializer::from_str(line);
    let fields = Fields { text_field, user_field }
        .deserialize(&mut json)
        .and_then(|found| json.end().map(|()| found))
        .map_err(|error| describe(&error))?;
    let text = fields
        .0
        .ok_or_else(|| format!("no field {text_field:?}; name the field that holds the text (text_field)"))?;
    match (user_field, fields.1) {
        (Some(name), None) => {
            Err(format!("no field {name:?}; every record needs its user, or leave user_field out"))
        }
        (_, user) => Ok(Record { text, user }),
    }
}

fn describe(error: &serde_json::Error) -> String {
    let column = error.column();
    match error.classify() {
        // serde's own messages about types quote the value.
        serde_json::error::Category::Data if error.to_string().starts_with("invalid") => {
            format!(
                "a value of the wrong type at column {column}; an object is needed, with a string as text and a string or an integer as user"
            )
        }
        serde_json::error::Category::Data => error.to_string(),
        serde_json::error::Category::Eof => {
            "the JSON object is cut off; one object a line is needed".to_owned()
        }
        _ => format!("not JSON at column {column}; one object a line is needed"),
    }
}

struct Fields<'a> {
    text_field: &'a str,
    user_field: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = (Option<String>, Option<String>);
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = (Option<String>, Option<String>);

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a JSON object a line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut text, mut user) = (None, None);
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == self.text_field {
                text = Some(map.next_value_seed(Text("a string as text"))?);
            } else if self.user_field == Some(&key) {
                user = Some(map.next_value_seed(Text("a string or an integer as user"))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok((text, user))
    }
}

/// A string, or for users also an integer. The error for a wrong type must not show the value.
struct Text(&'static str);

impl<'de> DeserializeSeed<'de> for Text {
    type Value = String;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<String, D::Error> {
        json.deserialize_any(self)
    }
}

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.0)
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }
    fn visit_string<E: de::Error>(self, value: String) -> Result<String, E> {
        Ok(value)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<String, E> {
        if self.0.contains("integer") {
            Ok(value.to_string())
        } else {
            Err(E::custom("the text is a number, not a string"))
        }
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<String, E> {
        if self.0.contains("integer") {
            Ok(value.to_string())
        } else {
            Err(E::custom("the text is a number, not a string"))
        }
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<String, E> {
        Err(E::custom("a number where a string is needed"))
    }
    fn visit_unit<E: de::Error>(self) -> Result<String, E> {
        Err(E::custom(if self.0.contains("integer") {
            "the user is null; every record needs its user: leave such records out, or give each an invented user"
        } else {
            "the text is null; leave such records out, or give a string"
        }))
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<String, E> {
        Err(E::custom("true or false where a string is needed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_among_others_and_users_may_be_numbers() {
        let line = r#"{"id": 3, "text": "a \"b\" \u00e9", "more": {"text": "no"}, "who": 17}"#;
        let record = parse(line, "text", Some("who")).unwrap();
        assert_eq!(record, Record { text: "a \"b\" é".into(), user: Some("17".into()) });
        assert_eq!(parse(line, "text", None).unwrap().user, None);
    }

    #[test]
    fn what_is_wrong_is_said_without_quoting_the_line() {
        for line in [
            r#"{"text": "Secret"#,
            r#"["Secret"]"#,
            "Secret",
            r#"{"body": "Secret"}"#,
            r#"{"text": 99887766}"#,
            r#"{"text": true}"#,
            r#"{"text": null}"#,
            r#"{"text":"a"} Secret"#,
            r#""Secret""#,
        ] {
            let message = parse(line, "text", None).unwrap_err();
            assert!(!message.contains("Secret") && !message.contains("99887766"), "{message}");
        }
        let message = parse(r#"{"text": "a"}"#, "text", Some("user")).unwrap_err();
        assert!(message.contains("user_field"), "{message}");
    }
}
