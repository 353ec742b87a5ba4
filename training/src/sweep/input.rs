//! Reads the sweep file and the plan file, from the user or from a sweep's folder.

use std::path::{Path, PathBuf};

use plan::{CertifiedSweep, NoiseMultipliers, Plan, PlanError, SweepFile, SweepSetting};

use crate::RunError;
use crate::plan_file;
use crate::store::files;
use crate::verify::CertifiedText;

/// A sweep file and the plan that it names.
pub(super) struct SweepInput {
    pub file: SweepFile,
    pub base: Plan,
    /// The folder that the plan's paths are relative to.
    pub folder: PathBuf,
    /// The sweep file, byte for byte.
    pub sweep_bytes: Vec<u8>,
    /// The plan file, byte for byte.
    pub plan_bytes: Vec<u8>,
    path: PathBuf,
}

impl SweepInput {
    /// Reads a sweep file, and the plan file that it names.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file, the place in it and a fix; [`RunError::Storage`] if one cannot be read.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let sweep_bytes = durable::read(path)?;
        let file = parse(path, &sweep_bytes)?;
        let plan = path.parent().unwrap_or(Path::new("")).join(&file.plan);
        Self::with_plan(path, file, sweep_bytes, &plan)
    }

    /// Reads the copies in a sweep's folder.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_copies(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(files::SWEEP);
        let sweep_bytes = durable::read(&path)?;
        let file = parse(&path, &sweep_bytes)?;
        Self::with_plan(&path, file, sweep_bytes, &folder.join(files::PLAN))
    }

    fn with_plan(path: &Path, file: SweepFile, sweep_bytes: Vec<u8>, plan: &Path) -> Result<Self, RunError> {
        let plan_bytes = durable::read(plan)?;
        let base = plan_file::parse(plan, &plan_bytes)?;
        let folder = plan.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { file, base, folder, sweep_bytes, plan_bytes, path: path.to_owned() })
    }

    /// Returns the certified cost of the sweep. If it was charged before, `noise` is that of its charge.
    ///
    /// # Errors
    /// [`RunError::Refused`] if it is not valid.
    pub fn certify(&self, noise: Option<NoiseMultipliers>) -> Result<CertifiedSweep, RunError> {
        let certified = match noise {
            Some(noise) => self.file.certify_with(&self.base, noise),
            None => self.file.certify(&self.base),
        };
        certified.map_err(|error| refused(&self.path, &error))
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<SweepFile, RunError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        RunError::Refused(format!("{}: not UTF-8 after byte {place}; save it as UTF-8", path.display()))
    })?;
    SweepFile::parse(text).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &PlanError) -> RunError {
    RunError::Refused(format!("{}: {error}", path.display()))
}

/// Certifies the plan file of a trial, which may build on public files only.
///
/// # Errors
/// [`RunError::Refused`] if a private run or vocabulary made its checkpoint or its tokenizer.
pub(super) fn trial_text(setting: &SweepSetting, base: &Path) -> Result<CertifiedText, RunError> {
    let text = CertifiedText::of(setting.plan.clone(), setting.plan_file().into_bytes(), base)?;
    match text.lineage.parents().first() {
        None => Ok(text),
        Some(parent) => Err(RunError::Refused(format!(
            "plan: a sweep that builds on {}, which was made from private text; allowed: files made from public text; fix: \
             use such files, or run the settings as plans of their own",
            parent.name
        ))),
    }
}
