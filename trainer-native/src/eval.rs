//! How well the model predicts public text, beside what any unigram model could reach on it.

use std::collections::HashMap;
use std::fmt;

use dp_tokenizer::Tokenizer;
use serde::{Deserialize, Serialize};

use crate::RunError;
use crate::data::{Dataset, Example, UnitText};
use crate::disclosure::Released;
use crate::nn::Kernels;
use crate::objective::{Generation, Objective, end_of_text};
use crate::train::{Prediction, Trainer};

/// Held-out figures of a model, on text that is declared public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Tokens predicted; with next-token prediction the end of each record is one.
    pub tokens: u64,
    /// e to the mean negative log-likelihood of a token.
    pub perplexity: Released<f64>,
    /// The same of the best unigram model of this text, fitted on this text: a bound below every unigram model.
    pub best_unigram_perplexity: f64,
    /// Share of the tokens than which the model holds no other likelier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Released<f64>>,
    /// By word, where every token is predicted, so that vocabularies compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<ByWord>,
    /// What the unknown token hides, where it stands in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// Of pairs of sentences, where their order is predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Sentences>,
}

/// Figures by word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByWord {
    /// Words and marks: runs of letters and digits, and single other characters that are no blanks.
    pub count: u64,
    /// e to the negative log-likelihood of the whole text over the number of its words: the ends of records are
    /// predicted too, and count as no word.
    pub perplexity: Released<f64>,
}

/// Figures about the unknown token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unknown {
    /// Share of the predicted tokens that are unknown.
    pub share: f64,
    /// Perplexity of those that are neither unknown nor the end of a record. The model still gives both of these their
    /// part of the probability, so it is not helped by leaving them out.
    pub perplexity_of_known: Released<f64>,
}

/// Figures about the order of sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sentences {
    /// Pairs of sentences.
    pub pairs: u64,
    /// Mean negative log-likelihood of their order, in nats; ln 2 is a guess.
    pub nll: Released<f64>,
    /// Share of pairs whose order is told.
    pub accuracy: Released<f64>,
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, perplexity, best_unigram_perplexity: unigram, .. } = self;
        let own = perplexity.get();
        write!(f, "perplexity per token {own:.2} on {tokens} tokens; the best unigram model's {unigram:.2}")?;
        if let Some(accuracy) = &self.accuracy {
            write!(f, "; {:.1} % of them guessed", 100.0 * accuracy.get())?;
        }
        if let Some(ByWord { count, perplexity }) = &self.words {
            write!(f, "\nper word {:.2} on {count} words and marks", perplexity.get())?;
        }
        if let Some(Unknown { share, perplexity_of_known }) = &self.unknown {
            let share = 100.0 * share;
            write!(f, "\n{share:.1} % unknown; {:.2} per known word", perplexity_of_known.get())?;
        }
        if let Some(Sentences { pairs, nll, accuracy }) = &self.sentences {
            let (told, nll) = (100.0 * accuracy.get(), nll.get());
            write!(f, "\norder of {told:.1} % of {pairs} pairs of sentences told, {nll:.3} nats each")?;
        }
        Ok(())
    }
}

/// Public text to measure a model on.
pub struct HeldOut {
    examples: Vec<Example>,
    /// Their number, where all of the text is predicted.
    words: Option<u64>,
    unknown: Option<u32>,
    end_of_text: u32,
}

impl HeldOut {
    /// Encodes public text; [`None`] if it has nothing to predict.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer has no end-of-text token.
    pub fn new(
        texts: &[UnitText],
        tokenizer: &Tokenizer,
        objective: &Objective,
    ) -> Result<Option<Self>, RunError> {
        let windows = Dataset::encode(texts, tokenizer, objective.window_spec()).all_windows()?;
        let examples = objective.public_examples(&windows);
        if examples.iter().all(|example| example.targets.is_empty()) {
            return Ok(None);
        }
        let words = texts.iter().map(|text| words_of(&text.piece.text)).sum();
        Ok(Some(Self {
            examples,
            words: Some(words)
                .filter(|&words| words > 0 && objective.generation() == Generation::Continuation),
            unknown: tokenizer.unk_id(),
            end_of_text: end_of_text(tokenizer)?,
        }))
    }

