//! Reading plan files.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use accountant::DpEvent;
use plan::{
    CertifiedEvolution, CertifiedParaphrase, CertifiedPlan, EvolutionFile, ParaphraseFile, Plan, PlanError,
    PlanFile,
};

use crate::RunError;
use crate::store::{Synthesis, files};

/// A plan and the file that it was read from.
pub(crate) struct PlanText {
    pub plan: Plan,
    /// The file, byte for byte.
    pub bytes: Vec<u8>,
}

impl PlanText {
    /// Reads a plan file without certifying it.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file, the place in it and a fix.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let bytes = read_small(path)?;
        Ok(Self { plan: parse(path, &bytes)?, bytes })
    }

    /// Certifies the plan of the file at `path`, after the events that were spent on its units
    /// earlier.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file and a fix.
    pub fn certify(self, path: &Path, earlier: Vec<DpEvent>) -> Result<CertifiedPlan, RunError> {
        certify(path, self.plan.after(earlier))
    }
}

/// Reads and certifies an evolution file. Also returns its bytes.
///
/// # Errors
/// As `PlanText::read` and `PlanText::certify`.
pub(crate) fn read_evolution(path: &Path) -> Result<(CertifiedEvolution, Vec<u8>), RunError> {
    read_certified(path, EvolutionFile::parse, EvolutionFile::certify)
}

/// Reads and certifies a paraphrase file as [`read_evolution`] does.
///
/// # Errors
/// As [`read_evolution`].
pub(crate) fn read_paraphrase(path: &Path) -> Result<(CertifiedParaphrase, Vec<u8>), RunError> {
    read_certified(path, ParaphraseFile::parse, ParaphraseFile::certify)
}

/// Reads and certifies the file of an evolution or a paraphrase, which its name tells.
///
/// # Errors
/// As [`read_evolution`].
pub(crate) fn read_synthesis(path: &Path, name: &str) -> Result<Box<dyn Synthesis>, RunError> {
    Ok(match name {
        files::PARAPHRASE => Box::new(read_paraphrase(path)?.0),
        _ => Box::new(read_evolution(path)?.0),
    })
}

fn read_certified<File: Send + 'static, Certified: Send + 'static>(
    path: &Path,
    parse: impl Fn(&str) -> Result<File, PlanError>,
    certify: impl FnOnce(File) -> Result<Certified, PlanError> + Send + 'static,
) -> Result<(Certified, Vec<u8>), RunError> {
    let bytes = read_small(path)?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| refused(path, &"it is not UTF-8; save it as UTF-8"))?;
    let file = parse(text).map_err(|error| refused(path, &error))?;
    Ok((within_limit(path, move || certify(file))?, bytes))
}

/// Reads a plan file without certifying it.
///
/// # Errors
/// As `PlanText::read`.
pub fn read_uncertified(path: &Path) -> Result<Plan, RunError> {
    Ok(PlanText::read(path)?.plan)
}

/// Longest time that the search for a plan's noise may take.
const LONGEST: Duration = Duration::from_secs(300);

/// Certifies a plan, unless its figures are so unusual that the search takes too long.
fn certify(path: &Path, plan: Plan) -> Result<CertifiedPlan, RunError> {
    within_limit(path, move || plan.certify())
}

/// Returns what `certify` certifies of a file, unless the search takes too long.
///
/// # Errors
/// [`RunError::Refused`] with the file and a fix.
fn within_limit<T: Send + 'static>(
    path: &Path,
    certify: impl FnOnce() -> Result<T, PlanError> + Send + 'static,
) -> Result<T, RunError> {
    match within(LONGEST, certify) {
        Some(certified) => certified.map_err(|error| refused(path, &error)),
        None => Err(refused(
            path,
            &"privacy: no certified ε after 5 minutes; allowed: figures of a training run, such as epsilon from 0.01 to 100, delta \
              from 1e-12 and noise multipliers from 0.3; fix: bring privacy.epsilon, privacy.delta and training.steps into such a \
              range",
        )),
    }
}

/// Returns the result of work, if it ends within this time.
pub(crate) fn within<T: Send + 'static>(
    longest: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, received) = channel();
    std::thread::spawn(move || {
        // If it took too long, nobody waits for the result any more.
        let _ = send.send(work());
    });
    received.recv_timeout(longest).ok()
}

/// Reads a file of the size of a plan.
fn read_small(path: &Path) -> Result<Vec<u8>, RunError> {
    const LARGEST: u64 = 16 << 20;
    let metadata = path.metadata().map_err(|error| RunError::storage("read", path, &error))?;
    let not_a_plan =
        |what| RunError::Refused(format!("{} is {what}; give a plan file (plan.json)", path.display()));
    if metadata.is_dir() {
        Err(not_a_plan("a folder"))
    } else if !metadata.is_file() {
        Err(not_a_plan("no file"))
    } else if metadata.len() > LARGEST {
        Err(not_a_plan("larger than any plan"))
    } else {
        Ok(durable::read(path)?)
    }
}

/// Reads the bytes of a plan file without certifying it.
///
/// # Errors
/// As [`PlanText::read`].
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Plan, RunError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        refused(path, &format!("not UTF-8 after byte {}; save the plan as UTF-8", error.valid_up_to()))
    })?;
    let file = PlanFile::parse(text).map_err(|error| refused(path, &error))?;
    Plan::try_from(file).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(format!("{}: {error}", path.display()))
}
