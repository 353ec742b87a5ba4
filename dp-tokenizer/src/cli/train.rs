//! `train`: release words, train on them, write the files.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use dp_tokenizer::corpus::{Source, expand, read_counts};
use dp_tokenizer::normalize::BertNormalizer;
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{
    BpeConfig, CharacterConfig, Trained, UnigramConfig, WordPieceTraining, bpe, bytes, characters, unigram,
    wordpiece,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::arguments::{Model, Train};
use super::extension::Extension;
use super::failure::refuse;
use super::progress::Progress;

/// The corpus if no file is given.
const EMBEDDED: Source = Source::Embedded { records: 6000, seed: 7 };

pub(super) fn run(arguments: &Train) -> anyhow::Result<()> {
    // Check before hours of work.
    super::vocabulary_options::check(arguments)?;
    let extension = Extension::of(arguments)?;
    let largest = extension.as_ref().map_or(arguments.vocab_size, Extension::largest);
    arguments.output.check_folder(&arguments.out, &FILES, &inputs(arguments)?)?;
    std::fs::create_dir_all(&arguments.out).map_err(|error| {
        refuse(format!("{}: {error}; give a folder that can be written", arguments.out.display()))
    })?;
    let (words, mut privacy, space) = if arguments.public {
        let privacy = json!({"private": false, "reason": "the text was declared public; no noise"});
        (count_public(arguments)?, privacy, None)
    } else {
        let source = source(arguments)?;
        // A release cannot be repeated: its result must find space.
        let space = Space::take(&arguments.out.join(partial(FILES[2])), largest)?;
        let (words, privacy) = super::private::run(arguments, &source)?;
        (words, privacy, Some(space))
    };
    if !arguments.public {
        progress(&format!("training on {} released words", words.len()));
    }
    if let Some(warning) = privacy["warning"].as_str() {
        progress(&format!("warning: {warning}"));
    }
    let trained = match &extension {
        Some(extension) => {
            privacy["extends"] = extension.statement();
            extension.train(&words)?
        }
        None => train(arguments, &words)?,
    };
    if !arguments.public && extension.is_none() && words.len() < arguments.vocab_size {
        progress(&format!(
            "{} released words are fewer than the vocabulary's tokens; a public vocabulary to which they are added \
             (--extend PUBLIC) often needs fewer tokens",
            words.len()
        ));
    }
    if let Some(warning) = trained.warning() {
        progress(&format!("warning: {warning}"));
    }
    let json = trained.tokenizer.to_json();
    // Binds the statement to the tokenizer, for whoever builds on it.
    privacy["tokenizer_sha256"] = sha256_hex(json.as_bytes()).into();
    write(&arguments.out, &trained, json, &privacy)?;
    if let Some(space) = space {
        space.keep();
    }
    summarize(arguments, &trained, words.len(), &privacy)
}

fn train(arguments: &Train, words: &[(String, f64)]) -> anyhow::Result<Trained> {
    let vocab_size = arguments.vocab_size;
    let byte_fallback = !arguments.no_byte_fallback;
    let options = &arguments.options;
    let released = !arguments.public;
    let special_tokens = || [BpeConfig::default().special_tokens, options.symbols.clone()].concat();
    let trained = match arguments.model {
        Model::Unigram => unigram(
            words,
            &UnigramConfig {
                vocab_size,
                byte_fallback,
                symbols: options.symbols.clone(),
                sentinels: options.sentinels,
                character_coverage: options.character_coverage.unwrap_or(1.0),
                normalizer: super::vocabulary_options::normalizer(options)?,
                released,
                ..Default::default()
            },
        ),
        Model::Bpe => bpe(words, &BpeConfig { vocab_size, special_tokens: special_tokens(), released }),
        Model::Wordpiece => {
            let normalizer = if options.cased { BertNormalizer::cased() } else { BertNormalizer::uncased() };
            wordpiece(words, &WordPieceTraining { vocab_size, normalizer, released, ..Default::default() })
        }
        Model::Char => {
            let coverage = options.character_coverage.unwrap_or(CharacterConfig::default().coverage);
            characters(words, &CharacterConfig { vocab_size, coverage, byte_fallback })
        }
        Model::Byte => {
            let special = special_tokens();
            let requested = special.len() + 256;
            bytes(&special).map(|tokenizer| Trained { tokenizer, requested })
        }
    };
    trained.map_err(refuse)
}

fn source(arguments: &Train) -> anyhow::Result<Source> {
    if arguments.corpus.input.is_empty() { Ok(EMBEDDED) } else { arguments.corpus.source() }
}

fn count_public(arguments: &Train) -> anyhow::Result<Vec<(String, f64)>> {
    if !arguments.counts.is_empty() {
        return read_counts(&expand(&arguments.counts).map_err(refuse)?, arguments.words.into())
            .map_err(refuse);
    }
    let source = source(arguments)?;
    let _shown = Progress::of("counting", &source);
    public_corpus_counts(&source, arguments.words.into(), &arguments.machine.options()).map_err(refuse)
}

/// The files of a vocabulary. The statement comes first: without it, a private tokenizer would pass for a public one.
const FILES: [&str; 3] = ["privacy.json", "tokenizer_config.json", "tokenizer.json"];

/// The name of a file that is not complete on the disk.
fn partial(name: &str) -> String {
    format!(".{name}.partial")
}

/// An incomplete file that takes the space of its contents, and is removed if they never come.
struct Space(Option<PathBuf>);

impl Space {
    fn take(path: &Path, vocab_size: usize) -> anyhow::Result<Self> {
        // A piece with its score and its merge takes less.
        let bytes = (vocab_size as u64).saturating_mul(128).min(1 << 30) + (64 << 10);
        let taken = Self(Some(path.to_owned()));
        let written = std::fs::File::create(path).and_then(|mut file| {
            io::copy(&mut io::repeat(0).take(bytes), &mut file).and_then(|_| file.sync_all())
        });
        written.with_context(|| {
            format!("{}: there is no space for the vocabulary, and nothing was spent", path.display())
        })?;
        Ok(taken)
    }

    /// Leaves the file, which the vocabulary has become.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn inputs(arguments: &Train) -> anyhow::Result<Vec<PathBuf>> {
    let named = [arguments.corpus.input.as_slice(), arguments.counts.as_slice()].concat();
    let read = arguments.options.normalizer_of.iter().chain(&arguments.extend).cloned();
    Ok(expand(&named).map_err(refuse)?.into_iter().chain(read).collect())
}

fn write(out: &Path, trained: &Trained, tokenizer: String, privacy: &Value) -> anyhow::Result<()> {
    let texts = [format!("{privacy:#}\n"), trained.tokenizer.to_config_json(), tokenizer];
    for (name, text) in FILES.into_iter().zip(texts) {
        // A file gets its name only when it is complete on disk.
        let (path, partial) = (out.join(name), out.join(partial(name)));
        // Not truncated first, which would give back the space that was taken.
        std::fs::File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&partial)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.set_len(text.len() as u64)?;
                file.sync_all()
            })
            .and_then(|()| std::fs::rename(&partial, &path))
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(())
}

fn summarize(arguments: &Train, trained: &Trained, words: usize, privacy: &Value) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let size = trained.tokenizer.vocab_size();
    let out = arguments.out.display();
    if arguments.json {
        let summary = json!({"out": out.to_string(), "words": words, "vocab_size": size, "privacy": privacy});
        return Ok(writeln!(stdout, "{summary:#}")?);
    }
    let cost = match (&privacy["private"], &privacy["epsilon"]["upper"]) {
        (Value::Bool(true), epsilon) => format!("ε ≤ {epsilon} at δ = {}", privacy["delta"]),
        (_, _) => format!("NOT private: {}", privacy["reason"].as_str().unwrap_or_default()),
    };
    Ok(writeln!(stdout, "{out}: {size} tokens from {words} words; {cost}")?)
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn progress(line: &str) {
    // A closed stderr must not stop the work.
    let _ = writeln!(io::stderr(), "dp-tokenizer: {line}");
}
