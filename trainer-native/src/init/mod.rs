//! Proposes a plan for a text.

mod classifier;
mod look;
mod reasons;
mod start;
mod task;

use std::path::{Path, PathBuf};

use accountant::budget;
use mechanisms::{Encoding, PrivacyUnit};
use plan::{CertifiedPlan, Plan, PlanFile, Trainable, WarmStart, usual_batch, usual_steps};
use serde_json::{Map, Value, json};

pub(crate) use look::{Counts, Fields, Reading, Unnamed};
pub(crate) use reasons::reasons;
pub(crate) use task::Task;

use start::Start;
use training::RunError;

/// Steps and batch of a model that writes texts with a label, as measured in `EXAMPLES.md`.
const STEPS_WITH_LABELS: u64 = 20;
const BATCH_WITH_LABELS: u64 = 256;
/// Share of ε of words counted by label, as measured in `EXAMPLES.md` and `UTILITY.md`.
const SHARE_OF_WORDS_WITH_LABELS: f64 = 0.7;

/// The decisions of the user.
#[derive(Debug)]
pub(crate) struct Choices {
    pub data: Vec<PathBuf>,
    pub name: String,
    pub task: Task,
    /// Names of the columns of tables without a header line.
    pub columns: Option<Vec<String>>,
    pub encoding: Encoding,
    pub text_field: Option<String>,
    pub user_field: Option<String>,
    pub label_field: Option<String>,
    /// The field with the text to be written.
    pub target_field: Option<String>,
    pub unit: PrivacyUnit,
    pub units: u64,
    pub epsilon: f64,
    pub delta: Option<f64>,
    pub checkpoint: Option<PathBuf>,
    /// Public tokenizers whose pieces stand for words that are not released.
    pub prior: Vec<PathBuf>,
    /// The labels of texts or words, if the task has any.
    pub labels: Option<Vec<String>>,
    /// What separates labels of a record that has several.
    pub label_separator: Option<char>,
    pub evaluation: Option<PathBuf>,
    /// Most tokens of a text.
    pub context: Option<u64>,
    pub steps: Option<u64>,
    pub batch_size: Option<u64>,
}

/// A plan that certifies.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The file.
    pub text: String,
    pub certified: CertifiedPlan,
}

/// Proposes a plan.
///
/// # Errors
/// [`RunError::Refused`] for a checkpoint that is not supported, and for figures that a plan may
/// not have.
pub(crate) fn propose(choices: &Choices, out: &Path) -> Result<Proposal, RunError> {
    let value = plan_of(choices, out)?;
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(error.to_string());
    let file = PlanFile::parse(&value.to_string()).map_err(|error| refused(&error))?;
    let text = format!("{}\n", file.text());
    let plan = Plan::try_from(file).map_err(|error| refused(&error))?;
    let certified = plan.certify().map_err(|error| refused(&error))?;
    Ok(Proposal { text, certified })
}

fn plan_of(choices: &Choices, out: &Path) -> Result<Value, RunError> {
    let start = Start::of(choices, out)?;
    let (batch, steps) = work(choices);
    let delta = choices.delta.unwrap_or_else(|| budget::default_delta(choices.units));
    let paths: Vec<String> = choices.data.iter().map(|path| beside(out, path)).collect::<Result<_, _>>()?;
    let source = match paths.as_slice() {
        [one] => json!({ "path": one }),
        several => json!({ "paths": several }),
    };
    let mut data =
        Map::from_iter([("source".to_owned(), source), ("units".to_owned(), choices.units.into())]);
    for (field, name) in [
        ("text_field", &choices.text_field),
        ("user_field", &choices.user_field),
        ("label_field", &choices.label_field),
        ("target_field", &choices.target_field),
    ] {
        if let Some(name) = name {
            data.insert(field.to_owned(), name.as_str().into());
        }
    }
    if !choices.encoding.is_utf8() {
        data.insert("encoding".to_owned(), json!(choices.encoding));
    }
    if let Some(columns) = &choices.columns {
        data.insert("columns".to_owned(), json!(columns));
    }
    let mut plan = json!({
        "version": 1,
        "name": choices.name,
        "data": data,
        "privacy": {
            "unit": choices.unit, "relation": "add_or_remove_one", "delta": delta, "epsilon": choices.epsilon,
            "sampling": "poisson", "spare_steps": (steps / 20).max(5),
        },
        "tokenizer": start.tokenizer,
        "model": start.model,
        "training": {
            "objective": start.objective, "expected_batch_size": batch, "steps": steps, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": { "weight_decay": 0.01 } },
            "learning_rate": { "peak": start.learning_rate, "warmup_steps": steps / 15, "decay": "cosine" },
        },
        "performance": { "device": "cpu", "checkpoint_every": 10 },
    });
    if start.dropout > 0.0 {
        plan["training"]["dropout"] = json!(start.dropout);
    }
    if let Some(path) = &choices.evaluation {
        plan["evaluation"] = json!({ "source": { "path": beside(out, path)? }, "every": (steps / 4).max(1) });
    }
    for_task(&mut plan, choices);
    Ok(plan)
}

