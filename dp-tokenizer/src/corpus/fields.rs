//! Finds the fields that the records of a file have.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::files::{OpenFile, named_format, open_file, open_input};
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::separated::{Separated, Separator};
use super::{CorpusError, Encoding, Field, FieldKind, Files, Format};

/// The number of JSON records that are looked at. Later ones may have further fields.
const RECORDS: usize = 100;

/// Whether only the first line of a file names its fields. Where that line is missing, the first record is taken for
/// it.
///
/// # Errors
/// [`CorpusError`] if the name of the file does not tell the format.
pub fn has_header_line(path: &Path) -> Result<bool, CorpusError> {
    Ok(matches!(named_format(path, Format::Auto)?.0, Format::Csv | Format::Tsv) && path.is_file())
}

/// Returns whether the records of a file are words with tags, one a line.
///
/// # Errors
/// As [`has_header_line`].
pub fn has_tags(path: &Path) -> Result<bool, CorpusError> {
    Ok(named_format(path, Format::Auto)?.0 == Format::Iob)
}

/// Returns the names of the fields with text or numbers in the first records of a file: those of a table in their
/// order, and those that most objects of JSON have. `a.b` is the field `b` of the object `a`. The list is empty for
/// text and for a folder.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("notes.jsonl");
/// std::fs::write(&path, r#"{"id": 7, "note": {"text": "fever", "author": "x"}}"#).unwrap();
/// use dp_tokenizer::corpus::{Encoding, field_names};
/// assert_eq!(field_names(&path, Encoding::Utf8).unwrap(), ["id", "note.author", "note.text"]);
/// ```
///
/// # Errors
/// [`CorpusError`] if the file cannot be read or its name does not tell the format.
pub fn field_names(path: &Path, encoding: Encoding) -> Result<Vec<String>, CorpusError> {
    let values = |field: Field| (field.kind == FieldKind::Value).then_some(field.name);
    Ok(fields(path, encoding)?.into_iter().filter_map(values).collect())
}

/// Returns the fields as [`field_names`] does, and those that hold lists.
///
/// ```
/// use dp_tokenizer::corpus::{Encoding, FieldKind, fields};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("chats.jsonl");
/// std::fs::write(&path, r#"{"messages": [{"role": "user", "content": "Hello"}]}"#).unwrap();
/// let kind = FieldKind::Objects(vec!["content".to_owned(), "role".to_owned()]);
/// assert_eq!(fields(&path, Encoding::Utf8).unwrap()[0].kind, kind);
/// ```
///
/// # Errors
/// As [`field_names`].
pub fn fields(path: &Path, encoding: Encoding) -> Result<Vec<Field>, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    let files = Files { encoding, ..Files::of([path.to_owned()]) };
    match named_format(path, Format::Auto)?.0 {
        Format::Csv | Format::Tsv if path.is_file() => {
            // The header line is read as text, whatever the name says.
            of_records(
                named_format(path, Format::Auto)?.0,
                open_file(path, &Files { format: Format::Text, ..files })?,
            )
        }
        #[cfg(all(feature = "parquet", not(target_arch = "wasm32")))]
        Format::Parquet => {
            let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
            super::parquet::fields(file).map_err(unreadable)
        }
        format @ (Format::Jsonl | Format::Json) => of_records(format, open_file(path, &files)?),
        Format::Text | Format::Iob => Ok(Vec::new()),
        _ if !path.exists() => Err(unreadable("there is no such file".to_owned())),
        other => Err(unreadable(format!("fields of {other:?} cannot be listed"))),
    }
}

/// Returns the format that the name of a text tells, and its fields as [`fields`] does.
///
/// # Errors
/// As [`field_names`].
pub(crate) fn stream_fields(
    name: &Path,
    text: impl Read + Send + 'static,
    encoding: Encoding,
) -> Result<(Format, Vec<Field>), CorpusError> {
    let format = named_format(name, Format::Auto)?.0;
    let is_table = matches!(format, Format::Csv | Format::Tsv);
    let read_as = if is_table { Format::Text } else { format };
    let files = Files { format: read_as, encoding, ..Files::of([name.to_owned()]) };
    let text = open_input(name, Box::new(text), &files)?;
    of_records(format, text).map(|found| (format, found))
}

