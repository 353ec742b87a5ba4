//! Looks at a text that arrives as a stream, such as one that is dropped on a page: its fields, records and users.
//!
//! The counts are those of the text, without noise. They are for the owner of the text alone.

pub(crate) mod usual_names;

use std::collections::HashMap;
use std::io::Read;
#[cfg(feature = "parquet")]
use std::io::Seek;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::corpus::{self, CorpusError, Encoding, Field, FieldKind, Files, Format, Records};

pub use usual_names::{TEXTS, USERS, last_name, likeliest};

/// What the first records of a text have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// How the text is divided into records, by its name.
    pub format: Format,
    /// The encoding: as named, else as the first bytes tell.
    pub encoding: Encoding,
    /// Names of the fields with texts or numbers; empty where a record is a text by itself.
    pub fields: Vec<String>,
    /// The field with lists of messages, if there is one.
    pub messages: Option<String>,
    /// The likeliest field with text.
    pub text: Option<String>,
    /// The likeliest field with users.
    pub user: Option<String>,
}

/// Returns the fields of a text's first records. `name` tells the format; the encoding is that which is named, or which marks tell.
///
/// ```
/// use dp_tokenizer::survey::kind;
/// let text = "id;author;note\n1;ann;fever\n";
/// let found = kind("visits.csv", text.as_bytes(), None).unwrap();
/// assert_eq!((found.text.as_deref(), found.user.as_deref()), (Some("note"), Some("author")));
/// ```
///
/// # Errors
/// [`CorpusError`] if the text cannot be read, or its name does not tell the format.
pub fn kind(
    name: &str,
    text: impl Read + Send + 'static,
    encoding: Option<Encoding>,
) -> Result<Kind, CorpusError> {
    let (marked, text) = corpus::marked_stream(Path::new(name), text)?;
    let encoding = encoding.unwrap_or(marked);
    let (format, found) = corpus::stream_fields(Path::new(name), text, encoding)?;
    Ok(kind_of(format, encoding, found))
}

/// Returns the columns of a table in parquet.
///
/// # Errors
/// [`CorpusError`] if the table cannot be read.
#[cfg(feature = "parquet")]
pub fn kind_of_parquet(name: &str, table: impl Read + Seek + Send + 'static) -> Result<Kind, CorpusError> {
    let found = corpus::parquet_fields(Path::new(name), table)?;
    Ok(kind_of(Format::Parquet, Encoding::Utf8, found))
}

fn kind_of(format: Format, encoding: Encoding, found: Vec<Field>) -> Kind {
    let is_messages = |field: &&Field| match &field.kind {
        FieldKind::Objects(names) => {
            ["role", "content"].iter().all(|key| names.iter().any(|name| name == key))
        }
        _ => false,
    };
    let messages = found.iter().find(is_messages).map(|field| field.name.clone());
    let values = |field: Field| (field.kind == FieldKind::Value).then_some(field.name);
    let fields: Vec<String> = found.into_iter().filter_map(values).collect();
    let text = likeliest(&fields, &TEXTS);
    let user = likeliest(&fields, &USERS).filter(|user| Some(user) != text.as_ref());
    Kind { format, encoding, fields, messages, text, user }
}

/// Which fields of a text are counted, and how it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The field with the text; `None` where a record is a text by itself.
    pub text: Option<String>,
    /// Whether the text is the JSON of its field, as lists of messages are.
    pub text_is_json: bool,
    /// The field with the user.
    pub user: Option<String>,
    /// The encoding of the text.
    #[serde(default)]
    pub encoding: Encoding,
}

/// Counts of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Records.
    pub records: u64,
    /// Users and their records, if a field has users.
    pub users: Option<Users>,
    /// Words, by white space.
    pub words: u64,
    /// Bytes of text in UTF-8.
    pub bytes: u64,
    /// Lines in which invalid UTF-8 was replaced.
    pub replaced_lines: u64,
}

/// Users, and how many records they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// Distinct users.
    pub count: u64,
    /// The number of records that half of the users do not exceed.
    pub half: u64,
    /// The number of records that nine tenths of the users do not exceed.
    pub nine_tenths: u64,
    /// The largest number of records of one user.
    pub most: u64,
}

