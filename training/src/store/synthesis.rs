//! The folder of synthetic records that no training made: its ledger, which charges each release before it is computed.

use std::path::{Path, PathBuf};

use accountant::{Bounds, Delta};
use plan::{CertifiedEvolution, CertifiedParaphrase, SyntheticPrivacy};

use super::certificate::Terms;
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

/// A way to make synthetic records of private ones without training, as its file describes it.
pub(crate) trait Synthesis {
    /// Returns what it is called.
    fn kind(&self) -> &'static Kind;
    /// Returns the name in the file.
    fn name(&self) -> &str;
    /// Returns the guarantee that the file asks for.
    fn privacy(&self) -> &SyntheticPrivacy;
    /// Returns the certified bounds on ε.
    fn epsilon(&self) -> Bounds;
    /// Returns the δ of the guarantee.
    fn delta(&self) -> Delta;
    /// Returns whether a line may stand in the whole ledger: neither its header, nor that of a process that resumed.
    fn admits(&self, entry: &Entry, ledger: &LedgerState) -> bool;
    /// Returns the line that an unfinished last line may have been, if what it announced is spent: a disk may report unfinished writes as
    /// done.
    fn announced(&self, ledger: &LedgerState) -> Option<Entry>;
    /// Returns what its certificate states.
    fn terms(&self, ledger: &LedgerState) -> Terms;
}

/// What a way to make synthetic records is called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its noun.
    pub noun: &'static str,
    /// The noun with its article.
    pub a_noun: &'static str,
    /// Its command.
    pub command: &'static str,
    /// Its file.
    pub file: &'static str,
}

static EVOLUTION: Kind =
    Kind { noun: "evolution", a_noun: "an evolution", command: "evolve", file: files::EVOLUTION };
static PARAPHRASE: Kind =
    Kind { noun: "paraphrase", a_noun: "a paraphrase", command: "paraphrase", file: files::PARAPHRASE };

/// Number of batches that one line of the ledger announces.
const BATCHES_AT_ONCE: u64 = 32;

impl Synthesis for CertifiedEvolution {
    fn kind(&self) -> &'static Kind {
        &EVOLUTION
    }

    fn name(&self) -> &str {
        &self.file.name
    }

    fn privacy(&self) -> &SyntheticPrivacy {
        &self.file.privacy
    }

    fn epsilon(&self) -> Bounds {
        self.epsilon
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn admits(&self, entry: &Entry, ledger: &LedgerState) -> bool {
        let file = &self.file;
        match entry {
            Entry::Votes { round, event } => *round < file.rounds && *event == self.round_event(),
            Entry::VoteCounts { counts } => {
                counts.len() as u64 == file.population / file.groups() * file.groups()
            }
            Entry::Completed { .. } => ledger.rounds().count() as u64 == file.rounds,
            _ => false,
        }
    }

    fn announced(&self, ledger: &LedgerState) -> Option<Entry> {
        let is_open = matches!(ledger.entries().last(), Some(Entry::Votes { .. }));
        let round = ledger.rounds().count() as u64;
        (!is_open && round < self.file.rounds).then(|| Entry::Votes { round, event: self.round_event() })
    }

    fn terms(&self, ledger: &LedgerState) -> Terms {
        Terms::of_evolution(self, ledger)
    }
}

impl Synthesis for CertifiedParaphrase {
    fn kind(&self) -> &'static Kind {
        &PARAPHRASE
    }

    fn name(&self) -> &str {
        &self.file.name
    }

    fn privacy(&self) -> &SyntheticPrivacy {
        &self.file.privacy
    }

    fn epsilon(&self) -> Bounds {
        self.epsilon
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn admits(&self, entry: &Entry, ledger: &LedgerState) -> bool {
        let file = &self.file;
        match entry {
            Entry::LabelHistogram { event } => self.labels_event().as_ref() == Some(event),
            Entry::LabelCounts { counts } => counts.len() == file.labels.len(),
            Entry::Texts { event } => *event == self.texts_event(),
            Entry::Batches { first, count } => {
                *count > 0 && first.checked_add(*count).is_some_and(|end| end <= file.records)
            }
            Entry::Completed { .. } => ledger.batches() == file.records,
            _ => false,
        }
    }

    fn announced(&self, ledger: &LedgerState) -> Option<Entry> {
        if let Some(event) = self.labels_event()
            && ledger.label_histogram().is_none()
        {
            return Some(Entry::LabelHistogram { event });
        }
        // The unfinished line holds the counts of labels.
        if matches!(ledger.entries().last(), Some(Entry::LabelHistogram { .. })) {
            return None;
        }
        if ledger.texts().is_none() {
            return Some(Entry::Texts { event: self.texts_event() });
        }
        next_batches(self, ledger)
    }

    fn terms(&self, ledger: &LedgerState) -> Terms {
        Terms::of_paraphrase(self, ledger)
    }
}

/// Returns the line that announces the next batches of a paraphrase; none after the last one.
pub(crate) fn next_batches(paraphrase: &CertifiedParaphrase, ledger: &LedgerState) -> Option<Entry> {
    let first = ledger.batches();
    let count = paraphrase.file.records.saturating_sub(first).min(BATCHES_AT_ONCE);
    (count > 0).then_some(Entry::Batches { first, count })
}

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
