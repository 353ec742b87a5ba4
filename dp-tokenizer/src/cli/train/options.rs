//! Checks which options of `train` go together. An option without effect is refused.

use mechanisms::{PrivacyUnit, Words};
use tokenizer::normalize::{Charsmap, NormalizationRules, Normalizer};
use tokenizer::sentencepiece::SentencePieceModel;

use super::arguments::{Text, Train};
use super::vocabulary_options::{ModelName, NormalizationRuleName, NormalizerName, VocabularyOptions};
use crate::cli::corpus::WordsName;
use crate::cli::failure::refuse;
use crate::cli::given::Given;

/// Options that only a release uses.
const OF_RELEASE: [&str; 8] =
    ["epsilon", "delta", "unit", "units", "release", "as_published", "relation", "test_key"];
/// Options that only records use.
const OF_RECORDS: [&str; 5] = ["format", "encoding", "text_field", "user_field", "invalid_utf8"];
const OF_COUNTING: [&str; 3] = ["threads", "memory", "spill_folder"];
const OF_TEXT: [&str; 5] = ["input", "counts", "runs", "embedded", "public"];
/// Options that only training uses.
const OF_TRAINING: [&str; 3] = ["words", "vocab_size", "no_byte_fallback"];

/// Refuses options without effect, and settings that are wrong for every text.
pub(super) fn check(arguments: &Train, given: &Given) -> anyhow::Result<()> {
    if arguments.text() == Text::None {
        let why = "with --model byte, which learns nothing";
        for options in [&OF_TEXT[..], &OF_RELEASE, &OF_RECORDS, &OF_COUNTING, &OF_TRAINING] {
            given.refuse_any(options, why)?;
        }
        return check_model(arguments);
    }
    let has_files =
        [&arguments.corpus.input, &arguments.counts, &arguments.runs].iter().any(|files| !files.is_empty());
    if !has_files && !arguments.embedded {
        return Err(refuse(
            "no text: give --input FILE (- for standard input), --runs FILE of count, --counts FILE with --public, or --embedded \
             for invented notes",
        ));
    }
    if !arguments.runs.is_empty() {
        given.refuse_any(&OF_RECORDS, "with --runs, which are counted already")?;
        given.refuse_any(&["threads"], "with --runs, which are counted already")?;
    }
    if arguments.embedded {
        given.refuse_any(&OF_RECORDS, "with --embedded")?;
    }
    if !arguments.counts.is_empty() {
        given.refuse_any(&OF_RECORDS, "with --counts")?;
        given.refuse_any(&OF_COUNTING, "with --counts")?;
    }
    if arguments.public {
        given.refuse_any(&OF_RELEASE, "with --public")?;
    } else if arguments.epsilon.is_none() || arguments.delta.is_none() {
        return Err(refuse("private text needs --epsilon and --delta (or --public if it is not private)"));
    }
    match (arguments.unit, given.has("user_field")) {
        (PrivacyUnit::User, _) | (_, false) => {}
        (unit, true) => {
            return Err(refuse(format!(
                "--user-field has no effect with unit {unit}; add --unit user, or leave it out"
            )));
        }
    }
    if arguments.words.is_some_and(|words| words != WordsName::Runs) && !arguments.options.split_by_whitespace
    {
        return Err(refuse("--split-by-whitespace false is --words runs; leave out the other --words"));
    }
    if matches!(arguments.model, ModelName::Bpe | ModelName::Wordpiece | ModelName::Word) {
        given.refuse_any(&["no_byte_fallback"], "with --model bpe, wordpiece and word")?;
    }
    check_model(arguments)
}

