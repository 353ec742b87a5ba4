//! Reads public runs and private records.

use std::path::{Path, PathBuf};

use dp_tokenizer::identity::Sketch;
use plan::{Data, Objective, PrivacyUnit};

use crate::RunError;
use crate::data::{self, Answer, Units};
use crate::plan_file::read_uncertified;
use crate::store::files;
use crate::store::ledger::PublicStage;
use crate::verify::{Proof, check_unwritten};

/// Returns the public texts behind a folder that a run or a release wrote; [`None`] for any other folder.
///
/// # Errors
/// [`RunError::Refused`] if private text is behind it.
pub(crate) fn public_stage(field: &str, folder: &Path) -> Result<Option<Vec<PublicStage>>, RunError> {
    match Proof::find(folder)? {
        None => Ok(None),
        Some(proof) if proof.is_public && proof.parents.is_empty() => Ok(Some(proof.public_stages)),
        Some(_) => Err(RunError::Refused(format!(
            "{field}: {}: it was made from private text; allowed: what was made from public text alone, since it is not charged here",
            folder.display()
        ))),
    }
}

/// Returns the public texts behind a finished run whose model writes texts from left to right.
///
/// # Errors
/// [`RunError::Refused`] for a folder that is none, or if private text is behind it.
pub(crate) fn public_writer(
    field: &str,
    run: &Path,
    objectives: &[Objective],
) -> Result<Vec<PublicStage>, RunError> {
    let stages = public_stage(field, run)?.ok_or_else(|| {
        RunError::Refused(format!("{field}: {}: no run; give the folder of a finished run", run.display()))
    })?;
    files::require_finished(run)?;
    if objectives.contains(&read_uncertified(&run.join(files::PLAN))?.training().objective) {
        return Ok(stages);
    }
    // A unit variant is its name in JSON.
    let allowed: Vec<String> = objectives.iter().filter_map(|one| serde_json::to_string(one).ok()).collect();
    Err(RunError::Refused(format!(
        "{field}: {}: its model does not write texts in this way; allowed: training.objective {}",
        run.display(),
        allowed.join(" or ")
    )))
}

/// The private records that a file names.
pub(crate) struct PrivateSource<'a> {
    pub data: &'a Data,
    /// All labels; none if the records' labels are not read.
    pub labels: &'a [String],
    pub unit: PrivacyUnit,
    /// The folder that paths are relative to.
    pub base: &'a Path,
}

impl PrivateSource<'_> {
    /// Reads the records, and compares them with the public texts to choose from and with those of earlier stages.
    ///
    /// # Errors
    /// [`RunError::Refused`] if they cannot be read, or a public text shares text with them.
    pub fn read(&self, texts: &[String], stages: &[PublicStage]) -> Result<Units, RunError> {
        let paths: Vec<PathBuf> = match &self.data.source {
            plan::Source::Embedded { .. } => Vec::new(),
            plan::Source::Path(path) => vec![self.base.join(path)],
            plan::Source::Paths(paths) => paths.iter().map(|path| self.base.join(path)).collect(),
        };
        check_unwritten(&paths, "data.source")?;
        let units = data::read_private(self.data, self.labels, self.unit, self.base)?;
        let stages: Vec<(&str, &Sketch)> =
            stages.iter().map(|stage| (stage.name.as_str(), &stage.text)).collect();
        data::check_private(&units, texts, &stages)?;
        Ok(units)
    }
}

/// Hands each private record to a mechanism: its unit, the index of its label, or 0 without labels, and its text.
///
/// # Errors
/// [`RunError::Refused`] if the text is in a file that can no longer be read.
pub(crate) fn each_record(units: Units, mut take: impl FnMut(u64, usize, &str)) -> Result<(), RunError> {
    units.texts.for_each(|text| take(text.piece.unit, 0, &text.piece.text))?;
    let Some(records) = &units.labelled else { return Ok(()) };
    records.for_each(|record| {
        let label = match &record.answer {
            Answer::Labels(labels) => labels.first().copied().unwrap_or(0),
            Answer::Text(_) => 0,
        };
        take(record.unit, label as usize, &record.text);
    })
}
