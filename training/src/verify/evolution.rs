//! Recomputes all claims of an evolution from its file and its ledger alone.

use std::fmt;
use std::path::{Path, PathBuf};

use accountant::Bounds;
use plan::{CertifiedEvolution, MadeFrom};
use serde::Serialize;

use super::{Coverage, check_accountant, listing};
use crate::progress::DIGITS;
use crate::store::certificate::{EvolutionCertificate, KNOWN_NOISE};
use crate::store::ledger::{Charges, Entry, LedgerState, Parent, Randomness};
use crate::store::{covered, files, torn_round};
use crate::{RunError, plan_file};
use durable::sha256_hex;

/// The files that prove an evolution.
pub(super) const PROOF: [&str; 4] =
    [files::EVOLUTION, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN];

/// Verifies the folder of a finished evolution: its file, its ledger, its ε, its records and its certificate byte for byte.
///
/// # Errors
/// [`RunError::Verification`] with the first difference.
pub fn verify_evolution(folder: &Path) -> Result<EvolutionSummary, RunError> {
    let ledger = LedgerState::read(folder)?;
    let certificate = certificate(folder, &ledger)?;
    let mut coverage = Coverage::default();
    for file in ledger.files() {
        if covered::read(folder, ledger.files(), &file.name)?.is_some() {
            coverage.add(file.name.clone());
        }
    }
    let copies = files::proof_of_text(Path::new(files::RECORDS));
    for name in PROOF {
        coverage.add(name);
        let copy = copies.join(name);
        if folder.join(&copy).exists()
            && durable::read(&folder.join(&copy))? == durable::read(&folder.join(name))?
        {
            coverage.add(copy.to_string_lossy());
        }
    }
    Ok(EvolutionSummary::of(folder, &certificate, coverage.others(folder)?))
}

/// Returns whether an evolution is private, the upper bound on its ε, and δ; finished or not.
///
/// # Errors
/// [`RunError::Verification`] if a file is not as the evolution wrote it.
pub fn promise(folder: &Path) -> Result<(bool, f64, f64), RunError> {
    let ledger = LedgerState::read_stopped(folder)?.0;
    let certified = certified(folder, &ledger)?;
    let private = ledger.header().randomness == Randomness::OperatingSystem;
    Ok((private, certified.epsilon.upper, certified.delta.get()))
}

/// Verifies a finished evolution, and returns it as a stage that others may build on.
///
/// # Errors
/// As [`verify_evolution`].
pub(super) fn stage_of_finished(folder: &Path, ledger: &LedgerState) -> Result<Parent, RunError> {
    certificate(folder, ledger)?;
    Ok(stage(&certified(folder, ledger)?, ledger, ledger.charges()))
}

/// Returns an evolution that stopped as a stage, with its ledger. A torn last line is charged as the round that it may have announced.
///
/// # Errors
/// [`RunError::Verification`] if a file is not as the evolution wrote it.
pub(crate) fn stage_of_stopped(folder: &Path) -> Result<(Parent, LedgerState), RunError> {
    let (ledger, torn_bytes) = LedgerState::read_stopped(folder)?;
    let certified = certified(folder, &ledger)?;
    let mut charges = ledger.charges();
    if torn_bytes > 0 && torn_round(&ledger, &certified) {
        charges.add(&certified.round_event(), 1);
    }
    Ok((stage(&certified, &ledger, charges), ledger))
}

fn stage(certified: &CertifiedEvolution, ledger: &LedgerState, charges: Charges) -> Parent {
    let header = ledger.header();
    let is_known = header.randomness != Randomness::OperatingSystem;
    Parent {
        name: certified.file.name.clone(),
        id: Some(header.id.clone()),
        sha256: ledger.position().sha256,
        made_from: MadeFrom::PublicText,
        unit: certified.file.privacy.unit,
        relation: header.relation,
        not_private_because: is_known.then(|| KNOWN_NOISE.to_owned()).into_iter().collect(),
        charges,
        search: None,
    }
}

