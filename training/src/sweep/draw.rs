//! Keeps the secret of a search: the trials that were drawn, and how many of them are done.

use std::path::Path;

use accountant::Trials;
use mechanisms::{PrivacyRng, Purpose, draw_trials};
use serde::{Deserialize, Serialize};

use crate::RunError;
use durable::sha256_hex;

/// The folder of a sweep that is never published.
pub(super) const PRIVATE: &str = "private";
const DRAW: &str = "draw.json";
const PROGRESS: &str = "progress.json";

/// The secret draw of a sweep.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Draw {
    /// Random salt, so that the draw's digest reveals nothing about it.
    salt: String,
    /// The trials in order.
    pub trials: Vec<DrawnTrial>,
}

/// A trial that was drawn.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DrawnTrial {
    /// Index of its setting.
    pub setting: usize,
    /// The trial's folder, with a random name: a number would tell how many trials came before.
    pub folder: String,
}

/// The trials that are done.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Done {
    /// Number of trials.
    pub trials: usize,
    /// The folder of the best trial so far.
    pub best: Option<String>,
}

impl Draw {
    /// Draws the number of trials, and a setting for each.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a distribution that cannot be drawn from.
    pub fn new(trials: Trials, settings: u64, rng: &dyn PrivacyRng) -> Result<Self, RunError> {
        let mut stream = rng.stream(Purpose::Trials, 0, 0);
        let number =
            draw_trials(trials, &mut stream).map_err(|error| RunError::Refused(error.to_string()))?;
        let salt = format!("{}{}", stream.next_name(), stream.next_name());
        let draw = |_| DrawnTrial { setting: stream.below(settings) as usize, folder: stream.next_name() };
        Ok(Self { salt, trials: (0..number).map(draw).collect() })
    }

    /// Writes the draw to the private folder and returns its digest.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written.
    pub fn write(&self, sweep: &Path) -> Result<String, RunError> {
        let folder = sweep.join(PRIVATE);
        durable::create_folder(&folder)?;
        let text = serde_json::to_vec(self).map_err(|error| RunError::Failed(error.to_string()))?;
        Done::default().write(&folder)?;
        durable::write_atomic(&folder.join(DRAW), &text)?;
        Ok(sha256_hex(&text))
    }

    /// Reads the draw with which a sweep began. It is never repeated, because a second draw would
    /// be a second search.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the file is lost, or `sha256` is not its digest.
    pub fn read(sweep: &Path, sha256: Option<&str>) -> Result<Self, RunError> {
        let path = sweep.join(PRIVATE).join(DRAW);
        let bytes = durable::read(&path).map_err(|_| lost(&path, "is lost"))?;
        if Some(sha256_hex(&bytes).as_str()) != sha256 {
            return Err(lost(&path, "was altered"));
        }
        serde_json::from_slice(&bytes).map_err(|_| lost(&path, "was altered"))
    }
}

impl Done {
    /// Reads which trials are done.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the file is lost or altered.
    pub fn read(private: &Path) -> Result<Self, RunError> {
        let path = private.join(PROGRESS);
        let bytes = durable::read(&path).map_err(|_| lost(&path, "is lost"))?;
        serde_json::from_slice(&bytes).map_err(|_| lost(&path, "was altered"))
    }

    /// Writes which trials are done.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written.
    pub fn write(&self, private: &Path) -> Result<(), RunError> {
        let text = serde_json::to_vec(self).map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(durable::write_atomic(&private.join(PROGRESS), &text)?)
    }
}

/// Returns the refusal to draw again, or to repeat trials that are done.
fn lost(path: &Path, what: &str) -> RunError {
    RunError::Refused(format!(
        "{}: this secret of the sweep {what}, and its charge does not pay for another search; restore the file, or begin a new \
         sweep in another folder with --out (the ε of the two add up)",
        path.display()
    ))
}
