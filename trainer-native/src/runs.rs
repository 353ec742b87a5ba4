//! Lists the runs in a folder. Nothing is verified: the figures are those that the runs' files state.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::progress::DIGITS;
use crate::store::files;
use crate::store::ledger::LedgerState;
use crate::summary::read_evaluation;
use crate::{RunError, sweep};

/// The runs of a folder, by name.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    folder: PathBuf,
    runs: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    state: State,
    /// Whether its certificate says that it is private; absent without one.
    private: Option<bool>,
    /// Upper bound on ε; absent without a certificate, and without noise.
    epsilon: Option<f64>,
    delta: Option<f64>,
    /// Loss per prediction on the public evaluation text, in nats.
    loss: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Finished,
    /// Steps charged so far.
    Unfinished(u64),
    Sweep,
    /// The ledger cannot be read.
    Damaged,
}

/// The runs and sweeps in the folder.
///
/// # Errors
/// [`RunError::Storage`] if it cannot be read.
pub(crate) fn list(folder: &Path) -> Result<Listing, RunError> {
    let entries = fs::read_dir(folder).map_err(|error| RunError::storage("read", folder, &error))?;
    let mut runs: Vec<Listed> = entries.flatten().filter_map(|entry| listed(&entry.path())).collect();
    runs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(Listing { folder: folder.to_owned(), runs })
}

fn listed(folder: &Path) -> Option<Listed> {
    let has = |name: &str| folder.join(name).exists();
    let is_sweep = sweep::is_sweep(folder);
    if !is_sweep && !has(files::LEDGER) {
        return None;
    }
    let state = match LedgerState::read(folder) {
        _ if is_sweep => State::Sweep,
        Ok(ledger) if ledger.completed().is_some() && has(files::CERTIFICATE_JSON) => State::Finished,
        Ok(ledger) => State::Unfinished(ledger.steps_reserved()),
        Err(_) => State::Damaged,
    };
    let certificate: Value = fs::read(folder.join(files::CERTIFICATE_JSON))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    // A sweep's certificate states its guarantee at the top.
    let guarantee = certificate.get("guarantee").unwrap_or(&certificate);
    Some(Listed {
        name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        state,
        private: certificate["private"].as_bool(),
        epsilon: guarantee["epsilon"]["upper"].as_f64(),
        delta: guarantee["delta"].as_f64(),
        loss: read_evaluation(folder).map(|evaluation| evaluation.nll()),
    })
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return write!(f, "no runs in {}", self.folder.display());
        }
        let width = self.runs.iter().map(|run| run.name.chars().count()).max().unwrap_or(0);
        for (place, run) in self.runs.iter().enumerate() {
            let state = match &run.state {
                State::Finished => "finished".to_owned(),
                State::Unfinished(steps) => format!("unfinished, {steps} steps charged"),
                State::Sweep => "sweep".to_owned(),
                State::Damaged => "damaged ledger".to_owned(),
            };
            let separator = if place == 0 { "" } else { "\n" };
            write!(f, "{separator}{:width$}  {state}", run.name)?;
            match (run.private, run.epsilon, run.delta) {
                (Some(false), ..) => write!(f, ", NOT PRIVATE")?,
                (_, Some(epsilon), Some(delta)) => {
                    write!(f, ", ε ≤ {} at δ = {delta:e}", cli::rounded_up(epsilon, DIGITS))?;
                }
                _ => {}
            }
            if let Some(loss) = run.loss {
                write!(f, ", loss {loss:.3} on public text")?;
            }
        }
        Ok(())
    }
}
