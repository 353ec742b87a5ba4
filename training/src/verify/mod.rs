//! Recomputes all claims of a run from its plan and its ledger alone.
//!
//! A run may build on others: its checkpoint or its tokenizer was made by an earlier run, or by
//! `dp-tokenizer train`. The folder that a plan takes such a file from says what the file was made
//! from: a run by its plan, ledger and certificate, a vocabulary by its `privacy.json`. These are
//! verified, never trusted, and the plan must declare how their text relates to its own. Charges on
//! the same units are added to the run's ledger, so that ε covers all stages together. The run
//! folder carries the proofs of all earlier stages in `parents/`.
//!
//! | module | what |
//! |---|---|
//! | `proof` | the verified facts of one stage, and the stages that a ledger names |
//! | `check` | a ledger and its plan against the proofs of the stages that they name |
//! | `find` | the stages that a plan builds on, before it is certified |
//! | `synthesis` | the folder of an evolution or a paraphrase |
//! | `stopped` | what a run spent that did not finish |
//! | `coverage` | which files of a folder a digest covers |
//! | `explain` | what was checked, in words |

mod check;
mod coverage;
mod explain;
mod find;
mod proof;
mod stopped;
pub mod synthesis;
#[cfg(test)]
mod tests;

use std::path::Path;

use accountant::{Bounds, DpEvent};
use plan::CertifiedPlan;
use serde::Serialize;

pub(crate) use coverage::{Coverage, listing};
pub use explain::explain;
pub use find::check_unwritten;
pub(crate) use proof::Proof;

use self::proof::EarlierProofs;
use crate::RunError;
use crate::model_card;
use crate::plan_file::PlanText;
use crate::progress::DIGITS;
use crate::store::accounting::charged;
use crate::store::certificate::{self, Certificate};
use crate::store::ledger::{FileDigest, LedgerState, events_on_same_units};
use crate::store::lineage::Lineage;
use crate::store::{covered, files};
use crate::summary::{Summary, read_evaluation};
use durable::sha256_hex;

/// A certified plan, the stages that it builds on, and the file from which it was read.
pub struct CertifiedText {
    /// The plan.
    pub plan: CertifiedPlan,
    /// The stages that the plan builds on.
    pub lineage: Lineage,
    /// The file, byte for byte.
    pub bytes: Vec<u8>,
}

impl CertifiedText {
    /// Reads and certifies a plan file, after the runs and vocabularies that made its checkpoint and its tokenizer.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file, the place in it and a fix; as `find::lineage`.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let text = PlanText::read(path)?;
        let lineage = find::lineage(&text.plan, path.parent().unwrap_or(Path::new("")))?;
        let bytes = text.bytes.clone();
        Ok(Self { plan: text.certify(path, lineage.events())?, lineage, bytes })
    }

    /// Returns a plan that is already certified, with the stages that it builds on. Its paths start
    /// at `base`.
    ///
    /// # Errors
    /// As `find::lineage`.
    pub fn of(plan: CertifiedPlan, bytes: Vec<u8>, base: &Path) -> Result<Self, RunError> {
        let lineage = find::lineage(plan.plan(), base)?;
        Ok(Self { plan, lineage, bytes })
    }
}

/// The promise of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanSummary {
    /// Name of the plan.
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
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if let Some(folder) =
        path.parent().filter(|_| path.is_file() && path.file_name() == Some(files::PRIVACY.as_ref()))
    {
        files::require_run(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?;
    }
    let folder = path.parent().filter(|folder| folder.join(files::LEDGER).is_file());
    if let Some(folder) = folder.filter(|_| path.is_file() && path.file_name() != Some(files::PLAN.as_ref()))
    {
        return Err(RunError::Refused(format!(
            "{} is a file of a run; verify the run: trainer-native verify {}",
            path.display(),
            folder.display()
        )));
    }
    if path.is_file() && !is_json {
        return Err(RunError::Refused(format!(
            "{} is neither a run folder nor a plan file (*.json); give the folder that training wrote, or a plan",
            path.display()
        )));
    }
    let CertifiedText { plan, .. } = CertifiedText::read(path)?;
    Ok(PlanSummary {
        name: plan.plan().name().to_owned(),
        epsilon: (!plan.plan().is_public()).then(|| plan.epsilon()),
        delta: plan.delta().get(),
        sha256: plan.hash().to_owned(),
    })
}

