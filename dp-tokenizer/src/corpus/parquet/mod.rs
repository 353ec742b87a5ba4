//! Reads rows of a parquet file as JSON lines, for all code that reads lines.

#[cfg(not(target_arch = "wasm32"))]
use std::fs::File;
use std::io::{Error, Read, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(not(target_arch = "wasm32"))]
use std::path::Path;
use std::sync::Arc;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::Ordering;

use parquet::basic::{Compression, Repetition};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use self::pages::{Checked, Input, Pages, ReadSeek};
use super::lines::MAX_LINE_BYTES;
use super::{BadUtf8, Files};

#[cfg(test)]
#[path = "../../../tests/common/parquet.rs"]
mod hostile;
mod pages;
mod thrift;

/// Returns the rows of a file. Only the columns that are asked for are read.
pub(super) fn json_lines<R: ReadSeek + 'static>(
    file: R,
    files: &Files,
) -> Result<impl Read + Send + use<R>, String> {
    let opened = unharmed(|| {
        let Table { reader, columns, rows } = Table::open(file, files)?;
        let (size, schema) = (reader.size, schema_of(&reader, columns)?);
        let iter = RowIter::from_file_into(Box::new(reader)).project(Some(schema));
        Ok((iter.map_err(|error| error.to_string())?, rows, size))
    });
    let (rows, count, size) = opened.unwrap_or_else(|| Err(DAMAGED.to_owned()))?;
    let shown_per_row = size as f64 / count.max(1) as f64;
    let left = size.saturating_mul(MOST_TEXT_PER_BYTE).saturating_add(64 << 20);
    Ok(Lines { rows, files: files.clone(), line: Vec::new(), taken: 0, left, done: 0, shown_per_row })
}

/// Returns a row by its number, from 0, as a JSON line; empty behind the last one. Of each column, the dictionary and
/// the page with the row are read.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn row_at(path: &Path, files: &Files, row: u64) -> Result<Vec<u8>, String> {
    let said = |error: parquet::errors::ParquetError| error.to_string();
    let read = unharmed(|| {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let Table { reader, columns, .. } = Table::open(file, files)?;
        let (mut group, mut before) = (0, row);
        for metadata in reader.metadata().row_groups() {
            match before.checked_sub(u64::try_from(metadata.num_rows()).unwrap_or(0)) {
                Some(rest) => (group, before) = (group + 1, rest),
                None => break,
            }
        }
        if group == reader.num_row_groups() {
            return Ok(Vec::new());
        }
        let mut object = Map::new();
        for column in columns {
            // Pages of columns have different numbers of rows.
            let (group, left) = reader.group_from(group, before).map_err(said)?;
            let mut rows =
                RowIter::from_row_group(Some(schema_of(&reader, vec![column])?), &group).map_err(said)?;
            let row = rows.nth(left.load(Ordering::Relaxed) as usize).transpose().map_err(said)?;
            object.extend(values(&row.ok_or(DAMAGED)?, files).map_err(|error| error.to_string())?);
        }
        serde_json::to_vec(&object).map_err(|error| error.to_string())
    });
    read.unwrap_or_else(|| Err(DAMAGED.to_owned()))
}

/// Accepts a file whose metadata is no larger, and its schema no deeper, than the parquet crate has memory and stack for.
fn checked(mut file: impl ReadSeek + 'static) -> Result<Input, String> {
    let said = |error: std::io::Error| error.to_string();
    let size = file.seek(SeekFrom::End(0)).map_err(said)?;
    let mut end = [0; 8];
    let Some(before) = size.checked_sub(8) else { return Ok(Input::new(file, size)) };
    file.seek(SeekFrom::Start(before)).map_err(said)?;
    file.read_exact(&mut end).map_err(said)?;
    let [a, b, c, d, magic @ ..] = end;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    // For such a file, the parquet crate says what is wrong.
    let Some(begin) = before.checked_sub(length).filter(|_| magic == *b"PAR1") else {
        return Ok(Input::new(file, size));
    };
    let most = MOST_METADATA.max(size / MOST_METADATA_SHARE);
    if length > most {
        return Err(format!(
            "metadata of {length} bytes; allowed: at most {most}; write larger groups of rows"
        ));
    }
    let mut metadata = Vec::new();
    file.seek(SeekFrom::Start(begin)).map_err(said)?;
    Read::by_ref(&mut file).take(length).read_to_end(&mut metadata).map_err(said)?;
    match thrift::has_sound_schema(&metadata) {
        Some(true) => Ok(Input::new(file, size)),
        _ => Err(DAMAGED.to_owned()),
    }
}

