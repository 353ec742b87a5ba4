//! Checks fields that are valid by themselves but may not fit one another.

mod data;
mod model;
mod privacy;
mod task;
mod training;

use accountant::Delta;

use super::memory::Network;
use crate::messages::{refuse, shown};
use crate::{PlanError, PlanFile};

/// Bound on a plan's memory, which exceeds that of any machine that this version runs on.
const MAX_BYTES: u128 = 1 << 40;

/// Accepts a file whose fields fit one another.
pub(crate) fn check(file: &PlanFile, delta: Delta) -> Result<(), PlanError> {
    check_name(&file.name)?;
    data::check(file)?;
    training::check(file)?;
    privacy::check(file, delta)?;
    training::check_objective(file)?;
    training::check_dropout(file)?;
    training::check_warm_start(file)?;
    task::check(file)?;
    model::check(&file.model, &file.tokenizer)?;
    model::check_head(file)?;
    model::check_made_from(file)?;
    check_memory(file)?;
    data::check_evaluation(file)
}

/// Checks the name of the plan, which becomes the name of a folder.
fn check_name(name: &str) -> Result<(), PlanError> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let starts = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if plain && starts && name.len() <= 64 {
        return Ok(());
    }
    let allowed = "1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit";
    refuse("name", shown(&name.into()), allowed, "rename it: it becomes the name of a folder")
}

fn check_memory(file: &PlanFile) -> Result<(), PlanError> {
    let bytes = Network::of(file).least_training_bytes(file.performance.physical_batch.unwrap_or(1));
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let given = format!("training needs at least {} GiB of memory", bytes >> 30);
    let fix = "make d_model, layers, context, vocab_size or performance.physical_batch smaller";
    refuse("model", given, &format!("at most {} GiB", MAX_BYTES >> 30), fix)
}