impl Wanted {
    fn files(&self, name: &str) -> Files {
        let defaults = Files::of([name.into()]);
        Files {
            text_field: self.text.clone().unwrap_or_else(|| defaults.text_field.clone()),
            text_is_json: self.text_is_json,
            user_field: self.user.clone(),
            encoding: self.encoding,
            ..defaults
        }
    }
}

/// Opens a text that is no file, such as one of a browser, and reads up to its first record.
///
/// # Errors
/// [`CorpusError`] if the text cannot be read, or a record has not the wanted fields.
pub fn open(name: &str, text: impl Read + Send + 'static, wanted: &Wanted) -> Result<Records, CorpusError> {
    corpus::open_stream(text, wanted.files(name))
}

/// Opens a table in parquet as [`open`] does a text.
///
/// # Errors
/// As [`open`].
#[cfg(feature = "parquet")]
pub fn open_parquet(
    name: &str,
    table: impl Read + Seek + Send + 'static,
    wanted: &Wanted,
) -> Result<Records, CorpusError> {
    corpus::open_parquet(table, wanted.files(name))
}

/// Counts the records and users of a text. Memory: the distinct users.
///
/// ```
/// use dp_tokenizer::survey::{Users, Wanted, open, survey};
/// let text = "who,said\nann,a b\nann,c\nbob,d\n";
/// let wanted = Wanted { text: Some("said".into()), user: Some("who".into()), ..Wanted::default() };
/// let found = survey(open("talk.csv", text.as_bytes(), &wanted).unwrap()).unwrap();
/// assert_eq!((found.records, found.words), (3, 4));
/// assert_eq!(found.users, Some(Users { count: 2, half: 1, nine_tenths: 2, most: 2 }));
/// ```
///
/// # Errors
/// [`CorpusError`] if the text cannot be read on, or a record has not the wanted fields.
pub fn survey(mut records: Records) -> Result<Survey, CorpusError> {
    let mut found = Survey { records: 0, users: None, words: 0, bytes: 0, replaced_lines: 0 };
    let mut of_user: HashMap<String, u64> = HashMap::new();
    for record in &mut records {
        let record = record?;
        found.records += 1;
        found.words += record.text.split_whitespace().count() as u64;
        found.bytes += record.text.len() as u64;
        if let Some(user) = record.user {
            *of_user.entry(user).or_default() += 1;
        }
    }
    found.replaced_lines = records.replaced_lines();
    found.users = users(of_user.into_values().collect());
    Ok(found)
}

