//! Reads one line of a JSON Lines file. Only the named fields are stored.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Record, owners, user};

/// Names of the fields to read. `a.b` is the field `b` of the object `a`.
#[derive(Clone, Copy)]
pub(crate) struct FieldNames<'a> {
    pub(crate) text: &'a str,
    /// See [`super::Files::text_is_json`].
    pub(crate) text_is_json: bool,
    /// See [`super::Files::text_until`].
    pub(crate) text_until: Option<char>,
    pub(crate) user: Option<&'a str>,
    /// The field of [`super::Files::owners`].
    pub(crate) owners: Option<&'a str>,
    /// See [`super::Files::appended`].
    pub(crate) appended: &'a [String],
    /// See [`super::Files::further`].
    pub(crate) further: &'a [String],
}

impl<'a> FieldNames<'a> {
    /// Returns names for text and user alone.
    pub(crate) fn of_text(text: &'a str, user: Option<&'a str>) -> Self {
        Self { text, text_is_json: false, text_until: None, user, owners: None, appended: &[], further: &[] }
    }

    /// Returns the fields in this order: text, user, owners, appended, further.
    fn all(self) -> Vec<(&'a str, FieldRole)> {
        let list = |names: &'a [String], kind| names.iter().map(move |name| (name.as_str(), kind));
        let text = if self.text_is_json { FieldRole::Json } else { FieldRole::Text };
        let first = [(self.text, text)].into_iter().chain(self.user.map(|name| (name, FieldRole::User)));
        let first = first.chain(self.owners.map(|name| (name, FieldRole::Owners)));
        first.chain(list(self.appended, FieldRole::List)).chain(list(self.further, FieldRole::List)).collect()
    }
}

/// The kind of value that a field may hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FieldRole {
    /// A string, or the messages of a conversation.
    Text,
    /// A string or an integer.
    User,
    /// A list of strings and integers.
    Owners,
    /// A string, an integer, true or false, null for an empty list, or a list of these.
    List,
    /// Any value, of which the JSON is taken.
    Json,
}

/// Reads the record of a JSON object. An error says what is wrong and how to fix it, without quoting the line.
pub(crate) fn parse(line: &str, names: FieldNames<'_>) -> Result<Record, String> {
    let wanted = names.all();
    let mut values = vec![None; wanted.len()];
    let mut json = serde_json::Deserializer::from_str(line);
    Object { path: "", wanted: &wanted, values: &mut values }
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| describe(&error))?;
    let mut values = wanted.iter().zip(values).map(|((name, kind), value)| {
        value.ok_or_else(|| match kind {
            FieldRole::Text | FieldRole::Json => {
                format!("no field {name:?}; name the field that holds the text (text_field)")
            }
            FieldRole::User => {
                format!("no field {name:?}; every record needs its user, or leave user_field out")
            }
            FieldRole::Owners => {
                format!("no field {name:?}; every record needs the list of its owners (owners_field)")
            }
            FieldRole::List => format!("no field {name:?}; every record needs it"),
        })
    });
    let mut next = || values.next().unwrap_or_else(|| Ok(Vec::new()));
    let mut text = next()?.join(" ");
    if let Some(length) =
        names.text_until.and_then(|end| text.split_once(end).map(|(first, _)| first.trim_end().len()))
    {
        text.truncate(length);
    }
    let user = names.user.map(|_| user::canonical(next()?.concat()).map_err(str::to_owned)).transpose()?;
    let owners = match names.owners {
        Some(_) => owners::canonical(next()?)?,
        None => Vec::new(),
    };
    for _ in names.appended {
        for part in next()? {
            text.push('\n');
            text.push_str(&part);
        }
    }
    let further = names.further.iter().map(|_| next()).collect::<Result<_, _>>()?;
    Ok(Record { text, user, owners, further })
}

/// A line with escapes of lone surrogates, which JSON may hold but no text can.
pub(super) struct LoneSurrogates {
    /// The column of the first escape, in bytes from 1.
    pub column: usize,
    /// The line with U+FFFD for each escape.
    pub replaced: String,
}

