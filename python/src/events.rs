//! Reads what Python passes: events, relations and whole numbers.

use accountant::{AccountantError, Delta, DpEvent, NeighboringRelation, budget};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyFrozenSet, PyInt, PyList, PyMapping, PySequence, PySet, PyString, PyTuple,
};
use pythonize::depythonize;
use serde::de::DeserializeOwned;

/// The deepest nesting of an event. A dict that holds itself ends here too.
const DEEPEST: u32 = 100;
/// The most values in one object.
const MOST: u32 = 1_000_000;
const ALLOWED_EVENTS: &str =
    "one event such as {\"type\": \"gaussian\", \"noise_multiplier\": 1.0}, or a list of events";

/// The exception for a refusal of the accountant.
pub(crate) fn refusal(refused: AccountantError) -> PyErr {
    PyValueError::new_err(refused.to_string())
}

fn read<T: DeserializeOwned>(name: &str, value: &Bound<'_, PyAny>, allowed: &str) -> PyResult<T> {
    depythonize(value).map_err(|refused| {
        let message = format!("{name}: {refused}; allowed: {allowed}");
        match refused.to_string().starts_with("invalid type")
            || PyErr::from(refused).is_instance_of::<PyTypeError>(value.py())
        {
            true => PyTypeError::new_err(message),
            false => PyValueError::new_err(message),
        }
    })
}

/// An event, or a list of events on the same data.
pub(crate) fn event(value: &Bound<'_, PyAny>) -> PyResult<DpEvent> {
    measure(value, DEEPEST, &mut 0)?;
    if is_list(value) {
        return Ok(DpEvent::Composed { events: read("event", value, ALLOWED_EVENTS)? });
    }
    read("event", value, ALLOWED_EVENTS)
}

fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

/// Counts what an object holds, so that none can exhaust the stack or the memory. Any value is followed, not only events: what the fields
/// of an event may be is known only once all of them are read.
fn measure(value: &Bound<'_, PyAny>, left: u32, count: &mut u32) -> PyResult<()> {
    *count += 1;
    if left == 0 || *count > MOST {
        return Err(PyValueError::new_err(format!(
            "event: nested deeper than {DEEPEST}, or more than {MOST} values; count repeated events with self_composed"
        )));
    }
    let is_text = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>();
    if is_text {
        return Ok(());
    }
    if let Ok(fields) = value.cast::<PyMapping>() {
        let (keys, values) = (fields.keys()?, fields.values()?);
        return keys.iter().chain(values.iter()).try_for_each(|inner| measure(&inner, left - 1, count));
    }
    let is_many = value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
        || value.cast::<PySequence>().is_ok();
    if is_many {
        return value.try_iter()?.try_for_each(|inner| measure(&inner?, left - 1, count));
    }
    Ok(())
}

/// The relation; one unit more or less unless given.
pub(crate) fn relation(name: &str) -> PyResult<NeighboringRelation> {
    match name {
        "add_or_remove_one" => Ok(NeighboringRelation::AddOrRemoveOne),
        "replace_one" => Ok(NeighboringRelation::ReplaceOne),
        "zero_out" => Ok(NeighboringRelation::ZeroOut),
        other => Err(PyValueError::new_err(format!(
            "relation = \"{other}\"; allowed: \"add_or_remove_one\", \"replace_one\" or \"zero_out\""
        ))),
    }
}

/// δ, below one over the number of units where that is known.
pub(crate) fn delta(value: f64, units: Option<u64>) -> PyResult<Delta> {
    let delta = Delta::new(value).map_err(refusal)?;
    match units {
        Some(units) if !budget::is_meaningful(delta, units) => Err(PyValueError::new_err(format!(
            "delta = {value:e} for {units} units; allowed: below 1/{units}, since publishing one unit at random would satisfy any \
             larger one"
        ))),
        _ => Ok(delta),
    }
}

/// A whole number from 0.
pub(crate) fn whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    const ALLOWED: &str = "allowed: a whole number from 0 to 2^64 - 1";
    value.extract().map_err(|_| match value.is_instance_of::<PyInt>() {
        true => PyValueError::new_err(format!("{name} = {value} is out of range; {ALLOWED}")),
        false => {
            let kind = value.get_type().name().map_or_else(|_| String::new(), |name| format!(", not {name}"));
            PyTypeError::new_err(format!("{name} must be an int{kind}; {ALLOWED}"))
        }
    })
}

/// The number of units in a group.
pub(crate) fn group(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    // A number beyond 32 bits is as much out of range as the largest one within.
    Ok(u32::try_from(whole("group", value)?).unwrap_or(u32::MAX))
}