/// Returns the evolution of a folder, after comparing it with the ledger.
fn certified(folder: &Path, ledger: &LedgerState) -> Result<CertifiedEvolution, RunError> {
    let differs = |what: &str| Err(RunError::Verification(format!("{}: {what}", folder.display())));
    let header = ledger.header();
    if sha256_hex(&durable::read(&folder.join(files::EVOLUTION))?) != header.plan_file_sha256 {
        return differs("evolution.json is not the file that the evolution wrote");
    }
    check_accountant(&header.accountant_version, &header.accountant_method)?;
    let certified = plan_file::read_evolution(&folder.join(files::EVOLUTION))?.0;
    let file = &certified.file;
    if header.relation != file.privacy.relation || !header.protected || !ledger.parents().is_empty() {
        return differs("the header of its ledger is not that of an evolution of this file");
    }
    let candidates = (file.population / file.groups() * file.groups()) as usize;
    for entry in ledger.entries().iter().skip(1) {
        let fits = match entry {
            Entry::Votes { round, event } => *round < file.rounds && *event == certified.round_event(),
            Entry::VoteCounts { counts } => counts.len() == candidates,
            Entry::Resume { .. } => true,
            Entry::Completed { .. } => ledger.rounds().count() as u64 == file.rounds,
            _ => false,
        };
        if !fits {
            return differs("a line of its ledger is not one of this evolution");
        }
    }
    Ok(certified)
}

/// Verifies the file, the ledger and the certificate of a finished evolution.
fn certificate(folder: &Path, ledger: &LedgerState) -> Result<EvolutionCertificate, RunError> {
    let failed = |what: String| Err(RunError::Verification(what));
    if ledger.completed().is_none() {
        return failed(
            "the evolution is not finished; continue it with `trainer-native evolve --resume`".to_owned(),
        );
    }
    let certified = certified(folder, ledger)?;
    let certificate = EvolutionCertificate::derive(&certified, ledger)?;
    if certificate.epsilon.upper > certificate.epsilon_limit {
        return failed("the ledger spent more than the evolution's ε".to_owned());
    }
    for (name, text) in [
        (files::CERTIFICATE_JSON, certificate.to_json()?),
        (files::CERTIFICATE_MARKDOWN, certificate.to_markdown()),
    ] {
        if durable::read(&folder.join(name))? != text.as_bytes() {
            return failed(format!("{name} is not the file that the evolution wrote"));
        }
    }
    Ok(certificate)
}

/// The result of a finished evolution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvolutionSummary {
    /// The folder of the evolution.
    pub evolution: PathBuf,
    /// Whether the evolution is private.
    pub private: bool,
    /// Certified bounds on the ε of all rounds.
    pub epsilon: Bounds,
    /// Failure probability.
    pub delta: f64,
    /// The synthetic records.
    pub records: PathBuf,
    /// Files of the folder for which there is no digest.
    pub not_covered: Vec<String>,
}

impl EvolutionSummary {
    fn of(folder: &Path, certificate: &EvolutionCertificate, not_covered: Vec<String>) -> Self {
        Self {
            evolution: folder.to_owned(),
            private: certificate.private,
            epsilon: certificate.epsilon,
            delta: certificate.delta,
            records: folder.join(files::RECORDS),
            not_covered,
        }
    }
}

impl fmt::Display for EvolutionSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.private {
            writeln!(f, "NOT PRIVATE: this evolution has no privacy guarantee")?;
        }
        let upper = cli::rounded_up(self.epsilon.upper, DIGITS);
        writeln!(f, "{}: ε ≤ {upper} at δ = {} for all rounds", self.evolution.display(), self.delta)?;
        writeln!(f, "records: {}", self.records.display())?;
        write!(f, "certificate: {}", self.evolution.join(files::CERTIFICATE_MARKDOWN).display())?;
        write!(f, "{}", listing(&self.not_covered))
    }
}
