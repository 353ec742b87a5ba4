//! Checks batches, steps and the objective.

use crate::messages::refuse;
use crate::{
    BatchPhase, Initial, Objective, PlanError, PlanFile, PrefixSplit, PrivacyUnit, Tokenizer, Training,
    Visibility, Words,
};

/// Accepts batches, steps and an objective that fit the data and the model.
pub(super) fn check(file: &PlanFile) -> Result<(), PlanError> {
    check_batch_fields(&file.training)?;
    check_batch_sizes(file)?;
    check_views(file)?;
    check_steps(&file.training)
}

/// Checks that a plan has both `expected_batch_size` and `steps`, or `batch_schedule` alone. Epochs without steps were
/// turned into steps.
fn check_batch_fields(training: &Training) -> Result<(), PlanError> {
    let Training { expected_batch_size, steps, epochs, batch_schedule, .. } = training;
    if epochs.is_some() && (steps.is_some() || batch_schedule.is_some()) {
        let given = "given beside steps or batch_schedule";
        return refuse("training.epochs", given, "one of the ways", "remove one of them");
    }
    let missing = match (expected_batch_size, steps, batch_schedule) {
        (Some(_), Some(_), None) | (None, None, Some(_)) => return Ok(()),
        (_, _, Some(_)) => {
            let given = "given beside expected_batch_size or steps";
            return refuse("training.batch_schedule", given, "one of the two ways", "remove one of them");
        }
        (Some(_), None, None) => "training.steps",
        (None, _, None) => "training.expected_batch_size",
    };
    let allowed = "expected_batch_size and steps (or epochs), or batch_schedule";
    refuse(missing, "missing", allowed, "give both, or a schedule")
}

fn check_batch_sizes(file: &PlanFile) -> Result<(), PlanError> {
    let (training, population) = (&file.training, file.population());
    let phases = training.phases();
    let too_large = |phase: &BatchPhase| phase.expected_batch_size > population;
    let Some(index) = phases.iter().position(too_large) else { return Ok(()) };
    let path = match training.batch_schedule {
        Some(_) => format!("training.batch_schedule[{index}].expected_batch_size"),
        None => "training.expected_batch_size".to_owned(),
    };
    let sampling = file.privacy.sampling;
    let field = match sampling.examples_per_unit() {
        Some(_) => "privacy.sampling.poisson_of_examples.examples",
        None => "data.units",
    };
    let what = sampling.sampled();
    let given =
        format!("{}, more than the {population} {what} of {field}", phases[index].expected_batch_size);
    let fix = format!("set expected_batch_size ≤ {population}");
    refuse(&path, given, &format!("at most {field}"), &fix)
}

/// Checks the views of a unit. A unit has several views only if it has several windows, records or masks. Together they
/// are no longer than the longest window, because norms are computed over all of their positions.
fn check_views(file: &PlanFile) -> Result<(), PlanError> {
    /// The largest `model.context`.
    const LONGEST: u32 = 131_072;
    let (views, context) = (file.training.views_per_unit, file.model.context);
    let field = "training.views_per_unit";
    if views > 1 && file.training.objective.reads_fields() && file.privacy.unit != PrivacyUnit::User {
        let given =
            format!("{views} with privacy.unit \"{}\" and an objective that reads fields", file.privacy.unit);
        let allowed = "1: a record is one example; more with \"user\"";
        return refuse(field, given, allowed, "remove it, or set privacy.unit to \"user\"");
    }
    if views > 1 && file.privacy.sampling.examples_per_unit().is_some() {
        let given = format!("{views} with privacy.sampling \"poisson_of_examples\"");
        let fix = "remove it, or set privacy.sampling to \"poisson\"";
        return refuse(field, given, "1 with this sampling: each example is clipped by itself", fix);
    }
    if views.saturating_mul(context) <= LONGEST {
        return Ok(());
    }
    let given = format!("{views} with model.context {context}");
    let allowed = format!("at most {} with this context", LONGEST / context.max(1));
    refuse(field, given, &allowed, "use fewer views or shorter windows")
}

fn check_steps(training: &Training) -> Result<(), PlanError> {
    const MOST: u64 = 1_000_000_000;
    let steps = training.total_steps();
    if steps > MOST {
        let given = format!("{steps} steps in all");
        return refuse("training.batch_schedule", given, &format!("at most {MOST}"), "shorten the phases");
    }
    let warmup = training.learning_rate.warmup_steps;
    if warmup <= steps {
        return Ok(());
    }
    let given = format!("{warmup}, more than the {steps} steps of training");
    refuse("training.learning_rate.warmup_steps", given, "at most the number of steps", "shorten the warm-up")
}