/// Finds such escapes in a line of JSON; `None` if it has none.
pub(super) fn lone_surrogates(line: &str) -> Option<LoneSurrogates> {
    let unit = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix("\\u")?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let (mut replaced, mut column, mut copied, mut rest) = (String::new(), None, 0, 0);
    while let Some(at) = line[rest..].find('\\').map(|at| rest + at) {
        rest = match unit(at) {
            Some(0xD800..0xDC00) if matches!(unit(at + 6), Some(0xDC00..0xE000)) => at + 12,
            Some(0xD800..0xE000) => {
                column.get_or_insert(at + 1);
                replaced.push_str(&line[copied..at]);
                replaced.push_str("\\ufffd");
                copied = at + 6;
                copied
            }
            Some(_) => at + 6,
            // Another escape: the character after the backslash begins none.
            None => at + 1 + line[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    replaced.push_str(&line[copied..]);
    column.map(|column| LoneSurrogates { column, replaced })
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

/// An object, at this path from the outermost one. Its wanted values are put in their places.
struct Object<'a> {
    path: &'a str,
    wanted: &'a [(&'a str, FieldRole)],
    values: &'a mut [Option<Vec<String>>],
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a JSON object a line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { path, wanted, values } = self;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let path = if path.is_empty() { key } else { Cow::Owned(format!("{path}.{key}")) };
            let is_within =
                |name: &str| name.strip_prefix(&*path).is_some_and(|inner| inner.starts_with('.'));
            // A field may be asked for twice. As a list it holds all that the other kinds hold.
            if let Some(kind) = wanted.iter().filter(|(name, _)| *name == path).map(|(_, kind)| *kind).max() {
                let value = match kind {
                    FieldRole::Json => vec![json_of(&map.next_value::<Box<RawValue>>()?)],
                    kind => map.next_value_seed(Values(kind))?,
                };
                for (place, _) in wanted.iter().enumerate().filter(|(_, (name, _))| *name == path) {
                    values[place] = Some(value.clone());
                }
            } else if wanted.iter().any(|(name, _)| is_within(name)) {
                map.next_value_seed(Object { path: &path, wanted, values })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Returns the JSON of a value as it is written; for a string, the string itself. A column of a table holds JSON in
/// this way.
fn json_of(value: &RawValue) -> String {
    serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// Reads the messages of a conversation, `{"role": …, "content": …}`, as a text: what they say, a line each. An image says nothing.
fn text_of_turns<'de, A: SeqAccess<'de>>(mut list: A) -> Result<String, A::Error> {
    let needed = || {
        de::Error::custom(
            "a string is needed, or a list of messages, each an object with its \"content\"; found another list",
        )
    };
    let mut said = Vec::new();
    while let Some(turn) = list.next_element::<Map<String, Value>>().map_err(|_| needed())? {
        match turn.get("content") {
            Some(Value::String(text)) => said.push(text.clone()),
            Some(Value::Array(parts)) if parts.iter().all(Value::is_object) => {
                said.push(parts.iter().filter_map(|part| part["text"].as_str()).collect());
            }
            Some(Value::Null) => {}
            _ => return Err(needed()),
        }
    }
    Ok(said.join("\n"))
}

/// A string alone may name several people in one cell of a table, so it is refused.
const NO_LIST: &str =
    "the owners are no list; give a list of strings or integers, such as [\"ann\", \"bob\"]";

/// The values of a field. The error for a wrong type must not show the value.
struct Values(FieldRole);

impl<'de> DeserializeSeed<'de> for Values {
    type Value = Vec<String>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Vec<String>, D::Error> {
        json.deserialize_any(self)
    }
}

impl Values {
    fn integer<E: de::Error>(&self, value: &dyn fmt::Display) -> Result<Vec<String>, E> {
        match self.0 {
            FieldRole::Text => Err(E::custom("the text is a number, not a string")),
            FieldRole::Owners => Err(E::custom(NO_LIST)),
            FieldRole::User | FieldRole::List | FieldRole::Json => Ok(vec![value.to_string()]),
        }
    }
}

impl<'de> Visitor<'de> for Values {
    type Value = Vec<String>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self.0 {
            FieldRole::Text => "a string as text",
            FieldRole::User => "a string or an integer as user",
            FieldRole::Owners => "a list of strings or integers as owners",
            FieldRole::List | FieldRole::Json => "a string, an integer or a list of these",
        })
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Vec<String>, E> {
        self.visit_string(value.to_owned())
    }
    fn visit_string<E: de::Error>(self, value: String) -> Result<Vec<String>, E> {
        match self.0 {
            FieldRole::Owners => Err(E::custom(NO_LIST)),
            _ => Ok(vec![value]),
        }
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Vec<String>, E> {
        self.integer(&value)
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Vec<String>, E> {
        self.integer(&value)
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Vec<String>, E> {
        Err(E::custom("a number where a string is needed"))
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Vec<String>, E> {
        match self.0 {
            FieldRole::List | FieldRole::Json => Ok(vec![value.to_string()]),
            FieldRole::Text | FieldRole::User => Err(E::custom("true or false where a string is needed")),
            FieldRole::Owners => Err(E::custom(NO_LIST)),
        }
    }
    fn visit_unit<E: de::Error>(self) -> Result<Vec<String>, E> {
        match self.0 {
            FieldRole::List | FieldRole::Json => Ok(Vec::new()),
            FieldRole::User => Err(E::custom(
                "the user is null; every record needs its user: leave such records out, or give each an invented user",
            )),
            FieldRole::Owners => Err(E::custom(NO_LIST)),
            FieldRole::Text => Err(E::custom("the text is null; leave such records out, or give a string")),
        }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let of_elements = match self.0 {
            FieldRole::List => FieldRole::List,
            FieldRole::Owners => FieldRole::User,
            FieldRole::User => {
                return Err(de::Error::custom(
                    "a list where the id of one user is needed; a plan for records with several owners names them in data.owners_field",
                ));
            }
            FieldRole::Text => return text_of_turns(list).map(|text| vec![text]),
            FieldRole::Json => return Err(de::Error::custom("a list where a string is needed")),
        };
        let mut all = Vec::new();
        while let Some(values) = list.next_element_seed(Values(of_elements))? {
            all.extend(values);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_among_others_and_users_may_be_numbers() {
        let line = r#"{"id": 3, "text": "a \"b\" \u00e9", "more": {"text": "no"}, "who": 17}"#;
        let record = parse(line, FieldNames::of_text("text", Some("who"))).unwrap();
        assert_eq!(record, Record { user: Some("17".into()), ..Record::of_text("a \"b\" é") });
        assert_eq!(parse(line, FieldNames::of_text("text", None)).unwrap().user, None);
    }

    #[test]
    fn fields_inside_fields_lists_and_appended_texts_are_read() {
        let line = r#"{"a": {"b": {"c": "deep"}, "tags": ["O", 7, null, true]}, "de": "Hund", "a.d": "dot"}"#;
        let [appended, further] = [vec!["de".to_owned()], vec!["a.tags".to_owned(), "a.d".to_owned()]];
        let names = FieldNames {
            text_until: None,
            text: "a.b.c",
            text_is_json: false,
            user: None,
            owners: None,
            appended: &appended,
            further: &further,
        };
        let record = parse(line, names).unwrap();
        assert_eq!(record.text, "deep\nHund");
        assert_eq!(record.further, [vec!["O", "7", "true"], vec!["dot"]]);
        // A text that is also asked for as a list may be a list of words.
        let words = vec!["text".to_owned()];
        let names = FieldNames { further: &words, ..FieldNames::of_text("text", None) };
        let record = parse(r#"{"text": ["two", "words"]}"#, names).unwrap();
        assert_eq!((record.text.as_str(), record.further[0].len()), ("two words", 2));
        // Any value is a text if its JSON is asked for. A string stands for the JSON in it, as in a table.
        let names = FieldNames { text_is_json: true, ..FieldNames::of_text("m.n", None) };
        for (line, want) in [
            (r#"{"m": {"n": [{"b": 1, "a": "x"}]}}"#, r#"[{"b": 1, "a": "x"}]"#),
            (r#"{"m": {"n": "[{\"a\": 1}]"}}"#, r#"[{"a": 1}]"#),
        ] {
            assert_eq!(parse(line, names).unwrap().text, want);
        }
        assert!(parse(r#"{"m": {"o": 1}}"#, names).unwrap_err().contains("no field \"m.n\""));
        let message = parse(r#"{"a": 5}"#, FieldNames::of_text("a.b", None)).unwrap_err();
        assert!(message.contains("wrong type at column"), "{message}");
    }

    #[test]
    fn the_messages_of_a_conversation_are_a_text_by_turns() {
        let read = |messages: &str| {
            let line = format!(r#"{{"chat": {{"messages": {messages}}}, "user": 3}}"#);
            parse(&line, FieldNames::of_text("chat.messages", Some("user"))).map(|record| record.text)
        };
        for (messages, text) in [
            (r#"[{"role": "user", "content": "Hi"}, {"content": "a\nb", "role": "assistant"}]"#, "Hi\na\nb"),
            (r#"[{"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": " b"}]}]"#, "a b"),
            (r#"[{"content": null, "tool_calls": [1]}, {"content": "done"}]"#, "done"),
            ("[]", ""),
        ] {
            assert_eq!(read(messages).unwrap(), text);
        }
        for messages in [
            r#"["Secret"]"#,
            r#"[{"content": "a"}, 3]"#,
            r#"[{"content": {"Secret": 1}}]"#,
            r#"[["Secret"]]"#,
            r#"[{"from": "human", "value": "Secret"}]"#,
        ] {
            let message = read(messages).unwrap_err();
            assert!(message.contains("with its \"content\"") && !message.contains("Secret"), "{message}");
        }
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
            r#"{"text": ["Secret"]}"#,
            r#"{"text":"a"} Secret"#,
            r#""Secret""#,
        ] {
            let message = parse(line, FieldNames::of_text("text", None)).unwrap_err();
            assert!(!message.contains("Secret") && !message.contains("99887766"), "{message}");
        }
        let message = parse(r#"{"text": "a"}"#, FieldNames::of_text("text", Some("user"))).unwrap_err();
        assert!(message.contains("user_field"), "{message}");
    }
}
