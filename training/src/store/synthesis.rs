//! The folder of synthetic records that no training made: its ledger, which charges each release before it is computed.

use std::path::{Path, PathBuf};

use super::certified::Synthesis;
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

/// What a folder is opened for.
pub(crate) struct OpenSynthesis<'a> {
    pub folder: &'a Path,
    pub certified: &'a dyn Synthesis,
    /// The file, byte for byte.
    pub bytes: &'a [u8],
    /// The private records.
    pub units: &'a Units,
    /// The public texts behind what writes or embeds, as far as they are known.
    pub public_stages: Vec<PublicStage>,
    pub randomness: Randomness,
    pub device: plan::Device,
    pub resume: bool,
    /// The folder in which this computer records the positions of ledgers, if there is one.
    pub state: Option<&'a Path>,
}

/// A folder that this process owns.
pub(crate) struct SynthesisStore {
    pub folder: PathBuf,
    ledger: Ledger,
    _lock: FolderLock,
}

impl SynthesisStore {
    /// Begins, or resumes.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the folder holds something else, or was begun with another file.
    pub fn open(opened: &OpenSynthesis<'_>) -> Result<Self, RunError> {
        let (folder, kind) = (opened.folder, opened.certified.kind());
        let begun = folder.join(files::LEDGER).exists();
        if begun != opened.resume {
            let what = if begun {
                "already holds a run; continue it with --resume, or choose another folder with --out"
                    .to_owned()
            } else {
                format!("holds no {} that could be resumed; leave out --resume to begin one", kind.noun)
            };
            return Err(RunError::Refused(format!("{} {what}", folder.display())));
        }
        if !begun {
            files::require_empty(folder, kind.noun, &[kind.file, files::CORPUS_DIGEST, files::TEXTS])?;
        }
        durable::create_folder(folder)?;
        let lock = FolderLock::take(folder)?;
        let ledger = if begun { opened.resumed()? } else { opened.begun()? };
        Ok(Self { folder: folder.to_owned(), ledger, _lock: lock })
    }

    pub fn ledger(&self) -> &LedgerState {
        self.ledger.state()
    }

    /// Appends a line. It is on the disk when this returns; only then may what it announces be computed.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be made durable.
    pub fn append(&mut self, entry: Entry) -> Result<(), RunError> {
        self.ledger.append(entry)
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

    /// Removes what only a process that resumes needs, and prepares the folder for publication.
    ///
    /// # Errors
    /// [`RunError::Storage`] if the digest of the text or the key of the batches stays.
    pub fn finish(&self) -> Result<(), RunError> {
        let _ = std::fs::remove_file(self.folder.join(files::CANDIDATES));
        corpus::forget(&self.folder)?;
        let texts = self.folder.join(files::TEXTS);
        if texts.exists() {
            std::fs::remove_file(&texts).map_err(|error| RunError::storage("remove", &texts, &error))?;
        }
        settle(&self.folder);
        Ok(())
    }
}

impl OpenSynthesis<'_> {
    fn begun(&self) -> Result<Ledger, RunError> {
        durable::write_atomic(&self.folder.join(self.certified.kind().file), self.bytes)?;
        let key = corpus::draw_key()?;
        let sha256 = sha256_hex(self.bytes);
        let header = Header {
            format: 1,
            id: id_of_run(self.randomness)?,
            plan_sha256: sha256.clone(),
            plan_file_sha256: sha256,
            accountant_version: accountant::VERSION.to_owned(),
            accountant_method: accountant::METHOD.to_owned(),
            relation: self.certified.privacy().relation,
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
        let noun = self.certified.kind().noun;
        let refused = |how: &str| {
            Err(RunError::Refused(format!(
                "the {noun} in {} began {how}; use the same again, or choose another folder with --out",
                self.folder.display()
            )))
        };
        if header.plan_file_sha256 != sha256_hex(self.bytes) {
            return refused(&format!("with another {noun} file"));
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
        let due = self.certified.announced(&state).filter(|_| torn_bytes > 0);
        let device = Some(self.device);
        let resumed = Entry::Resume { steps_done: 0, torn_bytes, copied: false, device, placement: None };
        ledger.append(resumed)?;
        due.map_or(Ok(()), |entry| ledger.append(entry))?;
        Ok(ledger)
    }
}
