//! Charges a sweep for all of its trials before the first trial begins.

use std::path::{Path, PathBuf};

use accountant::{DpEvent, NeighboringRelation};
use mechanisms::{OsRng, PrivacyRng, Purpose, TestRng};
use plan::{CertifiedSweep, Device, NoiseMultipliers, SweepTrials};
use serde::{Deserialize, Serialize};

use super::SweepRequest;
use super::draw::{Draw, PRIVATE};
use super::input::SweepInput;
use crate::RunError;
use crate::store::files;
use crate::store::ledger::{Randomness, Search};
use durable::{FolderLock, sha256_hex};

/// The charge of a sweep. The ledger of every trial contains its digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepCharge {
    /// Version of the charge's format.
    pub format: u32,
    /// A random name, so that no two sweeps have the same digest.
    pub id: String,
    /// SHA-256 of `sweep.json`.
    pub sweep_sha256: String,
    /// SHA-256 of `plan.json`.
    pub plan_sha256: String,
    /// Version of the accountant that certified the sweep.
    pub accountant_version: String,
    /// Method of the accountant.
    pub accountant_method: String,
    /// Neighbouring relation of the guarantee.
    pub relation: NeighboringRelation,
    /// Failure probability.
    pub delta: f64,
    /// Source of the random numbers.
    pub randomness: Randomness,
    /// The noise multipliers of the vocabulary and of every trial.
    pub noise_multipliers: NoiseMultipliers,
    /// SHA-256 of the secret draw, which contains a random salt; absent if all trials are
    /// published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_sha256: Option<String>,
    /// Event of the whole sweep.
    pub event: DpEvent,
}

/// A sweep that is charged, in a folder that this process owns.
pub(super) struct OpenSweep {
    pub input: SweepInput,
    pub certified: CertifiedSweep,
    pub charge: SweepCharge,
    /// The search that every trial's ledger names.
    pub search: Search,
    /// The tokenizer that the sweep released for its trials, if it has released one.
    pub vocabulary: Option<PathBuf>,
    pub folder: PathBuf,
    pub device: Option<Device>,
    pub test_key: Option<u64>,
    _lock: FolderLock,
}

impl OpenSweep {
    /// Charges a sweep, or resumes one.
    ///
    /// # Errors
    /// [`RunError::Refused`] for an invalid sweep, a folder that holds something else, and a folder that holds another sweep or
    /// none where `resume` is asked.
    pub fn open(input: SweepInput, request: &SweepRequest, folder: PathBuf) -> Result<Self, RunError> {
        let found = super::is_sweep(&folder);
        check_begun(found, request.resume, &folder)?;
        let charge = if found { Some(SweepCharge::read(&folder)?) } else { None };
        match &charge {
            Some(charge) => charge.check_same(&input, request.test_key, &folder)?,
            None => files::require_empty(&folder, "sweep", &[files::SWEEP, files::PLAN, PRIVATE])?,
        }
        let certified = input.certify(charge.as_ref().map(|charge| charge.noise_multipliers))?;
        for setting in &certified.settings {
            super::input::trial_text(setting, &input.folder)?;
        }
        durable::create_folder(&folder)?;
        let lock = FolderLock::take(&folder)?;
        // Another process may have begun a sweep before it released the folder.
        check_begun(super::is_sweep(&folder), request.resume, &folder)?;
        let charge = match charge {
            Some(charge) if charge.event == certified.event => charge,
            Some(_) => {
                return Err(began("with another event: another version of this program wrote it", &folder));
            }
            None => begin(&input, &certified, request.test_key, &folder)?,
        };
        let search = charge.search()?;
        let (device, test_key) = (request.device, request.test_key);
        Ok(Self { input, certified, charge, search, vocabulary: None, folder, device, test_key, _lock: lock })
    }
}

