//! Keyword arguments as the options of a command.

use std::ffi::{OsStr, OsString};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};

/// Adds each keyword as an option: True as an option without a value, and a list as one option for each value.
pub(crate) fn push_all(arguments: &mut Vec<OsString>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for (name, value) in options.into_iter().flatten() {
        push(arguments, &name.extract::<String>()?, &value)?;
    }
    Ok(())
}

/// `--name=value`, so that a value that begins with a dash is none.
pub(crate) fn with_value(name: &str, value: &OsStr) -> OsString {
    let mut argument = OsString::from(format!("--{}=", name.replace('_', "-")));
    argument.push(value);
    argument
}

fn push(arguments: &mut Vec<OsString>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(flag) = value.cast::<PyBool>() {
        if flag.is_true() {
            arguments.push(format!("--{}", name.replace('_', "-")).into());
        }
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for one in value.try_iter()? {
            let one = one?;
            // A list could hold itself.
            if one.is_instance_of::<PyList>() || one.is_instance_of::<PyTuple>() {
                return Err(PyTypeError::new_err(format!("{name} must be a value or a list of values")));
            }
            push(arguments, name, &one)?;
        }
    } else if !value.is_none() {
        arguments.push(with_value(name, value.str()?.to_string_lossy().as_ref().as_ref()));
    }
    Ok(())
}
