//! A plan for a classifier of texts: the head alone, on the means of a checkpoint's hidden states.
//!
//! `UTILITY.md` has the measurements behind each choice. Noise grows with the number of trained weights, so a few thousand records
//! pay for a linear layer and not for more. Averages of its weights remove most of what noise remains.

use plan::Family;
use serde_json::{Value, json};

use training::RunError;

/// Number of steps.
pub(super) const STEPS: u64 = 60;

/// Clip norm, below the norm of nearly every gradient of such a head.
const L2_CLIP_NORM: f64 = 0.3;

/// Learning rate times clip norm: the length of a step in which all gradients agree.
const STEP_LENGTH: f64 = 4.0;

/// Most tokens of a text.
const CONTEXT: u64 = 128;

/// Returns a power of two near three tenths of the units. Steps on features cost next to no time, and larger batches have less noise
/// per unit.
pub(super) fn usual_batch(units: u64) -> u64 {
    let most = (units * 3 / 10).clamp(1, 1 << 14);
    1 << most.ilog2()
}

/// Makes a plan that starts from a checkpoint one for a classifier with these labels.
///
/// # Errors
/// [`RunError::Refused`] without a checkpoint of a family that has means of hidden states.
pub(super) fn apply(plan: &mut Value, labels: &[String]) -> Result<(), RunError> {
    let model = &mut plan["model"];
    let able = |family: &Family| family.can_pool();
    let family = model["family"].as_str().and_then(Family::named);
    if model["initial"].is_null() || !family.is_some_and(|family| able(&family)) {
        let names: Vec<&str> = Family::all().filter(able).map(Family::name).collect();
        return Err(RunError::Refused(format!(
            "--labels: a classifier starts from a checkpoint of these families: {}; give its folder with --checkpoint, or write \
             training.objective and training.labels into a plan yourself",
            names.join(", ")
        )));
    }
    model["pooling"] = json!("mean");
    model["trainable"] = json!("head");
    model["context"] = json!(model["context"].as_u64().unwrap_or(CONTEXT).min(CONTEXT));
    let training = &mut plan["training"];
    training["objective"] = json!("sequence_classification");
    training["labels"] = json!(labels);
    training["l2_clip_norm"] = json!(L2_CLIP_NORM);
    training["optimizer"] = json!({ "sgd": { "momentum": 0.0 } });
    // Three digits.
    let rate = (STEP_LENGTH / L2_CLIP_NORM * 10.0).round() / 10.0;
    training["learning_rate"] = json!({ "peak": rate });
    training["averaging"] = json!({ "tail": 0.5 });
    let steps = training["steps"].clone();
    if let Some(evaluation) = plan.get_mut("evaluation") {
        evaluation["every"] = steps;
    }
    Ok(())
}
