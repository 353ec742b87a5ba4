//! Recomputes all claims of an evolution or a paraphrase from its file and its ledger alone.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use accountant::Bounds;
use plan::MadeFrom;
use serde::Serialize;

use super::{Coverage, check_accountant, listing};
use crate::progress::DIGITS;
use crate::store::certificate::{KNOWN_NOISE, SynthesisCertificate};
use crate::store::ledger::{Charges, Entry, LedgerState, Parent, Randomness};
use crate::store::{Synthesis, covered, files};
use crate::{RunError, plan_file};
use durable::sha256_hex;

/// Returns the files that prove synthetic records, of which `file` describes how they were made.
pub(super) fn proof(file: &'static str) -> [&'static str; 4] {
    [file, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN]
}

/// Verifies the folder of a finished evolution or paraphrase: its file, its ledger, its ε, its records and its certificate byte for byte.
///
/// # Errors
/// [`RunError::Verification`] with the first difference.
pub fn verify_synthesis(folder: &Path) -> Result<SynthesisSummary, RunError> {
    let ledger = LedgerState::read(folder)?;
    let certificate = certificate(folder, &ledger)?;
    let mut coverage = Coverage::default();
    for file in ledger.files() {
        if covered::read(folder, ledger.files(), &file.name)?.is_some() {
            coverage.add(file.name.clone());
        }
    }
    let copies = files::proof_of_text(Path::new(files::RECORDS));
    for name in proof(named(folder)?) {
        coverage.add(name);
        let copy = copies.join(name);
        if folder.join(&copy).exists()
            && durable::read(&folder.join(&copy))? == durable::read(&folder.join(name))?
        {
            coverage.add(copy.to_string_lossy());
        }
    }
    Ok(SynthesisSummary::of(folder, &certificate, coverage.others(folder)?))
}

/// Returns whether an evolution or a paraphrase is private, the upper bound on its ε, and δ; finished or not.
///
/// # Errors
/// [`RunError::Verification`] if a file is not as it was written.
pub fn promise(folder: &Path) -> Result<(bool, f64, f64), RunError> {
    let ledger = LedgerState::read_stopped(folder)?.0;
    let certified = certified(folder, &ledger)?;
    let private = ledger.header().randomness == Randomness::OperatingSystem;
    Ok((private, certified.epsilon().upper, certified.delta().get()))
}

/// Verifies a finished evolution or paraphrase, and returns it as a stage that others may build on.
///
/// # Errors
/// As [`verify_synthesis`].
pub(super) fn stage_of_finished(folder: &Path, ledger: &LedgerState) -> Result<Parent, RunError> {
    certificate(folder, ledger)?;
    Ok(stage(certified(folder, ledger)?.as_ref(), ledger, ledger.charges()))
}

/// Returns one that stopped as a stage, with its ledger. A torn last line is charged as the release that it may have announced.
///
/// # Errors
/// [`RunError::Verification`] if a file is not as it was written.
pub(crate) fn stage_of_stopped(folder: &Path) -> Result<(Parent, LedgerState), RunError> {
    let (ledger, torn_bytes) = LedgerState::read_stopped(folder)?;
    let certified = certified(folder, &ledger)?;
    let mut charges = ledger.charges();
    let announced = certified.announced(&ledger).filter(|_| torn_bytes > 0);
    if let Some(event) = announced.as_ref().and_then(Entry::charge) {
        charges.add(event, 1);
    }
    Ok((stage(certified.as_ref(), &ledger, charges), ledger))
}

fn stage(certified: &dyn Synthesis, ledger: &LedgerState, charges: Charges) -> Parent {
    let header = ledger.header();
    let is_known = header.randomness != Randomness::OperatingSystem;
    Parent {
        name: certified.name().to_owned(),
        id: Some(header.id.clone()),
        sha256: ledger.position().sha256,
        made_from: MadeFrom::PublicText,
        unit: certified.privacy().unit,
        relation: header.relation,
        not_private_because: is_known.then(|| KNOWN_NOISE.to_owned()).into_iter().collect(),
        charges,
        search: None,
    }
}

