//! Obtains the tokenizer of a run: trained on privately released words, read from a public file, or with one token per
//! byte.

use std::path::Path;

use dp_tokenizer::count::{CountOptions, UnitItems};
use dp_tokenizer::release::{ReleaseConfig, check_units, public_corpus_counts, release_items};
use dp_tokenizer::train::{
    BpeConfig, CharacterConfig, TrainError, Trained, UnigramConfig, WordPieceTraining, bpe, characters,
    extend, joint_prior, nothing_added, prior_words, unigram, wordpiece,
};
use mechanisms::{PrivacyRng, Words};
use plan::CertifiedPlan;
use tokenizer::normalize::BertNormalizer;
use tokenizer::{StageMark, Tokenizer};

use crate::RunError;
use crate::chat;
use crate::data::vocabulary_source;
use crate::disclosure::Private;
use crate::objective::{Objective, special_tokens};
use crate::progress::note;
use crate::store::{RunStore, files};
use crate::token_frequencies::{ReleasedWords, WordCounts};
use crate::word_counting::{self, unreadable};
use durable::sha256_hex;

/// Character that stands for a blank in the words of a vocabulary.
const BLANK: &str = "\u{2581}";

/// Returns the tokenizer of the run: the saved one, or else a new one, which is then saved.
///
/// A private release is charged on the ledger before any noise is drawn. A trial of a sweep uses the vocabulary that
/// the sweep released for all trials, if there is one. `counted` holds the words of the text, if the ranks counted them.
pub(crate) fn obtain(
    plan: &CertifiedPlan,
    base: &Path,
    store: &mut RunStore<'_>,
    shared: Option<&Path>,
    rng: &dyn PrivacyRng,
    counted: Option<Private<UnitItems>>,
) -> Result<Tokenizer, RunError> {
    let path = store.path().join(files::TOKENIZER);
    if let Some(json) = store.tokenizer()? {
        return parse(&json, &path);
    }
    let json = match shared {
        // The file is taken byte for byte, so that it has the digest that the sweep's ledger names.
        Some(shared) => text(&durable::read(shared)?, shared)?.to_owned(),
        None => make(plan, base, store, rng, counted)?,
    };
    let tokenizer = parse(json.as_bytes(), &path)?;
    store.save_tokenizer(&json)?;
    Ok(tokenizer)
}

/// Refuses a public tokenizer that the objective cannot use, or a vocabulary too small for any words, before anything is written
/// or charged.
pub(crate) fn check(plan: &CertifiedPlan, base: &Path) -> Result<(), RunError> {
    match plan.plan().tokenizer() {
        plan::Tokenizer::Public(public) => {
            let path = base.join(&public.path);
            Objective::new(plan.plan(), &read_file(&path)?, chat::of_plan(plan.plan(), base)?.as_ref())
                .map(|_| ())
        }
        plan::Tokenizer::Train(settings) => {
            let training = plan.plan().training();
            let special = special_tokens(training.objective, plan.plan().model().context as usize).len();
            check_smallest(settings, special, &prior(settings, base)?)
        }
        plan::Tokenizer::Extend(settings) => {
            let public = read_file(&base.join(&settings.path))?;
            Objective::new(plan.plan(), &public, None)?;
            extended(settings, &public, &[(format!("{BLANK}a"), 1.0)]).map(|_| ())
        }
        plan::Tokenizer::Bytes => Ok(()),
    }
}

/// Returns the largest number of tokens that the plan's vocabulary can have. The number of a public
/// tokenizer is read from its file.
///
/// # Errors
/// [`RunError::Refused`] if the file cannot be read.
pub fn most_tokens(plan: &plan::Plan, base: &Path) -> Result<u32, RunError> {
    let in_file = |path: &str| read_file(&base.join(path)).map(|public| public.vocab_size() as u32);
    match plan.tokenizer() {
        plan::Tokenizer::Public(public) => in_file(&public.path),
        plan::Tokenizer::Extend(settings) => {
            Ok(in_file(&settings.path)?.saturating_add(settings.added_tokens))
        }
        stated => Ok(stated.least_vocabulary()),
    }
}

