//! Fields that are each in range, but do not fit one another.

use std::collections::BTreeSet;

use accountant::{Delta, NeighboringRelation};

use crate::memory::least_training_bytes;
use crate::{
    Data, Family, Format, Objective, PlanError, PlanFile, Privacy, PrivacyUnit, Sampling, Source, Tokenizer,
    TruncatedPoisson, Visibility,
};

/// More than any one machine this version runs on.
const MOST_BYTES: u128 = 1 << 40;

mod model;

type Checked = Result<(), PlanError>;

/// Accepts a file whose fields fit one another.
pub(crate) fn check(file: &PlanFile, delta: Delta) -> Checked {
    check_name(&file.name)?;
    check_source(&file.data.source, "data.source")?;
    check_tokens(file)?;
    check_unit(file)?;
    check_batches(file)?;
    match file.data.visibility {
        Visibility::Private => {
            check_sampling(file)?;
            check_delta(file, delta)?;
            check_budget(file)?;
        }
        Visibility::Public => check_public(&file.privacy)?,
    }
    check_objective(file)?;
    check_model(file)?;
    check_evaluation(file)
}

fn refuse(path: &str, given: String, allowed: &str, fix: &str) -> Checked {
    Err(PlanError::Field { path: path.to_owned(), given, allowed: allowed.to_owned(), fix: fix.to_owned() })
}

/// The name becomes a folder's name.
fn check_name(name: &str) -> Checked {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let starts = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if plain && starts && name.len() <= 64 {
        return Ok(());
    }
    let allowed = "1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit";
    refuse(
        "name",
        crate::describe::shown(&name.into()),
        allowed,
        "rename it: it becomes the name of a folder",
    )
}

/// Nothing is noised in a public plan, so it may promise nothing either.
fn check_public(privacy: &Privacy) -> Checked {
    let (given, field) = match (&privacy.epsilon, &privacy.noise_multipliers) {
        (Some(_), _) => ("privacy.epsilon", "privacy.epsilon"),
        (None, Some(_)) => ("privacy.noise_multipliers", "privacy.noise_multipliers"),
        (None, None) => return Ok(()),
    };
    let fix = format!("remove {field} to train on public text without noise, or set \"private\"");
    refuse(
        "data.visibility",
        format!("\"public\" beside {given}"),
        "\"private\", or a plan that promises no ε",
        &fix,
    )
}

fn check_source(source: &Source, path: &str) -> Checked {
    let paths = paths(source);
    if paths.iter().any(|one| one.trim().is_empty() || one.contains('\0')) {
        return refuse(
            path,
            "an empty path".into(),
            "the path of a file",
            "name the file, from the plan's folder",
        );
    }
    let distinct: BTreeSet<&&str> = paths.iter().collect();
    if distinct.len() == paths.len() {
        return Ok(());
    }
    let allowed = "each file once";
    refuse(path, "the same file twice".into(), allowed, "remove one: its records would count as two units")
}

fn paths(source: &Source) -> Vec<&str> {
    match source {
        Source::Embedded { .. } => Vec::new(),
        Source::Path(path) => vec![path],
        Source::Paths(paths) => paths.iter().map(String::as_str).collect(),
    }
}

/// A token file is one whole corpus, under a vocabulary that was there before. Text to measure on is read as text.
fn check_tokens(file: &PlanFile) -> Checked {
    let holds_one =
        |source, format| format == Format::Auto && paths(source).into_iter().any(crate::data::is_token_file);
    let format = file.data.format;
    if let Some(evaluation) = &file.evaluation
        && holds_one(&evaluation.source, evaluation.format.unwrap_or(format))
    {
        return refuse(
            "evaluation.source",
            "a .tokens file".into(),
            "text",
            "name the text it was made from",
        );
    }
    match (file.data.token_file(), &file.tokenizer) {
        (None, _) if holds_one(&file.data.source, format) => refuse(
            "data.source",
            "a .tokens file in a list".into(),
            "{\"path\": …}, one .tokens file alone",
            "encode all of the text into one",
        ),
        (Some(_), Tokenizer::Train(_) | Tokenizer::Bytes) => refuse(
            "tokenizer",
            "another than \"public\", though data.source is a .tokens file".into(),
            "{\"public\": {\"path\": …}}, the file it was encoded with",
            "name that file, or give the text itself as data.source",
        ),
        _ => Ok(()),
    }
}

