//! Tests of every form of file that a user may bring, good and bad.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::io::Write;
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{
    BadUtf8, CorpusError, Encoding, Files, Format, LikelyEncoding, Source, likely_encoding, open,
};

mod common;
use common::{gzip, zstd};

fn file(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn texts(source: &Source) -> Result<Vec<String>, CorpusError> {
    open(source)?.map(|r| r.map(|r| r.text)).collect()
}

#[test]
fn each_form_gives_the_same_records() {
    let dir = tempfile::tempdir().unwrap();
    let text = "first line\n\n  \nsecond é line\r\nlast".as_bytes();
    let json =
        b"{\"text\":\"first line\"}\n{\"a\":[1,{}],\"text\":\"second \\u00e9 line\"}\n\n{\"text\":\"last\"}"
            .as_slice();
    let array = "[\"first line\", {\"text\":\"second é line\"},\n{\"text\":\"last\"}]".as_bytes();
    let two_frames = [zstd(&text[..11]), zstd(&text[11..])].concat();
    let two_members = [gzip(&text[..11]), gzip(&text[11..])].concat();
    let paths = [
        file(dir.path(), "a.txt", text),
        file(dir.path(), "b.TEXT", text),
        file(dir.path(), "a.txt.gz", &gzip(text)),
        file(dir.path(), "b.txt.gz", &two_members),
        file(dir.path(), "a.txt.zst", &two_frames),
        file(dir.path(), "a.jsonl", json),
        file(dir.path(), "a.ndjson.gz", &gzip(json)),
        file(dir.path(), "a.json", array),
        file(dir.path(), "a.json.zst", &zstd(array)),
        file(dir.path(), "A.JSONL.ZST", &zstd(json)),
        file(dir.path(), "bom.txt", &[b"\xEF\xBB\xBF", text].concat()),
    ];
    for path in &paths {
        let got = texts(&Source::files([path.clone()])).unwrap();
        assert_eq!(got, ["first line", "second é line", "last"], "{}", path.display());
    }
    assert_eq!(texts(&Source::files(paths)).unwrap().len(), 33);
}

/// Text, a table, JSON lines, an array and a folder in UTF-16 and Windows-1252 have the records of their UTF-8.
#[test]
fn named_encodings_are_read_in_each_format() {
    let folder = tempfile::tempdir().unwrap();
    let shapes = [
        ("a.txt", "Müller schläft\r\n\r\n„gut“ für 5 €\r\n"),
        ("a.csv", "id;text\r\n1;\"Müller\r\nschläft\"\r\n2;5 €\r\n"),
        ("a.tsv", "id\ttext\n1\tfür „5“ €\n"),
        ("a.jsonl", "{\"text\": \"Müller\"}\n{\"text\": \"5 €\"}\n"),
        ("a.json", "[{\"text\": \"Müller\"}, \"5 €\"]"),
        ("folder/a.txt", "Müller\nschläft"),
    ];
    let utf16 = |text: &str, little: bool| -> Vec<u8> {
        let order = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        format!("\u{FEFF}{text}").encode_utf16().flat_map(order).collect()
    };
    let windows = |text: &str| -> Vec<u8> {
        let byte = |c| match c {
            '€' => 0x80,
            '„' => 0x84,
            '“' => 0x93,
            c => u8::try_from(u32::from(c)).unwrap(),
        };
        text.chars().map(byte).collect()
    };
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    for (name, text) in shapes {
        let file = folder.path().join(name);
        let path = if name.contains('/') { folder.path().join("folder") } else { file.clone() };
        let read = |bytes: Vec<u8>, encoding| {
            std::fs::write(&file, bytes).unwrap();
            texts(&Source::Files(Files { encoding, bad_utf8: BadUtf8::Refuse, ..Files::of([path.clone()]) }))
        };
        let want = read(text.as_bytes().to_vec(), Encoding::Utf8).unwrap();
        assert_eq!(likely_encoding(&path).unwrap(), LikelyEncoding::Certain(Encoding::Utf8));
        for little in [true, false] {
            assert_eq!(read(utf16(text, little), Encoding::Utf16).unwrap(), want, "{name}");
            assert_eq!(likely_encoding(&path).unwrap(), LikelyEncoding::Certain(Encoding::Utf16));
            let refused = read(utf16(text, little), Encoding::Utf8).unwrap_err().to_string();
            assert!(refused.contains("UTF-16") && refused.contains("--encoding utf-16"), "{name}: {refused}");
        }
        assert_eq!(read(windows(text), Encoding::Windows1252).unwrap(), want, "{name}");
        assert_eq!(likely_encoding(&path).unwrap(), LikelyEncoding::PerhapsWindows1252);
        let refused = read(windows(text), Encoding::Utf8).unwrap_err().to_string();
        assert!(refused.contains("--encoding windows-1252"), "{name}: {refused}");
        let undefined = windows(text).iter().map(|byte| if *byte == 0xFC { 0x81 } else { *byte }).collect();
        let refused = read(undefined, Encoding::Windows1252);
        assert!(refused.is_err(), "{name}");
    }
    // A fault is named by its encoding and line.
    let path = folder.path().join("a.txt");
    std::fs::write(&path, b"one\ntwo \x81\n").unwrap();
    let named =
        |encoding| Source::Files(Files { encoding, bad_utf8: BadUtf8::Refuse, ..Files::of([path.clone()]) });
    let refused = texts(&named(Encoding::Windows1252)).unwrap_err().to_string();
    assert!(refused.contains("a.txt, line 2: not valid windows-1252"), "{refused}");
    let refused = texts(&named(Encoding::Utf16)).unwrap_err().to_string();
    assert!(refused.contains("it holds text without the marks of UTF-16; name its encoding"), "{refused}");
    let refused = texts(&named(Encoding::Utf8)).unwrap_err().to_string();
    assert!(refused.contains("line 2: not valid UTF-8; convert"), "{refused}");
}

#[test]
fn bad_utf8_is_replaced_and_counted_or_refused_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "latin1.txt", b"good\ncaf\xe9\n");
    let mut records = open(&Source::files([path.clone()])).unwrap();
    let all: Vec<_> = records.by_ref().map(|r| r.unwrap().text).collect();
    assert_eq!((all[1].as_str(), records.replaced_lines()), ("caf\u{FFFD}", 1));

    let strict =
        Source::Files(Files { format: Format::Text, bad_utf8: BadUtf8::Refuse, ..Files::of([path]) });
    let error = texts(&strict).unwrap_err();
    assert!(error.to_string().contains("latin1.txt, line 2: not valid UTF-8"), "{error}");
}

