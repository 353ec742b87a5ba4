//! The WordPiece trainer: merges by count, as in the public re-implementations of BERT's.

use std::collections::BTreeMap;

use super::bpe::room;
use super::pairs::{count_pieces, learn};
use super::unseen::complete;
use super::{TrainError, Trained, check_roles};
use tokenizer::Vocabulary;
use tokenizer::character_class::{is_bert_punctuation, is_cjk_ideograph};
use tokenizer::normalize::BertNormalizer;
use tokenizer::pretokenize::bert_words;
use tokenizer::{BLANK, RoleTokens, Tokenizer};

const PREFIX: &str = "##";

/// Settings of the WordPiece trainer.
#[derive(Clone, Debug, PartialEq)]
pub struct WordPieceTraining {
    /// The number of tokens wanted, special tokens and characters included.
    pub vocab_size: usize,
    /// The most characters of a learnt token without its prefix; `None` for no limit.
    pub max_piece_length: Option<usize>,
    /// Characters that are kept whatever the words hold.
    pub required_characters: String,
    /// The tokens with the first ids. One of them is for the unknown.
    pub roles: RoleTokens,
    /// The normalization of text, in training and in encoding.
    pub normalizer: BertNormalizer,
    /// The most different characters that are kept, by frequency. Words with others are not learnt from.
    pub alphabet_limit: usize,
    /// Whether the words are those of a release, which lacks the rare words of the text. Words invented after them are then
    /// learnt from too, so that pieces of rare words fill the vocabulary.
    pub released: bool,
}

impl Default for WordPieceTraining {
    fn default() -> Self {
        Self {
            vocab_size: 8000,
            max_piece_length: None,
            required_characters: String::new(),
            roles: RoleTokens::of_bert(),
            normalizer: BertNormalizer::uncased(),
            alphabet_limit: 1000,
            released: false,
        }
    }
}

/// Trains a WordPiece vocabulary with BERT's special tokens on words with their counts.
///
/// A word may start with `▁` if a blank precedes it. Words are normalized and split as in BERT. The result does not depend on
/// the order of the words.
///
/// ```
/// use dp_tokenizer::train::{WordPieceTraining, wordpiece};
/// let words = [("▁Unable".to_owned(), 5.5), ("▁able".to_owned(), 9.5)];
/// let tokenizer = wordpiece(&words, &WordPieceTraining { vocab_size: 24, ..Default::default() })?.tokenizer;
/// assert_eq!(tokenizer.decode(&tokenizer.encode("Able, unable")), "able [UNK] unable");
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
///
/// # Errors
/// [`TrainError`] without words, with a count that is not finite and positive, or with too small a `vocab_size`.
pub fn wordpiece(words: &[(String, f64)], config: &WordPieceTraining) -> Result<Trained, TrainError> {
    check_roles(&config.roles)?;
    let completed = config.released.then(|| complete(words).words);
    let pieces = count_pieces(completed.as_deref().unwrap_or(words), |word, take| {
        bert_words(&config.normalizer.normalize(&word.replace(BLANK, " "))).for_each(take);
    })?;
    let mut alphabet = alphabet(&pieces, config.alphabet_limit);
    bert_words(&config.normalizer.normalize(&config.required_characters))
        .for_each(|word| alphabet.extend(word.chars()));
    alphabet.sort_unstable();
    alphabet.dedup();
    // Each character that can stand inside a word also continues words, so that no word of known characters is unknown.
    let alone = |c: &char| {
        is_bert_punctuation(*c) || (config.normalizer.handle_chinese_chars && is_cjk_ideograph(*c))
    };
    let inner: Vec<char> = alphabet.iter().copied().filter(|c| !alone(c)).collect();
    let letters: Vec<String> =
        alphabet.iter().map(char::to_string).chain(inner.iter().map(|c| format!("{PREFIX}{c}"))).collect();
    let opening: BTreeMap<char, u32> = alphabet.iter().copied().zip(0..).collect();
    let inside: BTreeMap<char, u32> = inner.iter().copied().zip(alphabet.len() as u32..).collect();
    let spell = |word: &str| -> Option<Vec<u32>> {
        let ids = |place: usize| if place == 0 { &opening } else { &inside };
        word.chars().enumerate().map(|(place, c)| ids(place).get(&c).copied()).collect()
    };
    let spelt = pieces.iter().filter_map(|(word, count)| Some((spell(word)?, *count))).collect();
    let limit = room(config.vocab_size, config.roles.names().count() + letters.len())? + letters.len();
    let most = config.max_piece_length.unwrap_or(usize::MAX);
    let join = |left: &str, right: &str| {
        let joined = format!("{left}{}", right.strip_prefix(PREFIX).unwrap_or(right));
        let fits = joined.strip_prefix(PREFIX).unwrap_or(&joined).chars().count() <= most;
        (fits && config.roles.names().all(|name| name != joined)).then_some(joined)
    };
    let learnt = learn(spelt, letters, limit, join)?;
    let tokens = config.roles.names().map(str::to_owned).chain(learnt.symbols).collect();
    let tokenizer = Tokenizer::bert_with_roles(Vocabulary::new(tokens)?, config.normalizer, &config.roles)?;
    Ok(Trained { tokenizer, requested: config.vocab_size })
}