fn check_unit(file: &PlanFile) -> Checked {
    let Data { source, format, user_field, text_field, units, .. } = &file.data;
    if user_field.as_ref() == Some(text_field) {
        let given = crate::describe::shown(&text_field.as_str().into());
        return refuse(
            "data.user_field",
            given,
            "a field other than data.text_field",
            "name the user's field",
        );
    }
    match (file.privacy.unit, source) {
        (PrivacyUnit::Record, Source::Embedded { records, .. }) if records != units => {
            let given = format!("{units}, though the embedded source has {records} records");
            refuse("data.units", given, "the number of records", &format!("set it to {records}"))
        }
        (PrivacyUnit::User, Source::Path(_) | Source::Paths(_)) if *format == Format::Text => refuse(
            "privacy.unit",
            "\"user\" with data.format \"text\", which names no users".into(),
            "\"record\" or {\"words\": 128}",
            "choose one of these, or give the text as JSON lines with a data.user_field",
        ),
        (PrivacyUnit::User, Source::Path(_) | Source::Paths(_))
            if user_field.is_none() && file.data.token_file().is_none() =>
        {
            refuse(
                "data.user_field",
                "missing, though privacy.unit is \"user\"".into(),
                "the name of a JSON field",
                "name the field that holds a record's user",
            )
        }
        _ => Ok(()),
    }
}

fn check_batches(file: &PlanFile) -> Checked {
    let training = &file.training;
    let single = [training.expected_batch_size.is_some(), training.steps.is_some()];
    match (single, training.batch_schedule.is_some()) {
        ([true, true], false) | ([false, false], true) => {}
        ([false, false], false) | ([true, false] | [false, true], false) => {
            let missing = if single[0] { "training.steps" } else { "training.expected_batch_size" };
            let allowed = "expected_batch_size and steps, or batch_schedule";
            return refuse(missing, "missing".into(), allowed, "give both, or a schedule");
        }
        (_, true) => {
            let given = "given beside expected_batch_size or steps".into();
            return refuse("training.batch_schedule", given, "one of the two ways", "remove one of them");
        }
    }
    let units = file.data.units;
    for (index, phase) in training.phases().iter().enumerate() {
        if phase.expected_batch_size <= units {
            continue;
        }
        let path = match training.batch_schedule {
            Some(_) => format!("training.batch_schedule[{index}].expected_batch_size"),
            None => "training.expected_batch_size".to_owned(),
        };
        let given = format!("{}, more than the {units} units of data.units", phase.expected_batch_size);
        return refuse(&path, given, "at most data.units", &format!("set expected_batch_size ≤ {units}"));
    }
    check_steps(file)
}

/// Batches whose law depends on the number of units protect only where that number is public.
fn check_sampling(file: &PlanFile) -> Checked {
    let sampling = file.privacy.sampling;
    if sampling.needs_exact_units() && file.privacy.relation == NeighboringRelation::AddOrRemoveOne {
        let given = format!("\"{}\" under add_or_remove_one", sampling.name());
        let allowed = "\"poisson\" or \"balls_in_bins\" under add_or_remove_one; this one under \"replace_one\" or \"zero_out\"";
        let fix = "use \"poisson\", or set privacy.relation to \"zero_out\": what is drawn depends on the number of units, \
                   which must then be public, and the Poisson figure is not its ε";
        return refuse("privacy.sampling", given, allowed, fix);
    }
    let largest_expected = file.training.phases().iter().map(|phase| phase.expected_batch_size).max();
    match (sampling, largest_expected) {
        (Sampling::TruncatedPoisson(TruncatedPoisson { largest_batch }), Some(expected))
            if largest_batch < expected =>
        {
            let given = format!("{largest_batch}, less than the {expected} units expected");
            let fix = format!("set it to at least {expected}, better to a tenth more");
            refuse(
                "privacy.sampling.truncated_poisson.largest_batch",
                given,
                "at least expected_batch_size",
                &fix,
            )
        }
        _ => Ok(()),
    }
}

fn check_steps(file: &PlanFile) -> Checked {
    const MOST: u64 = 1_000_000_000;
    let steps = file.training.total_steps();
    if steps > MOST {
        let given = format!("{steps} steps in all");
        return refuse("training.batch_schedule", given, &format!("at most {MOST}"), "shorten the phases");
    }
    let warmup = file.training.learning_rate.warmup_steps;
    if warmup <= steps {
        return Ok(());
    }
    let given = format!("{warmup}, more than the {steps} steps of training");
    refuse("training.learning_rate.warmup_steps", given, "at most the number of steps", "shorten the warm-up")
}

