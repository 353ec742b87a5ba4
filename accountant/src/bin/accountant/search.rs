//! Parameters that meet a target.

use accountant::calibrate::{self, Compute};
use accountant::{AccountantError, Delta, DpEvent, NeighboringRelation, VERSION, budget};
use serde_json::{Value, json};

use crate::answer::rounded_up;
use crate::flags::Question;

/// The most steps that are looked for.
const MOST_STEPS: u64 = 1 << 40;

/// Answers to the questions after noise, steps, batch and their ratio.
pub(crate) fn answer(question: &Question) -> Result<(String, Value), String> {
    let say = |error: AccountantError| error.to_string();
    Ok(match question {
        Question::Noise { run, steps, epsilon, delta } => {
            let (scheme, at, relation) =
                (run.scheme()?, Delta::new(*delta).map_err(say)?, run.relation.into());
            let event = |noise| scheme.event(noise, *steps);
            let noise = calibrate::noise_multiplier(*epsilon, at, relation, event).map_err(say)?;
            let text =
                format!("noise multiplier {} meets ε ≤ {epsilon} at δ = {delta:e}", rounded_up(noise, 6));
            (text, found(json!({ "noise_multiplier": noise }), *epsilon, *delta))
        }
        Question::Steps { run, noise_multiplier, epsilon, delta } => {
            let (scheme, at, relation) =
                (run.scheme()?, Delta::new(*delta).map_err(say)?, run.relation.into());
            let event = |steps| scheme.event(*noise_multiplier, steps);
            let steps = calibrate::steps(*epsilon, at, relation, MOST_STEPS, event).map_err(say)?;
            let text = match steps {
                0 => format!("not even one step meets ε ≤ {epsilon} at δ = {delta:e}"),
                MOST_STEPS => {
                    format!("{steps} steps meet ε ≤ {epsilon} at δ = {delta:e}; more were not tried")
                }
                _ => format!("{steps} steps meet ε ≤ {epsilon} at δ = {delta:e}"),
            };
            (text, found(json!({ "steps": steps }), *epsilon, *delta))
        }
        Question::Batch { run, noise_multiplier, steps, epsilon, delta } => {
            let ((scheme, units), at) = (run.open()?, Delta::new(*delta).map_err(say)?);
            let event = |batch| scheme.with_batch(batch, units).event(*noise_multiplier, *steps);
            let batch =
                calibrate::batch_size(*epsilon, at, run.relation.into(), units, event).map_err(say)?;
            let text = match batch {
                0 => format!("not even an expected batch of 1 meets ε ≤ {epsilon} at δ = {delta:e}"),
                _ => format!("an expected batch of {batch} meets ε ≤ {epsilon} at δ = {delta:e}"),
            };
            (text, found(json!({ "batch_size": batch, "dataset_size": units }), *epsilon, *delta))
        }
        Question::Ratio { .. } => ratio(question)?,
        _ => return Err("not a search".to_owned()),
    })
}

/// The batch of the least noise on the mean gradient.
fn ratio(question: &Question) -> Result<(String, Value), String> {
    let Question::Ratio { run, steps, examples, slack, epsilon, delta } = question else {
        return Err("not a ratio".to_owned());
    };
    let ((scheme, units), at) = (run.open()?, Delta::new(*delta).map_err(|e| e.to_string())?);
    let compute = match (steps, examples) {
        (Some(steps), _) => Compute::Steps(*steps),
        (None, examples) => Compute::Examples(examples.unwrap_or(0)),
    };
    let event = |batch, steps, noise| scheme.with_batch(batch, units).event(noise, steps);
    let relation: NeighboringRelation = run.relation.into();
    let best = calibrate::noise_batch_ratio(*epsilon, at, relation, units, compute, *slack, event)
        .map_err(|e| e.to_string())?;
    let text = format!(
        "batch {} for {} steps with noise multiplier {}: {:.3e} clip norms of noise on the mean gradient",
        best.expected_batch_size,
        best.steps,
        rounded_up(best.noise_multiplier, 6),
        best.ratio
    );
    let json = json!({
        "batch_size": best.expected_batch_size,
        "steps": best.steps,
        "noise_multiplier": best.noise_multiplier,
        "ratio": best.ratio,
    });
    Ok((text, found(json, *epsilon, *delta)))
}

/// What was found, with the target it meets.
fn found(mut json: Value, epsilon: f64, delta: f64) -> Value {
    json["epsilon"] = json!(epsilon);
    json["delta"] = json!(delta);
    json["version"] = json!(VERSION);
    json
}

/// Noise for a vocabulary release and training.
pub(crate) fn split(question: &Question) -> Result<(String, Value), String> {
    let Question::Split { run, steps, vocabulary_share, threshold_delta, epsilon, delta } = question else {
        return Err("not a split".to_owned());
    };
    if !(*vocabulary_share > 0.0 && *vocabulary_share < 1.0) {
        return Err(format!("--vocabulary-share is {vocabulary_share}; allowed: strictly between 0 and 1"));
    }
    let at = Delta::new(*delta).map_err(|error| error.to_string())?;
    let (scheme, steps) = (run.scheme()?, *steps);
    let threshold_delta = threshold_delta.unwrap_or_else(|| budget::threshold_delta(at));
    let event = |stage, noise_multiplier| match stage {
        0 => DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta },
        _ => scheme.event(noise_multiplier, steps),
    };
    let shares = [*vocabulary_share, 1.0 - vocabulary_share];
    let split =
        budget::split(*epsilon, at, run.relation.into(), &shares, event).map_err(|e| e.to_string())?;
    let sum: f64 = split.alone.iter().map(|bounds| bounds.upper).sum();
    let text = format!(
        "vocabulary: noise multiplier {} (alone ε ≤ {}); training: {} (alone ε ≤ {}); together ε ≤ {} at δ = {delta:e}, \
         added up {}",
        rounded_up(split.noise_multipliers[0], 6),
        rounded_up(split.alone[0].upper, 4),
        rounded_up(split.noise_multipliers[1], 6),
        rounded_up(split.alone[1].upper, 4),
        rounded_up(split.together.upper, 4),
        rounded_up(sum, 4),
    );
    let stage = |name: &str, at: usize| json!({ "stage": name, "noise_multiplier": split.noise_multipliers[at], "epsilon_alone": split.alone[at] });
    let json = json!({
        "stages": [stage("vocabulary", 0), stage("training", 1)],
        "threshold_delta": threshold_delta,
        "epsilon": split.together,
        "epsilon_added_up": sum,
        "delta": delta,
        "version": VERSION,
    });
    Ok((text, json))
}
