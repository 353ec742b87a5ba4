//! Lists the runs in a folder. The figures follow from plans and ledgers, and from files that the
//! ledgers name. Weights are not verified.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use training::progress::DIGITS;
use training::store::files;
use training::store::ledger::LedgerState;
use training::summary::read_evaluation;
use training::verify::VerifiedRun;
use training::verify::synthesis;
use training::{RunError, sweep};

/// The runs of a folder, by name.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    folder: PathBuf,
    runs: Vec<Listed>,
}

#[derive(Debug, Default, Serialize)]
struct Listed {
    name: String,
    state: State,
    /// Whether the run is private; absent unless it is finished and verified.
    private: Option<bool>,
    /// Upper bound on ε; absent for a run that is not finished and verified, or has no noise.
    epsilon: Option<f64>,
    delta: Option<f64>,
    /// Loss per prediction on the public evaluation text, in nats.
    loss: Option<f64>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Finished,
    /// The certificate does not follow from plan and ledger, or another version wrote them.
    Unverified,
    /// The run is not finished, and has charged this number of steps.
    Unfinished(u64),
    Sweep,
    Evolution,
    Paraphrase,
    /// The ledger cannot be read.
    #[default]
    Damaged,
}

/// Lists the runs and sweeps in the folder.
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
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if sweep::is_sweep(folder) {
        return Some(Listed { name, ..of_promise(State::Sweep, sweep::promise(folder)) });
    }
    if !folder.join(files::LEDGER).exists() {
        return None;
    }
    if let Some(file) = files::synthesis_in(folder) {
        let state = if file == files::PARAPHRASE { State::Paraphrase } else { State::Evolution };
        return Some(Listed { name, ..of_promise(state, synthesis::promise(folder)) });
    }
    let state = match LedgerState::read(folder) {
        Ok(ledger) if ledger.completed().is_some() && folder.join(files::CERTIFICATE_JSON).exists() => {
            return Some(Listed { name, ..of_finished(folder) });
        }
        Ok(ledger) => State::Unfinished(ledger.steps_reserved()),
        Err(_) => State::Damaged,
    };
    Some(Listed { name, state, ..Listed::default() })
}

fn of_finished(folder: &Path) -> Listed {
    let verified = VerifiedRun::read_proof(folder).and_then(|run| {
        let loss = read_evaluation(folder, run.ledger.files())?.map(|evaluation| evaluation.nll());
        let guarantee = &run.certificate.guarantee;
        Ok(Listed {
            state: State::Finished,
            private: Some(run.certificate.private),
            epsilon: guarantee.epsilon.map(|epsilon| epsilon.upper),
            delta: Some(guarantee.delta),
            loss,
            ..Listed::default()
        })
    });
    verified.unwrap_or_else(|_| Listed { state: State::Unverified, ..Listed::default() })
}

/// Returns the entry of a folder that promises whether it is private, an ε and a δ.
fn of_promise(state: State, promise: Result<(bool, f64, f64), RunError>) -> Listed {
    match promise {
        Ok((private, epsilon, delta)) => Listed {
            state,
            private: Some(private),
            epsilon: Some(epsilon),
            delta: Some(delta),
            ..Listed::default()
        },
        Err(_) => Listed { state, ..Listed::default() },
    }
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
                State::Unverified => {
                    "finished, but not verified (`trainer-native verify` says why)".to_owned()
                }
                State::Unfinished(steps) => format!("unfinished, {steps} steps charged"),
                State::Sweep => "sweep".to_owned(),
                State::Evolution => "evolution".to_owned(),
                State::Paraphrase => "paraphrase".to_owned(),
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