/// Checks the start from texts of released words: the text is private, words are released, the model has no checkpoint,
/// and the objective reads running text or labelled texts.
pub(super) fn check_warm_start(file: &PlanFile) -> Result<(), PlanError> {
    if file.training.warm_start.is_none() {
        return Ok(());
    }
    let (given, allowed) = if file.data.visibility == Visibility::Public {
        ("given, though the text is public", "private text: public text can be learnt itself")
    } else if file.tokenizer.release().is_none() {
        ("given, though the plan releases no words", "a tokenizer with \"train\" or \"extend\"")
    } else if file.model.initial != Initial::Random {
        ("given beside model.initial", "a model without a checkpoint")
    } else if file.training.objective.reads_fields() && !draws_labelled_texts(file) {
        (
            "given, though the objective does not read running text",
            "causal_lm, span_corruption, prefix_lm or masked_lm; sequence_classification or text_to_text with tokenizer.train.words \
             \"pairs_by_label\"",
        )
    } else {
        return Ok(());
    };
    refuse("training.warm_start", given, allowed, "remove it")
}

/// Returns whether words are released by label, so that labelled texts can be drawn.
fn draws_labelled_texts(file: &PlanFile) -> bool {
    matches!(&file.tokenizer, Tokenizer::Train(trained) if trained.words == Words::PairsByLabel)
}

/// Refuses dropout in a feed-forward model, which has none.
pub(super) fn check_dropout(file: &PlanFile) -> Result<(), PlanError> {
    if file.training.dropout == 0.0 || file.model.family != crate::Family::FeedForward {
        return Ok(());
    }
    let given = format!("{} with model.family \"feed_forward\"", file.training.dropout);
    refuse("training.dropout", given, "0 with this model.family", "remove it")
}

/// Refuses an objective that the family cannot learn.
pub(super) fn check_objective(file: &PlanFile) -> Result<(), PlanError> {
    let (objective, context) = (file.training.objective, file.model.context);
    let able = file.model.family.objectives();
    let (given, family) = (written(&objective), written(&file.model.family));
    if !able.contains(&objective) {
        let fitting = match objective {
            Objective::CausalLm | Objective::Chat => "\"gpt2\"",
            Objective::SpanCorruption | Objective::PrefixLm | Objective::TextToText => {
                "\"t5\" or \"t5_v1_1\""
            }
            Objective::MaskedLm | Objective::MaskedLmNextSentence => "\"bert\"",
            Objective::SequenceClassification
            | Objective::MultiLabelClassification
            | Objective::TokenClassification => "\"bert\" or \"gpt2\"",
        };
        let fix = format!("choose one of these, or set model.family to {fitting}");
        let able: Vec<String> = able.iter().map(written).collect();
        let allowed = format!("{} with this model.family", able.join(" or "));
        return refuse("training.objective", format!("{given} with model.family {family}"), &allowed, &fix);
    }
    check_prefix_split(file)?;
    let follows = objective == Objective::SpanCorruption || objective.has_labels();
    if follows && file.model.decoder_context.is_some() {
        let fix = "remove it, or choose \"prefix_lm\" or \"text_to_text\"";
        let allowed = "nothing: with this training.objective it follows from model.context";
        return refuse("model.decoder_context", "given", allowed, fix);
    }
    /// The shortest window with something to read and something to predict beside the special tokens.
    const SHORTEST: u32 = 8;
    if objective == Objective::CausalLm || context >= SHORTEST {
        return Ok(());
    }
    let given = format!("{context} with training.objective {given}");
    refuse("model.context", given, &format!("at least {SHORTEST}"), &format!("set it to {SHORTEST} or more"))
}

/// Checks that each part of a window and its end-of-text token fit the model.
fn check_prefix_split(file: &PlanFile) -> Result<(), PlanError> {
    let Some(PrefixSplit { read, written }) = file.training.prefix_split else { return Ok(()) };
    let model = &file.model;
    let parts = [
        ("model.context", model.context, "read", read),
        ("model.decoder_context", model.decoder_context.unwrap_or(model.context), "written", written),
    ];
    match parts.into_iter().find(|(_, context, _, tokens)| *context <= *tokens) {
        None => Ok(()),
        Some((field, context, part, tokens)) => {
            let least = u64::from(tokens) + 1;
            let allowed =
                format!("at least {least}: training.prefix_split.{part} and the end-of-text token after it");
            refuse(field, format!("{context}"), &allowed, &format!("set it to {least}"))
        }
    }
}

/// Returns a value as the plan writes it.
fn written(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
