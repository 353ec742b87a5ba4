//! Other segmentations of a text than the best one: the n best, and random ones.

use super::offsets::{Found, Part, each_part};
use super::{SegmentationError, Tokenizer};
use crate::aligned_text::{AlignedText, Span};
use crate::encode::{Edge, Lattice, Path, Token};
use crate::encoding::{Encoding, OffsetUnit};

/// A way to cut a text into tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Segmentation {
    /// The tokens.
    pub encoding: Encoding,
    /// The sum of the tokens' scores, which are log-probabilities.
    pub score: f64,
}

/// A part of a text, as an owned copy.
enum Kept {
    Added { id: u32, matched: String, span: Span },
    Word(AlignedText),
}

fn parts(tokenizer: &Tokenizer, text: &str) -> Vec<Kept> {
    let mut parts = Vec::new();
    each_part(tokenizer, text, &mut |part| {
        parts.push(match part {
            Part::Added { id, matched, span } => Kept::Added { id, matched: matched.to_owned(), span },
            Part::Word(word) => Kept::Word(word.clone()),
        });
    });
    parts
}

/// Returns the lattice of a text that is cut into these words. An added token has no other form.
fn lattice(tokenizer: &Tokenizer, parts: &[Kept]) -> Option<Lattice> {
    let (mut edges, mut from) = (Vec::new(), 0);
    for part in parts {
        let length = match part {
            Kept::Added { id, .. } => {
                edges.push(Edge { start: from, end: from + 1, id: Some(*id), score: 0.0 });
                1
            }
            Kept::Word(word) => {
                let shifted = |edge: Edge| Edge { start: edge.start + from, end: edge.end + from, ..edge };
                edges.extend(tokenizer.model.edges(&word.text)?.into_iter().map(shifted));
                word.text.len()
            }
        };
        from += length;
    }
    Some(Lattice::new(from, edges))
}

/// Returns the encoding of a path through the lattice of these parts.
fn encoding(tokenizer: &Tokenizer, parts: &[Kept], path: &[Edge], text: &str, unit: OffsetUnit) -> Encoding {
    let (mut found, mut from, mut rest) = (Found::default(), 0, path);
    for part in parts {
        match part {
            Kept::Added { id, matched, span } => {
                found.push_added(tokenizer, *id, matched, *span);
                rest = rest.get(1..).unwrap_or_default();
                from += 1;
            }
            Kept::Word(word) => {
                let end = from + word.text.len();
                let (of_word, others) = rest.split_at(rest.partition_point(|edge| edge.end <= end));
                let shifted = |edge: &Edge| Edge { start: edge.start - from, end: edge.end - from, ..*edge };
                let of_word: Vec<Edge> = of_word.iter().map(shifted).collect();
                let mut tokens = Vec::new();
                tokenizer.model.tokens_of_path(&word.text, &of_word, &mut tokens);
                found.push_tokens(word, &tokens);
                (from, rest) = (end, others);
            }
        }
    }
    found.finish(tokenizer, text, unit)
}

impl Tokenizer {
    /// Returns the `count` segmentations of `text` of highest score, best first; fewer if there are fewer.
    /// SentencePiece calls this `NBestEncode`. Segmentations of equal score have no certain order.
    ///
    /// ```
    /// use tokenizer::{OffsetUnit, Tokenizer};
    /// let tokenizer = Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json"))?;
    /// let found = tokenizer.encode_n_best(" then the", 3, OffsetUnit::Bytes)?;
    /// assert_eq!(found[0].encoding.ids, tokenizer.encode(" then the"));
    /// assert!(found.len() == 3 && found[0].score > found[1].score);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the model is no unigram model.
    pub fn encode_n_best(
        &self,
        text: &str,
        count: usize,
        unit: OffsetUnit,
    ) -> Result<Vec<Segmentation>, SegmentationError> {
        let kind = self.model.kind();
        let parts = parts(self, text);
        let lattice = lattice(self, &parts).filter(|_| kind == "unigram");
        let paths = lattice.ok_or(SegmentationError::NotUnigram { found: kind })?.best(count);
        let segmentation = |path: Path| Segmentation {
            encoding: encoding(self, &parts, &path.edges, text, unit),
            score: path.score,
        };
        Ok(paths.into_iter().map(segmentation).collect())
    }

    /// Returns a sampler of segmentations, whose draws repeat with the same `seed`. It is for subword regularization,
    /// not for privacy.
    ///
    /// A unigram model draws a segmentation with probability proportional to e^(`alpha` · score), as SentencePiece's
    /// `SampleEncode`: 0 draws all alike, and large values nearly always the best. A BPE model leaves out merges with
    /// probability `alpha`: at each step anew (Provilkov et al. 2020), or for good with a `.model`, as SentencePiece does.
    ///
    /// # Errors
    /// For other models, and for an `alpha` out of range.
    pub fn sampler(&self, alpha: f64, seed: u64) -> Result<Sampler<'_>, SegmentationError> {
        let kind = self.model.kind();
        let largest = match kind {
            "unigram" => f64::MAX,
            "BPE" => 1.0,
            _ => return Err(SegmentationError::NoSampling { found: kind }),
        };
        if !(0.0..=largest).contains(&alpha) {
            return Err(SegmentationError::Alpha { alpha, kind });
        }
        Ok(Sampler { tokenizer: self, alpha, state: seed })
    }
}

/// Draws segmentations; see [`Tokenizer::sampler`].
pub struct Sampler<'a> {
    tokenizer: &'a Tokenizer,
    alpha: f64,
    state: u64,
}

impl Sampler<'_> {
    /// Returns a random segmentation of `text`.
    ///
    /// ```
    /// use tokenizer::{OffsetUnit, Tokenizer};
    /// let tokenizer = Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json"))?;
    /// let mut sampler = tokenizer.sampler(0.1, 7)?;
    /// let drawn = [(); 9].map(|()| sampler.encode(" then the", OffsetUnit::Bytes).ids);
    /// assert!(drawn.iter().all(|ids| tokenizer.decode(ids) == " then the"));
    /// assert!(drawn.iter().any(|ids| *ids != drawn[0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode(&mut self, text: &str, unit: OffsetUnit) -> Encoding {
        let Self { tokenizer, alpha, .. } = *self;
        let parts = parts(tokenizer, text);
        let Some(lattice) = lattice(tokenizer, &parts) else {
            return self.encode_with_dropout(&parts, text, unit);
        };
        let sums = lattice.log_sums(alpha);
        let path = lattice.sample(&sums, alpha, || self.uniform());
        encoding(tokenizer, &parts, &path, text, unit)
    }

    fn encode_with_dropout(&mut self, parts: &[Kept], text: &str, unit: OffsetUnit) -> Encoding {
        let Self { tokenizer, alpha, .. } = *self;
        let (mut found, mut tokens) = (Found::default(), Vec::<Token>::new());
        for part in parts {
            match part {
                Kept::Added { id, matched, span } => found.push_added(tokenizer, *id, matched, *span),
                Kept::Word(word) => {
                    tokens.clear();
                    let mut drops = || self.uniform() < alpha;
                    tokenizer.model.tokens_with_dropout(&word.text, &mut drops, &mut tokens);
                    found.push_tokens(word, &tokens);
                }
            }
        }
        found.finish(tokenizer, text, unit)
    }

    /// Returns a number from 0 to 1, 1 excluded, by SplitMix64 (Steele, Lea and Flood 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ bits >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