/// Refuses options that the model would ignore.
fn check_model(arguments: &Train) -> anyhow::Result<()> {
    let VocabularyOptions {
        symbols, sentinels, character_coverage, normalizer, normalizer_of, cased, ..
    } = &arguments.options;
    let VocabularyOptions { min_frequency, required_characters, max_piece_length, .. } = &arguments.options;
    let model = arguments.model;
    let is_unigram = matches!(model, ModelName::Unigram);
    let is_across = arguments.words() == Words::Runs;
    let fits = matches!(model, ModelName::Unigram | ModelName::Bpe) && arguments.extend.is_none();
    let normalized = *normalizer != NormalizerName::None
        || normalizer_of.is_some()
        || arguments.options.normalization_rules.is_some()
        || arguments
            .options
            .normalization_rule_name
            .is_some_and(|name| name != NormalizationRuleName::Identity);
    let asked = [
        (
            arguments.words() == Words::AsWritten,
            "--words as-written",
            "unigram and char: bpe and wordpiece cut text at punctuation themselves",
            is_unigram || matches!(model, ModelName::Char),
        ),
        (is_across, "--words runs (--split-by-whitespace false)", "unigram and bpe, without --extend", fits),
        (
            !symbols.is_empty(),
            "--symbol",
            "unigram, bpe and byte",
            !matches!(model, ModelName::Wordpiece | ModelName::Word | ModelName::Char),
        ),
        (*sentinels > 0, "--sentinels", "unigram", is_unigram),
        (!arguments.priors.is_empty(), "--prior", "unigram", is_unigram),
        (
            character_coverage.is_some(),
            "--character-coverage",
            "unigram and char",
            is_unigram || matches!(model, ModelName::Char),
        ),
        (normalized, "a normalizer", "unigram (wordpiece has --cased)", is_unigram),
        (*cased, "--cased", "wordpiece and word", matches!(model, ModelName::Wordpiece | ModelName::Word)),
        (
            required_characters.is_some(),
            "--required-characters",
            "unigram, wordpiece and char (bpe and byte spell every character by its bytes)",
            matches!(model, ModelName::Unigram | ModelName::Wordpiece | ModelName::Char),
        ),
        (
            max_piece_length.is_some(),
            "--max-piece-length",
            "unigram, bpe, wordpiece and word",
            !matches!(model, ModelName::Char | ModelName::Byte),
        ),
        (min_frequency.is_some(), "--min-frequency", "any but byte", !matches!(model, ModelName::Byte)),
    ];
    if let Some((_, what, models, _)) = asked.into_iter().find(|(asked, _, _, fits)| *asked && !fits) {
        return Err(refuse(format!("{what} goes with --model {models}")));
    }
    check_ranges(arguments)
}

/// Refuses settings out of range.
fn check_ranges(arguments: &Train) -> anyhow::Result<()> {
    let VocabularyOptions { sentinels, character_coverage, min_frequency, max_piece_length, .. } =
        &arguments.options;
    if character_coverage.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err(refuse("--character-coverage is a share: above 0, at most 1"));
    }
    if min_frequency.is_some_and(|least| !(least.is_finite() && least > 0.0)) {
        return Err(refuse("--min-frequency is a count: above 0"));
    }
    if arguments.model == ModelName::Unigram && max_piece_length.is_some_and(|most| most > 16) {
        return Err(refuse(
            "--max-piece-length: pieces of unigram have at most 16 characters; allowed: 1 to 16",
        ));
    }
    let roles = arguments.options.roles(arguments.model);
    if let Some(name) = roles.problem() {
        return Err(refuse(format!(
            "--special-token: {name:?} stands there twice, its role does, or text could have this token; allowed: each role once, \
             with a name of its own of two characters or more, without white space, ▁ and ## in front"
        )));
    }
    if *sentinels > arguments.vocab_size {
        return Err(refuse("--sentinels is more than --vocab-size"));
    }
    Ok(())
}

/// Returns a warning if Hugging Face's library reads the rules of normalization differently from SentencePiece.
pub(super) fn warning_of_rules(options: &VocabularyOptions) -> Option<String> {
    let rules = match (&options.normalization_rules, options.normalization_rule_name) {
        (Some(path), _) => NormalizationRules::from_tsv(&std::fs::read_to_string(path).ok()?).ok()?,
        (None, name) => name?.rules()?,
    };
    let from = rules.read_otherwise(&rules.map().ok()?)?;
    let codes = from.chars().map(|c| format!("{:X}", u32::from(c))).collect::<Vec<_>>().join(" ");
    Some(format!(
        "Hugging Face normalizes {codes} otherwise than SentencePiece: it applies the shortest rule to a whole grapheme of at most \
         five bytes; convert refuses where both would differ"
    ))
}

/// Returns the requested normalizer.
pub(super) fn normalizer(options: &VocabularyOptions) -> anyhow::Result<Option<Normalizer>> {
    if let Some(path) = &options.normalizer_of {
        let refused = |error: &dyn std::fmt::Display| refuse(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| refused(&error))?;
        let model = SentencePieceModel::from_bytes(&bytes).map_err(|error| refused(&error))?;
        let map =
            Charsmap::from_bytes(&model.normalizer.precompiled_charsmap).map_err(|error| refused(&error))?;
        return Ok(Some(map.into()));
    }
    if let Some(path) = &options.normalization_rules {
        let refused = |error: &dyn std::fmt::Display| refuse(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
        let rules = NormalizationRules::from_tsv(&text).map_err(|error| refused(&error))?;
        let map = rules.map().map_err(|error| refused(&error))?;
        return Ok(Some(map.into()));
    }
    if let Some(rules) = options.normalization_rule_name.and_then(NormalizationRuleName::rules) {
        return Ok(Some(rules.map().map_err(refuse)?.into()));
    }
    Ok(match options.normalizer {
        NormalizerName::None => None,
        NormalizerName::Nfc => Some(Normalizer::nfc()),
        NormalizerName::Nfkc => Some(Normalizer::nfkc()),
        NormalizerName::NfkcLowercase => Some(Normalizer::nfkc().then(Normalizer::lowercase())),
    })
}