/// Returns the fields of a table in parquet that is no file on disk.
#[cfg(feature = "parquet")]
pub(crate) fn parquet_fields(
    name: &Path,
    table: impl Read + std::io::Seek + Send + 'static,
) -> Result<Vec<Field>, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: name.to_owned(), reason };
    super::parquet::fields(table).map_err(unreadable)
}

/// Returns the fields of the first records of an opened table or of JSON lines.
fn of_records(format: Format, mut file: OpenFile) -> Result<Vec<Field>, CorpusError> {
    let path = file.path.clone();
    let of_reading = |line, error: &std::io::Error| CorpusError::of_reading(&path, line, error);
    match format {
        Format::Csv | Format::Tsv => {
            let separator = if format == Format::Csv { Separator::Comma } else { Separator::Tab };
            Separated::header(file.reader, separator).map(of_values).map_err(|error| of_reading(1, &error))
        }
        Format::Jsonl | Format::Json => {
            let (mut found, mut line, mut objects) = (Vec::new(), Vec::new(), 0);
            for place in 0..RECORDS {
                let read = read_line(&mut file.reader, &mut line, MAX_LINE_BYTES)
                    .map_err(|error| of_reading(place as u64, &error))?;
                if !matches!(read, Line::Read(_)) {
                    break;
                }
                // A line that is no object is refused where the text is read.
                if let Ok(value) = serde_json::from_slice(&line) {
                    collect(&value, "", &mut found);
                    objects += 1;
                }
            }
            // A key that few objects have may be the name of a person.
            Ok(found.into_iter().filter(|(_, count)| 2 * count >= objects).map(|(field, _)| field).collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn of_values(names: Vec<String>) -> Vec<Field> {
    names.into_iter().map(|name| Field { name, kind: FieldKind::Value }).collect()
}

/// Counts the fields of an object, and of the objects in it.
fn collect(value: &Value, path: &str, found: &mut Vec<(Field, usize)>) {
    let Some(fields) = value.as_object() else { return };
    for (name, value) in fields {
        let name = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if value.is_object() {
            collect(value, &name, found);
        } else if let Some(kind) = kind_of(value) {
            // The first object of a list tells the names of its fields.
            let is_same = |field: &Field| {
                field.name == name && std::mem::discriminant(&field.kind) == std::mem::discriminant(&kind)
            };
            match found.iter_mut().find(|(field, _)| is_same(field)) {
                Some((_, count)) => *count += 1,
                None => found.push((Field { name, kind }, 1)),
            }
        }
    }
}

/// What a field holds; `None` for what is neither read as text nor as a list of it.
fn kind_of(value: &Value) -> Option<FieldKind> {
    let is_value = |value: &Value| value.is_string() || value.is_number();
    match value {
        Value::Array(items) => match items.first()? {
            Value::Object(fields) => Some(FieldKind::Objects(fields.keys().cloned().collect())),
            _ if items.iter().all(is_value) => Some(FieldKind::Values),
            _ => None,
        },
        value => is_value(value).then_some(FieldKind::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_header_or_of_the_first_records() {
        let folder = tempfile::tempdir().unwrap();
        let names = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            field_names(&path, Encoding::Utf8).unwrap()
        };
        assert_eq!(names("a.csv", "id,\"the, text\"\n1,x\n"), ["id", "the, text"]);
        assert_eq!(names("a.tsv", "id\ttext\n"), ["id", "text"]);
        assert_eq!(names("a.jsonl", "{\"b\": {\"c\": 1}}\n\n{\"d\": \"x\", \"e\": [1]}\n"), ["b.c", "d"]);
        let keyed = "{\"text\": \"x\", \"Ann\": 1}\n{\"text\": \"y\", \"Bob\": 2}\n{\"text\": \"z\"}\n";
        assert_eq!(names("keyed.jsonl", keyed), ["text"]);
        assert_eq!(names("a.json", "[{\"x\": \"y\"}]"), ["x"]);
        assert!(names("a.txt", "{\"x\": 1}\n").is_empty());
        assert!(field_names(folder.path(), Encoding::Utf8).unwrap().is_empty());
        assert!(field_names(&folder.path().join("missing.csv"), Encoding::Utf8).is_err());
    }
}
