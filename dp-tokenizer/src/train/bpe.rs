//! The byte-level BPE trainer.

use super::pairs::{count_pieces, learn};
use super::unseen::complete;
use super::{TrainError, Trained};
use tokenizer::Vocabulary;
use tokenizer::byte_to_char;
use tokenizer::pretokenize::byte_level_words;
use tokenizer::{BLANK, EOS, PAD, Tokenizer, UNK};

/// Settings of the BPE trainer.
#[derive(Clone, Debug, PartialEq)]
pub struct BpeConfig {
    /// The number of tokens wanted, special tokens and bytes included.
    pub vocab_size: usize,
    /// The most bytes of a learnt token; `None` for no limit.
    pub max_piece_length: Option<usize>,
    /// Tokens that are never cut, with the first ids.
    pub special_tokens: Vec<String>,
    /// Whether the words are those of a release, which lacks the rare words of the text. Words invented after them are then
    /// learnt from too, so that pieces of rare words fill the vocabulary.
    pub released: bool,
    /// Whether tokens end at blanks, and where letters, numbers and other characters meet. Without it, the words may be runs of
    /// words, as [`Words::Runs`](crate::count::Words::Runs) counts them, and a text is merged as a whole.
    pub split_by_whitespace: bool,
}

impl Default for BpeConfig {
    fn default() -> Self {
        let special_tokens = [PAD, EOS, UNK].map(str::to_owned).to_vec();
        Self {
            vocab_size: 8000,
            max_piece_length: None,
            special_tokens,
            released: false,
            split_by_whitespace: true,
        }
    }
}

/// Trains a byte-level BPE, as in GPT-2, on words with their counts. A word starts with `▁` if a blank precedes it.
///
/// All 256 bytes are tokens, so nothing is unknown and every text decodes to itself. Counts may be fractions, as noisy ones
/// are, and of any size. The result does not depend on the order of the words.
///
/// ```
/// use dp_tokenizer::train::{BpeConfig, bpe};
/// let words = [("▁low".to_owned(), 5.5), ("▁lower".to_owned(), 2.5)];
/// let tokenizer = bpe(&words, &BpeConfig { vocab_size: 262, ..Default::default() })?.tokenizer;
/// assert_eq!(tokenizer.encode(" low low").len(), 2);
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
///
/// # Errors
/// [`TrainError`] without words, with a count that is not finite and positive, or with too small a `vocab_size`.
///
/// # References
/// Sennrich, Haddow, Birch 2016, <https://arxiv.org/abs/1508.07909>, algorithm 1.
pub fn bpe(words: &[(String, f64)], config: &BpeConfig) -> Result<Trained, TrainError> {
    let completed = config.released.then(|| complete(words).words);
    let pieces = count_pieces(completed.as_deref().unwrap_or(words), |word, take| {
        let word = word.replace(BLANK, " ");
        match config.split_by_whitespace {
            true => byte_level_words(&word).for_each(take),
            false => take(&word),
        }
    })?;
    let mut alphabet: Vec<char> = (0..=255).map(byte_to_char).collect();
    alphabet.sort_unstable();
    let id = |byte: u8| alphabet.iter().position(|c| *c == byte_to_char(byte)).unwrap_or(0) as u32;
    let ids: Vec<u32> = (0..=255).map(id).collect();
    let spelt =
        pieces.iter().map(|(piece, count)| (piece.bytes().map(|b| ids[usize::from(b)]).collect(), *count));
    let room = room(config.vocab_size, config.special_tokens.len() + 256)? + 256;
    let letters = alphabet.iter().map(char::to_string).collect();
    let learnt = learn(spelt.collect(), letters, room, |left, right| {
        // A character of GPT-2's alphabet stands for a byte.
        let length = left.chars().count() + right.chars().count();
        let merged = format!("{left}{right}");
        let fits = length <= config.max_piece_length.unwrap_or(usize::MAX);
        (fits && !config.special_tokens.contains(&merged)).then_some(merged)
    })?;
    let pair = |(left, right): &(u32, u32)| {
        (learnt.symbols[*left as usize].clone(), learnt.symbols[*right as usize].clone())
    };
    let merges = learnt.merges.iter().map(pair).collect();
    let tokens = config.special_tokens.iter().cloned().chain(learnt.symbols).collect();
    let vocabulary = Vocabulary::new(tokens)?;
    let tokenizer =
        Tokenizer::byte_level(vocabulary, merges, &config.special_tokens, config.split_by_whitespace)?;
    Ok(Trained { tokenizer, requested: config.vocab_size })
}

