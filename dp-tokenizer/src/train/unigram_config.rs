//! The settings of the unigram trainer.

use crate::count::Words;
use tokenizer::RoleTokens;
use tokenizer::normalize::Normalizer;

/// Settings of the unigram trainer.
#[derive(Clone, Debug, PartialEq)]
pub struct UnigramConfig {
    /// The number of tokens, special tokens and bytes included.
    pub vocab_size: usize,
    /// Whether characters outside the vocabulary are encoded as bytes instead of `<unk>`.
    pub byte_fallback: bool,
    /// The tokens with the first ids. One of them is for the unknown.
    pub roles: RoleTokens,
    /// User-defined symbols, each always one token. Their ids follow those of the special tokens.
    pub symbols: Vec<String>,
    /// The number of T5 sentinels `<extra_id_0>`, … at the end of the vocabulary. The first sentinel has the last id.
    pub sentinels: usize,
    /// The share of all characters that the alphabet covers. Rarer characters split words and become bytes or `<unk>`.
    /// Printable ASCII is always covered.
    pub character_coverage: f64,
    /// The normalization of texts before encoding, and of words before training.
    pub normalizer: Option<Normalizer>,
    /// Characters that are tokens whatever the words hold and however rare they are.
    pub required_characters: String,
    /// The most characters of a token, `▁` included, at most 16; `None` for 16.
    pub max_piece_length: Option<u8>,
    /// Whether tokens end at blanks. Without it, the words may be runs of words, as [`Words::Runs`] counts them, and tokens reach
    /// across the blanks in them.
    pub split_by_whitespace: bool,
    /// The number of candidates at the start.
    pub seed_size: usize,
    /// The share of pieces that survive a round.
    pub shrinking_factor: f64,
    /// The kind of words if they are those of a release, which lacks the rare words of the text; `None` if the words
    /// are all. Words invented after those of a release are learnt from too, so that pieces of rare words fill the
    /// vocabulary, and words by class are joined.
    pub released: Option<Words>,
    /// Public words, with counts or shares, that take the place of invented ones; see [`super::prior_words`].
    pub prior: Vec<(String, f64)>,
}

impl Default for UnigramConfig {
    fn default() -> Self {
        Self {
            vocab_size: 8000,
            byte_fallback: true,
            roles: RoleTokens::of_t5(),
            symbols: Vec::new(),
            sentinels: 0,
            character_coverage: 1.0,
            normalizer: None,
            required_characters: String::new(),
            max_piece_length: None,
            split_by_whitespace: true,
            seed_size: 1_000_000,
            shrinking_factor: 0.85,
            released: None,
            prior: Vec::new(),
        }
    }
}