/// An opened file, and the columns of it that are asked for.
struct Table {
    reader: Checked,
    columns: Vec<Arc<Type>>,
    rows: u64,
}

impl Table {
    fn open(file: impl ReadSeek + 'static, files: &Files) -> Result<Self, String> {
        let file = checked(file)?;
        let (pages, size) = (Arc::new(Pages(file.clone())), file.size);
        let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        let reader = Checked { reader, pages, size };
        let metadata = reader.metadata().file_metadata();
        let wanted = |name: &str| files.field_names().any(|wanted| wanted == name);
        let columns = metadata.schema().get_fields().iter().filter(|column| wanted(column.name()));
        let columns: Vec<Arc<Type>> = columns.cloned().collect();
        let is_nested = |column: &&Arc<Type>| {
            !column.is_primitive() || column.get_basic_info().repetition() == Repetition::REPEATED
        };
        if columns.is_empty() {
            let fields = metadata.schema().get_fields().iter();
            let nested: Vec<&str> = fields.filter(is_nested).map(|column| column.name()).collect();
            let nested =
                if nested.is_empty() { String::new() } else { format!("; {} {OF_LISTS}", nested.join(", ")) };
            return Err(format!(
                "no column {:?}; name the one that holds the text (text_field){nested}",
                files.text_field
            ));
        }
        if let Some(nested) = columns.iter().find(is_nested) {
            return Err(format!("column {:?} {OF_LISTS}", nested.name()));
        }
        let chunks = reader.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
        let mut codecs = chunks.map(|chunk| chunk.compression());
        if let Some(unread) = codecs.find(|codec| matches!(codec, Compression::BROTLI(_) | Compression::LZO))
        {
            return Err(format!(
                "its pages are compressed with {unread}; allowed: snappy, gzip, zstd, lz4 or none; write the file again with one of them"
            ));
        }
        // If columns shared pages, the same pages would be inflated for each group.
        let groups = reader.metadata().row_groups().iter();
        let chunks = groups.flat_map(RowGroupMetaData::columns).map(|chunk| chunk.byte_range().1);
        if chunks.fold(0, u64::saturating_add) > size {
            return Err("it has columns that lie on one another; write the file anew".to_owned());
        }
        let groups = reader.metadata().row_groups().iter();
        let in_groups = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        let rows = in_groups.fold(0, u64::saturating_add);
        if rows > size.saturating_mul(MAX_ROWS_PER_BYTE) {
            return Err(format!(
                "it states {rows} rows in {size} bytes; allowed: at most {MAX_ROWS_PER_BYTE} rows per byte; leave out rows \
                 without text"
            ));
        }
        Ok(Self { reader, columns, rows })
    }
}

/// Returns the schema of a file with some of its columns.
fn schema_of(reader: &Checked, columns: Vec<Arc<Type>>) -> Result<Type, String> {
    let name = reader.metadata().file_metadata().schema().name();
    let schema = Type::group_type_builder(name).with_fields(columns).build();
    schema.map_err(|error| error.to_string())
}

/// Returns the names of the columns that hold text or numbers.
pub(super) fn column_names(file: impl ReadSeek + 'static) -> Result<Vec<String>, String> {
    let file = checked(file)?;
    let names = unharmed(|| {
        let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        let columns = reader.metadata().file_metadata().schema().get_fields().iter();
        Ok(columns.filter(|column| column.is_primitive()).map(|column| column.name().to_owned()).collect())
    });
    names.unwrap_or_else(|| Err(DAMAGED.to_owned()))
}

/// The most rows per byte of a file. Writers cut columns into pages, so even rows without text take more space. Reading
/// takes time for each row.
const MAX_ROWS_PER_BYTE: u64 = 1000;

/// The most bytes of text for each byte of a file, beyond 64 MiB. A value in a dictionary stands for any number of
/// equal ones.
const MOST_TEXT_PER_BYTE: u64 = 2000;

/// The most bytes of metadata of any file, and the share of a larger file that its metadata may take.
const MOST_METADATA: u64 = 4 << 20;
const MOST_METADATA_SHARE: u64 = 16;

const OF_LISTS: &str = "holds lists or groups, which are read from .jsonl files alone; write the table as JSON lines, such as with \
                        df.to_json(\"FILE.jsonl\", orient=\"records\", lines=True)";

const DAMAGED: &str = "the parquet file is damaged";

/// Returns the result of `work`, or `None` if it panics, as the parquet crate does on some damaged files.
fn unharmed<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

