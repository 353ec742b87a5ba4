//! `init` on forty shapes of files as people have them: the right fields and task, or a question that names the option; never a guess.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

/// A word of every text. No plan and no message may contain it.
const SECRET: &str = "Xylophonist";

/// What `init` makes of a file.
enum Outcome {
    /// A plan with these values, by place.
    Right(&'static [(&'static str, &'static str)]),
    /// A refusal with these words, one of which names an option or a command.
    Asked(&'static [&'static str]),
}

use Outcome::{Asked, Right};

struct Shape {
    file: &'static str,
    contents: Vec<u8>,
    options: &'static str,
    outcome: Outcome,
}

fn shape(file: &'static str, contents: impl AsRef<[u8]>, options: &'static str, outcome: Outcome) -> Shape {
    Shape { file, contents: contents.as_ref().to_vec(), options, outcome }
}

/// A line for each of 30 records; `{}` is the place of the secret word.
fn lines(head: &str, record: &str) -> String {
    let record = |at: usize| record.replace("{}", &format!("{SECRET} {at}")).replace("{n}", &at.to_string());
    head.to_owned() + &(0..30).map(record).collect::<String>()
}

fn compressed(text: &str) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap()
}

fn utf16(text: &str) -> Vec<u8> {
    [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

/// A table in Windows-1252.
fn latin() -> Vec<u8> {
    [&b"text\n"[..], &[b'x', 0xE9, b'\n'].repeat(30)].concat()
}

const TEXT: &[(&str, &str)] = &[("/data/text_field", "text"), ("/training/objective", "causal_lm")];
const BODY: &[(&str, &str)] = &[("/data/text_field", "body"), ("/data/user_field", "author")];
const PLAIN: &[(&str, &str)] = &[("/training/objective", "causal_lm")];
const SYNTHETIC: &[(&str, &str)] = &[
    ("/data/text_field", "label"),
    ("/data/target_field", "text"),
    ("/data/label_separator", ","),
    ("/data/label_histogram/labels/1", "27"),
    ("/training/objective", "text_to_text"),
    ("/tokenizer/train/words", "pairs_by_label"),
];

fn tables() -> Vec<Shape> {
    let goemotions = lines("", "{}\t{n}\teebbqej\n");
    let columns = "--columns text,label,id";
    vec![
        shape("comma.csv", lines("author,body\n", "u{n},\"{}, again\"\n"), "--unit record", Right(BODY)),
        shape("semicolon.csv", lines("author;body\n", "u{n};{}\n"), "--unit record", Right(BODY)),
        shape("pipe.csv", lines("author|body\n", "u{n}|{}\n"), "--unit record", Right(BODY)),
        shape("tabs.csv", lines("author\tbody\n", "u{n}\t{}\n"), "--unit record", Right(BODY)),
        shape("bom.csv", lines("\u{feff}text,n\n", "{},{n}\n"), "", Right(TEXT)),
        shape("crlf.csv", lines("text,n\r\n", "{},{n}\r\n"), "", Right(TEXT)),
        shape("capital.csv", lines("Text,N\n", "{},{n}\n"), "", Right(&[("/data/text_field", "Text")])),
        shape("quoted.csv", lines("text\n", "\"{}\nsecond \"\"line\"\"\"\n"), "", Right(TEXT)),
        shape("table.tsv", lines("text\tn\n", "{}\t{n}\n"), "", Right(TEXT)),
        shape("index.csv", lines(",text\n", "{n},{}\n"), "", Right(TEXT)),
        shape("german.csv", lines("Notiz;Patient\n", "{};p{n}\n"), "", Asked(&["--text-field", "--columns"])),
        shape("german.csv", lines("Notiz;Patient\n", "{};p{n}\n"), "--text-field Notiz", Right(PLAIN)),
        shape("numbers.csv", lines("", "{n},{}\n"), "", Asked(&["--columns", "all 2"])),
        shape("words.csv", lines("", "{},good\n"), "", Asked(&["--text-field", "--columns"])),
        shape("twice.csv", lines("text,text\n", "{},{}\n"), "", Asked(&["--columns"])),
        shape("years.tsv", lines("2019\t2020\n", "{}\t{n}\n"), "", Asked(&["--columns"])),
        shape("train.tsv", &goemotions, "", Asked(&["--columns", "all 3"])),
        shape("train.tsv", &goemotions, columns, Asked(&["--task", "classification", "synthesis"])),
        shape(
            "train.tsv",
            &goemotions,
            "--columns text,label,id --task synthesis --labels 2,27 --label-separator ,",
            Right(SYNTHETIC),
        ),
        shape("train.tsv", &goemotions, "--columns text,label,id --task synthesis", Asked(&["--labels"])),
        shape("labels.csv", lines("text,label\n", "{},good\n"), "", Asked(&["--task", "language-model"])),
        shape("header.csv", "text,author\n", "", Asked(&["header.csv"])),
        shape("latin.csv", latin(), "", Asked(&["latin.csv is not UTF-8", "--encoding windows-1252"])),
        shape(
            "latin.csv",
            latin(),
            "--encoding windows-1252",
            Right(&[("/data/text_field", "text"), ("/data/encoding", "windows-1252")]),
        ),
        shape(
            "utf16.csv",
            utf16(&lines("text\n", "{}\n")),
            "",
            Right(&[("/data/text_field", "text"), ("/data/encoding", "utf-16")]),
        ),
        shape("table.csv.gz", compressed(&lines("text\n", "{}\n")), "", Right(TEXT)),
    ]
}

fn chats() -> Vec<Shape> {
    let turns =
        "[{\"role\": \"user\", \"content\": \"{}\"}, {\"role\": \"assistant\", \"content\": \"Yes\"}]";
    let share_gpt = "{\"conversations\": [{\"from\": \"human\", \"value\": \"{}\"}]}\n";
    let messages = format!("{{\"customer\": \"c{{n}}\", \"messages\": {turns}}}\n");
    let both = format!("{{\"text\": \"{{}}\", \"messages\": {turns}}}\n");
    vec![
        shape("chats.jsonl", lines("", &messages), "--unit record", Asked(&["--checkpoint", "chat"])),
        shape("both.jsonl", lines("", &both), "", Asked(&["--task", "chat", "language-model"])),
        shape("share.jsonl", lines("", share_gpt), "", Asked(&["\"role\" and \"content\""])),
        shape("bare.jsonl", lines("", &format!("{turns}\n")), "", Asked(&["bare.jsonl"])),
    ]
}

fn objects() -> Vec<Shape> {
    let alpaca = "{\"instruction\": \"{}\", \"input\": \"a\", \"output\": \"b\"}\n";
    let array = format!("[{}]", lines("", "{\"text\": \"{}\"},\n").trim_end_matches(",\n"));
    vec![
        shape("plain.jsonl", lines("", "{\"text\": \"{}\"}\n"), "", Right(TEXT)),
        shape(
            "nested.jsonl",
            lines("", "{\"id\": {n}, \"note\": {\"text\": \"{}\"}}\n"),
            "",
            Right(&[("/data/text_field", "note.text")]),
        ),
        shape("array.json", array, "", Right(TEXT)),
        shape(
            "inside.json",
            lines("{\"data\": [", "{\"text\": \"{}\"},") + "{\"text\": \"a\"}]}",
            "",
            Asked(&["inside.json"]),
        ),
        shape(
            "pairs.jsonl",
            lines("", "{\"prompt\": \"{}\", \"completion\": \"b\"}\n"),
            "",
            Asked(&["--task", "text-to-text"]),
        ),
        shape("alpaca.jsonl", lines("", alpaca), "", Asked(&["--task", "text-to-text"])),
        shape(
            "sources.jsonl",
            lines("", "{\"source\": \"{}\", \"target\": \"b\"}\n"),
            "--task text-to-text",
            Asked(&["--checkpoint"]),
        ),
        shape(
            "labels.jsonl",
            lines("", "{\"review\": \"{}\", \"stars\": {n}}\n"),
            "",
            Asked(&["--task", "classification"]),
        ),
        shape(
            "lists.jsonl",
            lines("", "{\"text\": \"{}\", \"labels\": [\"a\"]}\n"),
            "",
            Asked(&["--task", "multi-label"]),
        ),
        shape(
            "tags.jsonl",
            lines("", "{\"tokens\": [\"{}\"], \"ner_tags\": [\"O\"]}\n"),
            "",
            Asked(&["--labels"]),
        ),
        shape("broken.jsonl", lines("", "{\"text\": \"{}\"}\n") + "{\"text\":", "", Asked(&["line 31"])),
        shape("mentions.iob", lines("", "{}\tO\nwas\tO\n\n"), "", Asked(&["--labels"])),
        shape("mentions.iob", lines("", "{}\tO\nwas\tO\n\n"), "--labels O,B-X", Asked(&["--checkpoint"])),
    ]
}

fn texts() -> Vec<Shape> {
    vec![
        shape("lines.txt", lines("", "{}\n"), "", Right(PLAIN)),
        shape("script.txt", lines("", "User: {}\nBot: yes\n"), "", Right(PLAIN)),
        shape("lines.txt.gz", compressed(&lines("", "{}\n")), "", Right(PLAIN)),
        shape("empty.txt", "", "", Asked(&["the file is empty"])),
        shape("utf16.txt", utf16("Hello all of you"), "", Right(&[("/data/encoding", "utf-16")])),
        shape("table.xlsx", b"PK\x03\x04 sheet", "", Asked(&["convert it first"])),
        shape("archive.txt", b"PK\x03\x04 text", "", Asked(&["extract it first"])),
        shape("records.dat", lines("", "{}\n"), "", Asked(&["records.dat"])),
        shape("records.parquet", b"PAR1 short", "", Asked(&["parquet"])),
        shape("notes/scan.pdf", b"%PDF-1.7", "notes", Asked(&["files that are not .txt"])),
        shape("notes/a.txt", lines("", "{}\n"), "notes", Right(PLAIN)),
    ]
}

/// Tables that pyarrow wrote, with `pq.write_table(table, file, store_schema=False)`.
#[cfg(feature = "parquet")]
fn parquets() -> Vec<Shape> {
    macro_rules! written {
        ($file:literal, $outcome:expr) => {
            shape($file, include_bytes!(concat!("fixtures/", $file)), "--unit record", $outcome)
        };
    }
    vec![
        written!("mails.parquet", Right(BODY)),
        written!("reviews.parquet", Asked(&["--task", "classification"])),
        written!("instructions.parquet", Asked(&["--task", "text-to-text"])),
        written!("messages.parquet", Asked(&["\"messages\" holds lists or groups", "JSON lines"])),
        written!("tags.parquet", Asked(&["--labels"])),
        written!("nested.parquet", Asked(&["note holds lists or groups", "JSON lines"])),
    ]
}

#[cfg(not(feature = "parquet"))]
fn parquets() -> Vec<Shape> {
    vec![shape("records.parquet", include_bytes!("fixtures/mails.parquet"), "", Asked(&["parquet"]))]
}

/// Runs `init` on the shape without a terminal. A shape in a folder is given as the folder.
fn check(shape: &Shape) {
    let Shape { file, contents, options, outcome } = shape;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, contents).unwrap();
    let given = Path::new(file).parent().filter(|parent| !parent.as_os_str().is_empty());
    let options =
        options.split_whitespace().filter(|option| given.is_none_or(|given| Path::new(option) != given));
    let given = given.unwrap_or(Path::new(file));
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command
        .current_dir(folder.path())
        .arg("init")
        .arg(given)
        .args(["--units", "30", "--epsilon", "8"])
        .args(options);
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let plan = std::fs::read_to_string(folder.path().join("plan.json"));
    assert!(!told.contains(SECRET) && !told.contains("panicked"), "{file}: {told}");
    match outcome {
        Right(values) => {
            assert!(output.status.success(), "{file}: {told}");
            let text = plan.unwrap();
            assert!(!text.contains(SECRET), "{file}: {text}");
            let plan: Value = serde_json::from_str(&text).unwrap();
            for (place, value) in *values {
                assert_eq!(plan.pointer(place), Some(&Value::from(*value)), "{file}: {place}: {text}");
            }
        }
        Asked(words) => {
            assert_eq!(output.status.code(), Some(2), "{file}: {told}");
            assert!(plan.is_err(), "{file} left a plan");
            let last = told.lines().last().unwrap();
            words.iter().for_each(|word| assert!(last.contains(word), "{file}: «{word}» is not in: {told}"));
        }
    }
}

#[test]
fn every_shape_of_a_file_gives_the_right_plan_or_a_question() {
    let shapes: Vec<Shape> =
        [tables(), objects(), chats(), texts(), parquets()].into_iter().flatten().collect();
    assert!(shapes.len() >= 40, "{}", shapes.len());
    shapes.iter().for_each(check);
}