/// Returns the SHA-256 of the plan's public tokenizer or of its public priors, in hexadecimal; empty if it has none.
///
/// # Errors
/// [`RunError::Refused`] if the file cannot be read.
pub(crate) fn public_digests(plan: &plan::Plan, base: &Path) -> Result<Vec<String>, RunError> {
    let tokenizer = plan.tokenizer();
    let files = tokenizer.file().into_iter().chain(tokenizer.prior().iter().map(String::as_str));
    files.map(|path| Ok(sha256_hex(&durable::read(&base.join(path))?))).collect()
}

/// Returns the pieces of the plan's public priors, with their shares. Paths start at `base`.
///
/// # Errors
/// [`RunError::Refused`] for a file that is no `tokenizer.json`, or without pieces of words.
pub fn prior(settings: &plan::TrainedTokenizer, base: &Path) -> Result<Vec<(String, f64)>, RunError> {
    let read = |path: &String| {
        let words = prior_words(&read_file(&base.join(path))?);
        match words.is_empty() {
            true => Err(RunError::Refused(format!(
                "tokenizer.train.prior: {path}: none of its tokens is a piece of a word; allowed: a tokenizer with learnt pieces; fix: name \
                 another public tokenizer.json, or remove it"
            ))),
            false => Ok(words),
        }
    };
    Ok(joint_prior(&settings.prior.iter().map(read).collect::<Result<Vec<_>, _>>()?))
}

/// Extends the public tokenizer by released words.
fn extended(
    settings: &plan::ExtendedTokenizer,
    public: &Tokenizer,
    words: &[(String, f64)],
) -> Result<Tokenizer, RunError> {
    let extended = extend(public, words, settings.added_tokens as usize)
        .map_err(|error| RunError::Refused(format!("tokenizer.extend.path: {}: {error}", settings.path)))?
        .tokenizer;
    if let Some(warning) = nothing_added(public, &extended) {
        note(&format!("tokenizer.extend: {warning}"));
    }
    Ok(extended)
}

/// Trains the plan's kind of vocabulary, with room for `special` more tokens, on the released words
/// and those of a public prior alone. Pieces of invented words would save tokens, but under noise a model
/// learns a larger vocabulary worse (quickstart: a perplexity per word of 210 with 2,048 tokens,
/// 148 with 1,080).
fn train(
    settings: &plan::TrainedTokenizer,
    special: usize,
    words: &[(String, f64)],
    prior: &[(String, f64)],
) -> Result<Trained, TrainError> {
    let vocab_size = (settings.vocab_size as usize).saturating_sub(special);
    let byte_fallback = settings.byte_fallback;
    let cased = settings.model == plan::TokenizerModel::WordpieceCased;
    match settings.model {
        plan::TokenizerModel::Unigram => {
            let kind = if settings.words == Words::AsWritten { Words::AsWritten } else { Words::ByClass };
            let (released, prior) = ((!prior.is_empty()).then_some(kind), prior.to_vec());
            let config = UnigramConfig { released, prior, ..UnigramConfig::default() };
            unigram(words, &UnigramConfig { vocab_size, byte_fallback, ..config })
        }
        plan::TokenizerModel::Bpe => bpe(words, &BpeConfig { vocab_size, ..BpeConfig::default() }),
        plan::TokenizerModel::Wordpiece | plan::TokenizerModel::WordpieceCased => {
            let normalizer = if cased { BertNormalizer::cased() } else { BertNormalizer::uncased() };
            let config = WordPieceTraining { vocab_size, normalizer, ..WordPieceTraining::default() };
            // A charged release must lead to a vocabulary. Each character may need two tokens, and
            // words may take half of the places.
            let alphabet_limit = config.alphabet_limit.min(vocab_size / 4);
            wordpiece(words, &WordPieceTraining { alphabet_limit, ..config })
        }
        plan::TokenizerModel::Char => {
            characters(words, &CharacterConfig { vocab_size, byte_fallback, ..CharacterConfig::default() })
        }
    }
}

/// Reads the tokenizer of a run folder.
pub fn read(folder: &Path) -> Result<Tokenizer, RunError> {
    read_file(&folder.join(files::TOKENIZER))
}

