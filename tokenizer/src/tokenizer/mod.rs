//! The tokenizer: text to ids and back.

mod compare;
mod decode_stream;
mod encoder;
mod offsets;
mod roles;
mod segmentations;
mod shaping;
mod stage_mark;
mod stated;

use crate::FormatError;
use crate::decode::{Decoder, LeadingSpaces};
use crate::encode::{Model, SentencePiece};
use crate::normalize::{Normalizer, SentencePieceNormalizer};
use crate::postprocess::PostProcessor;
use crate::pretokenize::{METASPACE, PreTokenizer, WordFinder};
use crate::sentencepiece::{PieceKind, SentencePieceModel};
use crate::special_tokens::{SpecialTokens, TokenOptions};
use crate::vocabulary::byte_token;

pub use decode_stream::DecodeStream;
pub use encoder::Encoder;
use encoder::IdleCaches;
pub(crate) use offsets::ids_by_place;
pub(crate) use roles::RoleIds;
pub use roles::{Role, RoleTokens};
pub use segmentations::{Sampler, Segmentation};
pub(crate) use shaping::Shaping;
pub use stage_mark::StageMark;

/// Stands for a blank inside tokens, as in SentencePiece.
pub const BLANK: char = METASPACE;

/// The token that pads short sequences.
pub const PAD: &str = "<pad>";
/// The token that ends a text.
pub const EOS: &str = "</s>";
/// The token for characters outside the vocabulary.
pub const UNK: &str = "<unk>";

/// The number of texts of a batch that a thread encodes at a time.
const TEXTS_AT_ONCE: usize = 64;

/// A tokenizer, which turns text into token ids and back.
///
/// A text is normalized and cut into words, and the model encodes each word. With byte fallback, decoding gives back the text that was
/// encoded, except for what normalization changed: where blanks become `▁`, a literal `▁` comes back as a blank.
///
/// ```
/// let tokenizer = tokenizer::Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json"))?;
/// let ids = tokenizer.encode("then the café");
/// assert_eq!(tokenizer.decode(&ids), "then the café");
/// # Ok::<(), tokenizer::FormatError>(())
/// ```
pub struct Tokenizer {
    pub(crate) normalizer: Normalizer,
    pub(crate) pre_tokenizer: PreTokenizer,
    pub(crate) model: Model,
    pub(crate) decoder: Decoder,
    pub(crate) special: SpecialTokens,
    /// The steps of a `tokenizer.json` after encoding, such as tokens at both ends of a text, which are applied on
    /// request.
    pub(crate) post_processor: PostProcessor,
    /// The rules of a `.model` for decoded text.
    pub(crate) denormalizer: Normalizer,
    /// The ids of roles whose tokens have unusual names.
    pub(crate) roles: RoleIds,
    /// Whether padding goes before a text.
    pub(crate) pads_left: bool,
    /// Settings beside the file that are not applied.
    pub(crate) not_applied: Vec<String>,
    /// Encodes with the places of words, where a `tokenizer.json` puts marks by place. Behind a pointer, so that a
    /// program that reads no such file does not contain it.
    pub(crate) by_place: Option<EncodeByPlace>,
    /// The way in which the words of a normalized text are found.
    pub(crate) words: WordFinder,
    /// The lengths that the file states for its outputs.
    pub(crate) shaping: Option<Box<Shaping>>,
    /// The mark of the private stage that made this tokenizer.
    pub(crate) mark: Option<Box<StageMark>>,
    byte_of: Vec<Option<u8>>,
    caches: IdleCaches,
}

/// The reason why a tokenizer gives no other segmentations than its own.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentationError {
    /// The model gives segmentations no scores.
    #[error(
        "the n best segmentations need a unigram model, which scores them; this tokenizer's model is {found}"
    )]
    NotUnigram {
        /// The kind of model.
        found: &'static str,
    },
    /// The model has one segmentation for each text.
    #[error(
        "sampling needs a unigram or BPE model; this tokenizer's model is {found}, which cuts each text in one way"
    )]
    NoSampling {
        /// The kind of model.
        found: &'static str,
    },
    /// A parameter out of range.
    #[error("alpha = {alpha} is out of range for {kind}; allowed: 0 or more for unigram, 0 to 1 for BPE")]
    Alpha {
        /// The given parameter.
        alpha: f64,
        /// The kind of model.
        kind: &'static str,
    },
}

/// Appends the ids of a part of a text that starts at a place.
pub(crate) type EncodeByPlace = fn(&Tokenizer, &str, usize, &mut Vec<u32>);

