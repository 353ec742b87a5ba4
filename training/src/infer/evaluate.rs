//! Measures how well a model predicts public text, in comparison with the best unigram model of
//! that text.

use std::collections::HashMap;
use std::path::Path;

use plan::Device;
use tokenizer::Tokenizer;

use super::answers::Answers;
use super::labels::HeldOutLabels;
use super::{ByWord, Evaluation, Sentences, TokenEvaluation, Unknown};
use super::{InferenceError, InferenceModel, ModelTask, Prediction, RunModel, with_model};
use crate::RunError;
use crate::data::{Dataset, PublicText, UnitText, read_public_file};
use crate::disclosure::Released;
use crate::objective::{Generation, Objective, end_of_text};
use crate::progress::note;
use network::Example;
use network::nn::Kernels;

/// Evaluates a run's model on a public text file.
///
/// # Errors
/// [`RunError::Refused`] if the folder holds no finished model, or the text cannot be read or has no token to predict.
pub fn evaluate(folder: &Path, device: Device, text: &Path) -> Result<Evaluation, RunError> {
    with_model(folder, device, Evaluate(text))
}

struct Evaluate<'a>(&'a Path);

impl ModelTask for Evaluate<'_> {
    type Output = Evaluation;

    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<Evaluation, RunError> {
        let text = read_public_file(&run.plan, self.0)?;
        if !run.plan.is_public() {
            note(
                "--text is public because you name it here: a finished run keeps nothing of its training text to compare it with",
            );
        }
        let held_out = HeldOut::new(&text, &run.tokenizer, &run.objective, &run.plan)?;
        let nothing = || RunError::Refused("--text: it has no token to predict; give more text".to_owned());
        let held_out = held_out.ok_or_else(nothing)?;
        held_out.with_scores(held_out.evaluate(&run.model)?, &run.model, &run.tokenizer)
    }
}

/// Public text, encoded for evaluation.
pub(crate) enum HeldOut {
    /// Text whose tokens are predicted.
    Tokens(HeldOutTokens),
    /// Text whose labels are predicted.
    Labels(HeldOutLabels),
}

impl HeldOut {
    /// Encodes public text. Returns [`None`] if it has nothing to predict.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer has no end-of-text token.
    pub fn new(
        text: &PublicText,
        tokenizer: &Tokenizer,
        objective: &Objective,
        plan: &plan::Plan,
    ) -> Result<Option<Self>, RunError> {
        let records = match text {
            PublicText::Texts(texts) => {
                return Ok(HeldOutTokens::of_texts(texts, tokenizer, objective)?.map(Self::Tokens));
            }
            PublicText::Labelled(records) => records,
        };
        let Some(task) = objective.task() else { return Ok(None) };
        if let Some(cut) = task.cut_note(records, tokenizer) {
            note(&format!("evaluation: {cut}"));
        }
        if plan.training().objective.has_labels() {
            return Ok(Some(Self::Labels(HeldOutLabels::new(records, tokenizer, task, plan))));
        }
        let examples: Vec<Example> = records.iter().map(|record| task.example(record, tokenizer)).collect();
        if let Some(template) = task.chat_template() {
            template.check(records, plan.training().chat().learn, "evaluation", true)?;
        }
        let writes = plan.training().objective == plan::Objective::TextToText;
        let answers = writes.then(|| Answers::new(records, &examples, task, tokenizer, plan));
        let tokens = HeldOutTokens::of_examples(examples, tokenizer)?;
        Ok(tokens.map(|tokens| Self::Tokens(HeldOutTokens { answers, ..tokens })))
    }

    /// Returns the figures of a finished model and, if it answers records, the scores of its
    /// answers.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub(crate) fn with_scores<B: Kernels>(
        &self,
        figures: Evaluation,
        model: &InferenceModel<B>,
        tokenizer: &Tokenizer,
    ) -> Result<Evaluation, RunError> {
        match (self, figures) {
            (Self::Tokens(HeldOutTokens { answers: Some(answers), .. }), Evaluation::Tokens(figures)) => {
                Ok(Evaluation::Tokens(answers.score(figures, model, tokenizer)?))
            }
            (_, figures) => Ok(figures),
        }
    }

    /// Evaluates a model on this text.
    ///
    /// # Errors
    /// [`RunError::Failed`] if an example does not fit the model.
    pub fn evaluate<B: Kernels>(&self, model: &InferenceModel<B>) -> Result<Evaluation, RunError> {
        match self {
            Self::Tokens(text) => text.evaluate(model).map(Evaluation::Tokens),
            Self::Labels(text) => text.evaluate(model),
        }
    }
}

/// Public text whose tokens are predicted.
pub(crate) struct HeldOutTokens {
    examples: Vec<Example>,
    /// Number of words, if the model predicts every token.
    words: Option<u64>,
    unknown: Option<u32>,
    end_of_text: u32,
    /// The records, if the model was trained to answer them.
    answers: Option<Answers>,
}

