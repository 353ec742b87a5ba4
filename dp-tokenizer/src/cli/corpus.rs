//! Arguments about a corpus and about the machine.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use dp_tokenizer::corpus::{self, BadUtf8, Encoding, Files, Format, Source};
use dp_tokenizer::count::CountOptions;
use mechanisms::Words;

use super::failure::refuse;
use super::given::Given;
use super::statement;

/// Files, and how to read them.
#[derive(Args)]
#[command(next_help_heading = "Text")]
pub(super) struct Corpus {
    /// Text, JSON, JSON Lines, CSV, TSV or IOB files, also as .gz or .zst, or Parquet. `*`, `?` and `**` are wildcards; `-` is
    /// standard input.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(super) input: Vec<PathBuf>,
    /// How the files are divided into records. Needed where the name of a file does not tell.
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) format: Format,
    /// JSON field or column with the text; `a.b` is a field inside a field.
    #[arg(long, default_value = "text", value_name = "NAME")]
    pub(super) text_field: String,
    /// JSON field or column with the user.
    #[arg(long, value_name = "NAME")]
    pub(super) user_field: Option<String>,
    /// The encoding of the files.
    #[arg(long, value_enum, default_value = "utf-8")]
    pub(super) encoding: Encoding,
    /// How to treat bytes that are not UTF-8, or not in the encoding that is named.
    #[arg(long, value_enum, default_value = "refuse")]
    pub(super) invalid_utf8: InvalidUtf8,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum InvalidUtf8 {
    /// Replace them by U+FFFD.
    Replace,
    /// Refuse the file and name the line.
    Refuse,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WordsName {
    /// A run of letters, of digits or of other characters.
    ByClass,
    /// A run of characters without white space (unigram and char). From ε = 3 on, it needs fewer tokens.
    AsWritten,
    /// The same, and each run of two or three of them that a piece can hold (unigram and bpe): pieces reach across blanks.
    Runs,
}

impl From<WordsName> for Words {
    fn from(name: WordsName) -> Self {
        match name {
            WordsName::ByClass => Self::ByClass,
            WordsName::AsWritten => Self::AsWritten,
            WordsName::Runs => Self::Runs,
        }
    }
}

/// Use of the machine. It never changes a result.
#[derive(Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Machine {
    /// Threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) threads: Option<u16>,
    /// Memory for counting, such as 500M or 4G. The rest goes to a temporary file that only this process can open.
    #[arg(long, default_value = "2G", value_name = "SIZE", value_parser = bytes)]
    pub(super) memory: usize,
    /// Folder of that file, which contains private text [default: the system's temporary folder].
    #[arg(long, value_name = "DIR")]
    pub(super) spill_folder: Option<PathBuf>,
}

impl Corpus {
    /// Returns the files, with wildcards expanded and no text twice.
    pub(super) fn source(&self, given: &Given) -> anyhow::Result<Source> {
        let paths = corpus::expand(&self.input).map_err(refuse)?;
        paths.iter().try_for_each(|path| check_unwritten(path))?;
        let source = Source::Files(self.files(given, paths, self.format)?);
        corpus::check_distinct(&source).map_err(refuse)?;
        Ok(source)
    }

    /// Returns the texts to be answered one by one: each line of a text file, blank ones too, or each record of another
    /// file. Without a file, each line of standard input.
    pub(super) fn texts(&self, given: &Given) -> anyhow::Result<Source> {
        let path = match self.input.as_slice() {
            [] => PathBuf::from("-"),
            [one] => one.clone(),
            _ => {
                return Err(refuse(
                    "the texts of several files would run into one another; allowed: one --input, or --out",
                ));
            }
        };
        let is_stdin = path.as_os_str() == "-" && self.format == Format::Auto;
        let format = if is_stdin { Format::Text } else { self.format };
        Ok(Source::Files(Files { blank_lines: true, ..self.files(given, vec![path], format)? }))
    }

    fn files(&self, given: &Given, paths: Vec<PathBuf>, format: Format) -> anyhow::Result<Files> {
        let files = Files {
            format,
            encoding: self.encoding,
            text_field: self.text_field.clone(),
            user_field: self.user_field.clone(),
            bad_utf8: match self.invalid_utf8 {
                InvalidUtf8::Replace => BadUtf8::Replace,
                InvalidUtf8::Refuse => BadUtf8::Refuse,
            },
            ..Files::of(paths)
        };
        // A name that does not tell the format is refused where the file is opened.
        if given.has("text_field") && matches!(files.have_fields(), Ok(false)) {
            return Err(refuse("--text-field has no effect on text, which has no fields; leave it out"));
        }
        Ok(files)
    }
}

/// Refuses records that the model of a private run wrote: what that run cost would be forgotten.
fn check_unwritten(text: &Path) -> anyhow::Result<()> {
    let text = text.canonicalize().unwrap_or_else(|_| text.to_owned());
    let is_compressed = text.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
    let proof = if is_compressed { text.with_extension("") } else { text.clone() }.with_extension("proof");
    let certificate = std::fs::read(proof.join("certificate.json")).map(|bytes| statement::parse(&bytes));
    match certificate {
        Err(_) if !proof.join("ledger.jsonl").exists() => Ok(()),
        Ok(certificate) if certificate["public_data"] == true && certificate["earlier_stages"].is_null() => {
            Ok(())
        }
        _ => Err(refuse(format!(
            "{}: the model of a private run wrote it ({} has its ledger), and this program cannot add that run's ε; allowed: text \
             that no private run wrote; fix: train the vocabulary in a plan of trainer-native, whose data.made_from declares it",
            text.display(),
            proof.display()
        ))),
    }
}

impl Machine {
    pub(super) fn options(&self) -> CountOptions {
        let mut options = CountOptions { memory: self.memory, ..CountOptions::default() };
        options.threads = self.threads.map_or(options.threads, usize::from);
        options.spill_folder.clone_from(&self.spill_folder);
        options
    }
}

/// The least limit on memory. Smaller ones mean nothing beside the memory of the program itself.
const LEAST_MEMORY: usize = 32 << 20;

fn bytes(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) => (digits, 1_usize << (10 * (1 + "KMGT".find(&text[digits.len()..]).unwrap_or(0)))),
        None => (text, 1),
    };
    let size =
        digits.parse::<usize>().ok().and_then(|n| n.checked_mul(factor)).filter(|&n| n >= LEAST_MEMORY);
    size.ok_or_else(|| "allowed: 32M or more, as whole number with K, M, G or T (powers of 1024)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_read_with_their_units_and_small_or_absurd_ones_refused() {
        assert_eq!(bytes("500M"), Ok(500 << 20));
        assert_eq!(bytes("4G"), Ok(4 << 30));
        assert_eq!(bytes("33554432"), Ok(32 << 20));
        for refused in ["", "31M", "M", "-1G", "1.5G", "99999999999T", "4g", "4 G"] {
            assert!(bytes(refused).is_err(), "{refused}");
        }
    }
}
