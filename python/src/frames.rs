//! Records of frames and other iterables as JSON lines.

use std::ffi::CStr;
use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::ffi::{self, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, StructArray};
use pyo3::exceptions::{PyImportError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString, PyTuple};
use pythonize::depythonize;
use serde_json::{Map, Value};

const ALLOWED: &str = "a frame of pandas, polars or pyarrow, or an iterable of dicts or of str";
const STREAM: &CStr = c"arrow_array_stream";
const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";

/// Writes each record of a frame, or of an iterable, as a line of JSON.
///
/// # Errors
/// TypeError for an object of another kind, ValueError for a record that has no place in JSON.
pub(crate) fn write_records(source: &Bound<'_, PyAny>, out: &mut impl Write) -> PyResult<()> {
    if source.hasattr("__arrow_c_stream__")? {
        match source.call_method0("__arrow_c_stream__") {
            Ok(stream) => return write_stream(&stream, out),
            // pandas needs pyarrow for this.
            Err(missing) if missing.is_instance_of::<PyImportError>(source.py()) => {}
            Err(error) => return Err(error),
        }
    }
    if source.hasattr("__arrow_c_array__")? {
        let pair: Bound<'_, PyTuple> = source.call_method0("__arrow_c_array__")?.extract()?;
        return write_batch(&of_capsules(&pair.get_item(0)?, &pair.get_item(1)?)?, out);
    }
    if source.hasattr("itertuples")? && source.hasattr("to_dict")? {
        return write_iterable(&source.call_method1("to_dict", ("records",))?, out);
    }
    write_iterable(source, out)
}

fn write_iterable(source: &Bound<'_, PyAny>, out: &mut impl Write) -> PyResult<()> {
    let kind = source.get_type();
    let is_one = source.is_instance_of::<PyDict>() || source.is_instance_of::<PyString>();
    let records = source.try_iter().ok().filter(|_| !is_one);
    let records =
        records.ok_or_else(|| PyTypeError::new_err(format!("data: {kind} is not taken; give {ALLOWED}")))?;
    for (place, record) in records.enumerate() {
        let record = record?;
        let line = match record.extract::<String>() {
            Ok(text) => serde_json::json!({ "text": text }),
            // Only kinds of values are named: the values are private.
            Err(_) => depythonize::<Map<String, Value>>(&record).map(Value::from).map_err(|_| {
                PyTypeError::new_err(format!(
                    "data: record {} is a {}; allowed: a str, or a dict from str to str, numbers, bool, None, lists and dicts",
                    place + 1,
                    record.get_type()
                ))
            })?,
        };
        write_line(&line, out)?;
    }
    Ok(())
}

fn write_line(line: &Value, out: &mut impl Write) -> PyResult<()> {
    writeln!(out, "{line}").map_err(|error: io::Error| {
        PyOSError::new_err(format!("the text cannot be kept: {error}; free memory or disk space"))
    })
}

/// Reads a stream of record batches.
fn write_stream(stream: &Bound<'_, PyAny>, out: &mut impl Write) -> PyResult<()> {
    let stream = stream.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    #[expect(unsafe_code, reason = "Arrow's PyCapsule interface hands over structs of C")]
    // SAFETY: a capsule of this name holds such a struct. It is moved out, and the one left behind is marked as released.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    for batch in reader.map_err(|error| refused(&error))? {
        write_batch(&batch.map_err(|error| refused(&error))?.into(), out)?;
    }
    Ok(())
}

fn of_capsules(schema: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<StructArray> {
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    #[expect(unsafe_code, reason = "Arrow's PyCapsule interface hands over structs of C")]
    // SAFETY: capsules of these names hold such structs, the second one an array of the first one's type. Both are moved
    // out, and those left behind are marked as released.
    let data = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema.as_ptr());
        ffi::from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), &schema)
    };
    let data = data.map_err(|error| refused(&error))?;
    let array = arrow_array::make_array(data);
    array.as_struct_opt().cloned().ok_or_else(|| {
        PyTypeError::new_err(
            "data: an Arrow array without fields; give a record batch or an array of structs",
        )
    })
}

fn refused(error: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("data: the Arrow data cannot be read: {error}"))
}

fn write_batch(batch: &StructArray, out: &mut impl Write) -> PyResult<()> {
    (0..batch.len()).try_for_each(|row| write_line(&Value::from(fields(batch, row)), out))
}

/// The values of a row. Those of a type without a form in JSON are left out.
fn fields(columns: &StructArray, row: usize) -> Map<String, Value> {
    let named = columns.column_names().into_iter().zip(columns.columns());
    named.filter_map(|(name, column)| Some((name.to_owned(), value(column, row)?))).collect()
}

/// A value; `None` if its type has no form in JSON.
fn value(array: &dyn Array, row: usize) -> Option<Value> {
    if array.is_null(row) {
        return Some(Value::Null);
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let key = value(dictionary.keys(), row)?.as_u64()?;
        return value(dictionary.values(), usize::try_from(key).ok()?);
    }
    let text = (array.as_string_opt::<i32>().map(|texts| texts.value(row)))
        .or_else(|| array.as_string_opt::<i64>().map(|texts| texts.value(row)))
        .or_else(|| array.as_string_view_opt().map(|texts| texts.value(row)));
    if let Some(text) = text {
        return Some(text.into());
    }
    if let Some(structs) = array.as_struct_opt() {
        return Some(fields(structs, row).into());
    }
    let list = (array.as_list_opt::<i32>().map(|lists| lists.value(row)))
        .or_else(|| array.as_list_opt::<i64>().map(|lists| lists.value(row)))
        .or_else(|| array.as_fixed_size_list_opt().map(|lists| lists.value(row)));
    match list {
        Some(list) => {
            (0..list.len()).map(|place| value(&list, place)).collect::<Option<Vec<_>>>().map(Value::from)
        }
        None => array.as_boolean_opt().map(|flags| flags.value(row).into()).or_else(|| number(array, row)),
    }
}

fn number(array: &dyn Array, row: usize) -> Option<Value> {
    fn of<T: ArrowPrimitiveType<Native: Into<Value>>>(array: &dyn Array, row: usize) -> Option<Value> {
        array.as_primitive_opt::<T>().map(|numbers| numbers.value(row).into())
    }
    of::<Int64Type>(array, row)
        .or_else(|| of::<Int32Type>(array, row))
        .or_else(|| of::<Int16Type>(array, row))
        .or_else(|| of::<Int8Type>(array, row))
        .or_else(|| of::<UInt64Type>(array, row))
        .or_else(|| of::<UInt32Type>(array, row))
        .or_else(|| of::<UInt16Type>(array, row))
        .or_else(|| of::<UInt8Type>(array, row))
        .or_else(|| of::<Float64Type>(array, row))
        .or_else(|| of::<Float32Type>(array, row))
}
