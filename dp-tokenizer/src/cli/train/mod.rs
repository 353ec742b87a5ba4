//! `train`: release words, train on them, write the files.

mod arguments;
mod counted;
mod extension;
mod options;
mod prior;
mod private;
mod vocabulary_files;
mod vocabulary_options;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;

use dp_tokenizer::corpus::{expand, public_sketch, read_counts};
use dp_tokenizer::count::Words;
use dp_tokenizer::identity::SKETCH;
use dp_tokenizer::train::words as whole_words;
use dp_tokenizer::train::{
    BpeConfig, CharacterConfig, TrainError, Trained, UnigramConfig, WordPieceTraining, bpe, characters,
    unigram, wordpiece,
};
use serde_json::{Value, json};
use tokenizer::normalize::BertNormalizer;
use tokenizer::{RoleTokens, StageMark, Tokenizer};

use super::failure::refuse;
use super::given::Given;
use super::progress::note;
use super::statement;
use arguments::Text;
pub(super) use arguments::Train;
use counted::Counted;
use extension::Extension;
use prior::Priors;
use vocabulary_files::VocabularyFiles;
use vocabulary_options::ModelName;

/// The result of `train`, whose files are written.
pub(super) struct Summary {
    out: PathBuf,
    words: usize,
    vocab_size: usize,
    /// The content of the vocabulary's privacy.json.
    pub(super) privacy: Value,
}

pub(super) fn run(arguments: &Train, given: &Given) -> anyhow::Result<Summary> {
    // Everything that can be refused is refused before hours of work, and before anything is spent.
    options::check(arguments, given)?;
    let extension = Extension::of(arguments)?;
    let prior = Priors::of(arguments)?;
    let largest = extension.as_ref().map_or(arguments.vocab_size, Extension::largest);
    if extension.is_none() {
        rehearse(arguments, prior.as_ref())?;
    }
    if let Some(warning) = options::warning_of_rules(&arguments.options) {
        note(&format!("warning: {warning}"));
    }
    let planned = (arguments.text() == Text::Private).then(|| private::plan(arguments)).transpose()?;
    if let Some(reason) = arguments.reason_of_words() {
        note(&reason);
    }
    let files = VocabularyFiles::prepare(&arguments.out, &arguments.output, &inputs(arguments)?)?;
    // The folder exists by now, so that a path through it cannot be a second name of a file.
    let text = match arguments.text() {
        Text::None => None,
        Text::Public if !arguments.counts.is_empty() => None,
        Text::Public | Text::Private => Some(Counted::of(arguments, given)?),
    };
    let (words, privacy) = match (&planned, &text) {
        (Some(planned), Some(text)) => {
            files.reserve(largest)?;
            let (words, privacy) = private::run(arguments, planned, text)?;
            files.record(&statement::spent(&privacy))?;
            note(&format!("training on {} released words", words.len()));
            (words, privacy)
        }
        _ if arguments.text() == Text::None => {
            (Vec::new(), json!({"private": false, "reason": "made from no text"}))
        }
        _ => {
            let reason = "the text was declared public; no noise";
            let mut privacy = json!({"private": false, "reason": reason});
            if let Some(Counted::Text(source)) = &text {
                // The sketch tells a later run that calls the same text private.
                privacy["text"] = json!(public_sketch(source, SKETCH).map_err(refuse)?);
            }
            (count_public(arguments, text.as_ref())?, privacy)
        }
    };
    if let Some(warning) = privacy["warning"].as_str() {
        note(&format!("warning: {warning}"));
    }
    let public = Public { extension: extension.as_ref(), prior: prior.as_ref() };
    let made = make(arguments, &public, files, words, privacy);
    if made.is_err() && arguments.text() == Text::Private {
        let out = arguments.out.display();
        note(&format!("{out}/privacy.json records what was spent, and trainer-native history counts it"));
    }
    made
}

/// Public knowledge that a vocabulary is made with.
struct Public<'a> {
    extension: Option<&'a Extension>,
    prior: Option<&'a Priors>,
}

