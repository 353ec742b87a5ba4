//! The report of a finished run as one HTML page: what it promises, what it spent, and how training went.
//!
//! Every figure follows from the plan, the ledger and public text. The run is verified first.

mod charts;
mod page;

use std::path::{Path, PathBuf};

use crate::store::files;
use crate::store::metrics::read_metrics;
use crate::summary::read_evaluation;
use crate::verify::VerifiedRun;
use crate::{RunError, durable};

/// Verifies a finished run and writes its report, to `out` or into the run folder. A file that exists is only replaced under
/// `overwrite`, and a file of the run never.
///
/// # Errors
/// [`RunError::Refused`] if the file exists; [`RunError::Verification`] if the folder is not what a run wrote; [`RunError::Storage`] if the report cannot be written.
pub(crate) fn write(folder: &Path, out: Option<&Path>, overwrite: bool) -> Result<PathBuf, RunError> {
    let path = out.map_or_else(|| folder.join(files::REPORT), Path::to_owned);
    let run = VerifiedRun::read(folder)?;
    files::check_new(&path, overwrite)?;
    let metrics = read_metrics(&folder.join(files::METRICS));
    let evaluation = read_evaluation(folder);
    let charts = charts::of(&run.plan, &metrics, evaluation.as_ref());
    let page = page::render(&run.certificate, evaluation.as_ref(), &charts);
    durable::write_atomic(&path, page.as_bytes())?;
    Ok(path)
}
