//! Normalizers, which transform a text before pre-tokenization.

mod bert;
mod characters;
mod charsmap;
mod named_rules;
mod replace;
mod rules;
mod sentencepiece;
mod unicode;

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::pattern::Pattern;
use crate::stage::{self, Kinds};

pub use bert::BertNormalizer;
pub use charsmap::Charsmap;
pub(crate) use charsmap::precompiled_json;
pub use named_rules::RuleName;
pub use rules::NormalizationRules;
pub(crate) use sentencepiece::SentencePieceNormalizer;
use unicode::{Form, Lowercase};

/// A normalizer. A new one is registered in [`KINDS`].
pub(crate) trait Normalize: Debug + Send + Sync {
    /// Returns the normalized text. A normalizer whose output can grow with its settings, such as a replacement, keeps
    /// to `limit` bytes. One that ignores `limit` and can lengthen a text several times is allowed only once:
    /// [`Normalizer::read`] lists it.
    fn normalize<'a>(&self, text: &'a str, limit: usize) -> Cow<'a, str>;

    /// Normalizes as [`Self::normalize`] does, and keeps for each byte the range of the original that it comes from.
    /// Offsets are computed from these ranges.
    fn align(&self, text: &mut AlignedText, limit: usize);

    /// Returns the normalizer as a `tokenizer.json` writes it.
    fn json(&self) -> Value;

    /// Returns the character map, if the normalizer does nothing but apply it.
    fn charsmap(&self) -> Option<&Charsmap> {
        None
    }
}

/// The field of a sequence that lists its stages.
const LIST: &str = "normalizers";

/// Every normalizer that a `tokenizer.json` can name. A build that reads no such file, such as that of the web page,
/// leaves this table out.
const KINDS: Kinds<dyn Normalize> = Kinds {
    part: "normalizer",
    list: LIST,
    read: &[
        ("BertNormalizer", BertNormalizer::read),
        ("Precompiled", Charsmap::read),
        ("Lowercase", |_| Ok(Arc::new(Lowercase))),
        ("NFC", |_| Ok(Arc::new(Form::Nfc))),
        ("NFD", |_| Ok(Arc::new(Form::Nfd))),
        ("NFKC", |_| Ok(Arc::new(Form::Nfkc))),
        ("NFKD", |_| Ok(Arc::new(Form::Nfkd))),
        ("Prepend", replace::Prepend::read),
        ("Replace", replace::Replace::read),
        ("Strip", characters::Strip::read),
        ("StripAccents", |_| Ok(Arc::new(characters::StripAccents))),
        ("Nmt", |_| Ok(Arc::new(characters::Nmt))),
        ("ByteLevel", |_| Ok(Arc::new(characters::ByteLevel))),
    ],
};

/// Normalizers, one after the other; none leave a text as it is.
#[derive(Clone, Debug, Default)]
pub struct Normalizer(Vec<Arc<dyn Normalize>>);

impl PartialEq for Normalizer {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Eq for Normalizer {}

impl From<BertNormalizer> for Normalizer {
    fn from(bert: BertNormalizer) -> Self {
        Self::of(bert)
    }
}

/// Applies SentencePiece's map grapheme by grapheme, as Hugging Face does.
impl From<Charsmap> for Normalizer {
    fn from(map: Charsmap) -> Self {
        Self::of(map)
    }
}

impl Normalizer {
    /// Returns Unicode normalization form C.
    #[must_use]
    pub fn nfc() -> Self {
        Self::of(Form::Nfc)
    }

    /// Returns Unicode normalization form KC.
    #[must_use]
    pub fn nfkc() -> Self {
        Self::of(Form::Nfkc)
    }

    /// Returns the normalizer that lowercases character by character.
    #[must_use]
    pub fn lowercase() -> Self {
        Self::of(Lowercase)
    }

    pub(crate) fn of(one: impl Normalize + 'static) -> Self {
        Self(vec![Arc::new(one)])
    }

    /// Returns this normalizer, followed by another.
    ///
    /// ```
    /// use tokenizer::normalize::Normalizer;
    /// let both = Normalizer::nfkc().then(Normalizer::lowercase());
    /// assert_eq!(both.normalize("ﬁﬀ Ⅷ"), "fiff viii");
    /// ```
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.0.extend(next.0);
        self
    }

    /// Reads the field `normalizer` of a `tokenizer.json`.
    ///
    /// # Errors
    /// If a normalizer is not supported.
    pub(crate) fn read(part: &Value) -> Result<Self, FormatError> {
        let all = Self(KINDS.read(part)?);
        for kind in ["Precompiled", "ByteLevel"] {
            // Each of these may make a text several times as long, whatever the limit.
            if all.0.iter().filter(|one| one.json()["type"] == kind).count() > 1 {
                return Err(FormatError::inconsistent(format!("normalizer: {kind} twice; allowed: once")));
            }
        }
        Ok(all)
    }

    /// Returns the normalizers as a `tokenizer.json` writes them.
    pub(crate) fn json(&self) -> Value {
        stage::write(&self.0, LIST, Normalize::json)
    }

    /// Whether every text stays as it is.
    pub(crate) fn is_identity(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the character map, if these normalizers do nothing but apply one.
    pub(crate) fn charsmap(&self) -> Option<&Charsmap> {
        match self.0.as_slice() {
            [one] => one.charsmap(),
            _ => None,
        }
    }

    /// Returns the normalized text.
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let limit = Pattern::byte_limit(text.len());
        self.0.iter().fold(Cow::Borrowed(text), |text, one| match text {
            Cow::Borrowed(text) => one.normalize(text, limit),
            Cow::Owned(text) => Cow::Owned(one.normalize(&text, limit).into_owned()),
        })
    }

    /// Normalizes as [`Self::normalize`] does, and keeps for each byte the range of the original that it comes from.
    pub(crate) fn align(&self, text: &mut AlignedText) {
        let limit = Pattern::byte_limit(text.text.len());
        self.0.iter().for_each(|one| one.align(text, limit));
    }
}
