//! What a unigram vocabulary is trained to be.

use crate::count::Words;
use tokenizer::RoleTokens;
use tokenizer::normalize::Normalizer;

/// Settings of the unigram trainer.
#[derive(Clone, Debug, PartialEq)]
pub struct UnigramConfig {
    /// Number of tokens, special tokens and bytes included.
    pub vocab_size: usize,
    /// Whether characters outside the vocabulary are encoded as bytes instead of `<unk>`.
    pub byte_fallback: bool,
    /// The tokens with the first ids. One of them is for the unknown.
    pub roles: RoleTokens,
    /// User-defined symbols, each always one token. Their ids follow those of the special tokens.
    pub symbols: Vec<String>,
    /// Number of T5 sentinels `<extra_id_0>`, … at the end of the vocabulary. The first sentinel has the last id.
    pub sentinels: usize,
    /// Share of all characters that the alphabet covers. Rarer characters split words and become bytes or `<unk>`. Printable
    /// ASCII is always covered.
    pub character_coverage: f64,
    /// Normalization of texts before encoding, and of words before training.
    pub normalizer: Option<Normalizer>,
    /// Characters that are tokens whatever the words hold and however rare they are.
    pub required_characters: String,
    /// Most characters of a token, `▁` included, at most 16; none for 16.
    pub max_piece_length: Option<u8>,
    /// Whether tokens end at blanks. Without it, the words may be runs of words, as [`Words::Runs`] counts them, and tokens reach
    /// across the blanks in them.
    pub split_by_whitespace: bool,
    /// Number of candidates at the start.
    pub seed_size: usize,
    /// Share of pieces that survive a round.
    pub shrinking_factor: f64,
    /// What the words of a release are, which lacks the rare words of the text; none if the words are all. Words invented after
    /// those of a release are learnt from too, so that pieces of rare words fill the vocabulary, and words by class are joined.
    pub released: Option<Words>,
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
        }
    }
}
