//! Searches for parameters that meet a target.

use accountant::calibrate::{Compute, EpsilonTarget};
use accountant::{AccountantError, DpEvent, VERSION, budget};
use serde_json::{Value, json};

use crate::cli::{Command, Goal};
use crate::rounding::rounded_up;
use crate::sampling::SamplingArgs;

/// The most steps that are searched.
const MAX_STEPS: u64 = 1 << 40;

/// A line of text and its JSON.
type Answer = Result<(String, Value), String>;

/// Answers the commands that search for one parameter.
pub(crate) fn answer(command: &Command) -> Answer {
    match command {
        Command::Noise { sampling, steps, epochs, goal } => noise(sampling, *steps, *epochs, goal),
        Command::Steps { sampling, noise_multiplier, goal } => {
            largest_steps(sampling, *noise_multiplier, goal)
        }
        Command::Batch { sampling, noise_multiplier, steps, goal } => {
            largest_batch(sampling, *noise_multiplier, *steps, goal)
        }
        Command::Ratio { sampling, steps, examples, slack, goal } => {
            let compute = match (steps, examples) {
                (Some(steps), _) => Compute::Steps(*steps),
                (None, examples) => Compute::Examples(examples.unwrap_or(0)),
            };
            ratio(sampling, compute, *slack, goal)
        }
        _ => Err("not a search".to_owned()),
    }
}

fn text_of(error: AccountantError) -> String {
    error.to_string()
}

fn target(sampling: &SamplingArgs, goal: &Goal) -> Result<EpsilonTarget, String> {
    let delta = sampling.delta(goal.delta)?;
    Ok(EpsilonTarget { epsilon: goal.epsilon, delta, relation: sampling.relation.into() })
}

fn noise(sampling: &SamplingArgs, steps: Option<u64>, epochs: Option<f64>, goal: &Goal) -> Answer {
    let scheme = sampling.scheme()?;
    let steps = match (steps, epochs) {
        (None, Some(epochs)) => scheme.steps_of(epochs)?,
        (steps, _) => steps.unwrap_or(0),
    };
    let event = |noise| scheme.event(noise, steps);
    let noise = target(sampling, goal)?.noise_multiplier(event).map_err(text_of)?;
    let text = format!("noise multiplier {} meets {goal}", rounded_up(noise, 6));
    Ok((text, found(json!({ "noise_multiplier": noise }), goal)))
}

fn largest_steps(sampling: &SamplingArgs, noise_multiplier: f64, goal: &Goal) -> Answer {
    let scheme = sampling.scheme()?;
    let event = |steps| scheme.event(noise_multiplier, steps);
    let steps = target(sampling, goal)?.steps(MAX_STEPS, event).map_err(text_of)?;
    let text = match steps {
        0 => format!("not even one step meets {goal}"),
        MAX_STEPS => format!("{steps} steps meet {goal}; more were not tried"),
        _ => format!("{steps} steps meet {goal}"),
    };
    Ok((text, found(json!({ "steps": steps }), goal)))
}

fn largest_batch(sampling: &SamplingArgs, noise_multiplier: f64, steps: u64, goal: &Goal) -> Answer {
    let (scheme, units) = sampling.without_batch()?;
    let event = |batch| scheme.with_batch(batch, units).event(noise_multiplier, steps);
    let batch = target(sampling, goal)?.batch_size(units, event).map_err(text_of)?;
    let text = match batch {
        0 => format!("not even an expected batch of 1 meets {goal}"),
        _ => format!("an expected batch of {batch} meets {goal}"),
    };
    Ok((text, found(json!({ "batch_size": batch, "dataset_size": units }), goal)))
}

/// Finds the batch of the least noise on the mean gradient.
fn ratio(sampling: &SamplingArgs, compute: Compute, slack: f64, goal: &Goal) -> Answer {
    let (scheme, units) = sampling.without_batch()?;
    let event = |batch, steps, noise| scheme.with_batch(batch, units).event(noise, steps);
    let target = target(sampling, goal)?;
    let best = target.noise_batch_ratio(units, compute, slack, event).map_err(text_of)?;
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
    Ok((text, found(json, goal)))
}

/// Adds the target to the JSON of a result.
fn found(mut json: Value, goal: &Goal) -> Value {
    json["epsilon"] = json!(goal.epsilon);
    json["delta"] = json!(goal.delta);
    json["version"] = json!(VERSION);
    json
}

/// Splits a target between a vocabulary release and training.
pub(crate) fn split(command: &Command) -> Answer {
    let Command::Split { sampling, steps, vocabulary_share, threshold_delta, goal } = command else {
        return Err("not a split".to_owned());
    };
    if !(*vocabulary_share > 0.0 && *vocabulary_share < 1.0) {
        return Err(format!("--vocabulary-share is {vocabulary_share}; allowed: strictly between 0 and 1"));
    }
    let target = target(sampling, goal)?;
    let (scheme, steps) = (sampling.scheme()?, *steps);
    let threshold_delta = threshold_delta.unwrap_or_else(|| budget::threshold_delta(target.delta));
    let event = |stage, noise_multiplier| match stage {
        0 => DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta },
        _ => scheme.event(noise_multiplier, steps),
    };
    let shares = [*vocabulary_share, 1.0 - vocabulary_share];
    let split = budget::split(&target, &shares, event).map_err(text_of)?;
    let sum: f64 = split.alone.iter().map(|bounds| bounds.upper).sum();
    let text = format!(
        "vocabulary: noise multiplier {} (alone ε ≤ {}); training: {} (alone ε ≤ {}); together ε ≤ {} at δ = {:e}, \
         added up {}",
        rounded_up(split.noise_multipliers[0], 6),
        rounded_up(split.alone[0].upper, 4),
        rounded_up(split.noise_multipliers[1], 6),
        rounded_up(split.alone[1].upper, 4),
        rounded_up(split.together.upper, 4),
        goal.delta,
        rounded_up(sum, 4),
    );
    let stage = |name: &str, at: usize| json!({ "stage": name, "noise_multiplier": split.noise_multipliers[at], "epsilon_alone": split.alone[at] });
    let json = json!({
        "stages": [stage("vocabulary", 0), stage("training", 1)],
        "threshold_delta": threshold_delta,
        "epsilon": split.together,
        "epsilon_added_up": sum,
        "delta": goal.delta,
        "version": VERSION,
    });
    Ok((text, json))
}
