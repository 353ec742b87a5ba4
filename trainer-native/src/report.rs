//! A finished run on one page that needs nothing else: what is promised, what it cost, how training went.
//!
//! Every figure on it follows from the plan, the ledger and public text; the run is verified before it is shown.

mod charts;
mod page;

use std::path::{Path, PathBuf};

use crate::certificate::Certificate;
use crate::ledger::Record;
use crate::run::{read_evaluation_file, read_plan};
use crate::{RunError, durable, folder, telemetry, verify};

/// Name of the report in a run folder.
pub const FILE_NAME: &str = "report.html";

/// Verifies a finished run and writes its report, to `out` or into the run folder.
///
/// # Errors
/// [`RunError::Verification`] if the folder is not what a run wrote; [`RunError::Storage`] if the report cannot be written.
pub fn write(run: &Path, out: Option<&Path>) -> Result<PathBuf, RunError> {
    verify::verify_run(run)?;
    let (plan, _) = read_plan(&run.join(folder::PLAN_FILE_NAME))?;
    let certificate = Certificate::derive(&plan, &Record::read(run)?)?;
    let metrics = telemetry::read_lines(&run.join(telemetry::FILE_NAME));
    let evaluation = read_evaluation_file(run);
    let charts = charts::of(&plan, &metrics, evaluation.as_ref());
    let path = out.map_or_else(|| run.join(FILE_NAME), Path::to_owned);
    durable::write_atomic(&path, page::render(&certificate, evaluation.as_ref(), &charts).as_bytes())?;
    Ok(path)
}
