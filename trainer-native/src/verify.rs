//! Recomputes all that a run claims, from its plan and its ledger alone.

use std::path::Path;

use accountant::Bounds;
use serde::Serialize;

use crate::certificate::{Certificate, JSON_FILE_NAME, MARKDOWN_FILE_NAME};
use crate::durable::{self, sha256_hex};
use crate::folder::{PLAN_FILE_NAME, require_run};
use crate::ledger::Record;
use crate::run::{Summary, read_plan};
use crate::{RunError, run};

/// What a plan promises before it is run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanSummary {
    /// Its name.
    pub name: String,
    /// Certified bounds on the ε of the whole pipeline; absent where the training text is public.
    pub epsilon: Option<Bounds>,
    /// Failure probability.
    pub delta: f64,
    /// SHA-256 of the canonical plan.
    pub sha256: String,
}

/// Certifies a plan file without running it.
///
/// # Errors
/// [`RunError::Refused`] if the plan is not valid.
pub fn verify_plan(path: &Path) -> Result<PlanSummary, RunError> {
    let (plan, _) = read_plan(path)?;
    Ok(PlanSummary {
        name: plan.plan().name().to_owned(),
        epsilon: (!plan.plan().is_public()).then(|| plan.epsilon()),
        delta: plan.delta().get(),
        sha256: plan.hash().to_owned(),
    })
}

/// Verifies a finished run folder: plan, ledger, every file's digest, ε, and the certificate byte for byte.
///
/// # Errors
/// [`RunError::Verification`] with the first thing that is off, be it by one bit.
pub fn verify_run(folder: &Path) -> Result<Summary, RunError> {
    require_run(folder)?;
    let record = Record::read(folder)?;
    let plan_path = folder.join(PLAN_FILE_NAME);
    let header = record.header();
    if sha256_hex(&durable::read(&plan_path)?) != header.plan_file_sha256 {
        return altered(PLAN_FILE_NAME);
    }
    let (plan, _) = read_plan(&plan_path)?;
    let accountant = (accountant::VERSION, accountant::METHOD);
    if (header.accountant_version.as_str(), header.accountant_method.as_str()) != accountant {
        return Err(RunError::Verification(format!(
            "the run was certified by accountant {} ({}), this is {} ({}); verify it with the version that wrote it",
            header.accountant_version, header.accountant_method, accountant.0, accountant.1
        )));
    }
    let certificate = Certificate::derive(&plan, &record)?;
    check_budget(&certificate)?;
    check_tokenizer(&record, &certificate)?;
    for file in &certificate.hashes.files {
        if sha256_hex(&durable::read(&folder.join(&file.name))?) != file.sha256 {
            return altered(&file.name);
        }
    }
    if durable::read(&folder.join(JSON_FILE_NAME))? != certificate.to_json()?.as_bytes() {
        return altered(JSON_FILE_NAME);
    }
    if durable::read(&folder.join(MARKDOWN_FILE_NAME))? != certificate.to_markdown().as_bytes() {
        return altered(MARKDOWN_FILE_NAME);
    }
    Ok(run::summary(folder, &certificate))
}

fn altered<T>(name: &str) -> Result<T, RunError> {
    Err(RunError::Verification(format!("{name} is not the file the run wrote")))
}

/// What was spent must be within what the plan allows.
fn check_budget(certificate: &Certificate) -> Result<(), RunError> {
    let guarantee = &certificate.guarantee;
    let (Some(spent), Some(planned)) = (guarantee.epsilon, guarantee.planned_epsilon) else { return Ok(()) };
    if spent.upper <= planned.upper {
        Ok(())
    } else {
        Err(RunError::Verification(format!(
            "the ledger spent ε up to {}, more than the plan's {}",
            spent.upper, planned.upper
        )))
    }
}

/// The tokenizer that encoded the text must be the one the run leaves behind.
fn check_tokenizer(record: &Record, certificate: &Certificate) -> Result<(), RunError> {
    let left = certificate.hashes.files.iter().find(|file| file.name == crate::vocabulary::FILE_NAME);
    if left.map(|file| file.sha256.as_str()) == record.tokenizer() {
        Ok(())
    } else {
        Err(RunError::Verification("the tokenizer is not the one the text was encoded with".to_owned()))
    }
}

impl std::fmt::Display for PlanSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, epsilon, delta, sha256 } = self;
        match epsilon {
            Some(Bounds { lower, upper }) => {
                write!(f, "{name}: certified ε between {lower} and {upper} at δ = {delta}; plan {sha256}")
            }
            None => write!(
                f,
                "{name}: NOT PRIVATE: the training text is public, nothing is promised; plan {sha256}"
            ),
        }
    }
}
