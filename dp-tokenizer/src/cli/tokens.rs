//! Encoding and decoding, a line at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use anyhow::Context;

use super::arguments::Tokens;
use super::convert::load;
use super::failure::refuse;

/// Lines of text to lines of ids.
pub(super) fn encode(arguments: &Tokens) -> anyhow::Result<()> {
    let tokenizer = load(&arguments.tokenizer)?;
    let mut encoder = tokenizer.encoder();
    let mut out = BufWriter::new(io::stdout().lock());
    for_lines(arguments, |_, line| {
        for (number, id) in encoder.encode(line).into_iter().enumerate() {
            let blank = if number == 0 { "" } else { " " };
            write!(out, "{blank}{id}")?;
        }
        Ok(writeln!(out)?)
    })?;
    Ok(out.flush()?)
}

/// Lines of ids to lines of text.
pub(super) fn decode(arguments: &Tokens) -> anyhow::Result<()> {
    let tokenizer = load(&arguments.tokenizer)?;
    let size = tokenizer.vocab_size();
    let mut out = BufWriter::new(io::stdout().lock());
    for_lines(arguments, |number, line| {
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
    arguments: &Tokens,
    mut each: impl FnMut(u64, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (name, mut reader): (String, Box<dyn BufRead>) = match &arguments.input {
        Some(path) => {
            let file = File::open(path).map_err(|error| refuse(format!("{}: {error}", path.display())))?;
            (path.display().to_string(), Box::new(BufReader::with_capacity(1 << 20, file)))
        }
        None => ("stdin".to_owned(), Box::new(io::stdin().lock())),
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
        each(number, &String::from_utf8_lossy(&bytes))?;
    }
}
