//! Runs a sweep whose trials are all published.

use plan::AllTrials;
use serde_json::{Map, Value};

use super::charge::OpenSweep;
use crate::RunError;
use crate::progress::note;
use crate::store::files;

/// The folder, inside that of the sweep, that holds its runs.
pub(super) const TRIALS: &str = "trials";

/// Returns the folder of a published run, by setting and repetition, both from 0.
pub(super) fn run_folder(setting: usize, seed: u64) -> String {
    format!("{TRIALS}/{}-{}", setting + 1, seed + 1)
}

/// Runs every setting as often as requested. Finished runs are not repeated.
pub(super) fn run(sweep: &OpenSweep, trials: AllTrials) -> Result<(), RunError> {
    let settings = &sweep.certified.settings;
    for (place, setting) in settings.iter().enumerate() {
        for seed in 0..trials.seeds {
            let folder = sweep.folder.join(run_folder(place, seed));
            if folder.join(files::CERTIFICATE_JSON).exists() {
                continue;
            }
            sweep.check_interrupt()?;
            let (of, values) = (settings.len(), in_words(&setting.values));
            note(&format!("setting {} of {of}, run {} of {}: {values}", place + 1, seed + 1, trials.seeds));
            sweep.run_trial(place, &folder, place as u64 * trials.seeds + seed)?;
        }
    }
    Ok(())
}

/// Describes a setting in words.
pub(super) fn in_words(values: &Map<String, Value>) -> String {
    let fields: Vec<String> = values.iter().map(|(path, value)| format!("{path} = {value}")).collect();
    if fields.is_empty() { "the plan as it is".to_owned() } else { fields.join(", ") }
}
