//! A sweep: the trials of one plan with several settings, charged together before the first of them begins.
//!
//! | file | content |
//! |---|---|
//! | `sweep.json`, `plan.json` | what the user wrote, byte for byte |
//! | `charge.json` | the event of the whole sweep, on the disk before the first trial begins |
//! | `vocabulary/` | the vocabulary, if the plan trains one on the private text: released once, for all trials |
//! | `trials/` | the runs, if all are published |
//! | `best/` | the best run, if only that one is published |
//! | `private/` | until then: the secret draw and the trials; removed at the end |
//! | `certificate.json`, `certificate.md` | settings, scores and the ε of the whole sweep |
//!
//! Each trial is a run. The header of its ledger names the sweep, so its certificate states the ε of the whole sweep, never its
//! own: nobody can publish the best of many runs at the price of one.

mod all;
mod best;
mod certificate;
mod charge;
mod draw;
mod input;
mod markdown;
mod verify;

use std::path::{Path, PathBuf};

use plan::{Device, SweepSetting, SweepTrials};

pub use self::certificate::SweepSummary;
pub use self::verify::promise;
pub use self::verify::verify_sweep;
pub(crate) use self::verify::{PlannedRun, Spent, spent};

use self::certificate::SweepCertificate;
use self::charge::OpenSweep;
use self::input::SweepInput;
use crate::progress::{DIGITS, note};
use crate::run::{Trial, shell_word};
use crate::store::ledger::LedgerState;
use crate::store::{files, forget_corpus};
use crate::{RunError, stop};
use mechanisms::{PrivacyRng, Purpose, TestRng};

/// The folder of the vocabulary's release.
const VOCABULARY: &str = "vocabulary";

/// The sweep that the user asks for.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// The sweep file.
    pub sweep: PathBuf,
    /// The folder of the sweep; by default `runs/` and the plan's name with `-sweep`.
    pub out: Option<PathBuf>,
    /// Whether to resume the sweep that the folder holds.
    pub resume: bool,
    /// The device, if not the plan's.
    pub device: Option<Device>,
    /// A known key for tests. The sweep is then not private.
    pub test_key: Option<u64>,
}

/// Returns whether a folder holds a sweep.
#[must_use]
pub fn is_sweep(folder: &Path) -> bool {
    folder.join(files::CHARGE).exists()
}

/// Carries out a sweep, or resumes it.
///
/// # Errors
/// [`RunError`]. The sweep and its plan are refused before anything is written.
pub fn sweep(request: &SweepRequest) -> Result<SweepSummary, RunError> {
    let input = SweepInput::read(&request.sweep)?;
    let default = || Path::new("runs").join(format!("{}-sweep", input.base.name()));
    let folder = request.out.clone().unwrap_or_else(default);
    stop::listen()?;
    let mut sweep = OpenSweep::open(input, request, folder)?;
    if sweep.folder.join(files::CERTIFICATE_JSON).exists() {
        // A process may have been killed between the certificate and this point.
        best::remove_secrets(&sweep.folder)?;
        crate::store::settle(&sweep.folder);
        return verify_sweep(&sweep.folder);
    }
    sweep.announce();
    let finished = sweep.release_vocabulary().and_then(|()| match sweep.certified.trials {
        SweepTrials::All(trials) => all::run(&sweep, trials),
        SweepTrials::Best(_) => best::run(&sweep),
    });
    finished.map_err(|error| match error {
        // A trial's error names the command that resumes a run, not a sweep.
        RunError::Interrupted { .. } => sweep.interrupted(request),
        other => other,
    })?;
    let summary = sweep.certify()?;
    best::remove_secrets(&sweep.folder)?;
    crate::store::settle(&sweep.folder);
    Ok(summary)
}

impl OpenSweep {
    fn run_trial(&self, setting: usize, folder: &Path, index: u64) -> Result<(), RunError> {
        let key = self.test_key.map(|key| key_of_trial(key, index));
        let trial = self.trial(&self.certified.settings[setting], folder, key)?;
        crate::run::run_trial(trial).map(|_| ())
    }