/// Trains on the words and writes the vocabulary.
fn make(
    arguments: &Train,
    Public { extension, prior }: &Public<'_>,
    files: VocabularyFiles,
    words: Vec<(String, f64)>,
    mut privacy: Value,
) -> anyhow::Result<Summary> {
    let words = frequent(arguments, words)?;
    if let Some(prior) = prior {
        privacy["prior"] = prior.statement();
    }
    let trained = match extension {
        Some(extension) => {
            privacy["extends"] = extension.statement();
            extension.train(&words)?
        }
        None => train_to_fit(arguments, *prior, &words)?,
    };
    if arguments.text() == Text::Private
        && extension.is_none()
        && prior.is_none()
        && words.len() < arguments.vocab_size
    {
        note(&format!(
            "{} released words are fewer than the vocabulary's tokens; public words beside them (--prior PUBLIC), or a public vocabulary \
             to which they are added (--extend PUBLIC), need fewer tokens",
            words.len()
        ));
    }
    let added = extension.and_then(|extension| extension.nothing_added(&trained.tokenizer));
    if let Some(warning) = trained.warning().or(added) {
        note(&format!("warning: {warning}"));
    }
    let tokenizer = match privacy["id"].as_str() {
        Some(id) => trained.tokenizer.with_mark(StageMark::new("dp-tokenizer train", id)),
        None => trained.tokenizer,
    };
    let json = tokenizer.to_json();
    // The digest binds the statement to the tokenizer, for programs that build on it.
    privacy["tokenizer_sha256"] = durable::sha256_hex(json.as_bytes()).into();
    files.finish(&privacy, &tokenizer.to_config_json(), &json)?;
    let vocab_size = tokenizer.vocab_size();
    Ok(Summary { out: arguments.out.clone(), words: words.len(), vocab_size, privacy })
}

/// Trains on one public word. This refuses what no words could mend: a vocabulary without room, a special token that is
/// listed twice.
fn rehearse(arguments: &Train, prior: Option<&Priors>) -> anyhow::Result<()> {
    match train(arguments, prior, &[("\u{2581}a".to_owned(), 1.0)])? {
        Ok(_) | Err(TrainError::NoWords) => Ok(()),
        Err(error) => Err(refuse(error)),
    }
}

/// Returns the words with a count of --min-frequency or more: the noisy count, which is released, or that of public
/// text. If no word of a release has it, all are kept, since they are paid for.
fn frequent(arguments: &Train, words: Vec<(String, f64)>) -> anyhow::Result<Vec<(String, f64)>> {
    let Some(least) = arguments.options.min_frequency else { return Ok(words) };
    let kept: Vec<(String, f64)> = words.iter().filter(|word| word.1 >= least).cloned().collect();
    match (kept.is_empty(), arguments.text()) {
        (false, _) => Ok(kept),
        (true, Text::Private) => {
            note(&format!("warning: no released word has a count of {least}; all of them are kept"));
            Ok(words)
        }
        (true, _) => {
            Err(refuse(format!("--min-frequency {least}: no word is as frequent; give a smaller count")))
        }
    }
}

/// Trains on words that are paid for. Where their characters do not fit, words with the rarest ones are left out.
fn train_to_fit(
    arguments: &Train,
    prior: Option<&Priors>,
    words: &[(String, f64)],
) -> anyhow::Result<Trained> {
    let mut kept = words.to_vec();
    loop {
        match train(arguments, prior, &kept)? {
            Err(TrainError::TooSmall { given, needed }) if arguments.text() == Text::Private => {
                // A character takes up to two tokens: one at the beginning of a word, and one inside.
                leave_out_rarest_characters(&mut kept, needed.saturating_sub(given).div_ceil(2));
            }
            other => {
                if kept.len() < words.len() {
                    note(&format!(
                        "warning: --vocab-size {} has no room for all characters of the released words; words with the \
                         rarest ones are left out",
                        arguments.vocab_size
                    ));
                }
                return other.map_err(refuse);
            }
        }
    }
}

/// Drops the words that hold one of the `excess` rarest characters, by the noisy counts of the words. At least one
/// word is dropped.
fn leave_out_rarest_characters(words: &mut Vec<(String, f64)>, excess: usize) {
    let mut counts: BTreeMap<char, f64> = BTreeMap::new();
    for (word, count) in &*words {
        word.chars().filter(|c| !c.is_ascii()).for_each(|c| *counts.entry(c).or_default() += count);
    }
    counts.remove(&'\u{2581}');
    if counts.is_empty() {
        words.pop();
        return;
    }
    let mut ranked: Vec<(char, f64)> = counts.into_iter().collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let rarest: BTreeSet<char> = ranked.into_iter().take(excess.max(1)).map(|(c, _)| c).collect();
    words.retain(|(word, _)| !word.chars().any(|c| rarest.contains(&c)));
}

/// Trains the vocabulary. The outer error reports wrong options, the inner one words that give no vocabulary.
fn train(
    arguments: &Train,
    prior: Option<&Priors>,
    words: &[(String, f64)],
) -> anyhow::Result<Result<Trained, TrainError>> {
    let roles = arguments.options.roles(arguments.model);
    Ok(train_model(arguments, prior, words, &roles)?.map(|Trained { tokenizer, requested }| Trained {
        tokenizer: tokenizer.with_roles(&roles),
        requested,
    }))
}

