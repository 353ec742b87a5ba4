//! Explains in words what a verification checked.

use std::path::Path;

use serde::Serialize;

use super::{VerifiedRun, listing};
use crate::RunError;
use crate::summary::Summary;

/// A verified run folder, with an explanation of what the verification means and does not mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    #[serde(flatten)]
    summary: Summary,
    /// Number format of the weights in the folder, as `transformers` names it. A run itself writes `float32`.
    weights: String,
    checked: Vec<String>,
    not_checked: Vec<String>,
    /// Files of the folder for which there is no digest. No command takes them for the run's.
    not_covered: Vec<String>,
}

/// Verifies a run folder as [`super::verify_run`] does, and explains what was checked.
///
/// # Errors
/// As [`super::verify_run`].
pub fn explain(folder: &Path) -> Result<Verification, RunError> {
    let run = VerifiedRun::read(folder)?;
    let VerifiedRun { ledger, certificate, rounded, .. } = &run;
    let lines = certificate.ledger.lines;
    let mut checked = vec![
        "plan.json, ledger.jsonl and the certificate belong together: digests chain them, and the certificate follows from \
         plan and ledger byte for byte."
            .to_owned(),
        format!("Each of the {lines} lines of the ledger is one that the plan allows at its place."),
    ];
    checked.push(match certificate.guarantee.epsilon {
        Some(_) => {
            "ε was computed again from the events in the ledger, and it is within the plan's.".to_owned()
        }
        None => "The ledger has no event with noise, so there is no ε.".to_owned(),
    });
    let not_checked = vec![
        "That this program made the folder, with a secret key: whoever owns the machine can make up a folder.".to_owned(),
        "What the plan declares: which text was used, which files and texts are public, and how texts relate.".to_owned(),
        "What else was released from the same text. `trainer-native history` adds up the folders that you have.".to_owned(),
    ];
    checked.push(match rounded {
        None => "Every file of the model has the digest that the ledger names.".to_owned(),
        Some(dtype) => format!(
            "Every file of the model has the digest that the ledger names: config.json and model.safetensors those of the run's \
             model in {dtype}, to which an export rounded its 32-bit weights."
        ),
    });
    if !ledger.parents().is_empty() {
        let names: Vec<&str> = ledger.parents().iter().map(|parent| parent.name.as_str()).collect();
        checked.push(format!("The same holds for what the run builds on: {}.", names.join(", ")));
    }
    Ok(Verification {
        summary: Summary::of(folder, certificate)?,
        weights: rounded.clone().unwrap_or_else(|| "float32".to_owned()),
        checked,
        not_checked,
        not_covered: run.not_covered(folder)?,
    })
}

impl std::fmt::Display for Verification {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let weights = match self.weights.as_str() {
            "float32" => String::new(),
            dtype => format!(
                " in {dtype} (an export rounded the run's 32-bit weights; the ledger names the result)"
            ),
        };
        write!(f, "verified{weights}: {}\n\nChecked:", self.summary)?;
        for line in &self.checked {
            write!(f, "\n- {line}")?;
        }
        write!(f, "\n\nNot checked, since no folder can show it:")?;
        for line in &self.not_checked {
            write!(f, "\n- {line}")?;
        }
        write!(f, "{}", listing(&self.not_covered))
    }
}
