//! The folder of an evolution: its ledger, which charges each round of votes before it is counted.

use std::path::{Path, PathBuf};

use plan::CertifiedEvolution;

use super::corpus::{self, Recorded};
use super::ledger::{
    Computation, Entry, FileDigest, Header, Ledger, LedgerPosition, LedgerState, NoiseDraw, PublicStage,
    Randomness,
};
use super::mirror::Mirror;
use super::open::id_of_run;
use super::{digest, files, settle};
use crate::RunError;
use crate::data::Units;
use durable::{FolderLock, sha256_hex};

/// The evolution that a folder is opened for.
pub(crate) struct OpenEvolution<'a> {
    pub folder: &'a Path,
    pub certified: &'a CertifiedEvolution,
    /// The evolution file, byte for byte.
    pub bytes: &'a [u8],
    /// The private records.
    pub units: &'a Units,
    /// The public texts that candidates come from, and those of the stages before.
    pub public_stages: Vec<PublicStage>,
    pub randomness: Randomness,
    pub device: plan::Device,
    pub resume: bool,
    /// The folder in which this computer records the positions of ledgers, if there is one.
    pub state: Option<&'a Path>,
}

/// A folder of an evolution that this process owns.
pub(crate) struct EvolutionStore {
    pub folder: PathBuf,
    ledger: Ledger,
    _lock: FolderLock,
}

impl EvolutionStore {
    /// Begins an evolution, or resumes it.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the folder holds something else, or another evolution was begun there.
    pub fn open(evolution: &OpenEvolution<'_>) -> Result<Self, RunError> {
        let folder = evolution.folder;
        let begun = folder.join(files::LEDGER).exists();
        if begun != evolution.resume {
            let what = if begun {
                "already holds a run; continue it with --resume, or choose another folder with --out"
            } else {
                "holds no evolution that could be resumed; leave out --resume to begin one"
            };
            return Err(RunError::Refused(format!("{} {what}", folder.display())));
        }
        if !begun {
            files::require_empty(folder, "evolution", &[files::EVOLUTION, files::CORPUS_DIGEST])?;
        }
        durable::create_folder(folder)?;
        let lock = FolderLock::take(folder)?;
        let ledger = if begun { evolution.resumed()? } else { evolution.begun()? };
        Ok(Self { folder: folder.to_owned(), ledger, _lock: lock })
    }

    pub fn ledger(&self) -> &LedgerState {
        self.ledger.state()
    }

    /// Charges the next round of votes. Its line is on the disk when this returns; only then may votes be counted.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be made durable.
    pub fn charge_round(&mut self, certified: &CertifiedEvolution) -> Result<(), RunError> {
        let round = self.ledger().rounds().count() as u64;
        self.ledger.append(Entry::Votes { round, event: certified.round_event() })
    }

    /// Records the released votes of the round that was charged last.
    pub fn record_counts(&mut self, counts: Vec<i64>) -> Result<(), RunError> {
        self.ledger.append(Entry::VoteCounts { counts })
    }

    /// Writes the records, and closes the ledger.
    ///
    /// # Errors
    /// [`RunError::Verification`] if another program changed the ledger.
    pub fn complete(&mut self, records: &[u8]) -> Result<(), RunError> {
        self.ledger.check_contents()?;
        durable::write_atomic(&self.folder.join(files::RECORDS), records)?;
        let files: Vec<FileDigest> = vec![digest(&self.folder, files::RECORDS)?];
        self.ledger.append(Entry::Completed { steps_done: 0, files, rounded: Vec::new() })
    }

    /// Removes what only a resumed evolution needs, and prepares the folder for publication.
    ///
    /// # Errors
    /// [`RunError::Storage`] if the digest of the text stays.
    pub fn finish(&self) -> Result<(), RunError> {
        let _ = std::fs::remove_file(self.folder.join(files::CANDIDATES));
        corpus::forget(&self.folder)?;
        settle(&self.folder);
        Ok(())
    }
}

impl OpenEvolution<'_> {
    fn begun(&self) -> Result<Ledger, RunError> {
        durable::write_atomic(&self.folder.join(files::EVOLUTION), self.bytes)?;
        let key = corpus::draw_key()?;
        let sha256 = sha256_hex(self.bytes);
        let header = Header {
            format: 1,
            id: id_of_run(self.randomness)?,
            plan_sha256: sha256.clone(),
            plan_file_sha256: sha256,
            accountant_version: accountant::VERSION.to_owned(),
            accountant_method: accountant::METHOD.to_owned(),
            relation: self.certified.file.privacy.relation,
            randomness: self.randomness,
            protected: true,
            public_data: false,
            canaries: None,
            computation: Computation {
                device: self.device,
                precision: plan::Precision::F32,
                arithmetic: None,
                noise: Some(NoiseDraw::ExactOnGrid),
                placement: None,
            },
            search: None,
            public_stages: self.public_stages.clone(),
        };
        let mut ledger = Ledger::create(self.folder, header, &[], |identity| {
            corpus::record(self.folder, key.clone(), self.units, identity)
        })?;
        ledger.mirror_to(Mirror::open(self.state, &key, &ledger.state().position(), |_| true)?);
        Ok(ledger)
    }

    fn resumed(&self) -> Result<Ledger, RunError> {
        let (mut ledger, torn_bytes) = Ledger::reopen(self.folder)?;
        let header = ledger.state().header();
        let refused = |how: &str| {
            Err(RunError::Refused(format!(
                "the evolution in {} began {how}; use the same again, or choose another folder with --out",
                self.folder.display()
            )))
        };
        if header.plan_file_sha256 != sha256_hex(self.bytes) {
            return refused("with another evolution file");
        }
        if header.randomness != self.randomness {
            return refused("with another --test-key, or without one");
        }
        if header.public_stages != self.public_stages {
            return refused("with other public texts or another run");
        }
        if ledger.state().completed().is_some() {
            return Ok(ledger);
        }
        let recorded = Recorded::read(self.folder)?;
        if recorded.ledger != ledger.identity() {
            return refused(
                "in another folder: this is a copy of its ledger, and the original may have gone on",
            );
        }
        recorded.check(self.units)?;
        let position = ledger.state().position();
        let state = ledger.state().clone();
        let continues = |noted: &LedgerPosition| {
            state.continues(noted) || (torn_bytes > 0 && noted.lines == position.lines + 1)
        };
        ledger.mirror_to(Mirror::open(self.state, &recorded.key, &position, continues)?);
        let due = torn_bytes > 0 && torn_round(&state, self.certified);
        let device = Some(self.device);
        let resumed = Entry::Resume { steps_done: 0, torn_bytes, copied: false, device, placement: None };
        ledger.append(resumed)?;
        if due {
            let round = state.rounds().count() as u64;
            ledger.append(Entry::Votes { round, event: self.certified.round_event() })?;
        }
        Ok(ledger)
    }
}

/// Returns whether an unfinished last line may have charged a round: a disk may report unfinished writes as done.
pub(crate) fn torn_round(ledger: &LedgerState, certified: &CertifiedEvolution) -> bool {
    let is_open = matches!(ledger.entries().last(), Some(Entry::Votes { .. }));
    !is_open && (ledger.rounds().count() as u64) < certified.file.rounds
}