/// Reads a `tokenizer.json`, with what the files beside it state of its special tokens.
pub(crate) fn read_file(path: &Path) -> Result<Tokenizer, RunError> {
    if path.extension().is_some_and(|extension| extension != "json") && path.is_file() {
        return Err(RunError::Refused(format!(
            "{0}: only tokenizer.json is read here; convert it with `dp-tokenizer convert --tokenizer {0} --allow-rare-differences --out tokenizer.json`",
            path.display()
        )));
    }
    let read = parse(&durable::read(path)?, path)?;
    let beside = path.with_file_name(files::TOKENIZER_CONFIG);
    if !beside.is_file() {
        return Ok(read);
    }
    let config = durable::read(&beside)?;
    read.with_config(text(&config, &beside)?)
        .map_err(|error| RunError::Refused(format!("{}: {error}", beside.display())))
}

fn parse(bytes: &[u8], path: &Path) -> Result<Tokenizer, RunError> {
    Tokenizer::from_json(text(bytes, path)?).map_err(|error| RunError::Refused(error.in_file(path)))
}

fn text<'a>(bytes: &'a [u8], path: &Path) -> Result<&'a str, RunError> {
    std::str::from_utf8(bytes).map_err(|error| RunError::Refused(format!("{}: {error}", path.display())))
}

fn make(
    plan: &CertifiedPlan,
    base: &Path,
    store: &mut RunStore<'_>,
    rng: &dyn PrivacyRng,
    counted: Option<Private<UnitItems>>,
) -> Result<String, RunError> {
    // The special tokens of the objective follow the learnt ones and count towards the plan's limit.
    let special = special_tokens(plan.plan().training().objective, plan.plan().model().context as usize);
    let completed = |tokenizer: Tokenizer| {
        let tokenizer = tokenizer.with_special_tokens(&special);
        if plan.plan().model().family.has_decoder_context() {
            tokenizer.with_end_after_texts()
        } else {
            tokenizer
        }
    };
    match plan.plan().tokenizer() {
        plan::Tokenizer::Public(public) => Ok(read_file(&base.join(&public.path))?.to_json()),
        plan::Tokenizer::Bytes => Ok(completed(bytes_only()?).to_json()),
        plan::Tokenizer::Extend(settings) => {
            let public = read_file(&base.join(&settings.path))?;
            let words = words(plan, base, store, rng, public.to_json().len() as u64, counted)?;
            marked(extended(settings, &public, &words.words)?, &words, plan, base, store)
        }
        plan::Tokenizer::Train(settings) => {
            let prior = prior(settings, base)?;
            let words = words(plan, base, store, rng, 0, counted)?;
            let trained = train(settings, special.len(), &words.words, &prior)
                .map_err(|error| RunError::Refused(format!("tokenizer.train: {error}")))?;
            if let Some(warning) = trained.warning() {
                note(&format!("tokenizer.train: {warning}"));
            }
            marked(completed(trained.tokenizer), &words, plan, base, store)
        }
    }
}

/// Marks the tokenizer as the run's, if it holds words of private text. The mark has the log-probabilities of the
/// tokens that the model will predict, estimated from the released counts and, for a warm start, the counts themselves.
fn marked(
    tokenizer: Tokenizer,
    words: &ReleasedWords,
    plan: &CertifiedPlan,
    base: &Path,
    store: &RunStore<'_>,
) -> Result<String, RunError> {
    let Some(release) = plan.tokenizer_release() else { return Ok(tokenizer.to_json()) };
    let mut mark = StageMark::new("trainer-native", &store.ledger().header().id);
    let plan = plan.plan();
    if !plan.tokenizer().prior().is_empty() {
        mark = mark.with_prior(&public_digests(plan, base)?);
    }
    let a_text = words.words_a_text(plan.data().units, release.method.count_share() > 0.0);
    if !plan.training().objective.has_labels() {
        let objective = Objective::new(plan, &tokenizer, chat::of_plan(plan, base)?.as_ref())?;
        let counts = WordCounts { words, words_a_text: a_text };
        mark = mark.with_log_probabilities(&counts.log_probabilities(&tokenizer, &objective));
    }
    if plan.training().warm_start.is_some() {
        mark = mark.with_words(&words.words, &words.pairs, a_text);
        if !words.by_label.is_empty() {
            mark = mark.with_words_by_label(&words.by_label);
        }
    }
    Ok(tokenizer.with_mark(mark).to_json())
}