impl Tokenizer {
    /// Returns a tokenizer with a model and no other stages.
    pub(crate) fn of_model(model: Model) -> Self {
        let mut byte_of = vec![None; model.len()];
        if model.falls_back_to_bytes() {
            for byte in 0..=255 {
                if let Some(id) = model.id(&byte_token(byte)) {
                    byte_of[id as usize] = Some(byte);
                }
            }
        }
        Self {
            normalizer: Normalizer::default(),
            pre_tokenizer: PreTokenizer::default(),
            model,
            decoder: Decoder::SentencePiece { dropped: LeadingSpaces::Kept },
            special: SpecialTokens::new(Vec::new()),
            post_processor: PostProcessor::default(),
            denormalizer: Normalizer::default(),
            roles: RoleIds::default(),
            pads_left: false,
            not_applied: Vec::new(),
            by_place: None,
            words: WordFinder::Whole,
            shaping: None,
            mark: None,
            byte_of,
            caches: IdleCaches::default(),
        }
    }

    /// Returns this tokenizer with more special tokens, as training objectives need them. New tokens get the ids after
    /// the last one; tokens of the vocabulary keep theirs.
    ///
    /// ```
    /// let tokenizer = tokenizer::Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json"))?;
    /// let (size, plain) = (tokenizer.vocab_size() as u32, tokenizer.encode(" [MASK]"));
    /// let tokenizer = tokenizer.with_special_tokens(&["[CLS]", "[MASK]"]);
    /// assert_eq!(tokenizer.id("[MASK]"), Some(size + 1));
    /// assert_eq!(tokenizer.encode("[MASK]"), [size + 1]);
    /// assert!(plain.len() > 1);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn with_special_tokens(mut self, names: &[impl AsRef<str>]) -> Self {
        let mut tokens = std::mem::take(&mut self.special.tokens);
        let mut options = std::mem::take(&mut self.special.options);
        for name in names.iter().map(AsRef::as_ref) {
            if !tokens.iter().any(|token| token.1 == name) {
                let after = tokens.iter().map(|token| token.0 as usize + 1).max().unwrap_or(0);
                let next = self.model.len().max(after) as u32;
                tokens.push((self.model.id(name).unwrap_or(next), name.to_owned()));
                options.push(TokenOptions::default());
            }
        }
        self.special = match options.iter().all(|options| *options == TokenOptions::default()) {
            true => SpecialTokens::new(tokens),
            false => SpecialTokens::with_options(tokens, options, |text| {
                self.normalizer.normalize(text).into_owned()
            }),
        };
        // Text between other special tokens may reach the model by another path.
        self.caches = IdleCaches::default();
        self
    }

    /// Returns this tokenizer with T5's post-processor: [`Self::post_process`] and Hugging Face libraries put the end-of-text token
    /// after each text. A tokenizer without that token, or with a post-processor, stays as it is.
    ///
    /// ```
    /// use tokenizer::{Encoding, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json"))?.with_end_after_texts();
    /// let text = Encoding { ids: tokenizer.encode("the"), ..Encoding::default() };
    /// assert_eq!(tokenizer.post_process(text).ids.last().copied(), tokenizer.eos_id());
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn with_end_after_texts(mut self) -> Self {
        let end = self.eos_id().and_then(|id| Some((self.special.name(id)?, id)));
        if let Some(end) = end.filter(|_| self.post_processor.json().is_null()) {
            self.post_processor = PostProcessor::t5(end);
        }
        self
    }

    /// Returns the tokenizer of a SentencePiece `.model`, with the same ids.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn from_sentencepiece(file: &SentencePieceModel) -> Result<Self, FormatError> {
        let dropped = match &file.normalizer {
            spec if spec.remove_extra_whitespaces => LeadingSpaces::OfEach,
            spec if spec.add_dummy_prefix => LeadingSpaces::First,
            _ => LeadingSpaces::Kept,
        };
        let mut tokenizer = Self::of_model(Model::SentencePiece(Box::new(SentencePiece::new(file.clone())?)));
        tokenizer.normalizer = Normalizer::of(SentencePieceNormalizer::new(file)?);
        tokenizer.decoder = Decoder::SentencePiece { dropped };
        if let Some(denormalizer) = SentencePieceNormalizer::of_decoded(file)? {
            tokenizer.denormalizer = Normalizer::of(denormalizer);
        }
        tokenizer.roles = RoleIds::of_sentencepiece(file);
        Ok(tokenizer)
    }

    /// Returns the ids of `text`. No token is added at either end.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.encoder().encode(text)
    }

    /// Returns the ids of many texts, in the same order, computed on several threads.
    ///
    /// ```
    /// # let tokenizer = tokenizer::Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json"))?;
    /// let ids = tokenizer.encode_batch(&["then the café", "the"], 2);
    /// assert_eq!(ids, [tokenizer.encode("then the café"), tokenizer.encode("the")]);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn encode_batch<S: AsRef<str> + Sync>(&self, texts: &[S], threads: usize) -> Vec<Vec<u32>> {
        crate::encode::batch(texts, TEXTS_AT_ONCE, threads, || {
            let mut encoder = self.encoder();
            move |text: &S| encoder.encode(text.as_ref())
        })
    }

    /// Returns the ids of all texts one after another, and for each text where its ids end. Faster than
    /// [`Self::encode_batch`] for short texts, which need no allocation each.
    ///
    /// ```
    /// let tokenizer = tokenizer::Tokenizer::bytes(&[])?;
    /// let (ids, ends) = tokenizer.encode_joined(&["né", "", "e"], 2);
    /// assert_eq!(ids, [tokenizer.encode("né"), tokenizer.encode("e")].concat());
    /// assert_eq!(ends, [3, 3, 4]);
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn encode_joined<S: AsRef<str> + Sync>(&self, texts: &[S], threads: usize) -> (Vec<u32>, Vec<usize>) {
        let hands: Vec<&[S]> = texts.chunks(TEXTS_AT_ONCE).collect();
        let encoded = crate::encode::batch(&hands, 1, threads, || {
            let mut encoder = self.encoder();
            move |hand: &&[S]| {
                let (mut ids, mut lengths) = (Vec::new(), Vec::with_capacity(hand.len()));
                for text in *hand {
                    let from = ids.len();
                    encoder.append(text.as_ref(), &mut ids);
                    lengths.push(ids.len() - from);
                }
                (ids, lengths)
            }
        });
        let (mut all, mut ends, mut end) = (Vec::new(), Vec::with_capacity(texts.len()), 0);
        all.reserve_exact(encoded.iter().map(|hand| hand.0.len()).sum());
        for (ids, lengths) in encoded {
            all.extend_from_slice(&ids);
            ends.extend(lengths.iter().map(|length| {
                end += length;
                end
            }));
        }
        (all, ends)
    }

    /// Returns an encoder with a word cache, for many texts in a row on one thread. The tokenizer keeps the cache for
    /// the next encoder.
    #[must_use]
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder::new(self)
    }

    /// Returns the text of `ids`. Special tokens appear by name, ids outside the vocabulary are skipped, and bytes that
    /// form no character appear as U+FFFD.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        let text = self.decoder.decode(ids, &self.model, &self.byte_of, &self.special);
        if self.denormalizer.is_identity() { text } else { self.denormalizer.normalize(&text).into_owned() }
    }

    /// Returns a decoder of ids that come one at a time.
    ///
    /// ```
    /// let tokenizer = tokenizer::Tokenizer::bytes(&[])?;
    /// let mut stream = tokenizer.decode_stream();
    /// let texts: Vec<String> = "né".bytes().map(|byte| stream.push(byte.into())).collect();
    /// assert_eq!(texts, ["n", "", "é"]);
    /// assert_eq!(stream.finish(), "");
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn decode_stream(&self) -> DecodeStream<'_> {
        DecodeStream::new(self)
    }

    /// Returns the number of tokens. All ids are below it.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        let added = self.special.tokens.iter().map(|t| t.0 as usize + 1).max();
        self.model.len().max(added.unwrap_or(0))
    }

    /// Returns the token with this id, as written in the vocabulary.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<&str> {
        self.model.token(id).or_else(|| self.special.name(id))
    }

    /// Returns the id of a token written as in the vocabulary.
    #[must_use]
    pub fn id(&self, token: &str) -> Option<u32> {
        self.model.id(token).or_else(|| self.special.id(token))
    }

    /// Whether a token is for the model and no text, such as `<pad>` and `[CLS]`.
    #[must_use]
    pub fn is_special(&self, id: u32) -> bool {
        match &self.model {
            Model::SentencePiece(model) => model
                .model()
                .pieces
                .get(id as usize)
                .is_some_and(|piece| matches!(piece.kind, PieceKind::Control | PieceKind::Unknown)),
            _ => self.special.is_for_the_model(id),
        }
    }

    /// Returns the score of a token: its log-probability in a unigram model, its rank in a `.model` of another kind.
    #[must_use]
    pub fn score(&self, id: u32) -> Option<f64> {
        match &self.model {
            Model::Unigram(model) => model.pieces().get(id as usize).map(|piece| piece.1),
            Model::SentencePiece(model) => {
                model.model().pieces.get(id as usize).map(|piece| piece.score.into())
            }
            _ => None,
        }
    }

    /// Returns the id of `<unk>`.
    #[must_use]
    pub fn unk_id(&self) -> Option<u32> {
        self.model.unk_id()
    }

    /// Whether characters that the vocabulary lacks vanish from a text, as in Hugging Face's library: a BPE model without an unknown
    /// token, and without a token for each byte.
    #[must_use]
    pub fn drops_characters(&self) -> bool {
        self.model.drops_characters()
    }
}
