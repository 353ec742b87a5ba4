//! Methods of Python's strings, lists and dictionaries that chat templates call, as far as the library lacks them or
//! their arguments.

use minijinja::value::{Kwargs, Tuple, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

/// Largest width to which a template may fill a text, in characters.
const WIDEST_TEXT: usize = 1 << 12;

/// Calls a method of a value.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => match value.as_str() {
            Some(text) => of_text(text, method, args)?,
            None => None,
        },
        ValueKind::Seq if method == "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            let place = value.try_iter()?.position(|item| item == *wanted);
            Some(place.map(Value::from).ok_or_else(|| refused("index: the list has no such item"))?)
        }
        ValueKind::Map if method == "copy" => {
            let () = from_args(args)?;
            Some(value.clone())
        }
        _ => None,
    };
    own.map_or_else(|| unknown_method_callback(state, value, method, args), Ok)
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

/// Calls a method of a text; returns `None` if the library has this method.
fn of_text(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "swapcase" => {
            let () = from_args(args)?;
            Value::from(text.chars().map(swapped).collect::<String>())
        }
        "isdecimal" => {
            let () = from_args(args)?;
            if text.chars().any(|letter| !letter.is_ascii() && letter.is_numeric()) {
                return Err(refused("isdecimal: digits of other scripts"));
            }
            Value::from(!text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit()))
        }
        "split" | "rsplit" => split(text, method == "rsplit", args)?,
        "partition" | "rpartition" => partition(text, method == "rpartition", args)?,
        "splitlines" => {
            let (keep, named): (Option<bool>, Kwargs) = from_args(args)?;
            let keep = either(keep, &named, "keepends")?.unwrap_or(false);
            named.assert_all_used()?;
            lines(text, keep)
        }
        "find" | "rfind" | "index" | "rindex" => place(text, method, args)?,
        "startswith" | "endswith" => return meets(text, method == "endswith", args),
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = match text.strip_prefix(['-', '+']) {
                Some(digits) => (&text[..1], digits),
                None => ("", text),
            };
            Value::from(format!("{sign}{}{digits}", "0".repeat(filling(text, width)?)))
        }
        "ljust" | "rjust" | "center" => justified(text, method, args)?,
        _ => return Ok(None),
    }))
}

fn swapped(letter: char) -> String {
    if letter.is_uppercase() { letter.to_lowercase().collect() } else { letter.to_uppercase().collect() }
}

/// Returns the text before a separator, the separator, and the text after it.
fn partition(text: &str, from_the_end: bool, args: &[Value]) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    let found = if from_the_end { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match found {
        Some((before, after)) => [before, separator, after],
        None if from_the_end => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

/// Returns whether a part of a text begins or ends with a text, or with one of several. Returns `None` if the arguments
/// name no part: the library can do that.
fn meets(text: &str, at_the_end: bool, args: &[Value]) -> Result<Option<Value>, Error> {
    let (wanted, start, end): (&Value, Option<i64>, Option<i64>) = from_args(args)?;
    if start.is_none() && end.is_none() {
        return Ok(None);
    }
    let (_, part) = between(text, start, end);
    let one = |value: &Value| {
        let wanted = value.as_str().ok_or_else(|| refused("startswith, endswith: no text"))?;
        Ok(part
            .is_some_and(|part| if at_the_end { part.ends_with(wanted) } else { part.starts_with(wanted) }))
    };
    let found = match wanted.kind() {
        ValueKind::Seq => {
            wanted.try_iter()?.map(|value| one(&value)).collect::<Result<Vec<bool>, Error>>()?.contains(&true)
        }
        _ => one(wanted)?,
    };
    Ok(Some(Value::from(found)))
}

/// Returns a text filled to a width before it, after it, or at both ends.
fn justified(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (width, fill): (usize, Option<char>) = from_args(args)?;
    let (all, fill) = (filling(text, width)?, fill.unwrap_or(' ').to_string());
    let before = match method {
        "ljust" => 0,
        "rjust" => all,
        // If an odd number of characters is missing, CPython puts the larger half first where the width is odd.
        _ => all / 2 + (all & width & 1),
    };
    Ok(Value::from(format!("{}{text}{}", fill.repeat(before), fill.repeat(all - before))))
}

/// Returns an argument that is given by position or by name.
fn either<'a, T>(given: Option<T>, named: &'a Kwargs, name: &'a str) -> Result<Option<T>, Error>
where
    Option<T>: minijinja::value::ArgType<'a, Output = Option<T>>,
{
    match given {
        Some(value) => Ok(Some(value)),
        None => named.get::<Option<T>>(name),
    }
}

/// Returns the number of characters that a text lacks to a width.
fn filling(text: &str, width: usize) -> Result<usize, Error> {
    if width > WIDEST_TEXT {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("a text of more than {WIDEST_TEXT} characters"),
        ));
    }
    Ok(width.saturating_sub(text.chars().count()))
}