    /// Releases the vocabulary that all trials share, if the plan trains one on the private text.
    fn release_vocabulary(&mut self) -> Result<(), RunError> {
        let Some(setting) = self.certified.settings.first() else { return Ok(()) };
        if setting.plan.tokenizer_release().is_none() {
            return Ok(());
        }
        let folder = self.folder.join(VOCABULARY);
        if !LedgerState::read(&folder).is_ok_and(|ledger| ledger.tokenizer().is_some()) {
            let trial = self.trial(setting, &folder, self.test_key)?;
            crate::run::release_vocabulary(trial)?;
        }
        // The folder is published, and no process resumes its run.
        forget_corpus(&folder)?;
        self.search.vocabulary_sha256 = verify::vocabulary(&self.folder, &self.certified, &self.search)?;
        self.vocabulary = Some(folder.join(files::TOKENIZER));
        Ok(())
    }

    /// Verifies all runs of the finished sweep and writes its certificate.
    ///
    /// # Errors
    /// [`RunError::Verification`] if a run is not what the sweep charged; [`RunError::Storage`] if it cannot be written.
    fn certify(&self) -> Result<SweepSummary, RunError> {
        let (findings, _) = verify::findings(&self.folder, &self.certified, &self.search)?;
        let certificate =
            SweepCertificate::new(&self.input, &self.certified, &self.charge, &self.search, findings)?;
        let write = |name: &str, text: &str| durable::write_atomic(&self.folder.join(name), text.as_bytes());
        write(files::CERTIFICATE_MARKDOWN, &markdown::render(&certificate))?;
        // This file is written last, because it marks the sweep as finished.
        write(files::CERTIFICATE_JSON, &certificate.to_json()?)?;
        Ok(SweepSummary::of(&self.folder, certificate))
    }

    fn trial(&self, setting: &SweepSetting, folder: &Path, test_key: Option<u64>) -> Result<Trial, RunError> {
        Ok(Trial {
            text: input::trial_text(setting, &self.input.folder)?,
            base: self.input.folder.clone(),
            folder: folder.to_owned(),
            device: self.device,
            test_key,
            vocabulary: self.vocabulary.clone(),
            search: self.search.clone(),
        })
    }

    fn announce(&self) {
        if self.test_key.is_some() {
            note("NOT PRIVATE: --test-key makes the noise predictable");
        }
        let (certified, delta) = (&self.certified, self.input.base.delta().get());
        note(&format!(
            "sweep in {}: {} settings, noise multiplier {:.4}, certified ε ≤ {} at δ = {delta:e} for all trials together",
            self.folder.display(),
            certified.settings.len(),
            certified.noise_multipliers.training,
            cli::rounded_up(certified.epsilon.upper, DIGITS)
        ));
    }

    /// Ends the sweep here if the user asked to stop.
    fn check_interrupt(&self) -> Result<(), RunError> {
        if stop::requested() { Err(RunError::Interrupted { resume: String::new() }) } else { Ok(()) }
    }

    fn interrupted(&self, request: &SweepRequest) -> RunError {
        let device = match request.device {
            None => "",
            Some(Device::Cpu) => " --device cpu",
            Some(Device::Wgpu) => " --device wgpu",
            Some(Device::Cuda) => " --device cuda",
        };
        let key = request.test_key.map(|key| format!(" --test-key {key}")).unwrap_or_default();
        let (file, folder) = (shell_word(&request.sweep), shell_word(&self.folder));
        RunError::Interrupted {
            resume: format!("trainer-native sweep --sweep {file} --out {folder} --resume{device}{key}"),
        }
    }
}

/// Returns the key of a trial of a sweep with a test key. Every trial has its own key, so that no
/// two share noise.
fn key_of_trial(key: u64, index: u64) -> u64 {
    // JSON readers keep integers of up to 53 bits.
    TestRng::from_seed(key).stream(Purpose::Trials, 1 + index, 0).below(1 << 53)
}
