//! `encode` and `decode`, line by line.

use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use dp_tokenizer::corpus::{self, BadUtf8, CorpusError, Files, Format, Source};
use dp_tokenizer::count::CountOptions;
use dp_tokenizer::tokens::encode_corpus;
use mechanisms::PrivacyUnit;
use sha2::{Digest, Sha256};
use tokenizer::{OffsetUnit, Tokenizer};

use super::corpus::Corpus;
use super::failure::refuse;
use super::given::Given;
use super::line::{Line, LineWriter};
use super::output::Output;
use super::progress;
use super::segmentation::{SegmentationOptions, Segmenter};
use super::tokenizer_file::TokenizerFile;

/// Encode lines of text, or a corpus for training.
#[derive(Args)]
pub(super) struct Encode {
    #[command(flatten)]
    tokenizer: TokenizerFile,
    /// Write a token file of all records, by unit, instead of lines of ids. It is private if the text is.
    #[arg(long, value_name = "FILE", requires = "input")]
    out: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// Privacy unit of the token file: record, user, or words:N.
    #[arg(long, default_value = "record", value_name = "UNIT", requires = "out")]
    unit: PrivacyUnit,
    /// Write each id with the offsets of its token in the line, as id:from:to.
    #[arg(long, value_enum, value_name = "UNIT", conflicts_with = "out")]
    offsets: Option<Offsets>,
    /// Add the tokens that the tokenizer puts around a text, such as [CLS] and [SEP].
    #[arg(long, conflicts_with = "out")]
    special_tokens: bool,
    #[command(flatten)]
    segmentation: SegmentationOptions,
    #[command(flatten)]
    line: Line,
    #[command(flatten)]
    corpus: Corpus,
    /// Threads for a token file [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), requires = "out")]
    threads: Option<u16>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Offsets {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values, as in Python.
    Characters,
}

/// Decode lines of ids.
#[derive(Args)]
pub(super) struct Decode {
    #[command(flatten)]
    tokenizer: TokenizerFile,
    /// File to read, also as .gz or .zst [default: standard input].
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Leave out tokens that are no text, such as <pad> and [CLS].
    #[arg(long)]
    skip_special_tokens: bool,
    /// Write text as soon as its ids are read, before the line ends.
    #[arg(long)]
    stream: bool,
}

/// Encodes lines of text as lines of ids, or a corpus as a token file.
pub(super) fn encode(arguments: &Encode, given: &Given) -> anyhow::Result<()> {
    let tokenizer = arguments.tokenizer.load()?;
    if let Some(lengths) = tokenizer.unapplied_lengths() {
        progress::note(&format!(
            "{}: it asks for {lengths}, which encode does not apply: all ids of each text are written",
            arguments.tokenizer.path.display()
        ));
    }
    if let Some(settings) = tokenizer.unapplied_settings() {
        progress::note(&format!("{}: {settings}", arguments.tokenizer.path.display()));
    }
    if tokenizer.drops_characters() {
        progress::note(&format!(
            "{}: it has no unknown token, so characters that its vocabulary lacks vanish from a text",
            arguments.tokenizer.path.display()
        ));
    }
    if arguments.unit != PrivacyUnit::User {
        given.refuse_any(&["user_field"], "without --unit user")?;
    }
    if let Some(out) = &arguments.out {
        return encode_to_file(arguments, given, &tokenizer, out);
    }
    given.refuse_any(&["overwrite"], "without --out")?;
    let source = arguments.corpus.texts(given)?;
    let mut encode = Segmenter::new(&arguments.segmentation, &tokenizer)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let unit = arguments.offsets.map(|offsets| match offsets {
        Offsets::Bytes => OffsetUnit::Bytes,
        Offsets::Characters => OffsetUnit::Characters,
    });
    if arguments.special_tokens && !tokenizer.adds_special_tokens() {
        return Err(refuse(format!(
            "{}: this tokenizer puts no tokens around a text; leave out --special-tokens",
            arguments.tokenizer.path.display()
        )));
    }
    let line = LineWriter::new(&arguments.line, &tokenizer, arguments.special_tokens, unit.is_some())?;
    for_texts(&source, |number, text| encode.write(number, text, unit, &line, &mut out))?;
    Ok(out.flush()?)
}

fn encode_to_file(
    arguments: &Encode,
    given: &Given,
    tokenizer: &Tokenizer,
    out: &Path,
) -> anyhow::Result<()> {
    let source = arguments.corpus.source(given)?;
    if let Source::Files(files) = &source {
        let inputs = [files.paths.as_slice(), std::slice::from_ref(&arguments.tokenizer.path)].concat();
        arguments.output.check(out, &inputs)?;
    }
    let file = std::fs::read(&arguments.tokenizer.path)
        .with_context(|| arguments.tokenizer.path.display().to_string())?;
    let threads = arguments.threads.map_or(CountOptions::default().threads, usize::from);
    let shown = progress::reading("encoding", &source);
    let digest = Sha256::digest(&file).into();
    let done = encode_corpus(&source, arguments.unit, tokenizer, digest, out, threads);
    drop(shown);
    done.map_err(refuse)?;
    // The counts of records and tokens are not shown: they are private if the text is.
    Ok(writeln!(io::stdout(), "{}", out.display())?)
}

/// Decodes lines of ids as lines of text.
pub(super) fn decode(arguments: &Decode) -> anyhow::Result<()> {
    let tokenizer = arguments.tokenizer.load()?;
    let size = tokenizer.vocab_size();
    let is_shown: Vec<bool> =
        (0..size as u32).map(|id| !arguments.skip_special_tokens || !tokenizer.is_special(id)).collect();
    let mut out = BufWriter::new(io::stdout().lock());
    let ids = Ids { size, is_shown };
    if arguments.stream && arguments.input.as_deref().is_none_or(|input| input == Path::new("-")) {
        return stream(&tokenizer, &ids, io::stdin().lock(), &mut out);
    }
    let input = arguments.input.clone().unwrap_or_else(|| "-".into());
    let format = Format::Text;
    let lines = Files { format, blank_lines: true, bad_utf8: BadUtf8::Refuse, ..Files::of([input]) };
    for_texts(&Source::Files(lines), |number, line| {
        let read: Vec<Option<u32>> =
            line.split_whitespace().map(|id| ids.read(id, number)).collect::<Result<_, _>>()?;
        Ok(writeln!(out, "{}", tokenizer.decode(&read.into_iter().flatten().collect::<Vec<_>>()))?)
    })?;
    Ok(out.flush()?)
}

/// The ids that may be decoded.
struct Ids {
    size: usize,
    is_shown: Vec<bool>,
}

impl Ids {
    /// Returns the id that `text` writes; `None` if the token is not to be shown.
    fn read(&self, text: &str, line: u64) -> anyhow::Result<Option<u32>> {
        let id = text.parse().ok().filter(|&id: &u32| (id as usize) < self.size);
        let size = self.size;
        let id = id.ok_or_else(|| {
            refuse(format!("line {line}: ids must be whole numbers below {size}, separated by blanks"))
        })?;
        Ok(Some(id).filter(|id| self.is_shown[*id as usize]))
    }
}

/// Decodes the lines of `input`, and writes the certain text of a line before the line has ended.
fn stream(
    tokenizer: &Tokenizer,
    ids: &Ids,
    mut input: impl BufRead,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    /// The most digits that are read. No id has as many.
    const MAX_DIGITS: usize = 32;
    let (mut number, mut word, mut text, mut is_open) = (1, String::new(), tokenizer.decode_stream(), false);
    loop {
        let read = input.fill_buf()?;
        let is_last = read.is_empty();
        let read = if is_last && is_open { b"\n" } else { read };
        for &byte in read {
            is_open = byte != b'\n';
            if !byte.is_ascii_whitespace() && word.len() < MAX_DIGITS {
                word.push(char::from(byte));
                continue;
            }
            if !word.is_empty() {
                let id = ids.read(&std::mem::take(&mut word), number)?;
                let fresh = id.map(|id| text.push(id)).unwrap_or_default();
                out.write_all(fresh.as_bytes())?;
            }
            if byte == b'\n' {
                let ended = std::mem::replace(&mut text, tokenizer.decode_stream());
                writeln!(out, "{}", ended.finish())?;
                number += 1;
            }
        }
        out.flush()?;
        if is_last {
            return Ok(());
        }
        let length = read.len();
        input.consume(length);
    }
}

/// Calls `each` with the number and the text of each record.
fn for_texts(source: &Source, mut each: impl FnMut(u64, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let records = match corpus::open(source) {
        // A file without text has no answers.
        Err(CorpusError::Empty { .. }) => return Ok(()),
        opened => opened.map_err(refuse)?,
    };
    (1..).zip(records).try_for_each(|(number, record)| each(number, &record.map_err(refuse)?.text))
}