/// A finished run whose folder was verified.
pub struct VerifiedRun {
    /// The plan of the run.
    pub plan: CertifiedPlan,
    /// The ledger, which says what was spent.
    pub ledger: LedgerState,
    /// The certificate, derived anew from plan and ledger.
    pub certificate: Certificate,
    /// Number format of the weights in an export in 16 bits.
    pub rounded: Option<String>,
    /// The files that were verified.
    pub(crate) coverage: Coverage,
}

/// Verifies a finished run folder: plan, ledger, every file's digest, ε, and the certificate byte for byte.
///
/// # Errors
/// [`RunError::Verification`] with the first difference, even if it is a single bit.
pub fn verify_run(folder: &Path) -> Result<Summary, RunError> {
    Summary::of(folder, &VerifiedRun::read(folder)?.certificate)
}

impl VerifiedRun {
    /// Reads and verifies a run folder; see [`verify_run`].
    pub fn read(folder: &Path) -> Result<Self, RunError> {
        let mut run = Self::read_proof(folder)?;
        run.check_files(folder)?;
        let evaluation = read_evaluation(folder, run.ledger.files())?;
        let found = durable::read(&folder.join(model_card::NAME)).unwrap_or_default();
        let found = String::from_utf8_lossy(&found);
        if let Some(licence) = model_card::licence_in(&found) {
            let card = model_card::render(&run.certificate, run.plan.plan(), evaluation.as_ref(), licence);
            if *found == card {
                run.coverage.add(model_card::NAME);
            }
        }
        Ok(run)
    }

    /// Checks every file that the ledger names, and no other. For an export in 16 bits, the ledger
    /// also names the rounded model.
    fn check_files(&mut self, folder: &Path) -> Result<(), RunError> {
        let mut changed = Vec::new();
        for FileDigest { name, sha256 } in self.ledger.files() {
            let path = folder.join(name);
            if files::is_snapshot(name) && !path.exists() {
                continue;
            }
            if !path.exists() {
                return removed(name);
            }
            if durable::sha256_of(&path)? != *sha256 {
                changed.push(name.as_str());
            }
            self.coverage.add(name);
        }
        if let Some(other) = changed.iter().find(|name| !covered::ROUNDED.contains(name)) {
            return altered(other);
        }
        if let Some(last) = changed.last() {
            self.rounded = Some(covered::rounded(folder, &self.ledger)?.map_or_else(|| altered(last), Ok)?);
        }
        Ok(())
    }