/// Returns the words of the training text, released privately if the text is private. The
/// tokenizer's file will take `space` bytes beside those of new tokens. `counted` holds the words, if they are counted already.
///
/// Private text is counted before the release is charged, and the noise is drawn last. Therefore text
/// that cannot be counted, or has units that the method does not take, costs nothing.
fn words(
    plan: &CertifiedPlan,
    base: &Path,
    store: &mut RunStore<'_>,
    rng: &dyn PrivacyRng,
    space: u64,
    counted: Option<Private<UnitItems>>,
) -> Result<ReleasedWords, RunError> {
    let source = vocabulary_source(plan.plan(), base);
    let words = plan.plan().tokenizer().release().map(|(_, words)| words).unwrap_or_default();
    let Some(planned) = plan.tokenizer_release() else {
        let counts = public_corpus_counts(&source, words, &CountOptions::default());
        return Ok(ReleasedWords::of(counts.map_err(|error| unreadable(&error))?, words));
    };
    let failed = |error: &dyn std::fmt::Display| RunError::Failed(format!("vocabulary release: {error}"));
    let unit = plan.plan().privacy().unit;
    let config =
        ReleaseConfig::planned(planned.method, unit, planned.noise_multiplier, planned.threshold_delta)
            .map_err(|error| failed(&error))?;
    if config.event() != planned.event {
        return Err(failed(&"its event differs from the event that the plan certifies"));
    }
    let items = match counted {
        Some(items) => items,
        None => word_counting::count(&source, unit, planned.words, &CountOptions::default())?,
    };
    check_units(items.for_mechanism(), &config).map_err(|error| unreadable(&error))?;
    let space = space + space_for(plan.plan().tokenizer());
    store.charge_release(config.event(), rng.source(), space)?;
    let released = release_items(items.for_mechanism(), &config, rng).map_err(|error| failed(&error))?;
    if released.words.is_empty() {
        return Err(RunError::Refused(
            "tokenizer: no word passed the release's threshold; give more units or a larger \
             privacy.tokenizer_share, or use \"bytes\" or a public tokenizer"
                .to_owned(),
        ));
    }
    Ok(ReleasedWords::of(released.words, words))
}

fn check_smallest(
    settings: &plan::TrainedTokenizer,
    special: usize,
    prior: &[(String, f64)],
) -> Result<(), RunError> {
    match train(settings, special, &[(BLANK.to_owned(), 1.0)], prior) {
        Err(TrainError::TooSmall { given, needed }) => Err(RunError::Refused(format!(
            "tokenizer.train.vocab_size: {}, of which {special} are special tokens of the objective; allowed: at least {}, for the \
             bytes and characters that every vocabulary has; fix: raise it, better to some thousands",
            given + special,
            needed + special
        ))),
        _ => Ok(()),
    }
}

/// Returns the number of bytes that a tokenizer's file may take on the disk.
fn space_for(tokenizer: &plan::Tokenizer) -> u64 {
    /// Number of bytes for each token: a piece of 16 characters with its escapes and its score, indented, and the same
    /// for its merge rule.
    const PER_TOKEN: u64 = 256;
    const STAGES: u64 = 64 << 10;
    match tokenizer {
        plan::Tokenizer::Train(settings) => u64::from(settings.vocab_size) * PER_TOKEN + STAGES,
        plan::Tokenizer::Extend(settings) => u64::from(settings.added_tokens) * PER_TOKEN + STAGES,
        plan::Tokenizer::Public(_) | plan::Tokenizer::Bytes => 0,
    }
}

