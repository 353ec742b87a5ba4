//! Files that were made to exhaust a machine. Each is refused, or read, within memory and time in proportion to its size.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

mod common;
#[path = "../../tests/src/limited.rs"]
mod limited;
use common::{gzip, path, text, zstd};

/// The memory that a process may map, in KiB, and the time that it may take.
const MEMORY: u64 = 1_500_000;
const TIME: Duration = Duration::from_secs(10);

/// A file, and the command that reads it, in which `{}` stands for the file's path.
struct Hostile {
    name: &'static str,
    file: &'static str,
    bytes: Vec<u8>,
    command: &'static str,
    input: &'static str,
}

const ENCODE: &str = "encode --tokenizer {}";
const COUNT: &str = "train --public --model byte --vocab-size 300 --out {}.vocabulary --input {}";
const TRAIN: &str = "train --public --vocab-size 400 --out {}.vocabulary --input {}";

fn hostile(
    name: &'static str,
    file: &'static str,
    bytes: impl Into<Vec<u8>>,
    command: &'static str,
) -> Hostile {
    Hostile { name, file, bytes: bytes.into(), command, input: "aaaa a\n" }
}

/// Returns a tokenizer of whole words, with one part changed.
fn tokenizer(part: &str, value: Value) -> String {
    let mut all = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1}, "unk_token": "<unk>"},
    });
    *all.pointer_mut(part).unwrap() = value;
    all.to_string()
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + inner + &close.repeat(depth)
}

fn replace(from: Value, to: &str) -> Value {
    json!({"type": "Replace", "pattern": from, "content": to})
}

fn split(regex: &str) -> String {
    let stage =
        json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    tokenizer("/pre_tokenizer", stage)
}

fn normalizers() -> Vec<Hostile> {
    let sequence =
        |stages: Vec<Value>| tokenizer("/normalizer", json!({"type": "Sequence", "normalizers": stages}));
    let doubling = vec![replace(json!({"String": "a"}), "aa"); 60];
    let long = "a".repeat(100_000);
    let deep = nested(r#"{"type":"Sequence","normalizers":["#, r#"{"type":"NFC"}"#, "]}", 50_000);
    let map = |blob: &[u8]| {
        let text = BASE64_STANDARD.encode(blob);
        tokenizer("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": text}))
    };
    let json = "tokenizer.json";
    vec![
        hostile("replacements that double 60 times", json, sequence(doubling.clone()), ENCODE),
        hostile("the same with places", json, sequence(doubling), "encode --offsets bytes --tokenizer {}"),
        hostile(
            "a character becomes 100,000, three times",
            json,
            sequence(vec![replace(json!({"String": "a"}), &long); 3]),
            ENCODE,
        ),
        hostile(
            "an empty expression becomes 100,000 characters, three times",
            json,
            sequence(vec![replace(json!({"Regex": ""}), &long); 3]),
            ENCODE,
        ),
        hostile("bytes spelt 60 times", json, sequence(vec![json!({"type": "ByteLevel"}); 60]), ENCODE),
        hostile(
            "stages within one another",
            json,
            tokenizer("/normalizer", Value::Null).replacen(
                r#""normalizer":null"#,
                &format!(r#""normalizer":{deep}"#),
                1,
            ),
            ENCODE,
        ),
        hostile("a map that states 4 GB", json, map(&[252, 255, 255, 255, 0]), ENCODE),
        hostile(
            "a map whose nodes lead to themselves",
            json,
            map(&[&[0, 4, 0, 0][..], &[0, 1, 0, 128].repeat(256)].concat()),
            ENCODE,
        ),
        hostile(
            "a decoder that doubles 60 times",
            json,
            tokenizer(
                "/decoder",
                json!({"type": "Sequence", "decoders": vec![replace(json!({"String": "a"}), "aa"); 60]}),
            ),
            "decode --tokenizer {}",
        ),
    ]
}