/// Refuses to begin a sweep where there is one, and to resume one where there is none.
fn check_begun(found: bool, resume: bool, folder: &Path) -> Result<(), RunError> {
    match (found, resume) {
        (true, false) => Err(RunError::Refused(format!(
            "{} already holds a sweep; continue it with --resume, or choose another folder with --out",
            folder.display()
        ))),
        (false, true) => Err(RunError::Refused(format!(
            "{} holds no sweep that could be resumed; leave out --resume to begin one",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Makes the secret draw, and writes the charge last, so that a folder with a charge is complete.
fn begin(
    input: &SweepInput,
    certified: &CertifiedSweep,
    test_key: Option<u64>,
    folder: &Path,
) -> Result<SweepCharge, RunError> {
    durable::write_atomic(&folder.join(files::SWEEP), &input.sweep_bytes)?;
    durable::write_atomic(&folder.join(files::PLAN), &input.plan_bytes)?;
    let charge = match test_key {
        Some(key) => drawn(input, certified, test_key, folder, &TestRng::from_seed(key)),
        None => {
            let rng = OsRng::new().map_err(|error| RunError::Failed(error.to_string()))?;
            drawn(input, certified, test_key, folder, &rng)
        }
    }?;
    durable::write_atomic(&folder.join(files::CHARGE), charge.to_json()?.as_bytes())?;
    // The name of the folder itself must be durable too.
    durable::sync_parent(folder)?;
    Ok(charge)
}

fn drawn(
    input: &SweepInput,
    certified: &CertifiedSweep,
    test_key: Option<u64>,
    folder: &Path,
    rng: &dyn PrivacyRng,
) -> Result<SweepCharge, RunError> {
    let draw_sha256 = match certified.trials {
        SweepTrials::All(_) => None,
        SweepTrials::Best(count) => {
            let draw = Draw::new(count.distribution(), certified.settings.len() as u64, rng)?;
            Some(draw.write(folder)?)
        }
    };
    Ok(SweepCharge {
        format: 1,
        id: rng.stream(Purpose::Trials, 0, 1).next_name(),
        sweep_sha256: sha256_hex(&input.sweep_bytes),
        plan_sha256: sha256_hex(&input.plan_bytes),
        accountant_version: accountant::VERSION.to_owned(),
        accountant_method: accountant::METHOD.to_owned(),
        relation: input.base.privacy().relation,
        delta: input.base.delta().get(),
        randomness: Randomness::of(test_key),
        noise_multipliers: certified.noise_multipliers,
        draw_sha256,
        event: certified.event.clone(),
    })
}

impl SweepCharge {
    /// Reads the charge of a sweep's folder.
    ///
    /// # Errors
    /// [`RunError::Verification`] if it is not as this program wrote it.
    pub fn read(folder: &Path) -> Result<Self, RunError> {
        let bytes = durable::read(&folder.join(files::CHARGE))?;
        let charge: Option<Self> = serde_json::from_slice(&bytes).ok();
        match charge {
            Some(charge) if charge.to_json()?.as_bytes() == bytes => Ok(charge),
            _ => {
                Err(RunError::Verification(format!("{} is not the file that the sweep wrote", files::CHARGE)))
            }
        }
    }

    fn to_json(&self) -> Result<String, RunError> {
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| RunError::Failed(error.to_string()))?;
        text.push('\n');
        Ok(text)
    }

    /// Returns the search that every trial's ledger names.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a figure has no JSON form.
    pub fn search(&self) -> Result<Search, RunError> {
        let sweep_sha256 = sha256_hex(self.to_json()?.as_bytes());
        Ok(Search { sweep_sha256, event: self.event.clone(), vocabulary_sha256: None })
    }

    /// Refuses to resume with other files or another key than the sweep began with.
    fn check_same(&self, input: &SweepInput, test_key: Option<u64>, folder: &Path) -> Result<(), RunError> {
        let differs = if self.sweep_sha256 != sha256_hex(&input.sweep_bytes) {
            "with another sweep file"
        } else if self.plan_sha256 != sha256_hex(&input.plan_bytes) {
            "with another plan"
        } else if self.randomness != Randomness::of(test_key) {
            "with another --test-key, or without one"
        } else {
            return Ok(());
        };
        Err(began(differs, folder))
    }
}

fn began(how: &str, folder: &Path) -> RunError {
    RunError::Refused(format!(
        "the sweep in {} began {how}; use the same again, or choose another folder with --out",
        folder.display()
    ))
}
