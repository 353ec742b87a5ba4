//! Trains vocabularies on released words and their noisy counts. This is post-processing and costs no privacy.

mod bpe;
mod characters;
mod extend;
mod joined;
mod lattice;
mod merge;
mod model;
mod pairs;
mod prior;
mod seeds;
mod unigram;
mod unigram_config;
mod unseen;
mod wordpiece;
mod words;

pub use bpe::{BpeConfig, bpe};
pub use characters::{CharacterConfig, characters};
pub use extend::{extend, nothing_added};
pub use prior::{joint_prior, prior_words};
pub use unigram::{Trained, unigram};
pub use unigram_config::UnigramConfig;
pub use unseen::unseen_words;
pub use wordpiece::{WordPieceTraining, wordpiece};
pub use words::words;

use tokenizer::{DuplicateToken, FormatError, Role, RoleTokens};

/// Refuses names that pieces could have, and a vocabulary without a token for the unknown.
fn check_roles(roles: &RoleTokens) -> Result<(), TrainError> {
    match roles.problem().or((roles.find(Role::Unk).is_none()).then_some("unk")) {
        Some(name) => Err(TrainError::SpecialToken { token: name.to_owned() }),
        None => Ok(()),
    }
}

/// The reason why training is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// There are no words to learn from.
    #[error("no words to train on; release more words (a larger ε or more data), or use a public vocabulary")]
    NoWords,
    /// A count is no number above zero.
    #[error("word {index} has the count {count}; allowed: finite and > 0")]
    BadCount {
        /// The index of the word.
        index: usize,
        /// The count of the word.
        count: f64,
    },
    /// The vocabulary has less room than the required tokens need.
    #[error("vocab_size = {given} is too small; special tokens, bytes and characters alone need {needed}")]
    TooSmall {
        /// The size that was asked for.
        given: usize,
        /// The least possible size.
        needed: usize,
    },
    /// The tokenizer is of a kind to which no words can be added.
    #[error("the public tokenizer cannot be extended: {reason}")]
    NotExtensible {
        /// The reason.
        reason: String,
    },
    /// The trained pieces make no tokenizer.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A special token is in the vocabulary already.
    #[error(
        "special token {token:?} is listed twice, or learnt tokens may have this name; choose another, of two characters or more"
    )]
    SpecialToken {
        /// The token.
        token: String,
    },
}

impl From<DuplicateToken> for TrainError {
    fn from(twice: DuplicateToken) -> Self {
        Self::SpecialToken { token: twice.token }
    }
}
