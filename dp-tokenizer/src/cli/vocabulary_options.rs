//! Which options of a vocabulary go with which model.

use dp_tokenizer::format::sentencepiece::SentencePieceModel;
use dp_tokenizer::normalize::{Charsmap, Normalizer};

use super::arguments::{Model, NormalizerName, Train, VocabularyOptions, WordsName};
use super::failure::refuse;

/// Refuses options that the model would ignore.
pub(super) fn check(arguments: &Train) -> anyhow::Result<()> {
    let VocabularyOptions { symbols, sentinels, character_coverage, normalizer, normalizer_of, cased } =
        &arguments.options;
    let model = arguments.model;
    let is_unigram = matches!(model, Model::Unigram);
    let normalized = *normalizer != NormalizerName::None || normalizer_of.is_some();
    let asked = [
        (
            arguments.words == WordsName::AsWritten,
            "--words as-written",
            "unigram and char: bpe and wordpiece cut text at punctuation themselves",
            is_unigram || matches!(model, Model::Char),
        ),
        (
            !symbols.is_empty(),
            "--symbol",
            "unigram, bpe and byte",
            !matches!(model, Model::Wordpiece | Model::Char),
        ),
        (*sentinels > 0, "--sentinels", "unigram", is_unigram),
        (
            character_coverage.is_some(),
            "--character-coverage",
            "unigram and char",
            is_unigram || matches!(model, Model::Char),
        ),
        (normalized, "a normalizer", "unigram (wordpiece has --cased)", is_unigram),
        (*cased, "--cased", "wordpiece", matches!(model, Model::Wordpiece)),
    ];
    if let Some((_, what, models, _)) = asked.into_iter().find(|(asked, _, _, fits)| *asked && !fits) {
        return Err(refuse(format!("{what} goes with --model {models}")));
    }
    if character_coverage.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err(refuse("--character-coverage is a share: above 0, at most 1"));
    }
    if *sentinels > arguments.vocab_size {
        return Err(refuse("--sentinels is more than --vocab-size"));
    }
    Ok(())
}

/// The requested normalizer.
pub(super) fn normalizer(options: &VocabularyOptions) -> anyhow::Result<Option<Normalizer>> {
    if let Some(path) = &options.normalizer_of {
        let refused = |error: &dyn std::fmt::Display| refuse(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| refused(&error))?;
        let model = SentencePieceModel::from_bytes(&bytes).map_err(|error| refused(&error))?;
        let map =
            Charsmap::from_bytes(&model.normalizer.precompiled_charsmap).map_err(|error| refused(&error))?;
        return Ok(Some(Normalizer::Precompiled(map)));
    }
    Ok(match options.normalizer {
        NormalizerName::None => None,
        NormalizerName::Nfc => Some(Normalizer::Nfc),
        NormalizerName::Nfkc => Some(Normalizer::Nfkc),
        NormalizerName::NfkcLowercase => {
            Some(Normalizer::Sequence(vec![Normalizer::Nfkc, Normalizer::Lowercase]))
        }
    })
}
