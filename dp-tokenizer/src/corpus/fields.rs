//! Finds the fields that the records of a file have.

use std::path::Path;

use serde_json::Value;

use super::files::{named_format, open_file};
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::separated::{Separated, Separator};
use super::{CorpusError, Files, Format};

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

/// Returns the names of the fields with text or numbers in the first records of a file: those of a table in their
/// order, and those that most objects of JSON have. `a.b` is the field `b` of the object `a`. The list is empty for
/// text and for a folder.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("notes.jsonl");
/// std::fs::write(&path, r#"{"id": 7, "note": {"text": "fever", "author": "x"}}"#).unwrap();
/// assert_eq!(dp_tokenizer::corpus::field_names(&path).unwrap(), ["id", "note.author", "note.text"]);
/// ```
///
/// # Errors
/// [`CorpusError`] if the file cannot be read or its name does not tell the format.
pub fn field_names(path: &Path) -> Result<Vec<String>, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    let of_reading = |line, error: &std::io::Error| CorpusError::of_reading(path, line, error);
    let mut files = Files::of([path.to_owned()]);
    match named_format(path, Format::Auto)?.0 {
        Format::Csv | Format::Tsv if path.is_file() => {
            let is_csv = named_format(path, Format::Auto)?.0 == Format::Csv;
            files.format = Format::Text;
            let separator = if is_csv { Separator::Comma } else { Separator::Tab };
            Separated::header(open_file(path, &files)?.reader, separator)
                .map_err(|error| of_reading(1, &error))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => super::parquet::column_names(path).map_err(unreadable),
        Format::Jsonl | Format::Json => {
            let (mut names, mut line, mut objects) = (Vec::new(), Vec::new(), 0);
            let mut file = open_file(path, &files)?;
            for place in 0..RECORDS {
                let read = read_line(&mut file.reader, &mut line, MAX_LINE_BYTES)
                    .map_err(|error| of_reading(place as u64, &error))?;
                if !matches!(read, Line::Read(_)) {
                    break;
                }
                // A line that is no object is refused where the text is read.
                if let Ok(value) = serde_json::from_slice(&line) {
                    collect(&value, "", &mut names);
                    objects += 1;
                }
            }
            // A key that few objects have may be the name of a person.
            Ok(names.into_iter().filter(|(_, count)| 2 * count >= objects).map(|(name, _)| name).collect())
        }
        Format::Text | Format::Iob => Ok(Vec::new()),
        _ if !path.exists() => Err(unreadable("there is no such file".to_owned())),
        other => Err(unreadable(format!("fields of {other:?} cannot be listed"))),
    }
}

fn collect(value: &Value, path: &str, names: &mut Vec<(String, usize)>) {
    let Some(fields) = value.as_object() else { return };
    for (name, value) in fields {
        let name = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if value.is_object() {
            collect(value, &name, names);
        } else if value.is_string() || value.is_number() {
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => names.push((name, 1)),
            }
        }
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
            field_names(&path).unwrap()
        };
        assert_eq!(names("a.csv", "id,\"the, text\"\n1,x\n"), ["id", "the, text"]);
        assert_eq!(names("a.tsv", "id\ttext\n"), ["id", "text"]);
        assert_eq!(names("a.jsonl", "{\"b\": {\"c\": 1}}\n\n{\"d\": \"x\", \"e\": [1]}\n"), ["b.c", "d"]);
        let keyed = "{\"text\": \"x\", \"Ann\": 1}\n{\"text\": \"y\", \"Bob\": 2}\n{\"text\": \"z\"}\n";
        assert_eq!(names("keyed.jsonl", keyed), ["text"]);
        assert_eq!(names("a.json", "[{\"x\": \"y\"}]"), ["x"]);
        assert!(names("a.txt", "{\"x\": 1}\n").is_empty());
        assert!(field_names(folder.path()).unwrap().is_empty());
        assert!(field_names(&folder.path().join("missing.csv")).is_err());
    }
}
