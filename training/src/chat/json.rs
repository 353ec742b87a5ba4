//! The filter `tojson` of `transformers`: Python's `json.dumps`, which does not escape characters for HTML.

use std::fmt::Write;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// Largest depth of lists and objects, and largest number of blanks before each level.
const DEEPEST: usize = 100;
const WIDEST: usize = 64;
/// Largest number of bytes that are written.
const LONGEST: usize = 1 << 26;
/// Largest number of bytes of a separator.
const LONGEST_SEPARATOR: usize = 64;

/// The form in which values are written.
struct Style {
    /// Number of blanks per level, with each item on its own line; `None` for one line.
    indent: Option<usize>,
    /// The text between items, and the text between a key and its value.
    separators: [String; 2],
    ensure_ascii: bool,
    sort_keys: bool,
}

fn refused(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

/// Applies the filter, with the arguments that `transformers` gives it, by position or by name.
pub(super) fn tojson(
    value: &Value,
    ascii: Option<Value>,
    indent: Option<Value>,
    separators: Option<Value>,
    named: Kwargs,
) -> Result<String, Error> {
    let either = |given: Option<Value>, name: &str| match given {
        Some(given) => Ok(Some(given)),
        None => named.get::<Option<Value>>(name),
    };
    let is_true = |given: Option<Value>| given.is_some_and(|value| value.is_true());
    let (ensure_ascii, sort_keys) =
        (is_true(either(ascii, "ensure_ascii")?), is_true(either(None, "sort_keys")?));
    let indent = either(indent, "indent")?.filter(|value| !value.is_none());
    let separators = either(separators, "separators")?.filter(|value| !value.is_none());
    named.assert_all_used()?;
    let indent = indent.map(|indent| {
        let blanks =
            indent.as_usize().ok_or_else(|| refused("tojson: indent is no whole number >= 0".to_owned()))?;
        if blanks <= WIDEST {
            Ok(blanks)
        } else {
            Err(refused(format!("tojson: an indent beyond {WIDEST}; give a smaller one")))
        }
    });
    let indent = indent.transpose()?;
    let separators = match separators {
        None => [if indent.is_some() { "," } else { ", " }, ": "].map(str::to_owned),
        Some(pair) => {
            let parts: Vec<Value> = pair.try_iter()?.collect();
            let texts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            match texts[..] {
                [item, key] if parts.len() == 2 && item.len().max(key.len()) <= LONGEST_SEPARATOR => {
                    [item.to_owned(), key.to_owned()]
                }
                _ => return Err(refused("tojson: separators are no pair of short texts".to_owned())),
            }
        }
    };
    let mut json = String::new();
    Style { indent, separators, ensure_ascii, sort_keys }.write(&mut json, value, 0)?;
    Ok(json)
}

impl Style {
    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let is_list = matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
        if !is_list && value.kind() != ValueKind::Map {
            return self.scalar(out, value);
        }
        let [open, close] = if is_list { ['[', ']'] } else { ['{', '}'] };
        if depth == DEEPEST {
            return Err(refused(format!("tojson: more than {DEEPEST} lists and objects in one another")));
        }
        if out.len() > LONGEST {
            return Err(refused(format!("tojson: more than {} MiB", LONGEST >> 20)));
        }
        out.push(open);
        let mut items: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys && !is_list {
            items.sort();
        }
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push_str(&self.separators[0]);
            }
            self.line(out, depth + 1);
            if is_list {
                self.write(out, item, depth + 1)?;
            } else {
                self.text(out, &key(item)?);
                out.push_str(&self.separators[1]);
                self.write(out, &value.get_item(item)?, depth + 1)?;
            }
        }
        if !items.is_empty() {
            self.line(out, depth);
        }
        out.push(close);
        Ok(())
    }

    fn line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }

    fn scalar(&self, out: &mut String, value: &Value) -> Result<(), Error> {
        match (value.as_str(), float(value)) {
            (Some(text), _) => self.text(out, text),
            (_, Some(number)) => out.push_str(&number),
            _ => {
                let invalid =
                    |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
                out.push_str(&serde_json::to_string(value).map_err(invalid)?);
            }
        }
        Ok(())
    }

    fn text(&self, out: &mut String, text: &str) {
        out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                letter
                    if u32::from(letter) < 0x20 || (self.ensure_ascii && !(' '..='~').contains(&letter)) =>
                {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        // Writing to a text never fails.
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                letter => out.push(letter),
            }
        }
        out.push('"');
    }
}

/// Returns a key as `json.dumps` writes it.
fn key(key: &Value) -> Result<String, Error> {
    Ok(match (key.kind(), float(key)) {
        (ValueKind::Bool | ValueKind::None, _) => serde_json::to_string(key)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?,
        (_, Some(number)) => number,
        _ => key.to_string(),
    })
}

/// Returns a number with a fraction as Python writes it; `None` for any other value.
pub(super) fn float(value: &Value) -> Option<String> {
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    let number = f64::try_from(value.clone()).ok()?;
    if !number.is_finite() {
        return Some(
            if number.is_nan() {
                "NaN"
            } else if number > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            }
            .to_owned(),
        );
    }
    let written = format!("{number:e}");
    let (digits, exponent) = written.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    // Python writes the exponent with at least two digits, and only below -4 or above 15.
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return Some(format!("{digits}e{sign}{:02}", exponent.unsigned_abs()));
    }
    Some(format!("{number:?}"))
}
