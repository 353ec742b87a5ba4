//! Compares ids, offsets and decoded texts with those of Hugging Face tokenizers, transformers and SentencePiece, on
//! whole corpora: `cargo xtask conformance --venv PATH`, where PATH is a Python environment that has them.
//!
//! Runs public vocabularies, and vocabularies trained here, on the texts of `../shared/data`. Prints a line for each
//! vocabulary and corpus, and fails where more texts differ than `tokenizer/docs/conformance.md` explains by name.
//! Arguments name the corpora to run on, and how the names of the vocabularies to run begin; without them, all.
//! `files=FOLDER` runs each `tokenizer.json` in a folder and below it in place of these vocabularies.
//! `at-most=N` takes N texts of each corpus, evenly spaced. `convert` writes each vocabulary in each format instead,
//! and compares what is read of it on the same texts.

#![allow(clippy::print_stdout, reason = "a report talks to its user")]

mod cases;
mod convert;
mod corpora;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use corpora::{Corpora, SWEEP};
use serde_json::json;
use tokenizer::{OffsetUnit, Tokenizer};
use unicode_properties::UnicodeGeneralCategory;

const PEERS: &str = include_str!("peers.py");

/// Texts that may differ, and the number of the reason in `tokenizer/docs/conformance.md`: (vocabulary, corpus, ids, offsets,
/// decoded, reason).
const EXPLAINED: [(&str, &str, Differing, &str); 8] = [
    ("T5 tokenizer.json", "japanese", [2, 0, 0], "2"),
    ("gpt1", "normalization", [1, 0, 0], "1"),
    ("japanese-unigram", "naughty", [2, 0, 0], "9"),
    ("BERT vocab.txt", SWEEP, [949, 0, 0], "1"),
    ("unigram, NFKC by transformers", SWEEP, [242, 0, 0], "1"),
    ("unigram, NFKC tokenizer.json", SWEEP, [242, 0, 0], "1"),
    ("WordPiece by transformers", SWEEP, [949, 0, 0], "1"),
    ("WordPiece tokenizer.json", SWEEP, [949, 0, 0], "1"),
];

/// The number of texts that differ in ids, in offsets, and in decoded text.
type Differing = [usize; 3];

/// A vocabulary, and the way in which its peer reads it.
struct Case {
    name: String,
    tokenizer: Tokenizer,
    kind: &'static str,
    path: PathBuf,
    /// Whether decoding promises to give back the text.
    is_lossless: bool,
    /// The most texts of a corpus.
    most: usize,
}

impl Case {
    fn texts<'a>(&self, lines: &'a [String]) -> impl Iterator<Item = &'a String> + use<'a> {
        lines.iter().step_by(lines.len().div_ceil(self.most).max(1))
    }
}

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let python = std::env::var_os("PEERS_PYTHON").ok_or("run by `cargo xtask conformance --venv PATH`")?;
    let python = PathBuf::from(python);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("peers.py");
    std::fs::write(&script, PEERS)?;
    let mut corpora = corpora::read(&data, &python, &script)?;
    let files = std::env::args().find_map(|argument| argument.strip_prefix("files=").map(PathBuf::from));
    let mut cases = match files {
        Some(files) => cases::of_files(&files)?,
        None => cases::make(&data, folder.path(), &python, &corpora)?,
    };
    if select(&mut corpora, &mut cases)? {
        return convert::compare(&cases, &corpora);
    }
    let job = write_job(folder.path(), &cases, &corpora)?;
    let mut peer = Command::new(&python).arg(&script).arg(&job).stdout(Stdio::piped()).spawn()?;
    let mut answers = BufReader::with_capacity(1 << 20, peer.stdout.take().ok_or("no answers")?);
    println!(
        "vocabulary | corpus | texts | ids | differ in ids | in offsets | decoded | not decoded to the text"
    );
    let mut unexplained = 0;
    for case in &cases {
        for (name, lines) in &corpora {
            unexplained += usize::from(!compare(case, name, lines, &mut answers)?);
        }
    }
    if !peer.wait()?.success() {
        return Err("the peers failed; their message stands above".into());
    }
    if unexplained > 0 {
        return Err(format!("{unexplained} comparisons differ otherwise than explained").into());
    }
    println!("every difference is explained in tokenizer/docs/conformance.md");
    Ok(())
}

