//! Figures of a model on public text, and how they are shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::AnswerEvaluation;
use super::scores::Counts;
use crate::disclosure::Released;
use crate::score::Score;

/// Figures of a model on text that is declared public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Evaluation {
    /// Figures of a model that predicts tokens.
    Tokens(TokenEvaluation),
    /// Figures of a model that predicts labels of texts.
    Labels(LabelEvaluation),
    /// Figures of a model that predicts tags of words.
    Entities(EntityEvaluation),
}

impl Evaluation {
    /// Returns the mean negative log-likelihood of a prediction, in nats.
    #[must_use]
    pub fn nll(&self) -> f64 {
        match self {
            Self::Tokens(figures) => figures.perplexity.get().ln(),
            Self::Labels(figures) => *figures.nll.get(),
            Self::Entities(figures) => *figures.nll.get(),
        }
    }

    /// Returns a warning if a trivial guess predicts this text as well as the model does.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Tokens(figures) => figures.warning(),
            Self::Labels(figures) if *figures.accuracy.get() <= figures.majority_accuracy => Some(
                "always naming the most frequent label is as accurate as the model; give it more units, a larger ε or a public \
                 checkpoint (`trainer-native init --checkpoint` proposes a plan)",
            ),
            Self::Entities(figures) if *figures.f1.get() == 0.0 => Some(
                "the model finds no mention; give it more units, a larger ε or a public checkpoint (`trainer-native init \
                 --checkpoint` proposes a plan)",
            ),
            Self::Labels(_) | Self::Entities(_) => None,
        }
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(figures) => figures.fmt(f),
            Self::Labels(figures) => figures.fmt(f),
            Self::Entities(figures) => figures.fmt(f),
        }
    }
}

/// Figures of a model that predicts tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenEvaluation {
    /// Number of predicted tokens. In next-token prediction they include the end of each record.
    pub tokens: u64,
    /// Exponential of the mean negative log-likelihood per token.
    pub perplexity: Released<f64>,
    /// Perplexity of the best unigram model fitted on this very text. No unigram model has a lower one.
    pub best_unigram_perplexity: f64,
    /// Share of tokens that the model ranks first, each after the true tokens before it. It does not say whether whole
    /// answers are right.
    #[serde(default, alias = "accuracy", skip_serializing_if = "Option::is_none")]
    pub token_accuracy: Option<Released<f64>>,
    /// Figures per word, if the model predicts every token. They compare models with different vocabularies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<ByWord>,
    /// Figures about the unknown token, if it occurs in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// Figures about sentence pairs, if the model predicts their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Sentences>,
    /// Figures of the labels or numbers that a finished model writes, if the plan declares its answers to be labels or
    /// numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerEvaluation>,
    /// Scores of the texts that a finished model writes for each record, if it was trained to write targets that are
    /// neither labels nor numbers. Decoding is greedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Released<Vec<Score>>>,
    /// BLEU of copying the input of each record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_bleu: Option<f64>,
}

impl TokenEvaluation {
    /// Returns the warning of [`Evaluation::warning`], by the task's own figures if there are any.
    fn warning(&self) -> Option<&'static str> {
        if let Some(answers) = &self.answers {
            return answers.warning();
        }
        let bleu = self.scores.iter().flat_map(Released::get).find(|score| score.name == "BLEU");
        let unigram = *self.perplexity.get() >= self.best_unigram_perplexity;
        match (bleu, self.copied_bleu, &self.sentences) {
            (Some(bleu), Some(copied), _) if bleu.score <= copied => Some(
                "copying the input scores as much BLEU as the model; give it more units, more steps, a larger ε or a public checkpoint \
                 (`trainer-native init --checkpoint` proposes a plan)",
            ),
            _ if unigram => Some(
                "word frequencies alone predict this text better than the model; give it more units, a larger ε or a public \
                 checkpoint (`trainer-native advise` predicts what a budget buys)",
            ),
            (_, _, Some(pairs)) if *pairs.nll.get() >= std::f64::consts::LN_2 => Some(
                "a coin predicts the order of sentences as well as the model; give it more units, a larger ε or a public checkpoint, or \
                 leave the order out (\"masked_lm\")",
            ),
            _ => None,
        }
    }
}

/// Figures per word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByWord {
    /// Number of words and marks: runs of letters and digits, and other single characters that are not white space.
    pub count: u64,
    /// Exponential of the text's negative log-likelihood divided by `count`. The ends of records are predicted, but are no
    /// words.
    pub perplexity: Released<f64>,
}