#[test]
fn a_line_of_a_gigabyte_is_refused_by_file_and_line_without_being_held() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.txt");
    let out = std::fs::File::create(&path).unwrap();
    (&out).write_all("short\n".repeat(20_000).as_bytes()).unwrap();
    out.set_len(1 << 30).unwrap(); // a sparse file: one line of a gigabyte of zero bytes
    let error = texts(&Source::files([path])).unwrap_err();
    assert!(matches!(error, CorpusError::LineTooLong { line: 20_001, .. }), "{error}");
    assert!(error.to_string().contains("long.txt, line 20001: longer than 67108864 bytes"), "{error}");
}

#[test]
fn what_cannot_be_read_is_refused_with_a_fix() {
    let dir = tempfile::tempdir().unwrap();
    let cut = gzip(&b"many words ".repeat(10_000));
    for (name, bytes, expected) in [
        ("empty.txt", b"".as_slice(), "no record found"),
        ("blank.txt", b"\n \n\t\r\n", "no record found"),
        (
            "t.parquet",
            b"PAR1",
            if cfg!(feature = "parquet") { "file too small" } else { ".parquet files are not read" },
        ),
        ("object.json", b"{\"a\": [{\"text\": \"a\"}]}", "line 1: not a JSON array"),
        ("noextension", b"a\n", "the name does not tell the format"),
        ("notes.md", b"a\n", "the name does not tell the format"),
        ("zeros.txt", b"a\nb\0", "binary data"),
        ("table.csv.gz", &gzip(b"\x89PNG\r\n\0"), "binary data"),
        ("table.csv", b"body,n\na,1", "no column \"text\""),
        ("table.TSV.gz", &gzip(b"body\tn"), "no column \"text\""),
        (
            "utf16.txt",
            b"\xFF\xFEa\0b\0",
            "it holds UTF-16 text; name that (--encoding utf-16; in a plan data.encoding), or convert it",
        ),
        ("bare.txt", b"a\0b\0c\0d\0\n\0", "it holds UTF-16 text"),
        ("zipped.txt", &gzip(b"a"), "end its name with .gz"),
        ("twice.txt.gz", &gzip(&gzip(b"a")), "end its name with .gz once for each time"),
        ("archive.txt", b"PK\x03\x04", "a zip archive"),
        ("user.jsonl", b"{\"text\": null}", "the text is null"),
        ("cut.txt.gz", &cut[..cut.len() / 2], "cut off or damaged"),
        ("not.txt.zst", b"plain text", "cut off or damaged"),
        ("wrong.jsonl", b"{\"text\": \"a\"}\nhello", "line 2: not JSON at column 1"),
        ("field.jsonl", b"{\"body\": \"a\"}", "no field \"text\"; name the field"),
    ] {
        let error = texts(&Source::files([file(dir.path(), name, bytes)])).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(name), "{name}: {error}");
    }
    let missing = texts(&Source::files([dir.path().join("nowhere.txt")])).unwrap_err().to_string();
    assert!(missing.contains("nowhere.txt: No such file"), "{missing}");
    let pattern = texts(&Source::files([dir.path().join("*.txt")])).unwrap_err().to_string();
    assert!(pattern.contains("patterns are not expanded here"), "{pattern}");
    let folder = texts(&Source::files([dir.path().to_owned()])).unwrap_err().to_string();
    assert!(folder.contains("is a folder"), "{folder}");
    assert!(matches!(texts(&Source::files([])), Err(CorpusError::Empty { .. })));
    assert!(matches!(texts(&Source::Embedded { records: 0, seed: 1 }), Err(CorpusError::Empty { .. })));
}

