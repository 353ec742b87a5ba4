//! Tokens and their ids.

use std::collections::HashMap;

/// Distinct tokens. The id of a token is its position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    tokens: Vec<String>,
    ids: HashMap<String, u32>,
}

/// A token is listed under two ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("token {token:?} of id {second} is also id {first}; each token may occur once")]
pub struct DuplicateToken {
    /// The token.
    pub token: String,
    /// The first id of the token.
    pub first: u32,
    /// The second id of the token.
    pub second: u32,
}

/// Returns the name of the token of a byte.
#[must_use]
pub fn byte_token(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

impl Vocabulary {
    /// Returns a vocabulary from the tokens in order of id.
    ///
    /// ```
    /// let vocabulary = tokenizer::Vocabulary::new(vec!["a".into(), "b".into()])?;
    /// assert_eq!(vocabulary.id("b"), Some(1));
    /// # Ok::<(), tokenizer::DuplicateToken>(())
    /// ```
    ///
    /// # Errors
    /// If a token occurs twice.
    pub fn new(tokens: Vec<String>) -> Result<Self, DuplicateToken> {
        let mut ids = HashMap::with_capacity(tokens.len());
        for (second, token) in (0u32..).zip(&tokens) {
            if let Some(first) = ids.insert(token.clone(), second) {
                return Err(DuplicateToken { token: token.clone(), first, second });
            }
        }
        Ok(Self { tokens, ids })
    }

    /// Returns the id of `token`.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// Returns the token of `id`.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    /// Returns all tokens in order of id.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}