impl HeldOutTokens {
    /// Returns [`None`] if there is no token to predict.
    fn of_texts(
        texts: &[UnitText],
        tokenizer: &Tokenizer,
        objective: &Objective,
    ) -> Result<Option<Self>, RunError> {
        let windows = Dataset::encode(texts, tokenizer, objective.window_spec()).all_windows()?;
        let words = texts.iter().map(|text| words_of(&text.piece.text)).sum();
        let predicts_all = objective.generation() == Generation::Continuation;
        let words = Some(words).filter(|&words| words > 0 && predicts_all);
        let tokens = Self::of_examples(objective.public_examples(&windows), tokenizer)?;
        Ok(tokens.map(|tokens| Self { words, ..tokens }))
    }

    /// Returns [`None`] if there is no token to predict.
    fn of_examples(examples: Vec<Example>, tokenizer: &Tokenizer) -> Result<Option<Self>, RunError> {
        if examples.iter().all(|example| example.targets.is_empty()) {
            return Ok(None);
        }
        let (unknown, end_of_text) = (tokenizer.unk_id(), end_of_text(tokenizer)?);
        Ok(Some(Self { examples, words: None, unknown, end_of_text, answers: None }))
    }

    fn evaluate<B: Kernels>(&self, model: &InferenceModel<B>) -> Result<TokenEvaluation, RunError> {
        let failed = |error: InferenceError| RunError::Failed(error.to_string());
        let predictions = model.predictions(&self.examples).map_err(failed)?;
        let targets = self.examples.iter().flat_map(|example| &example.targets).copied();
        let predicted: Vec<(u32, Prediction)> = targets.zip(predictions.into_iter().flatten()).collect();
        let total_of = |counts: &dyn Fn(u32) -> bool| {
            Total::of(predicted.iter().filter(|(token, _)| counts(*token)).map(|(_, prediction)| prediction))
        };
        let all = total_of(&|_| true);
        let unknown = total_of(&|token| Some(token) == self.unknown);
        let known = total_of(&|token| Some(token) != self.unknown && token != self.end_of_text);
        let pairs = Total::of(&model.sentence_predictions(&self.examples).map_err(failed)?);
        Ok(TokenEvaluation {
            tokens: all.count as u64,
            perplexity: Released::from_public_text(all.mean_nll().exp()),
            best_unigram_perplexity: best_unigram_nll(&self.examples).exp(),
            token_accuracy: Some(Released::from_public_text(all.accuracy())),
            words: self.words.map(|count| ByWord {
                count,
                perplexity: Released::from_public_text((all.nats / count as f64).exp()),
            }),
            unknown: (unknown.count > 0.0 && known.count > 0.0).then(|| Unknown {
                share: unknown.count / all.count,
                perplexity_of_known: Released::from_public_text(known.mean_nll().exp()),
            }),
            sentences: (pairs.count > 0.0).then(|| Sentences {
                pairs: pairs.count as u64,
                nll: Released::from_public_text(pairs.mean_nll()),
                accuracy: Released::from_public_text(pairs.accuracy()),
            }),
            answers: None,
            scores: None,
            copied_bleu: None,
        })
    }
}

/// Sums over predicted tokens.
#[derive(Default)]
struct Total {
    nats: f64,
    correct: f64,
    count: f64,
}

impl Total {
    fn of<'a>(predictions: impl IntoIterator<Item = &'a Prediction>) -> Self {
        let mut total = Self::default();
        for prediction in predictions {
            total.nats += prediction.nll;
            total.correct += f64::from(u8::from(prediction.is_likeliest));
            total.count += 1.0;
        }
        total
    }

    fn mean_nll(&self) -> f64 {
        self.nats / self.count
    }

    fn accuracy(&self) -> f64 {
        self.correct / self.count
    }
}

/// Counts runs of letters and digits, and other single characters that are not white space.
fn words_of(text: &str) -> u64 {
    let mut inside = false;
    let begins = |c: char| {
        let was_inside = std::mem::replace(&mut inside, c.is_alphanumeric());
        !(c.is_whitespace() || was_inside && c.is_alphanumeric())
    };
    text.chars().map(begins).filter(|&begins| begins).count() as u64
}

/// Returns the mean negative log-likelihood of the best unigram model of these examples: the entropy of their targets.
///
/// The model is fitted on the public evaluation text, so it uses no private data. No unigram model does better on that text,
/// whatever its training data.
fn best_unigram_nll(examples: &[Example]) -> f64 {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for &token in examples.iter().flat_map(|example| &example.targets) {
        *counts.entry(token).or_default() += 1;
    }
    // Sorted, so that the sum has the same bits every time.
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