/// JSON may hold one half of a surrogate pair, which Python's `json` reads and writes, and which is no character.
#[test]
fn halves_of_surrogate_pairs_are_named_and_replaced_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let read = |name: &str, line: &str, bad_utf8| {
        let path = file(dir.path(), name, format!("{line}\n").as_bytes());
        texts(&Source::Files(Files { bad_utf8, ..Files::of([path]) }))
    };
    for (line, column, replaced) in [
        (r#"{"text": "bad \ud83d lone"}"#, 15, "bad \u{fffd} lone"),
        (r#"{"text": "rev \ude00\ud83d"}"#, 15, "rev \u{fffd}\u{fffd}"),
        (r#"{"text": "\ud83d\u0041"}"#, 11, "\u{fffd}A"),
        (r#"{"text": "\\\uD83D\n\ud83d\ude00"}"#, 13, "\\\u{fffd}\n😀"),
    ] {
        let refused = read("a.jsonl", line, BadUtf8::Refuse).unwrap_err().to_string();
        let wanted = format!("line 1: half of a surrogate pair at column {column},");
        assert!(refused.contains(&wanted) && !refused.contains("d83d"), "{refused}");
        assert_eq!(read("a.jsonl", line, BadUtf8::Replace).unwrap(), [replaced]);
        let refused = read("a.json", &format!("[{line}]"), BadUtf8::Refuse).unwrap_err().to_string();
        assert!(refused.contains("element 1: half of a surrogate pair"), "{refused}");
    }
    // These lines have whole pairs, and a backslash before what looks like an escape.
    for (line, text) in [(r#"{"text": "\ud83d\ude00"}"#, "😀"), (r#"{"text": "\\ud83d"}"#, r"\ud83d")] {
        assert_eq!(read("a.jsonl", line, BadUtf8::Refuse).unwrap(), [text]);
    }
    let refused = read("a.jsonl", r#"{"text": "\ud83"}"#, BadUtf8::Replace).unwrap_err().to_string();
    assert!(refused.contains("not JSON at column"), "{refused}");
}

#[test]
fn a_missing_last_file_is_refused_before_the_first_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(dir.path(), "good.txt", b"x\n");
    assert!(open(&Source::files([good, dir.path().join("gone.txt")])).is_err());
}

/// JSON Lines that are declared to be text would be read line by line, braces and all.
#[test]
fn json_lines_declared_to_be_text_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "a.jsonl", b"{\"text\": \"a\"}\n");
    let declared =
        |format, path: &Path| texts(&Source::Files(Files { format, ..Files::of([path.to_owned()]) }));
    let error = declared(Format::Text, &path).unwrap_err().to_string();
    assert!(error.contains(".jsonl files are not read as text"), "{error}");
    let lines = file(dir.path(), "lines.json", b"{\"text\": \"a\"}\n");
    assert_eq!(declared(Format::Jsonl, &lines).unwrap(), ["a"]);
    let table = file(dir.path(), "a.csv", b"one record, with a comma\n");
    assert_eq!(declared(Format::Text, &table).unwrap(), ["one record, with a comma"]);
}

/// A few kilobytes that unpack to endless blank lines are refused in a moment, line by line and in blocks.
#[test]
fn a_bomb_of_blank_lines_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bomb = gzip(&vec![b'\n'; 1 << 26]);
    assert!(bomb.len() < 1 << 20);
    let source = Source::files([file(dir.path(), "bomb.txt.gz", &bomb)]);
    let error = texts(&source).unwrap_err();
    assert!(matches!(error, CorpusError::TooManyBlankLines { .. }), "{error}");
    let counted = dp_tokenizer::count::UnitItems::read(
        &source,
        dp_tokenizer::unit::PrivacyUnit::Record,
        dp_tokenizer::count::Words::ByClass,
        &dp_tokenizer::count::CountOptions::default(),
    );
    assert!(counted.err().unwrap().to_string().contains("blank lines in a row"));
}

#[test]
fn reading_stops_when_it_is_told_to() {
    static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "a.txt", "line\n".repeat(1000).as_bytes());
    let progress = dp_tokenizer::corpus::ReadProgress::stopped_by(&STOP);
    let mut records = open(&Source::Files(Files { progress, ..Files::of([path]) })).unwrap();
    assert!(records.nth(10).unwrap().is_ok());
    STOP.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(records.next(), Some(Err(CorpusError::Stopped))));
}

/// A pipe would hang, or give the second reading nothing.
#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe.txt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe, PathBuf::from("/dev/zero")] {
        let error = texts(&Source::files([path])).unwrap_err().to_string();
        assert!(error.contains("is a pipe or a device"), "{error}");
    }
}