/// Splits a text at separators or, without a separator, at runs of blanks.
fn split(text: &str, from_the_end: bool, args: &[Value]) -> Result<Value, Error> {
    let (separator, most, named): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = either(separator, &named, "sep")?.filter(|value| !value.is_none());
    let most = either(most, &named, "maxsplit")?.and_then(|most| usize::try_from(most).ok());
    named.assert_all_used()?;
    let pieces = most.map_or(usize::MAX, |most| most.saturating_add(1));
    let parts: Vec<&str> = match separator
        .as_ref()
        .map(|value| value.as_str().ok_or_else(|| refused("split: sep is no text")))
    {
        Some(separator) => {
            let separator = separator?;
            if separator.is_empty() {
                return Err(refused("split: an empty separator"));
            }
            if from_the_end {
                let mut parts: Vec<&str> = text.rsplitn(pieces, separator).collect();
                parts.reverse();
                parts
            } else {
                text.splitn(pieces, separator).collect()
            }
        }
        None => words(text, pieces, from_the_end),
    };
    Ok(Value::from(parts.into_iter().map(Value::from).collect::<Vec<Value>>()))
}

/// Splits a text at runs of blanks into at most `pieces` pieces. The last piece (from the end: the first) keeps its
/// inner blanks.
fn words(text: &str, pieces: usize, from_the_end: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = if from_the_end { text.trim_end() } else { text.trim_start() };
    while !rest.is_empty() {
        let found =
            if from_the_end { rest.rfind(char::is_whitespace) } else { rest.find(char::is_whitespace) };
        match found.filter(|_| parts.len() + 1 < pieces) {
            Some(at) if from_the_end => {
                let after = at + rest[at..].chars().next().map_or(0, char::len_utf8);
                parts.push(&rest[after..]);
                rest = rest[..at].trim_end();
            }
            Some(at) => {
                parts.push(&rest[..at]);
                rest = rest[at..].trim_start();
            }
            None => {
                parts.push(rest);
                break;
            }
        }
    }
    if from_the_end {
        parts.reverse();
    }
    parts
}

/// Splits a text into lines at the characters that end lines in Python.
fn lines(text: &str, keep: bool) -> Value {
    const ENDS: &[char] =
        &['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
    let (mut lines, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let at = rest.find(ENDS).unwrap_or(rest.len());
        let end = match rest[at..].chars().next() {
            Some('\r') if rest[at..].starts_with("\r\n") => at + 2,
            end => at + end.map_or(0, char::len_utf8),
        };
        lines.push(Value::from(&rest[..if keep { end } else { at }]));
        rest = &rest[end..];
    }
    Value::from(lines)
}

/// Returns a part of a text, and the number of characters before it. The part is `None` if it begins after the text's
/// end or after its own end.
fn between(text: &str, start: Option<i64>, end: Option<i64>) -> (usize, Option<&str>) {
    let length = text.chars().count();
    let at = |place: i64| {
        let from_the_end = length.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX));
        usize::try_from(place).unwrap_or(from_the_end)
    };
    let (start, end) = (start.map_or(0, at), end.map_or(length, at).min(length));
    let bytes = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    (start, (start <= end).then(|| &text[bytes(start)..bytes(end)]))
}

/// Returns the position of a text in another, in characters.
fn place(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (wanted, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
    let (before, part) = between(text, start, end);
    let found = part.and_then(|part| {
        let at = if method.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) };
        at.map(|at| before + part[..at].chars().count())
    });
    match found {
        Some(place) => Ok(Value::from(place)),
        None if method.ends_with("find") => Ok(Value::from(-1)),
        None => Err(refused("index: the text has no such part")),
    }
}