/// Returns the name of the file that describes how the records of a folder were made.
fn named(folder: &Path) -> Result<&'static str, RunError> {
    files::synthesis_in(folder).ok_or_else(|| {
        RunError::Verification(format!("{}: no evolution and no paraphrase", folder.display()))
    })
}

/// Returns the evolution or paraphrase of a folder, after comparing it with the ledger.
fn certified(folder: &Path, ledger: &LedgerState) -> Result<Box<dyn Synthesis>, RunError> {
    let differs = |what: &str| Err(RunError::Verification(format!("{}: {what}", folder.display())));
    let (header, name) = (ledger.header(), named(folder)?);
    if sha256_hex(&durable::read(&folder.join(name))?) != header.plan_file_sha256 {
        return differs(&format!("{name} is not the file that was written"));
    }
    check_accountant(&header.accountant_version, &header.accountant_method)?;
    let certified = plan_file::read_synthesis(&folder.join(name), name)?;
    let noun = certified.kind().noun;
    if header.relation != certified.privacy().relation || !header.protected || !ledger.parents().is_empty() {
        return differs(&format!("the header of its ledger is not that of this {noun}"));
    }
    let fits =
        |entry: Cow<'_, Entry>| matches!(*entry, Entry::Resume { .. }) || certified.admits(&entry, ledger);
    if !ledger.entries().skip(1).all(fits) {
        return differs(&format!("a line of its ledger is not one of this {noun}"));
    }
    Ok(certified)
}

/// Verifies the file, the ledger and the certificate of a finished evolution or paraphrase.
fn certificate(folder: &Path, ledger: &LedgerState) -> Result<SynthesisCertificate, RunError> {
    let failed = |what: String| Err(RunError::Verification(what));
    let certified = certified(folder, ledger)?;
    let kind = certified.kind();
    if ledger.completed().is_none() {
        return failed(format!(
            "the {} is not finished; continue it with `trainer-native {} --resume`",
            kind.noun, kind.command
        ));
    }
    let certificate = SynthesisCertificate::derive(certified.as_ref(), ledger)?;
    if certificate.epsilon.upper > certificate.epsilon_limit {
        return failed(format!("the ledger spent more than the ε of the {}", kind.noun));
    }
    for (name, text) in [
        (files::CERTIFICATE_JSON, certificate.to_json()?),
        (files::CERTIFICATE_MARKDOWN, certificate.to_markdown()),
    ] {
        if durable::read(&folder.join(name))? != text.as_bytes() {
            return failed(format!("{name} is not the file that was written"));
        }
    }
    Ok(certificate)
}

/// The result of a finished evolution or paraphrase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SynthesisSummary {
    /// The folder.
    pub folder: PathBuf,
    /// Whether the records are private.
    pub private: bool,
    /// Certified bounds on the ε of all that was released.
    pub epsilon: Bounds,
    /// Failure probability.
    pub delta: f64,
    /// The synthetic records.
    pub records: PathBuf,
    /// Files of the folder for which there is no digest.
    pub not_covered: Vec<String>,
}

impl SynthesisSummary {
    fn of(folder: &Path, certificate: &SynthesisCertificate, not_covered: Vec<String>) -> Self {
        Self {
            folder: folder.to_owned(),
            private: certificate.private,
            epsilon: certificate.epsilon,
            delta: certificate.delta,
            records: folder.join(files::RECORDS),
            not_covered,
        }
    }
}

impl fmt::Display for SynthesisSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.private {
            writeln!(f, "NOT PRIVATE: these records have no privacy guarantee")?;
        }
        let upper = cli::rounded_up(self.epsilon.upper, DIGITS);
        writeln!(
            f,
            "{}: ε ≤ {upper} at δ = {:e} for all that was released",
            self.folder.display(),
            self.delta
        )?;
        writeln!(f, "records: {}", self.records.display())?;
        write!(f, "certificate: {}", self.folder.join(files::CERTIFICATE_MARKDOWN).display())?;
        write!(f, "{}", listing(&self.not_covered))
    }
}
