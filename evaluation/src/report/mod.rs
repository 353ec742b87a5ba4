//! Writes the report of a finished run, as an HTML page or as Markdown: its promise, its charges, the course of
//! training, and the findings of other commands about the model.
//!
//! The run is verified first. Its own figures follow from the plan, the ledger and public text.

mod charts;
mod finding_charts;
mod findings;
mod markdown;
mod page;

use std::path::{Path, PathBuf};

use findings::Findings;

use training::RunError;
use training::store::metrics::parse_metrics;
use training::store::{covered, files};
use training::summary::read_evaluation;
use training::verify::VerifiedRun;

/// Verifies a finished run and writes its report, to `out` or into the run folder; as Markdown if
/// the file's name ends in `.md`. An existing file is replaced only with `overwrite`, and a file of
/// the run never.
///
/// # Errors
/// [`RunError::Refused`] if the file exists, or if findings that may not be published would get
/// into the run folder; [`RunError::Verification`] if the folder is not what a run wrote;
/// [`RunError::Storage`] if the report cannot be written.
pub fn write(
    folder: &Path,
    findings: &[PathBuf],
    out: Option<&Path>,
    overwrite: bool,
) -> Result<PathBuf, RunError> {
    let path = out.map_or_else(|| folder.join(files::REPORT), Path::to_owned);
    let in_run_folder = path.with_file_name(files::LEDGER).exists();
    let suffix = path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
    if !in_run_folder && !matches!(suffix.as_deref(), Some("html" | "htm" | "md")) {
        return Err(RunError::Refused(format!(
            "--out: {}: a report is one HTML page or Markdown; allowed: names that end in .html or .md (to get a PDF, print the page)",
            path.display()
        )));
    }
    let findings = findings.iter().map(|file| Findings::read(file)).collect::<Result<Vec<_>, _>>()?;
    if in_run_folder && findings.iter().any(|section| section.warning.is_some()) {
        return Err(RunError::Refused(
            "--findings: these figures may not be published, so they do not belong in the run folder; name a file elsewhere \
             with --out"
                .to_owned(),
        ));
    }
    let run = VerifiedRun::read(folder)?;
    files::check_new(&path, overwrite)?;
    let evaluation = read_evaluation(folder, run.ledger.files())?;
    let text = if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md")) {
        markdown::render(&run.certificate, evaluation.as_ref(), &findings)
    } else {
        let metrics = covered::read(folder, run.ledger.files(), files::METRICS)?;
        let metrics = parse_metrics(&metrics.unwrap_or_default());
        let charts = charts::of(&run.plan, &metrics, evaluation.as_ref());
        page::render(&run.certificate, evaluation.as_ref(), &charts, &findings)
    };
    durable::write_public(&path, text.as_bytes())?;
    Ok(path)
}
