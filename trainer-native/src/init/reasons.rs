//! What `init` chose, and why.

use plan::{CertifiedPlan, MACHINES, Prediction, Tokenizer, Trainable};
use training::{RunError, memory};

use super::start::{LEAST_UNITS_FOR_WORDS, LEAST_UNITS_WITH_PRIOR};
use super::{Choices, Task};

/// Writes a line for each choice. Figures follow from the plan and so may be published.
///
/// # Errors
/// [`RunError::Refused`] if there is no such network.
pub(crate) fn reasons(
    plan: &CertifiedPlan,
    choices: &Choices,
    vocabulary: u32,
    why_task: &str,
) -> Result<String, RunError> {
    let settings = plan.plan();
    let cost = memory::cost(settings, vocabulary)?;
    let mut lines = vec![
        ("task", format!("{}: {why_task}", choices.task.name())),
        ("fields", fields(choices)),
        ("tokenizer", tokenizer(settings.tokenizer())),
        ("model", model(plan, cost.parameters, vocabulary)),
        ("training", training(plan)),
        (
            "privacy",
            format!(
                "ε ≤ {} at δ = {:e}, about one {}",
                cli::rounded_up(plan.epsilon().upper, 4),
                plan.delta().get(),
                choices.unit
            ),
        ),
        ("time", time(plan, cost.seconds_on(&MACHINES[0]))),
    ];
    if let Some(forecast) = Prediction::of_plan(plan) {
        lines.push(("forecast", forecast.to_string()));
    } else if let Some(why) =
        Prediction::why_none(settings.file()).filter(|_| settings.training().warm_start.is_some())
    {
        lines.push(("forecast", format!("{why} trainer-native/UTILITY.md has measured ones.")));
    }
    Ok(lines.iter().map(|(name, text)| format!("{name:<10} {text}\n")).collect())
}

fn fields(choices: &Choices) -> String {
    // A text with a given label is what synthetic records are made of.
    let [text, target] = if choices.task == Task::Synthesis { ["label", "text"] } else { ["text", "target"] };
    let named = [
        (text, &choices.text_field),
        ("label", &choices.label_field),
        (target, &choices.target_field),
        ("user", &choices.user_field),
    ];
    let each = named.iter().filter_map(|(what, name)| Some(format!("{what} {:?}", name.as_ref()?)));
    let fields = each.collect::<Vec<_>>().join(", ");
    match (fields.is_empty(), &choices.labels) {
        (true, _) => "none: a record is a text".to_owned(),
        (false, Some(labels)) => format!("{fields}; {} labels", labels.len()),
        (false, None) => fields,
    }
}

fn tokenizer(tokenizer: &Tokenizer) -> String {
    match tokenizer {
        Tokenizer::Public(public) => format!("{}, the checkpoint's", public.path),
        Tokenizer::Bytes => {
            format!(
                "bytes: of fewer than {LEAST_UNITS_FOR_WORDS} units, too few words can be released to make a better one; from \
                 {LEAST_UNITS_WITH_PRIOR} on, a public tokenizer of the language can spell the others (--prior FILE)"
            )
        }
        Tokenizer::Train(trained) if !trained.prior.is_empty() => {
            format!(
                "at most {} tokens from words released with noise, which are part of ε, and from the pieces of {}, public, for words that \
                 too few units have",
                trained.vocab_size,
                trained.prior.join(" and ")
            )
        }
        Tokenizer::Train(trained) => {
            format!(
                "at most {} tokens from words released with noise, which are part of ε",
                trained.vocab_size
            )
        }
        Tokenizer::Extend(extended) => format!("{} and released words", extended.path),
    }
}

fn model(plan: &CertifiedPlan, parameters: u128, vocabulary: u32) -> String {
    let settings = plan.plan();
    let model = settings.model();
    let trained = match &model.trainable {
        Trainable::All => "all weights are trained",
        Trainable::Lora(_) => {
            "adapters (LoRA) are trained, for noise grows with the number of trained weights"
        }
        Trainable::Head => "the head alone is trained: the units times ε pay for no more",
        Trainable::Norms => "the head and the gains of the norms are trained",
        Trainable::LastLayers(_) | Trainable::CrossAttention => "a part of the weights is trained",
    };
    let dropout = match settings.training().dropout {
        0.0 => String::new(),
        rate => format!("; dropout {rate}, as its config.json has it"),
    };
    format!(
        "{}, {} parameters, {vocabulary} tokens; texts of at most {} tokens (--context); {trained}{dropout}",
        model.shape_in_words(),
        parameters,
        model.context
    )
}

fn training(plan: &CertifiedPlan) -> String {
    let settings = plan.plan();
    let drawn = settings
        .training()
        .warm_start
        .map(|start| format!("{} steps on texts of released words, then ", start.steps));
    let phases = plan.phases().iter().map(|phase| {
        format!(
            "{} steps of {} expected units with noise multiplier {:.4}",
            phase.steps,
            phase.expected_batch_size,
            phase.noise_multiplier()
        )
    });
    let passes = settings.file().epochs();
    let grouped =
        if settings.performance().group_by_length { "; texts of similar length together" } else { "" };
    format!(
        "{}{}, {passes:.1} passes{grouped}",
        drawn.unwrap_or_default(),
        phases.collect::<Vec<_>>().join(", then ")
    )
}

fn time(plan: &CertifiedPlan, seconds: f64) -> String {
    let settings = plan.plan();
    let about =
        format!("about {} on a processor with 8 cores, give or take a factor of two", duration(seconds));
    // Without padding, a text takes time by its own tokens.
    if !settings.performance().group_by_length && !settings.file().has_fixed_features() {
        return about;
    }
    // How long they are is private.
    format!(
        "{about}, if every text has {} tokens; texts of half that length take half the time",
        settings.model().context
    )
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{:.0} s", seconds.max(1.0)),
        ..6000.0 => format!("{:.0} minutes", seconds / 60.0),
        _ => format!("{:.0} hours", seconds / 3600.0),
    }
}
