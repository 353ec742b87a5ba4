//! Jinja as in Python: white space, methods, and the functions that `transformers` adds for chat
//! templates.

use std::fmt::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, escape_formatter};
use minijinja_contrib::globals;

use super::{bounded, json, methods};

/// Largest cost of rendering one text: a unit for each instruction, and for each 64 bytes of data
/// that the template makes. Templates of models take some hundred units a message.
const FUEL: u64 = 1 << 21;

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
    environment.set_unknown_method_callback(methods::call);
    bounded::add_to(&mut environment);
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }).map_err(Error::from),
        ValueKind::None => out.write_str("None").map_err(Error::from),
        _ => match json::float(value) {
            Some(number) => out.write_str(&number).map_err(Error::from),
            None => escape_formatter(out, state, value),
        },
    });
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_filter("tojson", json::tojson);
    // These filters behave differently in Python.
    environment.remove_filter("pprint");
    environment.remove_filter("attr");
    environment.add_function("joiner", globals::joiner);
    environment.add_function("cycler", |items: Rest<Value>| globals::cycler(items.to_vec()));
    // In Jinja, texts and dictionaries count as sequences too, and a missing value counts as an empty one.
    let is_sequence = |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Undefined)
    };
    environment.add_test("sequence", is_sequence);
    environment
        .add_test("iterable", move |value: &Value| is_sequence(value) || value.kind() == ValueKind::Iterable);
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

/// Describes the fault of a template and its line.
pub(super) fn in_one_line(error: &Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let what = what.replace(['\n', '\r'], " ");
    error.line().map_or(what.clone(), |line| format!("line {line} of the chat template: {what}"))
}