/// Builds a tokenizer with one token for each printable ASCII character and each byte, beside the
/// special tokens and the blank.
fn bytes_only() -> Result<Tokenizer, RunError> {
    let words = [(BLANK.to_owned(), 1.0)];
    let smallest = |vocab_size| unigram(&words, &UnigramConfig { vocab_size, ..UnigramConfig::default() });
    let trained = match smallest(1) {
        Err(TrainError::TooSmall { needed, .. }) => smallest(needed),
        other => other,
    };
    trained.map(|trained| trained.tokenizer).map_err(|error| RunError::Failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dp_tokenizer::corpus::{Source, open};
    use dp_tokenizer::release::release;
    use dp_tokenizer::unit::pieces;
    use mechanisms::{PrivacyUnit, Purpose, ReleaseMethod, TestRng};

    use super::*;

    /// Writes 2 MB of lines with common and rare words.
    fn corpus(folder: &Path) -> Source {
        let path = folder.join("corpus.txt");
        let mut draws = TestRng::from_seed(5).stream(Purpose::Data, 0, 0);
        let mut text = String::new();
        for _ in 0..12_000 {
            let most = 1 + draws.below(8000);
            (0..20).for_each(|_| text.push_str(&format!(" w{}", draws.below(most))));
            text.push('\n');
        }
        std::fs::write(&path, text).unwrap();
        Source::files([path])
    }

    /// The ids of a text in Hugging Face libraries are those that the model reads: with the end-of-text token that training puts after
    /// what an encoder reads, and without it for a decoder.
    #[test]
    fn a_tokenizer_ends_texts_for_an_encoder_with_a_decoder_and_for_no_other_family() {
        use tokenizer::Encoding;

        let trained =
            serde_json::json!({ "train": { "model": "unigram", "vocab_size": 400, "release": "pooled" } });
        let cases = [
            ("t5_v1_1", "span_corruption", trained.clone(), true),
            ("t5", "prefix_lm", serde_json::json!("bytes"), true),
            ("gpt2", "causal_lm", trained, false),
        ];
        for (family, objective, tokenizer, is_ended) in cases {
            let folder = tempfile::tempdir().unwrap();
            let plan = serde_json::json!({
                "version": 1, "name": family,
                "data": { "source": { "embedded": { "records": 60, "seed": 7 } }, "units": 60, "visibility": "public" },
                "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-3, "sampling": "poisson" },
                "tokenizer": tokenizer,
                "model": { "family": family, "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 16 },
                "training": { "objective": objective, "expected_batch_size": 6, "steps": 1, "l2_clip_norm": 1.0,
                    "optimizer": { "sgd": {} }, "learning_rate": { "peak": 0.1 } }
            });
            let path = folder.path().join("plan.json");
            std::fs::write(&path, plan.to_string()).unwrap();
            crate::run::run(&crate::run::Request {
                out: Some(folder.path().join("run")),
                ..crate::run::Request::new(path)
            })
            .unwrap();
            let tokenizer = read_file(&folder.path().join("run/tokenizer.json")).unwrap();
            let ids = tokenizer.encode("pain");
            let ended = tokenizer.post_process(Encoding { ids: ids.clone(), ..Encoding::default() }).ids;
            let end: Vec<u32> = tokenizer.eos_id().filter(|_| is_ended).into_iter().collect();
            assert_eq!(ended, [ids, end].concat(), "{family}");
        }
    }

    #[test]
    fn a_corpus_beyond_the_memory_gives_the_words_that_a_single_pass_in_memory_gives() {
        let folder = tempfile::tempdir().unwrap();
        let source = corpus(folder.path());
        let rng = TestRng::from_seed(3);
        let options = |threads, memory| CountOptions { threads, memory, spill_folder: None };
        for unit in [PrivacyUnit::Record, PrivacyUnit::Words(7)] {
            let fits = |method: &ReleaseMethod| !method.is_of_paper() || unit != PrivacyUnit::Record;
            for method in ReleaseMethod::ALL.into_iter().filter(fits) {
                let config = ReleaseConfig::planned(method, unit, 0.5, 1e-4).unwrap();
                let in_memory = pieces(open(&source).unwrap(), unit).unwrap();
                let in_memory = release(in_memory, Words::ByClass, &config, &rng).unwrap().words;
                assert!(in_memory.len() > 50, "{}", in_memory.len());
                for options in [options(1, usize::MAX), options(2, 64 << 10)] {
                    let counted = word_counting::count(&source, unit, Words::ByClass, &options).unwrap();
                    let released = release_items(counted.for_mechanism(), &config, &rng).unwrap();
                    assert!(released.words == in_memory, "{unit:?} {method:?} {options:?}");
                }
            }
        }
    }

    #[test]
    fn counting_needs_a_temporary_file_only_beyond_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let source = corpus(folder.path());
        let nowhere = Some(PathBuf::from("/nowhere"));
        let count = |memory| {
            let options = CountOptions { threads: 2, memory, spill_folder: nowhere.clone() };
            word_counting::count(&source, PrivacyUnit::Record, Words::ByClass, &options).map(|_| ())
        };
        assert!(count(1 << 30).is_ok());
        let refused = count(64 << 10).unwrap_err().to_string();
        assert!(refused.contains("temporary files in /nowhere"), "{refused}");
    }
}