fn users(mut records: Vec<u64>) -> Option<Users> {
    records.sort_unstable();
    let at = |share: usize| records.get((records.len() * share).div_ceil(10).saturating_sub(1)).copied();
    Some(Users { count: records.len() as u64, half: at(5)?, nine_tenths: at(9)?, most: at(10)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text as a page has it, with the figures that the trainer's reading of the file gives.
    #[test]
    fn a_stream_has_the_fields_and_counts_of_its_file() {
        let lines = "{\"body\": \"a b\", \"meta\": {\"user_id\": 7}}\n\n{\"body\": \"c\", \"meta\": {\"user_id\": \"7\"}}\n\
                     {\"body\": \"d\", \"meta\": {\"user_id\": 8}}\n";
        let array = format!("[{}]", lines.trim().replace("\n\n", "\n").replace('\n', ","));
        for (name, text) in [("a.jsonl", lines.to_owned()), ("a.json", array)] {
            let found = kind(name, std::io::Cursor::new(text.clone().into_bytes()), None).unwrap();
            assert_eq!((found.text.as_deref(), found.user.as_deref()), (Some("body"), Some("meta.user_id")));
            let wanted = Wanted { text: found.text, user: found.user, ..Wanted::default() };
            let counts =
                survey(open(name, std::io::Cursor::new(text.into_bytes()), &wanted).unwrap()).unwrap();
            assert_eq!((counts.records, counts.words, counts.bytes), (3, 4, 5), "{name}");
            assert_eq!(counts.users, Some(Users { count: 2, half: 1, nine_tenths: 2, most: 2 }), "{name}");
        }
        let utf16: Vec<u8> =
            "\u{FEFF}who;said\nann;für\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let found = kind("a.csv", std::io::Cursor::new(utf16.clone()), None).unwrap();
        assert_eq!(
            (found.encoding, found.fields),
            (Encoding::Utf16, vec!["who".to_owned(), "said".to_owned()])
        );
        let wanted = Wanted { text: Some("said".to_owned()), encoding: found.encoding, ..Wanted::default() };
        let counts = survey(open("a.csv", std::io::Cursor::new(utf16), &wanted).unwrap()).unwrap();
        assert_eq!((counts.records, counts.bytes, counts.replaced_lines), (1, 4, 0));
        let found = kind("notes.txt", "one\n\ntwo\n".as_bytes(), None).unwrap();
        assert_eq!((found.format, found.fields.len(), found.text), (Format::Text, 0, None));
        assert_eq!(
            survey(open("notes.txt", "one\n\ntwo\n".as_bytes(), &Wanted::default()).unwrap())
                .unwrap()
                .records,
            2
        );
        let chats = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"customer\": \"c1\"}\n";
        let found = kind("chats.jsonl", chats.as_bytes(), None).unwrap();
        assert_eq!((found.messages.as_deref(), found.text), (Some("messages"), None));
        let wanted =
            Wanted { text: found.messages, text_is_json: true, user: found.user, ..Wanted::default() };
        assert_eq!(
            survey(open("chats.jsonl", chats.as_bytes(), &wanted).unwrap()).unwrap().users.unwrap().count,
            1
        );
    }

    /// A name in Windows-1252 is read when that is named, and never guessed.
    #[test]
    fn windows_1252_is_read_where_it_is_named() {
        let table = b"Name;Gr\xF6\xDFe\nann;f\xFCnf\n";
        let found = kind("a.csv", &table[..], Some(Encoding::Windows1252)).unwrap();
        assert_eq!(found.fields, ["Name", "Größe"]);
        let wanted =
            Wanted { text: Some("Größe".to_owned()), encoding: found.encoding, ..Wanted::default() };
        let records = open("a.csv", &table[..], &wanted).unwrap();
        assert_eq!(records.map(|record| record.unwrap().text).collect::<Vec<_>>(), ["fünf"]);
        let other = kind("a.csv", &table[..], None).unwrap();
        assert!(other.encoding == Encoding::Utf8 && !other.fields.contains(&"Größe".to_owned()));
    }

    /// The file's text comes through [`open`] from the disk, and through a stream here.
    #[cfg(feature = "parquet")]
    #[test]
    fn a_table_in_parquet_has_the_columns_and_records_of_its_file() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/zstd-2.0.parquet");
        let table = || std::io::Cursor::new(std::fs::read(path).unwrap());
        let found = kind_of_parquet("a.parquet", table()).unwrap();
        assert_eq!((found.format, found.text.as_deref()), (Format::Parquet, Some("text")));
        let wanted = Wanted { text: found.text, ..Wanted::default() };
        let records = open_parquet("a.parquet", table(), &wanted).unwrap();
        let from_disk = corpus::open(&corpus::Source::files([path.into()])).unwrap();
        assert!(records.map(Result::unwrap).eq(from_disk.map(Result::unwrap)));
        assert_eq!(survey(open_parquet("a.parquet", table(), &wanted).unwrap()).unwrap().records, 3);
        let missing = Wanted { text: Some("note".to_owned()), ..Wanted::default() };
        let message = open_parquet("a.parquet", table(), &missing).err().unwrap().to_string();
        assert!(message.contains("a.parquet: no column \"note\""), "{message}");
    }

    #[test]
    fn what_cannot_be_read_is_said_with_the_name_of_the_text_and_no_text() {
        for (name, text, want) in [
            ("a.pdf", &b"%PDF"[..], "convert it first"),
            ("a", b"text\n", "does not tell the format"),
            ("a.txt", b"", "no record found"),
            ("a.txt", b"\xFF\xFEa\0", "UTF-16"),
            ("a.csv", b"who,said\nann,\"Secret\n", "never closed"),
            ("a.jsonl", b"Secret\n", "not JSON"),
            ("a.parquet", b"PAR1", "parquet"),
        ] {
            let wanted = Wanted { text: Some("said".to_owned()), ..Wanted::default() };
            let message = open(name, text, &wanted).and_then(survey).err().unwrap().to_string();
            assert!(message.contains(want) && !message.contains("Secret"), "{name}: {message}");
        }
    }
}