/// Keeps what the arguments name. Returns whether formats are to be converted.
fn select(corpora: &mut Corpora, cases: &mut Vec<Case>) -> Outcome<bool> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let converts = arguments.iter().any(|argument| argument == "convert");
    if let Some(most) = arguments.iter().find_map(|argument| argument.strip_prefix("at-most=")) {
        let most = most.parse()?;
        cases.iter_mut().for_each(|case| case.most = case.most.min(most));
    }
    arguments.retain(|argument| {
        argument != "convert" && !argument.starts_with("at-most=") && !argument.starts_with("files=")
    });
    let (names, starts): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|name| corpora.contains_key(name.as_str()));
    if let Some(unknown) = starts.iter().find(|start| !cases.iter().any(|case| case.name.starts_with(*start)))
    {
        let known = corpora.keys().copied().chain(cases.iter().map(|case| case.name.as_str()));
        let known: Vec<&str> = known.collect();
        return Err(
            format!("{unknown} is neither corpus nor vocabulary; allowed: {}", known.join(", ")).into()
        );
    }
    corpora.retain(|name, _| names.is_empty() || names.iter().any(|wanted| wanted == name));
    cases
        .retain(|case| starts.is_empty() || starts.iter().any(|start| case.name.starts_with(start.as_str())));
    Ok(converts)
}

/// Compares one vocabulary on one corpus. Returns whether it differs no more than explained.
fn compare(case: &Case, corpus: &str, lines: &[String], answers: &mut impl Read) -> Outcome<bool> {
    let mut encoder = case.tokenizer.encoder();
    // SentencePiece's own form of an answer counts bytes.
    let unit = if case.kind == "sentencepiece" { OffsetUnit::Bytes } else { OffsetUnit::Characters };
    let (mut differing, mut count, mut altered, mut examples) = ([0; 3], 0, 0, Vec::new());
    let mut strange = Vec::new();
    for (number, line) in case.texts(lines).enumerate() {
        let [length] = numbers(answers, 1)?[..] else { continue };
        let ids = numbers(answers, length as usize)?;
        let offsets: Vec<(usize, usize)> = numbers(answers, 2 * length as usize)?
            .chunks_exact(2)
            .map(|pair| (pair[0] as usize, pair[1] as usize))
            .collect();
        let [bytes] = numbers(answers, 1)?[..] else { continue };
        let mut text = vec![0; bytes as usize];
        answers.read_exact(&mut text)?;
        let ours = encoder.encode_with_offsets(line, unit);
        let decoded = case.tokenizer.decode(&ours.ids);
        count += ours.ids.len();
        // A literal mark is a blank to all tokenizers but GPT-2's.
        let is_kept = decoded == *line || decoded == line.replace('\u{2581}', " ");
        altered += usize::from(case.is_lossless && !is_kept);
        let same = [
            ours.ids == ids && encoder.encode(line) == ids,
            ours.ids != ids || ours.offsets == offsets,
            ours.ids != ids || decoded.as_bytes() == text,
        ];
        for (place, same) in same.into_iter().enumerate() {
            differing[place] += usize::from(!same);
        }
        if corpus == SWEEP && same.contains(&false) {
            strange.extend(line.chars().nth(1));
        }
        if same.contains(&false) && examples.len() < 3 {
            examples.push(example(
                number,
                line,
                (&ours.ids, &ours.offsets, &decoded),
                (&ids, &offsets, &text),
            ));
        }
    }
    let known = EXPLAINED.iter().find(|known| (known.0, known.1) == (case.name.as_str(), corpus));
    let most = known.map_or([0; 3], |known| known.2);
    let is_explained = altered == 0 && differing.iter().zip(most).all(|(found, most)| *found <= most);
    let [ids, offsets, texts] = differing;
    let lossless = if case.is_lossless { altered.to_string() } else { "-".to_owned() };
    let note = known.map_or(String::new(), |known| format!(" ({})", known.3));
    println!(
        "{} | {corpus} | {} | {count} | {ids} | {offsets} | {texts} | {lossless}{note}",
        case.name,
        case.texts(lines).count()
    );
    classes(&strange);
    if !is_explained {
        examples.iter().for_each(|example| println!("    {example}"));
    }
    Ok(is_explained)
}

