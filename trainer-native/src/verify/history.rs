//! The sum of all runs on one text.

use std::path::{Path, PathBuf};

use accountant::{Bounds, Delta, DpEvent};
use plan::MadeFrom;
use serde::Serialize;

use super::proof::Proof;
use crate::RunError;
use crate::progress::DIGITS;
use crate::store::ledger::{Parent, spent_by};

/// What several runs on the same units cost together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct History {
    /// Every stage once, in the order of discovery.
    stages: Vec<StageCost>,
    /// Certified bounds on the ε of all stages on the same units together.
    epsilon: Bounds,
    /// The sum of the upper ends of the stages' own ε, for comparison.
    sum_of_parts: f64,
    delta: f64,
}

/// A stage and what it costs by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct StageCost {
    name: String,
    sha256: String,
    epsilon: Bounds,
}

/// Adds up runs on the same units, with all stages that they build on; each stage counts once.
///
/// # Errors
/// [`RunError::Refused`] for folders that are no finished run or vocabulary, stages of different units or relations, and
/// stages that are not private; [`RunError::Verification`] for a folder that is not what it claims.
pub(crate) fn history(folders: &[PathBuf], delta: f64) -> Result<History, RunError> {
    let delta = Delta::new(delta).map_err(|error| RunError::Refused(format!("--delta: {error}")))?;
    let mut stages: Vec<Parent> = Vec::new();
    for folder in folders {
        add(&mut stages, folder)?;
    }
    let Some(first) = stages.first() else {
        return Err(RunError::Refused("these folders used no private text, so nothing adds up".to_owned()));
    };
    for stage in &stages {
        let refused = |what: String| Err(RunError::Refused(format!("{}: {what}", stage.name)));
        if let Some(reason) = stage.not_private_because.first() {
            return refused(format!("NOT PRIVATE: {reason}; its ε has no bound, and so has no sum with it"));
        }
        if (stage.unit, stage.relation) != (first.unit, first.relation) {
            return refused(format!(
                "it protects another unit or relation than {}; only runs with the same unit and relation add up",
                first.name
            ));
        }
    }
    let epsilon = |events: Vec<DpEvent>| {
        accountant::epsilon(&DpEvent::Composed { events }, delta, first.relation)
            .map_err(|error| RunError::Failed(format!("accountant: {error}")))
    };
    let mut costs = Vec::new();
    for stage in &stages {
        let epsilon = epsilon(spent_by([stage]))?;
        costs.push(StageCost { name: stage.name.clone(), sha256: stage.sha256.clone(), epsilon });
    }
    Ok(History {
        epsilon: epsilon(spent_by(&stages))?,
        sum_of_parts: costs.iter().map(|stage| stage.epsilon.upper).sum(),
        stages: costs,
        delta: delta.get(),
    })
}

fn add(stages: &mut Vec<Parent>, folder: &Path) -> Result<(), RunError> {
    let proof = Proof::find(folder)?.ok_or_else(|| {
        RunError::Refused(format!(
            "{}: no ledger.jsonl or privacy.json; give folders of finished runs (of a sweep: any of its runs) or of private vocabularies",
            folder.display()
        ))
    })?;
    let own = (!proof.is_public).then_some(&proof.stage);
    // What is declared disjoint is another text.
    let before = proof.parents.iter().filter(|parent| parent.made_from == MadeFrom::SameUnits);
    for stage in before.chain(own) {
        if stages.iter().all(|known| known.sha256 != stage.sha256) {
            stages.push(stage.clone());
        }
    }
    Ok(())
}

impl std::fmt::Display for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for StageCost { name, sha256, epsilon } in &self.stages {
            let start: String = sha256.chars().take(12).collect();
            writeln!(f, "{name} ({start}…): ε ≤ {}", cli::rounded_up(epsilon.upper, DIGITS))?;
        }
        let (count, upper) = (self.stages.len(), cli::rounded_up(self.epsilon.upper, DIGITS));
        write!(
            f,
            "together, {count} on the same units: ε ≤ {upper} at δ = {} (the sum of the parts is {})",
            self.delta,
            cli::rounded_up(self.sum_of_parts, DIGITS)
        )
    }
}
