//! A plan for a classifier of texts on the means of a checkpoint's hidden states, or of words: the head alone or, where the budget pays for
//! more weights, the head and the gains of the norms.
//!
//! `UTILITY.md` has the measurements behind each choice. Noise grows with the number of trained weights, so a few thousand records at a
//! small ε pay for a linear layer and not for more. Averages of the weights remove most of what noise remains.

use plan::Trainable;
use serde_json::{Value, json};

use super::{Choices, Task};

/// Least product of units and ε for which the norms are trained too. The noise on a mean gradient falls with this product.
const LEAST_FOR_NORMS: f64 = 14_000.0;

/// Clip norm of a head alone, below the norm of nearly every gradient of it.
const HEAD_CLIP_NORM: f64 = 0.3;

/// Learning rate times clip norm: the length of a step of a head alone in which all gradients agree.
const HEAD_STEP_LENGTH: f64 = 4.0;

/// Clip norm of head and norms together.
const NORMS_CLIP_NORM: f64 = 1.0;

/// Learning rate of head and norms together, with Adam.
const NORMS_RATE: f64 = 0.01;

/// Most tokens of a text.
const CONTEXT: u64 = 128;

/// What is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The head alone.
    Head,
    /// The head and the gains of all norms.
    Norms,
}

impl Part {
    /// Returns the part of a classifier that starts from a checkpoint; `None` for other tasks and starts.
    pub(super) fn of(choices: &Choices) -> Option<Self> {
        let is_classifier = choices.task.classifies() || choices.task == Task::Tags;
        (is_classifier && choices.checkpoint.is_some())
            .then(|| Self::affordable(choices.units, choices.epsilon))
    }

    /// The part that this many units pay for.
    fn affordable(units: u64, epsilon: f64) -> Self {
        if units as f64 * epsilon >= LEAST_FOR_NORMS { Self::Norms } else { Self::Head }
    }

    /// Returns the part as a plan names it.
    pub(super) fn trainable(self) -> Trainable {
        match self {
            Self::Head => Trainable::Head,
            Self::Norms => Trainable::Norms,
        }
    }

    fn settings(self) -> (Value, f64, Value, f64) {
        match self {
            // Three digits of the rate.
            Self::Head => {
                let rate = (HEAD_STEP_LENGTH / HEAD_CLIP_NORM * 10.0).round() / 10.0;
                (json!(self.trainable()), HEAD_CLIP_NORM, json!({ "sgd": { "momentum": 0.0 } }), rate)
            }
            Self::Norms => (json!(self.trainable()), NORMS_CLIP_NORM, json!({ "adamw": {} }), NORMS_RATE),
        }
    }
}

/// Makes a plan one for a classifier with these labels.
pub(super) fn apply(plan: &mut Value, choices: &Choices, labels: &[String]) {
    plan["training"]["labels"] = json!(labels);
    let Some(part) = Part::of(choices) else {
        plan["training"]["l2_clip_norm"] = json!(HEAD_CLIP_NORM);
        return;
    };
    let model = &mut plan["model"];
    if choices.task.classifies() {
        model["pooling"] = json!("mean");
    }
    let (trainable, l2_clip_norm, optimizer, rate) = part.settings();
    model["trainable"] = trainable;
    model["context"] = json!(model["context"].as_u64().unwrap_or(CONTEXT).min(CONTEXT));
    let training = &mut plan["training"];
    training["l2_clip_norm"] = json!(l2_clip_norm);
    training["optimizer"] = optimizer;
    training["learning_rate"] = json!({ "peak": rate });
    training["averaging"] = json!({ "tail": 0.5 });
    let steps = training["steps"].clone();
    if let Some(evaluation) = plan.get_mut("evaluation") {
        evaluation["every"] = steps;
    }
}