fn train_model(
    arguments: &Train,
    prior: Option<&Priors>,
    words: &[(String, f64)],
    roles: &RoleTokens,
) -> anyhow::Result<Result<Trained, TrainError>> {
    let vocab_size = arguments.vocab_size;
    let byte_fallback = !arguments.no_byte_fallback;
    let options = &arguments.options;
    let max_piece_length = options.max_piece_length.map(usize::from);
    let special_tokens =
        || roles.names().map(str::to_owned).chain(options.symbols.iter().cloned()).collect::<Vec<_>>();
    Ok(match arguments.model {
        ModelName::Unigram => unigram(
            words,
            &UnigramConfig {
                roles: roles.clone(),
                vocab_size,
                byte_fallback,
                symbols: options.symbols.clone(),
                sentinels: options.sentinels,
                character_coverage: options.character_coverage.unwrap_or(1.0),
                normalizer: self::options::normalizer(options)?,
                required_characters: options.required_characters.clone().unwrap_or_default(),
                max_piece_length: options.max_piece_length,
                split_by_whitespace: arguments.words() != Words::Runs,
                released: (!arguments.public).then(|| arguments.words()),
                prior: prior.map(|prior| prior.words.clone()).unwrap_or_default(),
                ..Default::default()
            },
        ),
        ModelName::Bpe => bpe(
            words,
            &BpeConfig {
                vocab_size,
                max_piece_length,
                special_tokens: special_tokens(),
                released: !arguments.public,
                split_by_whitespace: arguments.words() != Words::Runs,
            },
        ),
        ModelName::Wordpiece | ModelName::Word => {
            let config = word_config(arguments, roles);
            let train = if arguments.model == ModelName::Word { whole_words } else { wordpiece };
            train(words, &config)
        }
        ModelName::Char => {
            let required = options.required_characters.clone().unwrap_or_default();
            let coverage = options.character_coverage.unwrap_or(CharacterConfig::default().coverage);
            characters(
                words,
                &CharacterConfig { vocab_size, required, coverage, byte_fallback, roles: roles.clone() },
            )
        }
        ModelName::Byte => bytes(&special_tokens()),
    })
}

fn bytes(special: &[String]) -> Result<Trained, TrainError> {
    Ok(Trained { tokenizer: Tokenizer::bytes(special)?, requested: special.len() + 256 })
}

fn word_config(arguments: &Train, roles: &RoleTokens) -> WordPieceTraining {
    let options = &arguments.options;
    WordPieceTraining {
        roles: roles.clone(),
        vocab_size: arguments.vocab_size,
        max_piece_length: options.max_piece_length.map(usize::from),
        required_characters: options.required_characters.clone().unwrap_or_default(),
        normalizer: if options.cased { BertNormalizer::cased() } else { BertNormalizer::uncased() },
        released: !arguments.public,
        ..Default::default()
    }
}

/// Returns the words of public text; without a text, those of files of counts.
fn count_public(arguments: &Train, text: Option<&Counted>) -> anyhow::Result<Vec<(String, f64)>> {
    match text {
        Some(text) => text.public(arguments),
        None => {
            let files = expand(&arguments.counts).map_err(refuse)?;
            read_counts(&files, arguments.words()).map_err(refuse)
        }
    }
}

fn inputs(arguments: &Train) -> anyhow::Result<Vec<PathBuf>> {
    let named = [&arguments.corpus.input, &arguments.counts, &arguments.runs].map(Vec::as_slice).concat();
    let options = &arguments.options;
    let read = options
        .normalizer_of
        .iter()
        .chain(&options.normalization_rules)
        .chain(&arguments.extend)
        .chain(&arguments.priors)
        .cloned();
    Ok(expand(&named).map_err(refuse)?.into_iter().chain(read).collect())
}

impl Summary {
    /// Prints the result.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        let Self { out, words, vocab_size, privacy } = self;
        let out = out.display();
        if json {
            let summary =
                json!({"out": out.to_string(), "words": words, "vocab_size": vocab_size, "privacy": privacy});
            return Ok(writeln!(stdout, "{summary:#}")?);
        }
        let cost = statement::guarantee(privacy);
        let learnt = if *words == 0 { String::new() } else { format!(" from {words} words") };
        Ok(writeln!(stdout, "{out}: {vocab_size} tokens{learnt}; {cost}")?)
    }
}