struct Lines {
    rows: RowIter<'static>,
    files: Files,
    /// The row that is being handed out, and the number of its bytes that were taken.
    line: Vec<u8>,
    taken: usize,
    /// The number of bytes of lines that may still follow.
    left: u64,
    /// The number of rows so far, each of which stands for this many bytes of the file in a display of progress.
    done: u64,
    shown_per_row: f64,
}

impl Read for Lines {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.taken == self.line.len() {
            let row = unharmed(|| self.rows.next()).ok_or_else(|| Error::other(DAMAGED))?;
            let Some(row) = row.transpose().map_err(|error| Error::other(error.to_string()))? else {
                return Ok(0);
            };
            self.line = serde_json::to_vec(&values(&row, &self.files)?)?;
            self.line.push(b'\n');
            self.left = self.left.checked_sub(self.line.len() as u64).ok_or_else(|| {
                Error::other(format!(
                    "it holds more than {MOST_TEXT_PER_BYTE} bytes of text in each of its bytes; leave out repeated rows"
                ))
            })?;
            self.taken = 0;
            let shown = |rows: u64| (rows as f64 * self.shown_per_row) as u64;
            self.files.progress.add(shown(self.done + 1) - shown(self.done));
            self.done += 1;
        }
        let count = out.len().min(self.line.len() - self.taken);
        out[..count].copy_from_slice(&self.line[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

/// Returns the values of a row, by column.
fn values(row: &Row, files: &Files) -> std::io::Result<Map<String, Value>> {
    let mut object = Map::new();
    for (name, field) in row.get_column_iter() {
        let length = match field {
            Field::Str(text) => text.len(),
            Field::Bytes(bytes) => bytes.data().len(),
            _ => 0,
        };
        // As JSON, the text may take six times its size.
        if length > MAX_LINE_BYTES {
            let reason = format!("longer than {MAX_LINE_BYTES} bytes; divide it into shorter texts");
            return Err(Error::other(reason));
        }
        let value = match field {
            Field::Str(text) => Value::from(text.as_str()),
            Field::Bytes(bytes) => match (std::str::from_utf8(bytes.data()), files.bad_utf8) {
                (Ok(text), _) => Value::from(text),
                (Err(_), BadUtf8::Replace) => Value::from(String::from_utf8_lossy(bytes.data())),
                (Err(_), BadUtf8::Refuse) => return Err(Error::other("not valid UTF-8")),
            },
            Field::Byte(number) => Value::from(*number),
            Field::Short(number) => Value::from(*number),
            Field::Int(number) => Value::from(*number),
            Field::Long(number) => Value::from(*number),
            Field::UByte(number) => Value::from(*number),
            Field::UShort(number) => Value::from(*number),
            Field::UInt(number) => Value::from(*number),
            Field::ULong(number) => Value::from(*number),
            Field::Float(number) => Value::from(*number),
            Field::Double(number) => Value::from(*number),
            Field::Null => Value::Null,
            // The code that reads the line says what the value should have been.
            _ => Value::Bool(true),
        };
        object.insert(name.clone(), value);
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::super::{CorpusError, Record, Source, open};
    use super::*;
    use parquet::basic::Encoding;
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    /// Returns a file of texts in dictionaries, or encoded otherwise.
    fn written(texts: &[&str], encoding: Option<Encoding>) -> Vec<u8> {
        written_with(texts, 2, properties(encoding))
    }

    fn properties(encoding: Option<Encoding>) -> WriterPropertiesBuilder {
        let properties = WriterProperties::builder().set_dictionary_enabled(encoding.is_none());
        match encoding {
            Some(encoding) => properties.set_column_encoding("text".into(), encoding),
            None => properties,
        }
    }

    /// Returns a file of groups of `group` rows.
    fn written_with(texts: &[&str], group: usize, properties: WriterPropertiesBuilder) -> Vec<u8> {
        let schema =
            "message notes { optional binary text (UTF8); required int64 user; required double extra; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
        for (number, group) in texts.chunks(group).enumerate() {
            let mut rows = writer.next_row_group().unwrap();
            let column: Vec<ByteArray> = group.iter().map(|text| ByteArray::from(*text)).collect();
            let mut texts = rows.next_column().unwrap().unwrap();
            texts.typed::<ByteArrayType>().write_batch(&column, Some(&vec![1; group.len()]), None).unwrap();
            texts.close().unwrap();
            let mut users = rows.next_column().unwrap().unwrap();
            let ids = vec![number as i64; group.len()];
            users.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
            users.close().unwrap();
            let mut extra = rows.next_column().unwrap().unwrap();
            extra
                .typed::<parquet::data_type::DoubleType>()
                .write_batch(&vec![0.5; group.len()], None, None)
                .unwrap();
            extra.close().unwrap();
            rows.close().unwrap();
        }
        writer.into_inner().unwrap()
    }

    const ENCODINGS: [Option<Encoding>; 3] =
        [None, Some(Encoding::DELTA_BYTE_ARRAY), Some(Encoding::DELTA_LENGTH_BYTE_ARRAY)];

    fn read(path: &Path, user: Option<&str>) -> Result<Vec<Record>, CorpusError> {
        let mut files = Files::of([path.to_owned()]);
        files.user_field = user.map(str::to_owned);
        open(&Source::Files(files))?.collect()
    }

    #[test]
    fn rows_are_records_with_their_users() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.parquet");
        let texts = ["one \"quoted\"\nline", "é\u{2028}", "three"];
        let want = texts.iter().zip(["0", "0", "1"]);
        let want: Vec<Record> =
            want.map(|(t, u)| Record { user: Some(u.to_owned()), ..Record::of_text(*t) }).collect();
        for encoding in ENCODINGS {
            std::fs::write(&path, written(&texts, encoding)).unwrap();
            assert_eq!(read(&path, Some("user")).unwrap(), want, "{encoding:?}");
        }
        assert_eq!(read(&path, None).unwrap().len(), 3);
        let missing = read(&path, Some("name")).unwrap_err().to_string();
        assert!(missing.contains("no field \"name\""), "{missing}");
        let wrong = read(&path, Some("extra")).unwrap_err().to_string();
        assert!(wrong.contains("a number where a string is needed"), "{wrong}");
    }

    /// pyarrow 26.0.1 wrote the files, with pages of both versions of the format.
    #[test]
    fn files_of_other_writers_are_read_or_refused_with_what_to_write() {
        let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"));
        let texts = ["one text", "two texts", "é three"];
        for version in ["1.0", "2.0"] {
            let path = fixtures.join(format!("zstd-{version}.parquet"));
            let found: Vec<String> =
                read(&path, None).unwrap().into_iter().map(|record| record.text).collect();
            assert_eq!(found, texts, "{version}");
            #[cfg(not(target_arch = "wasm32"))]
            assert_eq!(row_at(&path, &Files::of([path.clone()]), 1).unwrap(), b"{\"text\":\"two texts\"}");
        }
        let refused = |name| read(&fixtures.join(name), None).unwrap_err().to_string();
        let brotli = refused("brotli.parquet");
        assert!(brotli.contains("BROTLI") && brotli.contains("allowed: snappy, gzip, zstd"), "{brotli}");
        let chats = refused("chats.parquet");
        assert!(
            chats.contains("no column \"text\"") && chats.contains("messages holds lists or groups"),
            "{chats}"
        );
    }

    /// The file has pages of one or a few values, in groups of two rows.
    #[cfg(not(target_arch = "wasm32"))]
    #[test]
    fn every_row_is_read_alone_as_in_order_whatever_the_pages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.parquet");
        let texts: Vec<String> = (0..50).map(|row| format!("text {}", row % 7)).collect();
        let files = Files { user_field: Some("user".to_owned()), ..Files::of([path.clone()]) };
        for (encoding, page, version) in [
            (None, 3, WriterVersion::PARQUET_1_0),
            (Some(Encoding::PLAIN), 1, WriterVersion::PARQUET_2_0),
            (Some(Encoding::DELTA_BYTE_ARRAY), 4, WriterVersion::PARQUET_2_0),
        ] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let properties = properties(encoding).set_data_page_row_count_limit(page);
            let properties = properties.set_write_batch_size(1).set_writer_version(version);
            std::fs::write(&path, written_with(&texts, 20, properties)).unwrap();
            let mut whole = String::new();
            json_lines(File::open(&path).unwrap(), &files).unwrap().read_to_string(&mut whole).unwrap();
            assert_eq!(whole.lines().count(), 50);
            for (row, line) in whole.lines().enumerate() {
                let alone = String::from_utf8(row_at(&path, &files, row as u64).unwrap()).unwrap();
                assert_eq!(alone, line, "{encoding:?} {row}");
            }
            assert!(row_at(&path, &files, 50).unwrap().is_empty());
        }
    }

    #[test]
    fn damaged_files_are_refused_or_read_but_never_end_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.parquet");
        for (encoding, step) in ENCODINGS.into_iter().zip([1, 4, 4]) {
            let whole = written(&["one", "two", "three"], encoding);
            for at in (0..whole.len()).step_by(step) {
                let mut damaged = whole.clone();
                damaged[at] ^= 0xA5;
                std::fs::write(&path, &damaged).unwrap();
                let _ = read(&path, Some("user"));
                #[cfg(not(target_arch = "wasm32"))]
                let _ = row_at(&path, &Files::of([path.clone()]), 2);
            }
            for length in (0..whole.len()).step_by(step) {
                std::fs::write(&path, &whole[..length]).unwrap();
                assert!(read(&path, Some("user")).is_err(), "{length}");
            }
        }
    }