    /// Returns the privacy event that ε is of: the run's charges with the earlier stages on its units, or the whole search that it is a trial of.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        charged(&self.ledger)
    }

    /// Returns the names of the files in the folder for which there is no digest.
    ///
    /// # Errors
    /// As `Coverage::others`.
    pub fn not_covered(&self, folder: &Path) -> Result<Vec<String>, RunError> {
        self.coverage.others(folder)
    }

    /// Reads and verifies plan, ledger and certificate, and the proofs of earlier stages.
    ///
    /// # Errors
    /// As [`verify_run`].
    pub fn read_proof(folder: &Path) -> Result<Self, RunError> {
        files::require_run(folder)?;
        let ledger = LedgerState::read(folder)?;
        let earlier = EarlierProofs::read(&ledger, &folder.join(files::PARENTS))?;
        let mut run = Self::of_ledger(folder, ledger, &earlier)?;
        run.coverage.add_below(files::PARENTS, &earlier.coverage());
        Ok(run)
    }

    /// Verifies plan and certificate by a ledger, after the stages that it builds on.
    fn of_ledger(folder: &Path, ledger: LedgerState, earlier: &EarlierProofs) -> Result<Self, RunError> {
        files::require_run(folder)?;
        for name in [files::PLAN, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN] {
            // A run that is not finished has no certificate, which is not removed then.
            if !folder.join(name).exists() && (name == files::PLAN || ledger.completed().is_some()) {
                return removed(name);
            }
        }
        let plan_path = folder.join(files::PLAN);
        if sha256_hex(&durable::read(&plan_path)?) != ledger.header().plan_file_sha256 {
            return altered(files::PLAN);
        }
        let spent_before = events_on_same_units(ledger.parents());
        let plan = PlanText::read(&plan_path)?.certify(&plan_path, spent_before)?;
        let header = ledger.header();
        check_accountant(&header.accountant_version, &header.accountant_method)?;
        let certificate = check_certificate(folder, &plan, &ledger)?;
        check_budget(&certificate)?;
        check_tokenizer(&ledger, &certificate)?;
        earlier.check(plan.plan(), &ledger)?;
        let mut coverage = Coverage::default();
        for name in [files::PLAN, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN] {
            coverage.add(name);
        }
        Ok(Self { plan, ledger, certificate, rounded: None, coverage })
    }
}

/// Checks the certificate: the folder must hold, byte for byte, the one that follows from plan and
/// ledger.
fn check_certificate(
    folder: &Path,
    plan: &CertifiedPlan,
    ledger: &LedgerState,
) -> Result<Certificate, RunError> {
    let certificate = Certificate::derive(plan, ledger, &certificate::CURRENT)?;
    if durable::read(&folder.join(files::CERTIFICATE_JSON))? != certificate.to_json()?.as_bytes() {
        return altered(files::CERTIFICATE_JSON);
    }
    if durable::read(&folder.join(files::CERTIFICATE_MARKDOWN))? != certificate.to_markdown().as_bytes() {
        return altered(files::CERTIFICATE_MARKDOWN);
    }
    Ok(certificate)
}

fn removed<T>(name: &str) -> Result<T, RunError> {
    Err(RunError::Verification(format!(
        "{name} is missing, though the run wrote it; put it back from a copy of the folder"
    )))
}

fn altered<T>(name: &str) -> Result<T, RunError> {
    Err(RunError::Verification(format!("{name} is not the file that the run wrote")))
}

/// Refuses a certificate of another version of the accountant.
pub(crate) fn check_accountant(certified_version: &str, certified_method: &str) -> Result<(), RunError> {
    let (version, method) = (accountant::VERSION, accountant::METHOD);
    if certified_version == version && certified_method == method {
        return Ok(());
    }
    Err(RunError::Verification(format!(
        "accountant {certified_version} ({certified_method}) certified the run, but this is {version} ({method}); verify it \
         with the version that wrote it"
    )))
}

/// Checks that the ε spent is within the ε that the plan allows.
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

/// Checks that the tokenizer in the folder is the one that encoded the text.
fn check_tokenizer(ledger: &LedgerState, certificate: &Certificate) -> Result<(), RunError> {
    let left = certificate.hashes.files.iter().find(|file| file.name == files::TOKENIZER);
    if left.map(|file| file.sha256.as_str()) == ledger.tokenizer() {
        Ok(())
    } else {
        Err(RunError::Verification("the tokenizer is not the one that encoded the text".to_owned()))
    }
}

impl std::fmt::Display for PlanSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, epsilon, delta, sha256 } = self;
        match epsilon {
            Some(Bounds { upper, .. }) => {
                let upper = cli::rounded_up(*upper, DIGITS);
                write!(f, "{name}: certified ε ≤ {upper} at δ = {delta:e}; plan {sha256}")
            }
            None => write!(
                f,
                "{name}: NOT PRIVATE: the training text is public, so nothing is promised; plan {sha256}"
            ),
        }
    }
}