fn check_delta(file: &PlanFile, delta: Delta) -> Checked {
    let units = file.data.units;
    if accountant::budget::is_meaningful(delta, units) {
        return Ok(());
    }
    let given = format!("{} with {units} units", delta.get());
    let allowed = format!("less than 1 / data.units = {:e}", accountant::budget::delta_ceiling(units));
    let fix = "lower delta: at 1/units or above, publishing one unit at random would keep the promise";
    refuse("privacy.delta", given, &allowed, fix)
}

fn check_budget(file: &PlanFile) -> Checked {
    let trained = matches!(file.tokenizer, Tokenizer::Train(_));
    match (&file.privacy.noise_multipliers, file.privacy.epsilon) {
        (None, None) => refuse(
            "privacy.epsilon",
            "missing".into(),
            "a number > 0, or privacy.noise_multipliers",
            "give \"epsilon\" to have the noise calibrated",
        ),
        (Some(noise), _) if trained && noise.tokenizer.is_none() => refuse(
            "privacy.noise_multipliers.tokenizer",
            "missing, though the tokenizer is trained on private text".into(),
            "a number > 0",
            "add it, or leave out noise_multipliers and give privacy.epsilon",
        ),
        (Some(noise), _) if !trained && noise.tokenizer.is_some() => refuse(
            "privacy.noise_multipliers.tokenizer",
            "given, though the tokenizer uses no private text".into(),
            "nothing",
            "remove it",
        ),
        _ => Ok(()),
    }
}

/// Each architecture can learn some objectives only.
fn check_objective(file: &PlanFile) -> Checked {
    let (objective, context) = (file.training.objective, file.model.context);
    let (able, allowed) = match file.model.family {
        Family::Gpt2 | Family::Decoder | Family::FeedForward => {
            (matches!(objective, Objective::CausalLm), "\"causal_lm\" with this model.family")
        }
        Family::T5 | Family::T5V1_1 => (
            matches!(objective, Objective::SpanCorruption | Objective::PrefixLm),
            "\"span_corruption\" or \"prefix_lm\" with this model.family",
        ),
        Family::Bert => (
            matches!(objective, Objective::MaskedLm | Objective::MaskedLmNextSentence),
            "\"masked_lm\" or \"masked_lm_next_sentence\" with this model.family",
        ),
    };
    let (given, family) = (written(&objective), written(&file.model.family));
    if !able {
        let fitting = match objective {
            Objective::CausalLm => "\"gpt2\"",
            Objective::SpanCorruption | Objective::PrefixLm => "\"t5\" or \"t5_v1_1\"",
            Objective::MaskedLm | Objective::MaskedLmNextSentence => "\"bert\"",
        };
        let fix = format!("choose one of these, or set model.family to {fitting}");
        return refuse("training.objective", format!("{given} with model.family {family}"), allowed, &fix);
    }
    /// The shortest window with something to read and something to predict beside the special tokens.
    const SHORTEST: u32 = 8;
    if objective == Objective::CausalLm || context >= SHORTEST {
        return Ok(());
    }
    let given = format!("{context} with training.objective {given}");
    refuse("model.context", given, &format!("at least {SHORTEST}"), &format!("set it to {SHORTEST} or more"))
}

/// A value as the plan writes it.
fn written(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn check_model(file: &PlanFile) -> Checked {
    let model = &file.model;
    model::check(model, &file.tokenizer)?;
    let bytes = least_training_bytes(
        model,
        file.training.objective,
        &file.tokenizer,
        file.performance.physical_batch.unwrap_or(1),
    );
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let given = format!("training needs at least {} GiB of memory", bytes >> 30);
    let fix = "make d_model, layers, context, vocab_size or performance.physical_batch smaller";
    refuse("model", given, &format!("at most {} GiB", MOST_BYTES >> 30), fix)
}

/// Held-out figures are published without noise, so they may not come from private text.
fn check_evaluation(file: &PlanFile) -> Checked {
    let Some(evaluation) = &file.evaluation else { return Ok(()) };
    check_source(&evaluation.source, "evaluation.source")?;
    let shares = match (&evaluation.source, &file.data.source) {
        (Source::Embedded { seed: one, .. }, Source::Embedded { seed: other, .. }) => one == other,
        (one, other) => {
            let private: BTreeSet<&str> = paths(other).into_iter().collect();
            paths(one).into_iter().any(|path| private.contains(path))
        }
    };
    if !shares {
        return Ok(());
    }
    refuse(
        "evaluation.source",
        "the training text".into(),
        "public text other than that of training: its loss is published without noise",
        "name held-out public text (or another seed), or remove evaluation",
    )
}