/// Figures about the unknown token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unknown {
    /// Share of the predicted tokens that are unknown.
    pub share: f64,
    /// Perplexity of the tokens that are neither unknown nor the end of a record. The model spends probability on these two as
    /// well, so leaving them out does not favour it.
    pub perplexity_of_known: Released<f64>,
}

/// Figures about the order of sentence pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sentences {
    /// Number of sentence pairs.
    pub pairs: u64,
    /// Mean negative log-likelihood of a pair's order, in nats. That of a coin is ln 2.
    pub nll: Released<f64>,
    /// Share of pairs whose order is predicted correctly.
    pub accuracy: Released<f64>,
}

impl fmt::Display for TokenEvaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, perplexity, best_unigram_perplexity: unigram, .. } = self;
        // A task's own figures come first.
        if let Some(answers) = &self.answers {
            writeln!(f, "{answers}")?;
        }
        for (place, score) in self.scores.iter().flat_map(Released::get).enumerate() {
            let copied = self.copied_bleu.filter(|_| place == 0);
            let copied = copied.map_or_else(String::new, |bleu| format!("; copying the input: {bleu:.2}"));
            writeln!(f, "{score}{copied}")?;
        }
        let own = perplexity.get();
        write!(
            f,
            "perplexity per token {own:.2} on {tokens} tokens; the best unigram model's is {unigram:.2}"
        )?;
        if let Some(accuracy) = &self.token_accuracy {
            write!(
                f,
                "; token accuracy {:.1} %, each after the true tokens before it",
                100.0 * accuracy.get()
            )?;
        }
        if let Some(ByWord { count, perplexity }) = &self.words {
            write!(f, "\nperplexity per word {:.2} on {count} words and marks", perplexity.get())?;
        }
        if let Some(Unknown { share, perplexity_of_known }) = &self.unknown {
            let (share, known) = (100.0 * share, perplexity_of_known.get());
            write!(f, "\n{share:.1} % of tokens unknown; perplexity of known words {known:.2}")?;
        }
        if let Some(Sentences { pairs, nll, accuracy }) = &self.sentences {
            let (correct, nll) = (100.0 * accuracy.get(), nll.get());
            write!(
                f,
                "\norder of {correct:.1} % of {pairs} sentence pairs predicted correctly, {nll:.3} nats per pair"
            )?;
        }
        Ok(())
    }
}

/// Figures about labels of texts, each as scikit-learn defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelEvaluation {
    /// Number of texts.
    pub texts: u64,
    /// Mean negative log-likelihood of a label, in nats.
    pub nll: Released<f64>,
    /// Share of texts whose label, or whole set of labels, is predicted.
    pub accuracy: Released<f64>,
    /// The accuracy of always predicting the most frequent label, or set of labels, of this very text.
    pub majority_accuracy: f64,
    /// Mean F1 over the labels.
    pub macro_f1: Released<f64>,
    /// F1 of all decisions together.
    pub micro_f1: Released<f64>,
    /// F1 of the second label, if there are two and a text has one, as GLUE computes it for MRPC and QQP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<Released<f64>>,
    /// Matthews' correlation coefficient, if a text has one label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matthews: Option<Released<f64>>,
    /// Figures of each label.
    pub labels: Vec<LabelScore>,
}

/// Figures about mentions of entities, each as seqeval and conlleval define it. A mention counts as found if its type and
/// all of its words are right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntityEvaluation {
    /// Number of sentences.
    pub sentences: u64,
    /// Number of words. Words beyond the model's context are predicted as O.
    pub words: u64,
    /// Mean negative log-likelihood of a tag, in nats.
    pub nll: Released<f64>,
    /// Share of words whose tag is predicted.
    pub accuracy: Released<f64>,
    /// Share of predicted mentions that are right.
    pub precision: Released<f64>,
    /// Share of true mentions that are found.
    pub recall: Released<f64>,
    /// F1 of mentions.
    pub f1: Released<f64>,
    /// Figures of each type of entity.
    pub types: Vec<LabelScore>,
}

/// Figures of one label or type of entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelScore {
    /// Name of the label or type.
    pub label: String,
    /// Share of predicted items that are true.
    pub precision: Released<f64>,
    /// Share of true items that are predicted.
    pub recall: Released<f64>,
    /// Harmonic mean of precision and recall.
    pub f1: Released<f64>,
    /// Number of true items.
    pub count: u64,
}

impl LabelScore {
    pub(super) fn of(label: &str, counts: Counts) -> Self {
        Self {
            label: label.to_owned(),
            precision: Released::from_public_text(counts.precision()),
            recall: Released::from_public_text(counts.recall()),
            f1: Released::from_public_text(counts.f1()),
            count: counts.actual,
        }
    }
}