    /// Figures of the model on this text.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the engine refuses an example.
    pub fn measure<B: Kernels>(&self, trainer: &Trainer<B>) -> Result<Evaluation, RunError> {
        let predictions = trainer.predictions(&self.examples)?;
        let targets = || self.examples.iter().flat_map(|example| &example.targets);
        let all: Vec<(u32, Prediction)> = targets().copied().zip(predictions.into_iter().flatten()).collect();
        let (nats, hits, tokens) = totals(all.iter().map(|(_, prediction)| prediction));
        let unknown = all.iter().filter(|(token, _)| Some(*token) == self.unknown).count();
        let is_known = |token: u32| Some(token) != self.unknown && token != self.end_of_text;
        let known =
            totals(all.iter().filter(|(token, _)| is_known(*token)).map(|(_, prediction)| prediction));
        let pairs = trainer.sentence_predictions(&self.examples)?;
        let sentences = totals(pairs.iter());
        Ok(Evaluation {
            tokens: tokens as u64,
            perplexity: Released::from_public_text((nats / tokens).exp()),
            best_unigram_perplexity: best_unigram_nll(&self.examples).exp(),
            accuracy: Some(Released::from_public_text(hits / tokens)),
            words: self.words.map(|count| ByWord {
                count,
                perplexity: Released::from_public_text((nats / count as f64).exp()),
            }),
            unknown: (unknown > 0 && known.2 > 0.0).then(|| Unknown {
                share: unknown as f64 / tokens,
                perplexity_of_known: Released::from_public_text((known.0 / known.2).exp()),
            }),
            sentences: (!pairs.is_empty()).then(|| Sentences {
                pairs: pairs.len() as u64,
                nll: Released::from_public_text(sentences.0 / sentences.2),
                accuracy: Released::from_public_text(sentences.1 / sentences.2),
            }),
        })
    }
}

/// Nats, hits and number.
fn totals<'a>(predictions: impl Iterator<Item = &'a Prediction>) -> (f64, f64, f64) {
    predictions.fold((0.0, 0.0, 0.0), |(nats, hits, count), prediction| {
        (nats + prediction.nll, hits + f64::from(u8::from(prediction.is_likeliest)), count + 1.0)
    })
}

/// Runs of letters and digits, and single other characters that are no blanks.
fn words_of(text: &str) -> u64 {
    let mut inside = false;
    let begins = |c: char| {
        let was_inside = std::mem::replace(&mut inside, c.is_alphanumeric());
        !(c.is_whitespace() || was_inside && c.is_alphanumeric())
    };
    text.chars().map(begins).filter(|&begins| begins).count() as u64
}

/// Mean negative log-likelihood of the best unigram model of these very examples: the entropy of their target tokens.
///
/// It is fitted on the public evaluation text itself, so it uses no private data, and no unigram model, whatever it
/// is fitted on, does better: a perplexity below its own is below every unigram model's.
#[must_use]
fn best_unigram_nll(examples: &[Example]) -> f64 {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for &token in examples.iter().flat_map(|example| &example.targets) {
        *counts.entry(token).or_default() += 1;
    }
    // Summed in a fixed order, so that the figure is the same every time.
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable();
    let total = counts.iter().sum::<u64>() as f64;
    counts.iter().map(|&count| count as f64 / total * (total / count as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: counted by hand.
    #[test]
    fn words_are_runs_of_letters_and_digits_and_single_marks() {
        for (text, words) in [("", 0), ("  ", 0), ("I don't.", 5), ("a-b 12x3 …!", 6), ("naïve café", 2)]
        {
            assert_eq!(words_of(text), words, "{text}");
        }
    }

    /// Oracle: the entropy of a uniform distribution over k tokens is ln k.
    #[test]
    fn best_unigram_of_uniform_targets_is_the_logarithm_of_their_number() {
        let windows = [[9, 1, 2, 3, 4], [9, 4, 3, 2, 1]].map(|window| Example::causal(&window));
        assert!((best_unigram_nll(&windows) - 4.0_f64.ln()).abs() < 1e-12);
    }

    /// Gibbs' inequality: any other unigram model of the same tokens does worse.
    #[test]
    fn no_other_unigram_model_does_better() {
        let windows = [Example::causal(&[0, 1, 1, 1, 2, 2, 3])];
        let best = best_unigram_nll(&windows);
        for other in [[0.4, 0.4, 0.2], [0.6, 0.3, 0.1], [0.5, 0.34, 0.16]] {
            let nll = -(3.0 * f64::ln(other[0]) + 2.0 * f64::ln(other[1]) + f64::ln(other[2])) / 6.0;
            assert!(nll > best);
        }
    }
}