fn expressions() -> Vec<Hostile> {
    let alternatives = vec!["a"; 100_000].join("|");
    [
        ("groups in groups", "(".repeat(100_000)),
        ("groups in groups that end", nested("(", "a", ")", 20_000)),
        ("repetitions of repetitions", "((((a{1000}){1000}){1000}){1000}){1000}".to_owned()),
        ("a number of 40 digits", format!("a{{{}}}", "9".repeat(40))),
        ("100,000 alternatives", alternatives),
        ("classes in classes", "[".repeat(100_000)),
        ("ways without end", "(a*)*(a|a)*(a|aa)+$b".to_owned()),
        ("looks in looks", nested("(?=", "a", ")", 20_000)),
        ("a class of very many ranges", format!("[{}]", "a-zA-Z\\p{L}".repeat(20_000))),
    ]
    .map(|(name, regex)| hostile(name, "tokenizer.json", split(&regex), ENCODE))
    .into()
}

fn models() -> Vec<Hostile> {
    let json = "tokenizer.json";
    let word_level = |vocab: Value| {
        tokenizer("/model", json!({"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}))
    };
    let unigram =
        |pieces: Value| tokenizer("/model", json!({"type": "Unigram", "unk_id": 0, "vocab": pieces}));
    let added = json!([{"id": 4_294_967_295_u32, "content": "x", "special": true}]);
    let fixed = json!({"strategy": {"Fixed": 1_u64 << 60}, "pad_id": 0, "pad_token": "a", "pad_type_id": 0, "direction": "Right", "pad_to_multiple_of": null});
    let bpe = json!({"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": vec!["a a"; 100_000]});
    vec![
        hostile("lists in lists", json, nested("[", "", "]", 500_000), ENCODE),
        hostile("objects in objects", json, nested(r#"{"a":"#, "1", "}", 500_000), ENCODE),
        hostile("an id of 2^32 - 1", json, word_level(json!({"<unk>": 0, "a": 4_294_967_295_u32})), ENCODE),
        hostile("an id of 2^63", json, word_level(json!({"<unk>": 0, "a": 1_u64 << 63})), ENCODE),
        hostile("an added id of 2^32 - 1", json, tokenizer("/added_tokens", added), ENCODE),
        hostile("padding to 2^60 tokens", json, tokenizer("/padding", fixed), ENCODE),
        hostile(
            "an unknown id of 2^60",
            json,
            unigram(json!([["a", 0.0]])).replace("\"unk_id\":0", "\"unk_id\":1152921504606846976"),
            ENCODE,
        ),
        hostile(
            "scores without bound",
            json,
            unigram(json!([["<unk>", 0.0], ["a", -1e308], ["aa", 1e308]])),
            ENCODE,
        ),
        hostile("a merge 100,000 times", json, tokenizer("/model", bpe), ENCODE),
        hostile("a field of 2^63 bytes", "a.model", [&[0x0A][..], &[0xFF; 8], &[0x7F]].concat(), ENCODE),
        hostile("a number without an end", "a.model", vec![0xFF; 100_000], ENCODE),
        hostile("messages in messages", "a.model", [0x0A, 0x7E].repeat(100_000), ENCODE),
        hostile("a vocabulary of one line", "vocab.txt", "a".repeat(20_000_000), ENCODE),
        hostile("a million empty tokens", "vocab.txt", "\n".repeat(1_000_000), ENCODE),
    ]
}

fn archives() -> Vec<Hostile> {
    // This is the header of a frame with a window of 2^41 bytes.
    let window = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xF8, 0x01, 0x00, 0x00];
    let zeros = vec![b'0'; 300_000_000];
    vec![
        hostile("300 MB of one line in 0.3 MB", "a.txt.gz", gzip(&zeros), COUNT),
        hostile("the same as Zstandard", "a.txt.zst", zstd(&zeros), COUNT),
        hostile("a window of 2^41 bytes", "a.txt.zst", window, COUNT),
        hostile("an archive in an archive", "a.txt.gz", gzip(&gzip(&zeros[..1_000_000])), COUNT),
        hostile("a cut archive", "a.txt.gz", &gzip(&zeros[..1_000_000])[..500], COUNT),
        hostile("one word of 20 MB", "a.txt", "a".repeat(20_000_000), TRAIN),
        hostile(
            "a record of lists in lists",
            "a.jsonl",
            format!("{{\"x\":{},\"text\":\"a\"}}\n", nested("[", "", "]", 2_000_000)),
            COUNT,
        ),
        hostile("an array of arrays", "a.json", nested("[", "", "]", 2_000_000), COUNT),
        hostile(
            "a quotation without an end",
            "a.csv",
            format!("text\n\"{}", "a\n".repeat(10_000_000)),
            COUNT,
        ),
        hostile("a row of 20 million fields", "a.csv", format!("text\n{}", ",".repeat(20_000_000)), COUNT),
        hostile(
            "counts of a part that state 2^60 items",
            "a.run",
            part(),
            "train --epsilon 8 --delta 1e-6 --unit record --vocab-size 400 --out {}.vocabulary --runs {}",
        ),
        hostile(
            "counts without bound",
            "a.tsv",
            "a\t1e308\nb\t1e308\n",
            "train --public --vocab-size 300 --out {}.vocabulary --counts {}",
        ),
    ]
}

/// A program without the feature refuses all of these by their name.
fn parquets() -> Vec<Hostile> {
    let all = common::parquet::hostile();
    all.into_iter().map(|(name, _, bytes)| hostile(name, "a.parquet", bytes, COUNT)).collect()
}

/// Returns a file of counts whose header states what it does not hold. Its digest is right.
fn part() -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let contents = Sha256::digest(b"");
    let hex: String = contents.iter().map(|byte| format!("{byte:02x}")).collect();
    let header = json!({"version": 1, "shard": 1, "shards": 1, "unit": "record", "words": "by_class", "corpus": null, "units": 1_u64 << 60,
        "short_items": 1_u64 << 60, "long_items": 0, "items_bytes": 1_u64 << 62, "lists_bytes": [1_u64 << 62], "contents_sha256": hex,
        "texts_sha256": []})
    .to_string();
    let body = [header.as_bytes(), &(header.len() as u64).to_le_bytes()].concat();
    let digest = Sha256::new().chain_update(b"DPTOKRUN").chain_update(Sha256::digest(&body)).finalize();
    [b"DPTOKRUN", body.as_slice(), digest.as_slice()].concat()
}

/// Returns what went wrong, if anything did.
fn fault(hostile: &Hostile, folder: &Path) -> Option<String> {
    let file = folder.join(hostile.file);
    std::fs::write(&file, &hostile.bytes).unwrap();
    std::fs::write(folder.join("input"), hostile.input).unwrap();
    let mut command = limited::command(env!("CARGO_BIN_EXE_dp-tokenizer"), MEMORY);
    command.args(hostile.command.split(' ').map(|word| word.replace("{}", path(&file))));
    let stream = |name: &str| std::fs::File::create(folder.join(name)).unwrap();
    command.stdin(std::fs::File::open(folder.join("input")).unwrap());
    let mut child =
        command.stdout(Stdio::from(stream("stdout"))).stderr(Stdio::from(stream("stderr"))).spawn().unwrap();
    let started = Instant::now();
    let Some(status) = limited::end_within(&mut child, TIME) else {
        return Some(format!("took more than {TIME:?}"));
    };
    let said = text(&std::fs::read(folder.join("stderr")).unwrap());
    let is_short = said.len() < 2000 && std::fs::metadata(folder.join("stdout")).unwrap().len() < (64 << 20);
    match status.code() {
        Some(0 | 2) if is_short && !said.contains("panicked") => None,
        code => Some(format!("{code:?}, {:?}: {}", started.elapsed(), &said[..said.len().min(300)])),
    }
}

#[test]
fn hostile_files_cost_no_more_than_their_size_allows() {
    let all: Vec<Hostile> =
        [normalizers(), expressions(), models(), archives(), parquets()].into_iter().flatten().collect();
    assert!(all.len() >= 40, "{}", all.len());
    let faults: Vec<String> = all
        .iter()
        .filter_map(|hostile| {
            let folder = tempfile::tempdir().unwrap();
            Some(format!("{}: {}", hostile.name, fault(hostile, folder.path())?))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
