//! Chooses the word vocabulary: the most frequent words, each a token.

use super::bpe::room;
use super::pairs::count_pieces;
use super::{TrainError, Trained, WordPieceTraining, check_roles};
use tokenizer::Vocabulary;
use tokenizer::pretokenize::bert_words;
use tokenizer::{BLANK, Tokenizer};

/// Chooses the most frequent words. Other words are `[UNK]` as a whole.
///
/// Words are normalized and split as in BERT: the tokenizer is a WordPiece tokenizer without pieces inside words. Of the
/// settings, the alphabet and the required characters have no effect.
///
/// ```
/// use dp_tokenizer::train::{WordPieceTraining, words};
/// let counts = [("▁Fever".to_owned(), 5.5), ("▁rises".to_owned(), 9.5), ("▁rarely".to_owned(), 1.5)];
/// let tokenizer = words(&counts, &WordPieceTraining { vocab_size: 7, ..Default::default() })?.tokenizer;
/// assert_eq!(tokenizer.decode(&tokenizer.encode("fever rarely rises")), "fever [UNK] rises");
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
///
/// # Errors
/// [`TrainError`] without words, with a count that is not finite and positive, or with too small a `vocab_size`.
pub fn words(words: &[(String, f64)], config: &WordPieceTraining) -> Result<Trained, TrainError> {
    check_roles(&config.roles)?;
    let counts = count_pieces(words, |word, take| {
        bert_words(&config.normalizer.normalize(&word.replace(BLANK, " "))).for_each(take);
    })?;
    let most = config.max_piece_length.unwrap_or(usize::MAX);
    let fits = |word: &str| word.chars().count() <= most && config.roles.names().all(|name| name != word);
    let mut ranked: Vec<(String, f64)> = counts.into_iter().filter(|(word, _)| fits(word)).collect();
    // The sort is stable: equally frequent words stay in alphabetical order.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(room(config.vocab_size, config.roles.names().count() + 1)? + 1);
    let special = config.roles.names().map(str::to_owned);
    let tokens = special.chain(ranked.into_iter().map(|(word, _)| word)).collect();
    let tokenizer = Tokenizer::bert_with_roles(Vocabulary::new(tokens)?, config.normalizer, &config.roles)?;
    Ok(Trained { tokenizer, requested: config.vocab_size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_words_are_tokens_and_no_part_of_a_word_is() {
        let counts = [("▁the", 9.0), ("▁then", 5.0), ("▁rare", 1.0), ("▁##n", 0.5)];
        let counts: Vec<(String, f64)> = counts.map(|(word, count)| (word.to_owned(), count)).to_vec();
        let config = WordPieceTraining { vocab_size: 7, ..Default::default() };
        let tokenizer = words(&counts, &config).unwrap().tokenizer;
        let shown = |text: &str| tokenizer.decode(&tokenizer.encode(text));
        assert_eq!(shown("the then thens rare"), "the then [UNK] [UNK]");
        let short =
            words(&counts, &WordPieceTraining { max_piece_length: Some(3), ..config.clone() }).unwrap();
        assert!(short.tokenizer.id("the").is_some() && short.tokenizer.id("then").is_none());
        let small = WordPieceTraining { vocab_size: 5, ..config };
        assert!(matches!(words(&counts, &small), Err(TrainError::TooSmall { needed: 6, .. })));
    }
}
