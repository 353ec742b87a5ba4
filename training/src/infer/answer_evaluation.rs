//! Figures of written answers that are labels or numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::scores::{Counts, binary_f1, count, macro_f1, majority, matthews, pearson, spearman};
use crate::disclosure::Released;

/// Figures of a model that writes a label or a number for each text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEvaluation {
    /// Figures of texts that have a label each.
    Labels {
        /// Number of texts.
        texts: u64,
        /// Accuracy of always writing the label that is most frequent in this very text.
        majority_accuracy: f64,
        /// Scores of the written texts, greedily decoded. A text that is no label is wrong.
        written: ClassScores,
        /// Scores of the labels with the largest likelihood.
        likeliest: ClassScores,
    },
    /// Figures of texts that have a number each.
    Numbers {
        /// Number of texts.
        texts: u64,
        /// Pearson's correlation of written and true numbers. Absent if all of one kind are equal. A text that is no number counts as
        /// −1, as in T5's evaluation of STS-B.
        pearson: Option<Released<f64>>,
        /// Spearman's rank correlation.
        spearman: Option<Released<f64>>,
    },
}

/// Figures of one label a text, each as scikit-learn defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassScores {
    /// Share of texts with the right label.
    pub accuracy: Released<f64>,
    /// F1 of the second label, if there are two, as GLUE computes it for MRPC and QQP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<Released<f64>>,
    /// Mean F1 over the labels.
    pub macro_f1: Released<f64>,
    /// Matthews' correlation coefficient.
    pub matthews: Released<f64>,
}

impl ClassScores {
    /// Computes scores from pairs of a true and a predicted label. A predicted one beyond the first `labels` is none of
    /// them.
    fn of(labels: usize, pairs: &[(Vec<u32>, Vec<u32>)]) -> Self {
        let counts = count(labels + 1, pairs);
        let total = Counts::total(&counts);
        let released = Released::from_public_text;
        Self {
            accuracy: released(total.f1()),
            f1: binary_f1(labels, &counts).map(released),
            macro_f1: released(macro_f1(&counts, false)),
            matthews: released(matthews(&counts)),
        }
    }
}

impl AnswerEvaluation {
    /// Computes the figures of labels. `written` and `likeliest` are indices of labels; the index `labels` stands for
    /// any other text.
    pub(super) fn of_labels(labels: usize, actual: &[u32], written: &[u32], likeliest: &[u32]) -> Self {
        let pairs = |found: &[u32]| -> Vec<(Vec<u32>, Vec<u32>)> {
            actual.iter().zip(found).map(|(&actual, &found)| (vec![actual], vec![found])).collect()
        };
        let written = pairs(written);
        Self::Labels {
            texts: actual.len() as u64,
            majority_accuracy: majority(&written),
            written: ClassScores::of(labels, &written),
            likeliest: ClassScores::of(labels, &pairs(likeliest)),
        }
    }

    /// Computes the figures of numbers, given as the texts that state them.
    pub(super) fn of_numbers(actual: &[String], written: &[String]) -> Self {
        let number = |text: &String| text.trim().parse().ok().filter(|x: &f64| x.is_finite()).unwrap_or(-1.0);
        let [actual, written] = [actual, written].map(|texts| texts.iter().map(number).collect::<Vec<f64>>());
        Self::Numbers {
            texts: actual.len() as u64,
            pearson: pearson(&actual, &written).map(Released::from_public_text),
            spearman: spearman(&actual, &written).map(Released::from_public_text),
        }
    }

    /// Returns a warning if a constant answer is as good as the model's.
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Labels { written, majority_accuracy, .. }
                if *written.accuracy.get() <= *majority_accuracy =>
            {
                Some(
                    "always writing the most frequent label is as accurate as the model; give it more units, more steps, a larger ε or a \
                 public checkpoint (`trainer-native init --checkpoint` proposes a plan)",
                )
            }
            Self::Numbers { pearson, .. } if pearson.as_ref().is_none_or(|r| *r.get() <= 0.0) => Some(
                "the numbers written do not correlate with the true ones; give the model more units, more steps, a larger ε or a public \
                 checkpoint (`trainer-native init --checkpoint` proposes a plan)",
            ),
            Self::Labels { .. } | Self::Numbers { .. } => None,
        }
    }
}

impl fmt::Display for ClassScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accuracy, f1, macro_f1, matthews } = self;
        write!(f, "accuracy {:.2} %", 100.0 * accuracy.get())?;
        if let Some(f1) = f1 {
            write!(f, ", F1 {:.4}", f1.get())?;
        }
        write!(f, ", macro F1 {:.4}, Matthews {:.4}", macro_f1.get(), matthews.get())
    }
}

impl fmt::Display for AnswerEvaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Labels { texts, majority_accuracy, written, likeliest } => {
                let majority = 100.0 * majority_accuracy;
                write!(
                    f,
                    "written labels of {texts} texts: {written} (most frequent label {majority:.2} %)"
                )?;
                write!(f, "\nlikeliest labels: {likeliest}")
            }
            Self::Numbers { texts, pearson, spearman } => {
                let shown = |r: &Option<Released<f64>>| {
                    r.as_ref().map_or_else(|| "none".to_owned(), |r| format!("{:.4}", r.get()))
                };
                let [pearson, spearman] = [shown(pearson), shown(spearman)];
                write!(f, "written numbers of {texts} texts: Pearson {pearson}, Spearman {spearman}")
            }
        }
    }
}