/// Returns the number of tokens to learn, beside the `needed` ones.
pub(super) fn room(vocab_size: usize, needed: usize) -> Result<usize, TrainError> {
    vocab_size.checked_sub(needed).ok_or(TrainError::TooSmall { given: vocab_size, needed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn config(vocab_size: usize) -> BpeConfig {
        BpeConfig { vocab_size, ..BpeConfig::default() }
    }

    fn tokens(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        tokenizer.encode(text).iter().map(|id| tokenizer.token(*id).unwrap().to_owned()).collect()
    }

    #[test]
    fn the_paper_s_example_is_learnt() {
        // Oracle: Sennrich et al. 2016, figure 1: es, est, lo, low from low 5, lower 2, newest 6, widest 3. The
        // figure's end-of-word mark is left out, so "es" and "est" come first all the same.
        let words =
            [("low", 5.0), ("lower", 2.0), ("newest", 6.0), ("widest", 3.0)].map(|(w, n)| (w.to_owned(), n));
        let trained = bpe(&words, &config(3 + 256 + 4)).unwrap().tokenizer;
        let learnt: Vec<_> = (259..263).map(|id| trained.token(id).unwrap()).collect();
        assert_eq!(learnt, ["es", "est", "lo", "low"]);
        assert_eq!(tokens(&trained, "lowest"), ["low", "est"]);
    }

    #[test]
    fn runs_of_words_are_merged_across_blanks() {
        let words = [("▁of", 90.0), ("▁the", 90.0), ("▁of▁the", 80.0), ("end.▁of", 5.0)];
        let words = words.map(|(word, count)| (word.to_owned(), count));
        let across = BpeConfig { split_by_whitespace: false, ..config(280) };
        let trained = bpe(&words, &across).unwrap().tokenizer;
        assert_eq!(
            tokens(&trained, "the of the end. of")[..2],
            ["the", "Ġof Ġthe".replace(' ', "").as_str()]
        );
        let loaded = Tokenizer::from_json(&trained.to_json()).unwrap();
        let text = "of the  end. of\tthe of the".repeat(9);
        assert_eq!(loaded.encode(&text), trained.encode(&text));
        assert_eq!(trained.decode(&trained.encode(&text)), text);
        let within = bpe(&words, &config(280)).unwrap().tokenizer;
        assert_eq!(tokens(&within, " of the"), ["Ġof", "Ġthe"]);
    }

    #[test]
    fn too_small_a_vocabulary_is_refused_and_too_large_a_one_shrinks() {
        let words = [("▁ab".to_owned(), 1.0)];
        assert!(matches!(bpe(&words, &config(258)), Err(TrainError::TooSmall { needed: 259, .. })));
        let trained = bpe(&words, &config(10_000)).unwrap();
        assert_eq!(trained.tokenizer.vocab_size(), 261);
        assert!(trained.warning().is_some());
    }

    #[test]
    fn a_special_token_that_is_a_byte_s_name_is_refused() {
        let twice = BpeConfig { vocab_size: 300, special_tokens: vec!["a".to_owned()], ..Default::default() };
        assert!(matches!(bpe(&[("b".to_owned(), 1.0)], &twice), Err(TrainError::SpecialToken { .. })));
    }

    proptest! {
        #[test]
        fn order_of_words_does_not_matter_and_any_text_comes_back(
            words in prop::collection::vec(("▁?[a-c'é1]{1,6}", 0.1f64..50.0), 1..12),
            text in "\\PC*",
        ) {
            let forward = bpe(&words, &config(290)).unwrap().tokenizer;
            let backward: Vec<_> = words.into_iter().rev().collect();
            let same = bpe(&backward, &config(290)).unwrap().tokenizer;
            prop_assert_eq!(forward.to_json(), same.to_json());
            let loaded = Tokenizer::from_json(&forward.to_json()).unwrap();
            let ids = forward.encode(&text);
            prop_assert_eq!(&loaded.encode(&text), &ids);
            prop_assert_eq!(forward.decode(&ids), text);
        }
    }
}
