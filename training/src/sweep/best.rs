//! Runs a sweep of which only the best trial is published: private selection.
//!
//! The number of trials is drawn before the text is read. It stays in the private folder, and so do all trials until
//! the last one is done. Losing trials are removed at once, and the draw at the end. No name, message or progress shows
//! how many trials there were.
//!
//! The order of trials is total and depends only on what they release: perplexity on public text, then the model's
//! digest.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use super::charge::OpenSweep;
use super::draw::{Done, Draw, DrawnTrial, PRIVATE};
use crate::progress::{Silence, note};
use crate::store::files;
use crate::store::ledger::LedgerState;
use crate::summary::read_evaluation;
use crate::{RunError, disclosure::Private};

/// The folder of the published trial.
pub(super) const BEST: &str = "best";
/// Runs the trials that are left, and moves the best one to its place.
pub(super) fn run(sweep: &OpenSweep) -> Result<(), RunError> {
    let draw = Draw::read(&sweep.folder, sweep.charge.draw_sha256.as_deref())?;
    let private = sweep.folder.join(PRIVATE);
    let mut done = Done::read(&private)?;
    note(
        "the trials run now; nothing is shown until the last one is done, because their number and their scores are secret",
    );
    while let Some(trial) = draw.trials.get(done.trials) {
        sweep.check_interrupt()?;
        let folder = private.join(&trial.folder);
        let silence = Silence::begin();
        sweep.run_trial(trial.setting, &folder, done.trials as u64)?;
        drop(silence);
        let best = done.best.as_deref();
        let wins = match best {
            Some(best) => better(&folder, &private.join(best))?,
            None => true,
        };
        done = Done {
            trials: done.trials + 1,
            best: Some(if wins { trial.folder.clone() } else { best.unwrap_or_default().to_owned() }),
        };
        done.write(&private)?;
        remove_losers(&private, &draw, &done)?;
    }
    remove_losers(&private, &draw, &done)?;
    match &done.best {
        Some(best) => publish(&private.join(best), &sweep.folder.join(BEST)),
        None => Ok(()),
    }
}

/// Moves the best trial to its place, unless a process that was killed has done so.
fn publish(from: &Path, to: &Path) -> Result<(), RunError> {
    if !from.exists() && to.exists() {
        return Ok(());
    }
    fs::rename(from, to).map_err(|error| RunError::storage("move", from, &error))?;
    Ok(durable::sync_parent(to)?)
}

/// Removes trials that lost, including those that a killed process left.
fn remove_losers(private: &Path, draw: &Draw, done: &Done) -> Result<(), RunError> {
    let lost = |trial: &&DrawnTrial| done.best.as_ref() != Some(&trial.folder);
    for trial in draw.trials.iter().take(done.trials).filter(lost) {
        remove(&private.join(&trial.folder))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), RunError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(RunError::storage("remove", folder, &error))
        }
        _ => Ok(()),
    }
}

/// Removes what is secret about a finished sweep.
pub(super) fn remove_secrets(sweep: &Path) -> Result<(), RunError> {
    remove(&sweep.join(PRIVATE))
}

/// Returns whether one trial is better than another: by perplexity, where a model without a finite one comes last, and
/// then by the digest of the model.
fn better(one: &Path, other: &Path) -> Result<bool, RunError> {
    let order = perplexity(one)?.for_mechanism().total_cmp(perplexity(other)?.for_mechanism());
    Ok(match order {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => model_digest(one)? < model_digest(other)?,
    })
}

/// Returns the perplexity of a trial, which is secret unless the trial is the best.
fn perplexity(folder: &Path) -> Result<Private<f64>, RunError> {
    let ledger = LedgerState::read(folder)?;
    let perplexity = read_evaluation(folder, ledger.files())?.map(|figures| figures.nll().exp());
    Ok(Private::new(perplexity.filter(|perplexity| perplexity.is_finite()).unwrap_or(f64::INFINITY)))
}

fn model_digest(folder: &Path) -> Result<String, RunError> {
    Ok(durable::sha256_of(&folder.join(files::MODEL))?)
}
