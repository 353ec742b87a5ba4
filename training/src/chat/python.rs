//! Jinja as in Python: white space, methods, and the functions that `transformers` adds for chat
//! templates.

use std::fmt::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, escape_formatter};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::bounded;

/// Largest cost of rendering one text: a unit for each instruction, and for each 64 bytes of data
/// that the template makes. Templates of models take some hundred units a message.
const FUEL: u64 = 1 << 21;
/// Largest depth of lists and objects that `tojson` writes, and largest number of blanks before
/// each level.
const DEEPEST: usize = 100;
const WIDEST: usize = 64;
/// Bytes that `tojson` writes.
const LONGEST_JSON: usize = 1 << 26;

/// Largest number of bytes of a template; those of models have at most some 30,000.
pub(super) const LONGEST: usize = 1 << 16;
/// Bytes of stack. The compiler follows nested expressions by recursion, and each level takes a
/// byte of the template or a unit of fuel.
const STACK: usize = 512 << 20;

/// Does some work in a thread with enough stack for the deepest template. The system allocates a
/// page of the stack when it is first used.
pub(super) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("no thread for the chat template: {error}"))?;
        thread.join().map_err(|_| "the chat template could not be rendered".to_owned())
    })
}

/// Creates an environment with the settings of `transformers`, in which no template takes much time
/// or memory.
pub(super) fn environment(date: Option<&str>) -> Result<Environment<'static>, String> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|error| in_one_line(&error))?);
    environment.set_unknown_method_callback(unknown_method_callback);
    bounded::add_to(&mut environment);
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }).map_err(Error::from),
        ValueKind::None => out.write_str("None").map_err(Error::from),
        _ => escape_formatter(out, state, value),
    });
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_filter("tojson", |value: &Value, options: Kwargs| -> Result<String, Error> {
        let indent = options.get::<Option<usize>>("indent")?;
        options.assert_all_used()?;
        if indent.is_some_and(|indent| indent > WIDEST) {
            let what = format!("tojson: an indent beyond {WIDEST}; give a smaller one");
            return Err(Error::new(ErrorKind::InvalidOperation, what));
        }
        let mut json = String::new();
        write_json(&mut json, value, indent, 0)?;
        Ok(json)
    });
    if let Some(date) = date {
        let date = chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").map_err(|error| error.to_string())?;
        let now = date.and_time(chrono::NaiveTime::MIN);
        environment.add_function("strftime_now", move |format: String| -> Result<String, Error> {
            let mut text = String::new();
            let unknown =
                |_| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {format:?} is no format"));
            write!(text, "{}", now.format(&format)).map_err(unknown)?;
            Ok(text)
        });
    }
    Ok(environment)
}

/// JSON with the blanks of Python's `json.dumps(value, ensure_ascii=False, indent=indent)`.
fn write_json(out: &mut String, value: &Value, indent: Option<usize>, depth: usize) -> Result<(), Error> {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    let comma = if indent.is_some() { "," } else { ", " };
    let is_list = matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !is_list && value.kind() != ValueKind::Map {
        let invalid = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
        out.push_str(&serde_json::to_string(value).map_err(invalid)?);
        return Ok(());
    }
    let [open, close] = if is_list { ['[', ']'] } else { ['{', '}'] };
    if depth == DEEPEST {
        let what = format!("tojson: more than {DEEPEST} lists and objects in one another");
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    }
    if out.len() > LONGEST_JSON {
        let what = format!("tojson: more than {} MiB", LONGEST_JSON >> 20);
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    }
    out.push(open);
    let mut is_empty = true;
    for item in value.try_iter()? {
        if !std::mem::replace(&mut is_empty, false) {
            out.push_str(comma);
        }
        line(out, depth + 1);
        if is_list {
            write_json(out, &item, indent, depth + 1)?;
        } else {
            write_json(out, &Value::from(item.to_string()), indent, depth + 1)?;
            out.push_str(": ");
            write_json(out, &value.get_item(&item)?, indent, depth + 1)?;
        }
    }
    if !is_empty {
        line(out, depth);
    }
    out.push(close);
    Ok(())
}

/// Describes the fault of a template and its line.
pub(super) fn in_one_line(error: &Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let what = what.replace(['\n', '\r'], " ");
    error.line().map_or(what.clone(), |line| format!("line {line} of the chat template: {what}"))
}
