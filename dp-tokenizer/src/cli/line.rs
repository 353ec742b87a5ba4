//! The line that `encode` writes for a text.

use std::borrow::Cow;
use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::json;
use tokenizer::{Encoding, Tokenizer};

use super::failure::refuse;

/// How the tokens of a text are written.
#[derive(Args)]
#[command(next_help_heading = "Tokens of a line")]
pub(super) struct Line {
    /// What to write for each text.
    #[arg(long = "as", value_enum, default_value = "ids", conflicts_with = "out")]
    pub(super) form: Form,
    /// Largest number of tokens of a text. Further ones are cut off.
    #[arg(long, value_name = "N", conflicts_with = "out", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_length: Option<u32>,
    /// The side at which tokens are cut off [default: right].
    #[arg(long, value_enum, requires = "max_length")]
    pub(super) truncation_side: Option<Side>,
    /// Fill up shorter texts with the padding token to --max-length.
    #[arg(long, requires = "max_length")]
    pub(super) pad: bool,
    /// The side at which padding tokens stand [default: right].
    #[arg(long, value_enum, requires = "pad")]
    pub(super) padding_side: Option<Side>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Ids, separated by blanks.
    Ids,
    /// Tokens, separated by blanks. A token with white space in it is written as a JSON string.
    Tokens,
    /// A JSON object with ids, tokens, attention mask and, with --offsets, offsets.
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Side {
    /// The beginning of the text.
    Left,
    /// The end of the text.
    Right,
}

/// One of several segmentations of a text.
pub(super) struct Ranked {
    /// The number of the text, from 1.
    pub(super) text: u64,
    pub(super) score: f64,
}

/// Writes the tokens of each text as the options say.
pub(super) struct LineWriter<'a> {
    tokenizer: &'a Tokenizer,
    options: &'a Line,
    /// The number of tokens that are put around a text, if they are asked for.
    around: Option<usize>,
    has_offsets: bool,
    /// The padding token, where texts are padded.
    pad: Option<u32>,
}

impl<'a> LineWriter<'a> {
    /// Returns a writer. Refuses a padding token that the tokenizer does not have, and a length without room.
    pub(super) fn new(
        options: &'a Line,
        tokenizer: &'a Tokenizer,
        special_tokens: bool,
        has_offsets: bool,
    ) -> anyhow::Result<Self> {
        let around = || tokenizer.post_process(Encoding { ids: Vec::new(), offsets: Vec::new() }).ids.len();
        let around = special_tokens.then(around);
        if let Some(length) =
            options.max_length.filter(|length| around.is_some_and(|n| *length as usize <= n))
        {
            return Err(refuse(format!(
                "--max-length {length}: the tokens around a text leave no room for it; allowed: at least {}",
                around.unwrap_or(0) + 1
            )));
        }
        let pad = options.pad.then(|| {
            let missing = "--pad: this tokenizer has no padding token (<pad> or [PAD]); leave it out";
            tokenizer.pad_id().ok_or_else(|| refuse(missing))
        });
        Ok(Self { tokenizer, options, around, has_offsets, pad: pad.transpose()? })
    }

    /// Writes a line. `ranked` has the number of the text, and the score of this segmentation of it.
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        mut encoding: Encoding,
        ranked: Option<Ranked>,
    ) -> anyhow::Result<()> {
        let length = self.options.max_length.map_or(usize::MAX, |length| length as usize);
        let room = length - self.around.unwrap_or(0);
        truncate(&mut encoding.ids, room, self.options.truncation_side);
        truncate(&mut encoding.offsets, room, self.options.truncation_side);
        if self.around.is_some() {
            encoding = self.tokenizer.post_process(encoding);
        }
        if !self.has_offsets {
            encoding.offsets.clear();
        }
        let mut mask = vec![1; encoding.ids.len()];
        if let Some(pad) = self.pad {
            fill(&mut encoding.ids, pad, length, self.options.padding_side);
            fill(&mut mask, 0, length, self.options.padding_side);
            if self.has_offsets {
                fill(&mut encoding.offsets, (0, 0), length, self.options.padding_side);
            }
        }
        let Encoding { ids, offsets } = encoding;
        if self.options.form == Form::Json {
            let tokens: Vec<&str> = ids.iter().map(|id| self.token(*id)).collect();
            let mut line = json!({ "ids": ids, "tokens": tokens, "attention_mask": mask });
            if self.has_offsets {
                line["offsets"] = json!(offsets);
            }
            if let Some(Ranked { text, score }) = ranked {
                (line["text"], line["score"]) = (json!(text), json!(score));
            }
            return Ok(writeln!(out, "{line}")?);
        }
        if let Some(Ranked { text, score }) = ranked {
            write!(out, "{text}\t{score}\t")?;
        }
        for (number, id) in ids.iter().enumerate() {
            let blank = if number == 0 { "" } else { " " };
            match self.options.form {
                Form::Tokens => write!(out, "{blank}{}", in_one_word(self.token(*id)))?,
                _ => write!(out, "{blank}{id}")?,
            }
            if let Some((from, to)) = offsets.get(number) {
                write!(out, ":{from}:{to}")?;
            }
        }
        Ok(writeln!(out)?)
    }

    fn token(&self, id: u32) -> &str {
        self.tokenizer.token(id).unwrap_or_default()
    }
}

/// Returns a token without white space: as a JSON string, if it has some.
pub(super) fn in_one_word(token: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if !token.is_empty() && !token.contains(is_odd) {
        return Cow::Borrowed(token);
    }
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_odd(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    Cow::Owned(format!("\"{}\"", token.chars().map(escape).collect::<String>()))
}

fn truncate<T>(values: &mut Vec<T>, length: usize, side: Option<Side>) {
    let excess = values.len().saturating_sub(length);
    match side {
        Some(Side::Left) => drop(values.drain(..excess)),
        Some(Side::Right) | None => values.truncate(length),
    }
}

fn fill<T: Clone>(values: &mut Vec<T>, value: T, length: usize, side: Option<Side>) {
    let missing = std::iter::repeat_n(value, length.saturating_sub(values.len()));
    match side {
        Some(Side::Left) => drop(values.splice(0..0, missing)),
        Some(Side::Right) | None => values.extend(missing),
    }
}