impl fmt::Display for LabelEvaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [accuracy, macro_f1, micro_f1] =
            [&self.accuracy, &self.macro_f1, &self.micro_f1].map(|x| x.get());
        write!(
            f,
            "accuracy {:.2} % on {} texts (most frequent label {:.2} %), macro F1 {macro_f1:.4}, micro F1 {micro_f1:.4}",
            100.0 * accuracy,
            self.texts,
            100.0 * self.majority_accuracy
        )?;
        if let Some(f1) = &self.f1 {
            write!(f, ", F1 {:.4}", f1.get())?;
        }
        if let Some(matthews) = &self.matthews {
            write!(f, ", Matthews {:.4}", matthews.get())?;
        }
        Ok(())
    }
}

impl fmt::Display for EntityEvaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [f1, precision, recall] = [&self.f1, &self.precision, &self.recall].map(|x| 100.0 * x.get());
        write!(
            f,
            "entity F1 {f1:.2} (precision {precision:.2}, recall {recall:.2}) in {} sentences; {:.2} % of {} tags correct",
            self.sentences,
            100.0 * self.accuracy.get(),
            self.words
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(perplexity: f64) -> Evaluation {
        Evaluation::Tokens(TokenEvaluation {
            tokens: 10,
            perplexity: Released::from_public_text(perplexity),
            best_unigram_perplexity: 100.0,
            token_accuracy: None,
            words: None,
            unknown: None,
            sentences: None,
            answers: None,
            scores: None,
            copied_bleu: None,
        })
    }

    fn labels(accuracy: f64) -> Evaluation {
        let [nll, accuracy, macro_f1, micro_f1] = [1.0, accuracy, 0.1, 0.1].map(Released::from_public_text);
        let (texts, majority_accuracy, f1, matthews, labels) = (10, 0.5, None, None, Vec::new());
        Evaluation::Labels(LabelEvaluation {
            texts,
            nll,
            accuracy,
            majority_accuracy,
            macro_f1,
            micro_f1,
            f1,
            matthews,
            labels,
        })
    }

    #[test]
    fn a_model_that_a_trivial_guess_equals_comes_with_a_warning() {
        assert_eq!(tokens(99.9).warning(), None);
        assert!(tokens(100.0).warning().is_some_and(|warning| warning.contains("word frequencies")));
        assert_eq!(labels(0.51).warning(), None);
        assert!(labels(0.5).warning().is_some_and(|warning| warning.contains("most frequent label")));
    }

    /// A text-to-text task is judged by its own score, not by its tokens.
    #[test]
    fn a_task_is_warned_about_by_its_own_baseline() {
        let with = |answers: Option<AnswerEvaluation>, scores: &[f64], copied_bleu| {
            let Evaluation::Tokens(figures) = tokens(2.0) else { panic!() };
            let score = |&score: &f64| {
                let [name, signature, details] = ["BLEU", "", ""].map(str::to_owned);
                Score { name, score, signature, details }
            };
            let scores = Some(scores.iter().map(score).collect()).filter(|all: &Vec<Score>| !all.is_empty());
            let scores = scores.map(Released::from_public_text);
            Evaluation::Tokens(TokenEvaluation { answers, scores, copied_bleu, ..figures })
        };
        let labels = |written: &[u32]| {
            with(Some(AnswerEvaluation::of_labels(2, &[0, 0, 1], written, &[0, 0, 1])), &[], None)
        };
        assert_eq!(labels(&[0, 0, 1]).warning(), None);
        // A text that is no label is wrong.
        for written in [[0, 0, 0], [0, 0, 2], [1, 1, 1]] {
            assert!(labels(&written).warning().unwrap().contains("most frequent label"), "{written:?}");
        }
        let numbers = |written: [&str; 3]| {
            let texts = |all: [&str; 3]| all.map(str::to_owned);
            with(
                Some(AnswerEvaluation::of_numbers(&texts(["1.0", "2.0", "3.0"]), &texts(written))),
                &[],
                None,
            )
        };
        assert_eq!(numbers(["0.2", "0.4", "5.0"]).warning(), None);
        for written in [["2.0", "2.0", "2.0"], ["3.0", "2.0", "no"]] {
            assert!(numbers(written).warning().unwrap().contains("do not correlate"), "{written:?}");
        }
        assert_eq!(with(None, &[5.1], Some(5.0)).warning(), None);
        assert!(with(None, &[5.0], Some(5.0)).warning().unwrap().contains("copying"));
        let shown = with(None, &[5.1], Some(5.0)).to_string();
        assert!(shown.starts_with("BLEU") && shown.contains("copying the input: 5.00"), "{shown}");
    }
}
