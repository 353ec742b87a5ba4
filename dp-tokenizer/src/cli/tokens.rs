//! `encode` and `decode`, line by line.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::CountOptions;
use dp_tokenizer::tokens::encode_corpus;
use dp_tokenizer::{Encoding, OffsetUnit, Tokenizer};
use sha2::{Digest, Sha256};

use super::arguments::{Encode, Offsets, Tokens};
use super::convert::load;
use super::corpus::InvalidUtf8;
use super::failure::refuse;
use super::progress::Progress;

/// Encodes lines of text as lines of ids, or a corpus as a token file.
pub(super) fn encode(arguments: &Encode) -> anyhow::Result<()> {
    let tokenizer = load(&arguments.tokenizer)?;
    if let Some(out) = &arguments.out {
        return encode_to_file(arguments, &tokenizer, out);
    }
    if arguments.corpus.has_rules() {
        return Err(refuse(
            "--format, --text-field and --user-field go with --out: without it, a line is a text",
        ));
    }
    if arguments.special_tokens && !tokenizer.adds_special_tokens() {
        return Err(refuse(format!(
            "{}: this tokenizer puts no tokens around a text; leave out --special-tokens",
            arguments.tokenizer.path.display()
        )));
    }
    let mut encoder = tokenizer.encoder();
    let mut out = BufWriter::new(io::stdout().lock());
    let input = match arguments.corpus.input.as_slice() {
        [] => None,
        [one] => Some(one.as_path()),
        _ => {
            return Err(refuse(
                "lines of several files would run into one another; allowed: one --input, or --out",
            ));
        }
    };
    let unit = arguments.offsets.map(|offsets| match offsets {
        Offsets::Bytes => OffsetUnit::Bytes,
        Offsets::Characters => OffsetUnit::Characters,
    });
    for_lines(input, arguments.corpus.invalid_utf8, |_, line| {
        let mut found = match unit {
            Some(unit) => encoder.encode_with_offsets(line, unit),
            None => Encoding { ids: encoder.encode(line), offsets: Vec::new() },
        };
        if arguments.special_tokens {
            found = tokenizer.post_process(found);
        }
        for (number, id) in found.ids.iter().enumerate() {
            let blank = if number == 0 { "" } else { " " };
            write!(out, "{blank}{id}")?;
            if let Some((from, to)) = unit.and(found.offsets.get(number)) {
                write!(out, ":{from}:{to}")?;
            }
        }
        Ok(writeln!(out)?)
    })?;
    Ok(out.flush()?)
}

fn encode_to_file(arguments: &Encode, tokenizer: &Tokenizer, out: &Path) -> anyhow::Result<()> {
    let source = arguments.corpus.source()?;
    if let Source::Files(files) = &source {
        let inputs = [files.paths.as_slice(), std::slice::from_ref(&arguments.tokenizer.path)].concat();
        arguments.output.check(out, &inputs)?;
    }
    let file = std::fs::read(&arguments.tokenizer.path)
        .with_context(|| arguments.tokenizer.path.display().to_string())?;
    let threads = arguments.threads.map_or(CountOptions::default().threads, usize::from);
    let shown = Progress::of("encoding", &source);
    let digest = Sha256::digest(&file).into();
    let done = encode_corpus(&source, arguments.unit, tokenizer, digest, out, threads);
    drop(shown);
    done.map_err(refuse)?;
    // No counts of records or tokens: they are private if the text is.
    Ok(writeln!(io::stdout(), "{}", out.display())?)
}

/// Decodes lines of ids as lines of text.
pub(super) fn decode(arguments: &Tokens) -> anyhow::Result<()> {
    let tokenizer = load(&arguments.tokenizer)?;
    let size = tokenizer.vocab_size();
    let mut out = BufWriter::new(io::stdout().lock());
    for_lines(arguments.input.as_deref(), InvalidUtf8::Refuse, |number, line| {
        let ids: Option<Vec<u32>> =
            line.split_whitespace().map(|id| id.parse().ok().filter(|&id| (id as usize) < size)).collect();
        let ids = ids.ok_or_else(|| {
            refuse(format!("line {number}: ids must be whole numbers below {size}, separated by blanks"))
        })?;
        Ok(writeln!(out, "{}", tokenizer.decode(&ids))?)
    })?;
    Ok(out.flush()?)
}

fn for_lines(
    input: Option<&Path>,
    invalid_utf8: InvalidUtf8,
    mut each: impl FnMut(u64, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (name, mut reader): (String, Box<dyn BufRead>) = match input {
        Some(path) if path.as_os_str() != "-" => {
            let file = File::open(path).map_err(|error| refuse(format!("{}: {error}", path.display())))?;
            (path.display().to_string(), Box::new(BufReader::with_capacity(1 << 20, file)))
        }
        _ => ("stdin".to_owned(), Box::new(io::stdin().lock())),
    };
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        let read =
            reader.read_until(b'\n', &mut bytes).with_context(|| format!("{name}, after line {number}"))?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let line = String::from_utf8_lossy(&bytes);
        if matches!((&line, invalid_utf8), (Cow::Owned(_), InvalidUtf8::Refuse)) {
            return Err(refuse(format!(
                "{name}, line {number}: not valid UTF-8; convert the text first, for example with iconv -f WINDOWS-1252 -t UTF-8"
            )));
        }
        each(number, &line)?;
    }
}