/// Adds what the task needs beside the model that training starts from.
fn for_task(plan: &mut Value, choices: &Choices) {
    let starts_from_words = plan["tokenizer"]["train"].is_object();
    if starts_from_words && choices.labels.is_some() {
        plan["privacy"]["tokenizer_share"] = json!(SHARE_OF_WORDS_WITH_LABELS);
        plan["training"]["warm_start"] = json!({ "steps": drawn_steps(choices.units) });
    } else if starts_from_words {
        plan["training"]["warm_start"] = json!(WarmStart::USUAL);
    }
    match (choices.task, &choices.labels) {
        (Task::Synthesis, Some(labels)) => {
            plan["data"]["label_histogram"] = json!({ "labels": labels });
            if let Some(separator) = choices.label_separator {
                plan["data"]["label_separator"] = json!(separator);
            }
        }
        (_, Some(labels)) => classifier::apply(plan, choices, labels),
        (_, None) => {}
    }
    if plan["model"]["trainable"] != json!("head") && !plan["model"]["initial"].is_null() {
        plan["performance"]["group_by_length"] = json!(true);
    }
    if let Some(context) = choices.context {
        plan["model"]["context"] = json!(context);
    }
}

/// Returns the steps on texts of words counted by label: 6,000 for the 40,000 comments of `EXAMPLES.md`, fewer where the release finds fewer words.
fn drawn_steps(units: u64) -> u64 {
    (units * 3 / 20).clamp(300, 6000)
}

/// Returns the size of a batch and the number of steps.
fn work(choices: &Choices) -> (u64, u64) {
    let units = choices.units;
    let trainable = classifier::Part::of(choices).map_or(Trainable::All, classifier::Part::trainable);
    let writes_from_words = choices.task == Task::Synthesis && choices.checkpoint.is_none();
    let most = if writes_from_words { BATCH_WITH_LABELS } else { u64::MAX };
    let batch = choices.batch_size.unwrap_or_else(|| usual_batch(&trainable, units).min(most));
    let usual = if writes_from_words { STEPS_WITH_LABELS } else { usual_steps(&trainable, units, batch) };
    (batch, choices.steps.unwrap_or(usual))
}

/// Returns a path in the form in which the plan at `out` must name it.
fn beside(out: &Path, path: &Path) -> Result<String, RunError> {
    let is_here = out.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let named = if is_here || path.is_absolute() {
        path.to_owned()
    } else {
        std::path::absolute(path).map_err(|error| RunError::storage("find", path, &error))?
    };
    named.to_str().map(str::to_owned).ok_or_else(|| {
        RunError::Refused(format!("{}: a plan names files in Unicode; rename the file", path.display()))
    })
}

/// Returns warnings for the owner of the text alone, since counts are not released.
pub(crate) fn warnings(counts: &Counts, unit: PrivacyUnit, units: u64) -> Vec<String> {
    let Counts { records, users, .. } = counts;
    let found = match (unit, users) {
        (PrivacyUnit::User, Some((users, _))) => *users,
        (PrivacyUnit::Words(words), _) => counts.words.div_ceil(u64::from(words.max(1))).max(*records),
        _ => *records,
    };
    let mut lines = Vec::new();
    match users {
        Some((users, most)) if unit != PrivacyUnit::User && *most > 1 => lines.push(format!(
            "{users} users wrote {records} records, and one of them {most}. The unit {unit} protects less than all records of a \
             user; --unit user protects them all"
        )),
        Some((users, most)) if *most > 1 => lines.push(format!(
            "{users} users wrote {records} records, and one of them {most}. A user contributes one record to a batch, so many \
             records of one user are used rarely"
        )),
        _ => {}
    }
    if found > 0 && (units > found.saturating_mul(2) || units < found / 2) {
        lines.push(format!(
            "the text has {found} units, and --units says {units}. The guarantee holds, but batches will have another size than the \
             plan's: give a public figure closer to the text"
        ));
    }
    lines
}

#[cfg(test)]
mod tests;
