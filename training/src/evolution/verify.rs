//! Recomputes all claims of an evolution from its file and its ledger alone.

use std::path::Path;

use plan::{CertifiedEvolution, MadeFrom};

use super::certificate::{EvolutionCertificate, EvolutionSummary, charged};
use super::input::EvolutionInput;
use crate::RunError;
use crate::store::certificate::KNOWN_NOISE;
use crate::store::ledger::{Charges, Entry, LedgerState, Parent, Randomness};
use crate::store::{covered, files, torn_round};
use crate::verify::{Coverage, Proof, check_accountant};
use durable::sha256_hex;

/// The files that prove an evolution.
const PROOF: [&str; 4] =
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

/// Verifies a finished evolution, and returns what it proves about itself.
///
/// # Errors
/// As [`verify_evolution`].
pub(crate) fn proof(folder: &Path, ledger: LedgerState) -> Result<Proof, RunError> {
    certificate(folder, &ledger)?;
    let certified = certified(folder, &ledger)?;
    let charges = ledger.charges();
    let proof = Proof::of_votes(stage(&certified, &ledger, charges), ledger);
    proof.with_files(folder, &PROOF)
}

/// Returns what an evolution that stopped proves about itself. A torn last line is charged as the round that it may have announced.
///
/// # Errors
/// [`RunError::Verification`] if a file is not as the evolution wrote it.
pub(crate) fn proof_of_stopped(folder: &Path) -> Result<Proof, RunError> {
    let (ledger, torn_bytes) = LedgerState::read_stopped(folder)?;
    let certified = certified(folder, &ledger)?;
    let mut charges = ledger.charges();
    if torn_bytes > 0 && torn_round(&ledger, &certified) {
        charges.add(&certified.round_event(), 1);
    }
    Ok(Proof::of_votes(stage(&certified, &ledger, charges), ledger))
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
    let certified = EvolutionInput::read(&folder.join(files::EVOLUTION))?.certified;
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
    let spent = accountant::epsilon(&charged(ledger), certified.delta, certified.file.privacy.relation);
    if !spent.is_ok_and(|spent| spent.upper <= certified.file.privacy.epsilon) {
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