/// Returns the most frequent characters, in order of code point.
fn alphabet(pieces: &BTreeMap<String, f64>, limit: usize) -> Vec<char> {
    let mut counts: BTreeMap<char, f64> = BTreeMap::new();
    for (word, count) in pieces {
        word.chars().for_each(|c| *counts.entry(c).or_default() += count);
    }
    let mut ranked: Vec<(char, f64)> = counts.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(limit);
    let mut alphabet: Vec<char> = ranked.into_iter().map(|(c, _)| c).collect();
    alphabet.sort_unstable();
    alphabet
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn config(vocab_size: usize) -> WordPieceTraining {
        WordPieceTraining { vocab_size, ..WordPieceTraining::default() }
    }

    #[test]
    fn frequent_words_become_tokens_and_rare_ones_are_cut() {
        let words = [("▁hugs".to_owned(), 5.0), ("▁hug".to_owned(), 10.0), ("▁pug".to_owned(), 5.0)];
        // The characters are g h p s u. By hand: ##ug 20, then hug 15, then hugs and pug 5 each, of which hugs has the
        // smaller indices.
        let tokenizer = wordpiece(&words, &config(5 + 10 + 3)).unwrap().tokenizer;
        let learnt: Vec<_> = (15..18).map(|id| tokenizer.token(id).unwrap()).collect();
        assert_eq!(learnt, ["##ug", "hug", "pug"]);
        let ids = tokenizer.encode("HUGS pug");
        assert_eq!(
            ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect::<Vec<_>>(),
            ["hug", "##s", "pug"]
        );
    }

    #[test]
    fn rare_characters_beyond_the_limit_are_left_out() {
        let words = [("▁aab".to_owned(), 5.0), ("▁ß".to_owned(), 1.0)];
        let limited = WordPieceTraining { alphabet_limit: 2, ..config(30) };
        let tokenizer = wordpiece(&words, &limited).unwrap().tokenizer;
        assert_eq!(tokenizer.id("ß"), None);
        assert!(matches!(wordpiece(&words, &config(10)), Err(TrainError::TooSmall { needed: 11, .. })));
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_every_word_of_known_characters_is_known(
            words in prop::collection::vec(("▁?[a-c.é]{1,6}", 0.1f64..50.0), 1..12),
        ) {
            let forward = wordpiece(&words, &config(40)).unwrap().tokenizer;
            let backward: Vec<_> = words.iter().rev().cloned().collect();
            prop_assert_eq!(forward.to_json(), wordpiece(&backward, &config(40)).unwrap().tokenizer.to_json());
            let unknown = forward.unk_id().unwrap();
            for (word, _) in &words {
                prop_assert!(!forward.encode(&word.replace(BLANK, " ")).contains(&unknown), "{}", word);
            }
        }
    }
}