/// Prints characters by general category, as ranges.
fn classes(characters: &[char]) {
    let mut by_class: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
    for code in characters.iter().map(|c| *c as u32) {
        let class = char::from_u32(code).map(|c| format!("{:?}", c.general_category())).unwrap_or_default();
        let ranges = by_class.entry(class).or_default();
        match ranges.last_mut().filter(|range| range.1 + 1 == code) {
            Some(range) => range.1 = code,
            None => ranges.push((code, code)),
        }
    }
    for (class, ranges) in by_class {
        let count: u32 = ranges.iter().map(|(from, to)| to - from + 1).sum();
        let spelt = ranges.iter().map(|(from, to)| match from == to {
            true => format!("{from:04X}"),
            false => format!("{from:04X}-{to:04X}"),
        });
        println!("    {class}, {count} code points: {}", spelt.collect::<Vec<_>>().join(" "));
    }
}

type Encoded<'a, T> = (&'a [u32], &'a [(usize, usize)], T);

/// Describes the first difference of a public text.
fn example(number: usize, line: &str, ours: Encoded<&str>, theirs: Encoded<&[u8]>) -> String {
    let start: String = line.chars().take(60).collect();
    let token = ours.0.iter().zip(theirs.0).take_while(|(a, b)| a == b).count();
    let offset = ours.1.iter().zip(theirs.1).take_while(|(a, b)| a == b).count();
    let part = |ids: &[u32]| ids.iter().skip(token.saturating_sub(2)).take(6).copied().collect::<Vec<u32>>();
    let text = |text: &str| text.chars().take(60).collect::<String>();
    format!(
        "text {number} {start:?} ({} bytes): from token {token} of {}: {:?} there {:?}; offset {offset}: {:?} there {:?}; \
         decoded {:?} there {:?}",
        line.len(),
        ours.0.len(),
        part(ours.0),
        part(theirs.0),
        ours.1.get(offset),
        theirs.1.get(offset),
        text(ours.2),
        text(&String::from_utf8_lossy(theirs.2)),
    )
}

fn numbers(answers: &mut impl Read, count: usize) -> Outcome<Vec<u32>> {
    let mut bytes = vec![0; 4 * count];
    answers.read_exact(&mut bytes).map_err(|error| format!("the peers' answers end early: {error}"))?;
    Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

fn write_job(folder: &Path, cases: &[Case], corpora: &Corpora) -> Outcome<PathBuf> {
    let mut files = Vec::new();
    for (name, lines) in corpora {
        let path = folder.join(format!("{name}.jsonl"));
        let mut out = std::io::BufWriter::new(std::fs::File::create(&path)?);
        for line in lines {
            writeln!(out, "{}", json!(line))?;
        }
        out.into_inner()?;
        files.push((name, path));
    }
    let names: Vec<&str> = corpora.keys().copied().collect();
    let cases: Vec<_> = cases
        .iter()
        .map(|case| json!({"kind": case.kind, "path": case.path, "corpora": names, "most": case.most}))
        .collect();
    let path = folder.join("job.json");
    std::fs::write(&path, json!({"corpora": files, "cases": cases}).to_string())?;
    Ok(path)
}
