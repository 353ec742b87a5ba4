//! BLEU: the geometric mean of the precisions of word runs, with a penalty for texts that are too
//! short.

use super::{Tokenization, VERSION, matches, ngrams};

/// Largest number of words of a run.
const ORDERS: usize = 4;
/// sacreBLEU's logarithm of 0.
const LOG_OF_ZERO: f64 = -9_999_999_999.0;

/// The BLEU of a corpus, and its components.
#[derive(Clone, Debug, PartialEq)]
pub struct Bleu {
    /// Score from 0 to 100.
    pub score: f64,
    /// Precision of runs of one to four words, from 0 to 100.
    pub precisions: [f64; ORDERS],
    /// Factor for texts that are too short.
    pub brevity_penalty: f64,
    /// Number of words of the hypotheses.
    pub hypothesis_length: u64,
    /// Number of words of the references.
    pub reference_length: u64,
    tokenization: Tokenization,
}

/// Returns the BLEU of a corpus, with sacreBLEU's default smoothing ("exp") of precisions of 0.
#[must_use]
pub fn bleu<S: AsRef<str>>(hypotheses: &[S], references: &[S], tokenization: Tokenization) -> Bleu {
    let (mut correct, mut total, mut lengths) = ([0_u64; ORDERS], [0_u64; ORDERS], [0_u64; 2]);
    for (hypothesis, reference) in hypotheses.iter().zip(references) {
        let texts = [hypothesis, reference].map(|text| tokenization.words(text.as_ref()));
        for (length, words) in lengths.iter_mut().zip(&texts) {
            *length += words.len() as u64;
        }
        for n in 1..=ORDERS {
            let [ours, theirs] = texts.each_ref().map(|words| ngrams(words, n));
            correct[n - 1] += matches(&ours, &theirs);
            total[n - 1] += ours.values().sum::<u64>();
        }
    }
    let [hypothesis_length, reference_length] = lengths;
    let brevity_penalty = match hypothesis_length {
        0 if reference_length > 0 => 0.0,
        ours if ours < reference_length => (1.0 - reference_length as f64 / ours as f64).exp(),
        _ => 1.0,
    };
    let precisions = precisions(correct, total);
    let logarithm = |&p: &f64| if p == 0.0 { LOG_OF_ZERO } else { p.ln() };
    let mean = precisions.iter().map(logarithm).sum::<f64>() / ORDERS as f64;
    let score = if correct == [0; ORDERS] { 0.0 } else { brevity_penalty * mean.exp() };
    Bleu { score, precisions, brevity_penalty, hypothesis_length, reference_length, tokenization }
}

/// Computes the precisions. The first run length without a match counts as half a match, the second
/// as a quarter, and so on.
fn precisions(correct: [u64; ORDERS], total: [u64; ORDERS]) -> [f64; ORDERS] {
    let mut precisions = [0.0; ORDERS];
    if correct == [0; ORDERS] {
        return precisions;
    }
    let mut smoothing = 1.0;
    for ((precision, correct), total) in precisions.iter_mut().zip(correct).zip(total) {
        if total == 0 {
            break;
        }
        *precision = if correct == 0 {
            smoothing *= 2.0;
            100.0 / (smoothing * total as f64)
        } else {
            100.0 * correct as f64 / total as f64
        };
    }
    precisions
}

impl Bleu {
    /// Returns the settings, as sacreBLEU writes them.
    #[must_use]
    pub fn signature(&self) -> String {
        format!("nrefs:1|case:mixed|eff:no|tok:{}|smooth:exp|version:{VERSION}", self.tokenization.name())
    }

    /// Returns the parts of the score, as sacreBLEU writes them.
    #[must_use]
    pub fn details(&self) -> String {
        let [one, two, three, four] = self.precisions;
        let (ours, theirs) = (self.hypothesis_length, self.reference_length);
        let ratio = if theirs == 0 { 0.0 } else { ours as f64 / theirs as f64 };
        let penalty = self.brevity_penalty;
        format!(
            "{one:.1}/{two:.1}/{three:.1}/{four:.1} (BP = {penalty:.3} ratio = {ratio:.3} hyp_len = {ours} ref_len = {theirs})"
        )
    }
}
