//! Other segmentations than the best one: `--n-best` and `--sample`.

use std::io::Write;

use clap::Args;
use tokenizer::{Encoding, OffsetUnit, Sampler, Tokenizer};

use super::failure::refuse;
use super::line::{LineWriter, Ranked};

/// Which segmentations of a text are written.
#[derive(Args)]
#[command(next_help_heading = "Segmentation")]
pub(super) struct SegmentationOptions {
    /// Write the N segmentations of highest score, best first, each on a line: the number of the text, the score, the tokens,
    /// separated by tabs (unigram).
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["out", "sample"],
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    n_best: Option<u16>,
    /// Write a random segmentation of each text, for subword regularization (unigram, bpe).
    #[arg(long, conflicts_with = "out", requires = "alpha")]
    sample: bool,
    /// Unigram: probabilities are proportional to e^(A × score); 0 draws all segmentations alike. BPE: the probability of
    /// leaving out a merge.
    #[arg(long, value_name = "A", requires = "sample")]
    alpha: Option<f64>,
    /// The random numbers of --sample; the same seed repeats them [default: 0].
    #[arg(long, value_name = "S", requires = "sample")]
    seed: Option<u64>,
}

/// Encodes texts in the way that the options ask for.
pub(super) enum Segmenter<'a> {
    /// Writes the best segmentation.
    Best(Box<tokenizer::Encoder<'a>>),
    /// Writes the best segmentations.
    NBest { tokenizer: &'a Tokenizer, count: usize },
    /// Writes a random segmentation.
    Sample(Sampler<'a>),
}

impl<'a> Segmenter<'a> {
    pub(super) fn new(options: &SegmentationOptions, tokenizer: &'a Tokenizer) -> anyhow::Result<Self> {
        Ok(match (options.n_best, options.alpha) {
            (Some(count), _) => {
                // A model without scores is refused before the first text.
                tokenizer.encode_n_best("", 1, OffsetUnit::Bytes).map_err(refuse)?;
                Self::NBest { tokenizer, count: count.into() }
            }
            (None, Some(alpha)) => {
                Self::Sample(tokenizer.sampler(alpha, options.seed.unwrap_or(0)).map_err(refuse)?)
            }
            (None, None) => Self::Best(Box::new(tokenizer.encoder())),
        })
    }

    /// Writes the lines of the text with this number. Without a unit, no offsets are written.
    pub(super) fn write(
        &mut self,
        number: u64,
        text: &str,
        unit: Option<OffsetUnit>,
        line: &LineWriter<'_>,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        let any = unit.unwrap_or(OffsetUnit::Bytes);
        match (self, unit) {
            (Self::Best(encoder), None) => {
                line.write(out, Encoding { ids: encoder.encode(text), offsets: Vec::new() }, None)
            }
            (Self::Best(encoder), Some(unit)) => {
                line.write(out, encoder.encode_with_offsets(text, unit), None)
            }
            (Self::Sample(sampler), _) => line.write(out, sampler.encode(text, any), None),
            (Self::NBest { tokenizer, count }, _) => {
                let found = tokenizer.encode_n_best(text, *count, any).map_err(refuse)?;
                found.into_iter().try_for_each(|one| {
                    line.write(out, one.encoding, Some(Ranked { text: number, score: one.score }))
                })
            }
        }
    }
}
