//! Proposes a plan for a text.

mod classifier;
mod look;

use std::path::{Path, PathBuf};

use accountant::budget;
use mechanisms::PrivacyUnit;
use plan::{Plan, PlanFile, WarmStart};
use serde_json::{Map, Value, json};

pub(crate) use look::{Counts, Fields, count};

use network::pretrained;
use training::RunError;
use training::store::files;

/// Number of units below which too few words would pass the threshold of a release.
const LEAST_UNITS_FOR_WORDS: u64 = 2000;
/// Number of units from which a vocabulary of 8000 tokens pays off.
const MANY_UNITS: u64 = 50_000;
/// Passes over the text.
const EPOCHS: u64 = 6;

/// The declaration about the checkpoint in a plan that starts from one.
pub(crate) const PUBLIC: &str = "public_text";

/// The decisions of the user.
#[derive(Debug)]
pub(crate) struct Choices {
    pub data: Vec<PathBuf>,
    pub name: String,
    /// Names of the columns of tables without a header line.
    pub columns: Option<Vec<String>>,
    pub text_field: Option<String>,
    pub user_field: Option<String>,
    pub unit: PrivacyUnit,
    pub units: u64,
    pub epsilon: f64,
    pub delta: Option<f64>,
    pub checkpoint: Option<PathBuf>,
    /// The labels of texts, if a classifier is trained.
    pub labels: Option<Vec<String>>,
    pub label_field: Option<String>,
    pub evaluation: Option<PathBuf>,
    pub steps: Option<u64>,
    pub batch_size: Option<u64>,
}

/// Returns the text of a plan that certifies.
///
/// # Errors
/// [`RunError::Refused`] for a checkpoint that is not supported, and for figures that a plan may
/// not have.
pub(crate) fn propose(choices: &Choices, out: &Path) -> Result<String, RunError> {
    let value = plan_of(choices, out)?;
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(error.to_string());
    let file = PlanFile::parse(&value.to_string()).map_err(|error| refused(&error))?;
    let text = format!("{}\n", file.text());
    let plan = Plan::try_from(file).map_err(|error| refused(&error))?;
    plan.certify().map_err(|error| refused(&error))?;
    Ok(text)
}

fn plan_of(choices: &Choices, out: &Path) -> Result<Value, RunError> {
    let units = choices.units;
    let start = Start::of(choices, out)?;
    let part = choices.labels.is_some().then(|| classifier::Part::affordable(units, choices.epsilon));
    let usual = part.map_or_else(|| usual_batch(units), |part| part.usual_batch(units));
    let batch = choices.batch_size.unwrap_or(usual);
    let usual = match part {
        Some(_) => classifier::STEPS,
        None => (EPOCHS * units).div_ceil(batch).clamp(100, 2000),
    };
    let steps = choices.steps.unwrap_or(usual);
    let delta = choices.delta.unwrap_or_else(|| budget::default_delta(units));
    let paths: Vec<String> = choices.data.iter().map(|path| beside(out, path)).collect::<Result<_, _>>()?;
    let source = match paths.as_slice() {
        [one] => json!({ "path": one }),
        several => json!({ "paths": several }),
    };
    let mut data = Map::from_iter([("source".to_owned(), source), ("units".to_owned(), units.into())]);
    for (field, name) in [
        ("text_field", &choices.text_field),
        ("user_field", &choices.user_field),
        ("label_field", &choices.label_field),
    ] {
        if let Some(name) = name {
            data.insert(field.to_owned(), name.as_str().into());
        }
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
    if plan["tokenizer"]["train"].is_object() {
        plan["training"]["warm_start"] = json!(WarmStart::USUAL);
    }
    if let Some(path) = &choices.evaluation {
        plan["evaluation"] = json!({ "source": { "path": beside(out, path)? }, "every": (steps / 4).max(1) });
    }
    if let Some((labels, part)) = choices.labels.as_ref().zip(part) {
        classifier::apply(&mut plan, labels, part)?;
    }
    Ok(plan)
}

/// The model that training starts from.
struct Start {
    tokenizer: Value,
    model: Value,
    objective: Value,
    learning_rate: f64,
}

impl Start {
    fn of(choices: &Choices, out: &Path) -> Result<Self, RunError> {
        let Some(folder) = &choices.checkpoint else { return Ok(Self::random(choices.units)) };
        let tokenizer = folder.join(files::TOKENIZER);
        if !tokenizer.is_file() {
            return Err(RunError::Refused(format!(
                "--checkpoint: {} has no {}; save the checkpoint's tokenizer there (AutoTokenizer.from_pretrained(…).save_pretrained(…))",
                folder.display(),
                files::TOKENIZER
            )));
        }
        let described = pretrained::describe(folder)?;
        let objective = described.family.objectives().first().copied();
        let mut model = serde_json::to_value(&described).unwrap_or_default();
        model["initial"] = json!({ "checkpoint": beside(out, folder)? });
        model["checkpoint_made_from"] = json!(PUBLIC);
        Ok(Self {
            tokenizer: json!({ "public": { "path": beside(out, &tokenizer)?, "made_from": PUBLIC } }),
            model,
            objective: json!(objective),
            learning_rate: 3e-4,
        })
    }

    /// Proposes a small model, and a vocabulary that this number of units can pay for.
    fn random(units: u64) -> Self {
        let (vocab_size, width, layers) = if units < MANY_UNITS { (2048, 128, 2) } else { (8000, 256, 4) };
        let has_words = units >= LEAST_UNITS_FOR_WORDS;
        let tokenizer = match has_words {
            true => json!({
                "train": { "model": "unigram", "vocab_size": vocab_size, "release": "pooled", "words": "pairs" }
            }),
            false => json!("bytes"),
        };
        let context = if has_words { 64 } else { 256 };
        Self {
            tokenizer,
            model: json!({
                "family": "gpt2", "d_model": width, "layers": layers, "heads": 4, "d_ff": 4 * width, "context": context
            }),
            objective: json!("causal_lm"),
            learning_rate: 1e-3,
        }
    }
}

/// Returns a power of two near a twenty-fourth of the units, as in the quick start. Larger batches
/// have less noise per unit.
fn usual_batch(units: u64) -> u64 {
    (units / 24).next_power_of_two().clamp(16, 2048).min(units)
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