    /// Some of these files take more memory than there is, or more stack, or hours.
    #[test]
    fn hostile_files_are_refused_by_what_they_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.parquet");
        std::fs::write(&path, hostile::sound()).unwrap();
        assert_eq!(read(&path, None).unwrap(), [Record::of_text("a text")]);
        for (name, said, bytes) in hostile::hostile() {
            std::fs::write(&path, bytes).unwrap();
            let records = open(&Source::Files(Files::of([path.clone()])));
            let refused = records.and_then(|mut records| records.try_for_each(|record| record.map(|_| ())));
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(said), "{name}: {refused}");
            assert!(
                column_names(File::open(&path).unwrap()).is_ok_and(|names| names == ["text"])
                    || refused.contains(DAMAGED)
                    || said == "metadata of"
            );
        }
    }

    #[test]
    fn pages_are_read_whatever_their_compression() {
        use parquet::basic::{Compression, GzipLevel};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.parquet");
        let texts: Vec<String> = (0..300).map(|row| format!("text {} of many", row % 70)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let gzip = Compression::GZIP(GzipLevel::default());
        for compression in [gzip, Compression::SNAPPY, Compression::LZ4_RAW, Compression::LZ4] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for encoding in ENCODINGS {
                    let properties = properties(encoding).set_compression(compression);
                    let properties = properties.set_writer_version(version).set_data_page_row_count_limit(9);
                    let properties = properties.set_write_batch_size(1);
                    std::fs::write(&path, written_with(&texts, 100, properties)).unwrap();
                    let found = read(&path, None).unwrap().into_iter().map(|record| record.text);
                    assert!(found.eq(texts.iter().copied()), "{compression:?} {version:?} {encoding:?}");
                    #[cfg(not(target_arch = "wasm32"))]
                    assert_eq!(
                        row_at(&path, &Files::of([path.clone()]), 123).unwrap(),
                        br#"{"text":"text 53 of many"}"#
                    );
                }
            }
        }
    }

    /// The file has a few hundred bytes that would be read for a minute.
    #[test]
    fn more_rows_than_the_file_can_hold_are_refused_before_they_are_read() {
        let of_empty = |rows: usize| {
            let schema =
                Arc::new(parse_message_type("message notes { required binary text (UTF8); }").unwrap());
            let properties = WriterProperties::builder().set_data_page_row_count_limit(usize::MAX);
            let properties = Arc::new(properties.set_write_batch_size(rows).build());
            let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
            let mut group = writer.next_row_group().unwrap();
            let mut texts = group.next_column().unwrap().unwrap();
            texts.typed::<ByteArrayType>().write_batch(&vec![ByteArray::from(""); rows], None, None).unwrap();
            texts.close().unwrap();
            group.close().unwrap();
            writer.into_inner().unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.parquet");
        std::fs::write(&path, of_empty(2_000_000)).unwrap();
        let refused = read(&path, None).map(|records| records.len()).unwrap_err().to_string();
        assert!(refused.contains("states 2000000 rows"), "{refused}");
        std::fs::write(&path, of_empty(20_000)).unwrap();
        assert_eq!(read(&path, None).unwrap().len(), 20_000);
    }

    #[test]
    fn more_values_than_a_page_can_hold_are_refused_before_memory_is_taken_for_them() {
        // The head of a list of lengths has blocks of 128 numbers in 4 parts, the count of numbers, and the first of
        // them.
        let head = |count: &[u8]| [&[0x80, 0x01, 0x04], count, &[0x06]].concat();
        let whole = written(&["one", "two"], Some(Encoding::DELTA_LENGTH_BYTE_ARRAY));
        let sound = head(&[0x02]);
        let at = whole.windows(sound.len()).position(|bytes| bytes == sound).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.parquet");
        let many = head(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        // The file stays as long as before: what follows the head is overwritten.
        let mut damaged = whole;
        damaged[at..at + many.len()].copy_from_slice(&many);
        std::fs::write(&path, &damaged).unwrap();
        let refused = read(&path, None).unwrap_err().to_string();
        assert!(refused.contains(DAMAGED), "{refused}");
    }
}
