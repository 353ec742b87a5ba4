//! Chooses the character vocabulary: the most frequent characters.

use std::collections::{BTreeMap, BTreeSet};

use super::bpe::room;
use super::pairs::count_pieces;
use super::{TrainError, Trained, check_roles};
use tokenizer::{RoleTokens, Tokenizer, UnigramPipeline, byte_token};

/// Settings for the choice of characters.
#[derive(Clone, Debug, PartialEq)]
pub struct CharacterConfig {
    /// The most tokens, special tokens and bytes included.
    pub vocab_size: usize,
    /// Characters that are tokens whatever the words hold.
    pub required: String,
    /// The share of all characters that the vocabulary is to cover. The rarest beyond it are left out.
    pub coverage: f64,
    /// Whether characters outside the vocabulary are written as bytes; without it they are `<unk>`.
    pub byte_fallback: bool,
    /// The tokens with the first ids. One of them is for the unknown.
    pub roles: RoleTokens,
}

impl Default for CharacterConfig {
    fn default() -> Self {
        let roles = RoleTokens::of_t5();
        Self { vocab_size: 1000, required: String::new(), coverage: 0.9995, byte_fallback: true, roles }
    }
}

/// Chooses the most frequent characters of words with their counts. A word starts with `▁` if a blank precedes it.
///
/// ```
/// use dp_tokenizer::train::{CharacterConfig, characters};
/// let trained = characters(&[("▁abba".to_owned(), 3.0)], &CharacterConfig::default())?;
/// assert_eq!(trained.tokenizer.encode("ab é").len(), 2 + 1 + 2);
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
///
/// # Errors
/// [`TrainError`] without words, with a count that is not finite and positive, or with too small a `vocab_size`.
pub fn characters(words: &[(String, f64)], config: &CharacterConfig) -> Result<Trained, TrainError> {
    let mut counts: BTreeMap<char, f64> = BTreeMap::new();
    for (word, count) in count_pieces(words, |word, take| take(word))? {
        word.chars().for_each(|c| *counts.entry(c).or_default() += count);
    }
    let total: f64 = counts.values().sum();
    check_roles(&config.roles)?;
    let fixed = config.roles.names().count() + if config.byte_fallback { 256 } else { 0 };
    let required: BTreeSet<char> = config.required.chars().filter(|c| !c.is_whitespace()).collect();
    let room = room(config.vocab_size, fixed + required.len().max(1))? + required.len().max(1);
    let special: Vec<String> = config.roles.names().map(str::to_owned).collect();
    let mut pieces: Vec<(String, f64)> = special.iter().map(|name| (name.clone(), 0.0)).collect();
    if config.byte_fallback {
        // The score lies below that of the six characters of the byte's name, so that the text "<0x41>" is not encoded
        // as the byte.
        pieces.extend((0..=255).map(|byte| (byte_token(byte), -7.0)));
    }
    let (mut covered, mut room) = (0.0, room);
    for c in required {
        pieces.push((c.to_string(), -1.0));
        covered += counts.remove(&c).unwrap_or(0.0);
        room -= 1;
    }
    let mut ranked: Vec<(char, f64)> = counts.into_iter().collect();
    // The sort is stable: equally frequent characters stay in the order of their code points.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (c, count) in ranked.into_iter().take(room) {
        if covered >= config.coverage * total {
            break;
        }
        covered += count;
        // All scores are alike: each text has only one path through single characters.
        pieces.push((c.to_string(), -1.0));
    }
    let pipeline = UnigramPipeline {
        normalizer: None,
        split_by_whitespace: true,
        byte_fallback: config.byte_fallback,
        roles: config.roles.clone(),
    };
    let tokenizer = Tokenizer::unigram(pieces, (0..).zip(special).collect(), &pipeline)?;
    Ok(Trained { tokenizer, requested: config.vocab_size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trained(config: &CharacterConfig) -> Tokenizer {
        let words = [("▁aab".to_owned(), 10.0), ("▁ç".to_owned(), 0.5)];
        characters(&words, config).unwrap().tokenizer
    }

    #[test]
    fn characters_come_by_count_until_the_coverage_is_reached() {
        let no_bytes = CharacterConfig { byte_fallback: false, coverage: 1.0, ..CharacterConfig::default() };
        let all = trained(&no_bytes);
        // The counts are a 20, ▁ 10.5, b 10, ç 0.5, of 41.
        let names: Vec<_> =
            (3..all.vocab_size() as u32).map(|id| all.token(id).unwrap().to_owned()).collect();
        assert_eq!(names, ["a", "▁", "b", "ç"]);
        assert_eq!(trained(&CharacterConfig { coverage: 40.0 / 41.0, ..no_bytes.clone() }).vocab_size(), 6);
        assert_eq!(trained(&CharacterConfig { vocab_size: 5, ..no_bytes.clone() }).vocab_size(), 5);
        assert_eq!(all.encode("aß b"), [3, 2, 4, 5]);
    }

    #[test]
    fn with_bytes_any_text_comes_back() {
        let tokenizer = trained(&CharacterConfig::default());
        let text = " a\tßb\u{0}日本  🤦";
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
        let known = CharacterConfig { required: "<0x41>".to_owned(), ..CharacterConfig::default() };
        let tokenizer = trained(&known);
        assert_eq!(tokenizer.decode(&tokenizer.encode("<0x41>")), "<0x41>");
    }

    #[test]
    fn too_small_a_vocabulary_is_refused() {
        let small = CharacterConfig { vocab_size: 259, ..CharacterConfig::default() };
        assert!(matches!(
            characters(&[("a".to_owned(), 1.0)], &small),
            Err(TrainError::TooSmall { needed: 260, .. })
        ));
    }
}
