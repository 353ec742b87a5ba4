//! What a vocabulary is made of beside learnt pieces: which choices go with which model.

use dp_tokenizer::format::sentencepiece::SentencePieceModel;
use dp_tokenizer::normalize::{Charsmap, Normalizer};

use super::arguments::{Model, NormalizerName, Shape, Train};
use super::failure::refuse;

/// Refuses what the model would ignore.
pub(super) fn check(arguments: &Train) -> anyhow::Result<()> {
    let Shape { symbols, sentinels, character_coverage, normalizer, normalizer_of, cased } = &arguments.shape;
    let model = arguments.model;
    let is_unigram = matches!(model, Model::Unigram);
    let normalized = *normalizer != NormalizerName::None || normalizer_of.is_some();
    let asked = [
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
        (normalized, "a normaliser", "unigram (wordpiece has --cased)", is_unigram),
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

/// The normaliser that was asked for.
pub(super) fn normalizer(shape: &Shape) -> anyhow::Result<Option<Normalizer>> {
    if let Some(path) = &shape.normalizer_of {
        let refused = |error: &dyn std::fmt::Display| refuse(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| refused(&error))?;
        let model = SentencePieceModel::from_bytes(&bytes).map_err(|error| refused(&error))?;
        let map =
            Charsmap::from_bytes(&model.normalizer.precompiled_charsmap).map_err(|error| refused(&error))?;
        return Ok(Some(Normalizer::Precompiled(map)));
    }
    Ok(match shape.normalizer {
        NormalizerName::None => None,
        NormalizerName::Nfc => Some(Normalizer::Nfc),
        NormalizerName::Nfkc => Some(Normalizer::Nfkc),
        NormalizerName::NfkcLowercase => {
            Some(Normalizer::Sequence(vec![Normalizer::Nfkc, Normalizer::Lowercase]))
        }
    })
}
