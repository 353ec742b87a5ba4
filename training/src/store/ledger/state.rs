//! The entries of a ledger, each checked against the previous ones, and their sums.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Component, Path};

use accountant::DpEvent;

use super::charges::Charges;
use super::entry::{self, Entry, FileDigest, Header, RoundedModel};
use super::lines::Lines;
use super::parent::Parent;
use crate::RunError;
use crate::ranks::Placement;
use crate::store::files;

/// A position in a ledger. A checkpoint names the position at which it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerPosition {
    /// Number of lines.
    pub lines: u64,
    /// Digest of the last line.
    pub sha256: String,
}

/// The entries of a ledger, each a valid successor of the previous ones.
#[derive(Clone, Debug)]
pub struct LedgerState {
    lines: Lines,
    /// Number of logical steps reserved.
    steps: u64,
    /// Number of attempts of each step that has several.
    repeated: HashMap<u64, u64>,
    /// Number of attempts of all steps.
    reservations: u64,
    parents: Vec<Parent>,
    /// The index in `parents` of each stage, by its digest.
    parent_places: HashMap<String, usize>,
}

impl LedgerState {
    /// Returns a state without entries. Only this module sees a ledger without its header.
    pub(super) fn empty() -> Self {
        Self {
            lines: Lines::default(),
            steps: 0,
            repeated: HashMap::new(),
            reservations: 0,
            parents: Vec::new(),
            parent_places: HashMap::new(),
        }
    }

    /// Reads the ledger of a run folder, accepting no torn line.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be read, [`RunError::Verification`] if any byte is not as it was written.
    pub fn read(folder: &Path) -> Result<Self, RunError> {
        let (state, torn) = Self::read_stopped(folder)?;
        if torn == 0 {
            Ok(state)
        } else {
            Err(RunError::Verification(format!(
                "{} ends in an unfinished line of {torn} bytes, as a crash leaves it; continue the run with --resume",
                files::LEDGER
            )))
        }
    }

    /// Reads the ledger of a run that may have stopped at any point, and counts the bytes of a torn last line.
    ///
    /// # Errors
    /// As [`LedgerState::read`], but for the torn line.
    pub(crate) fn read_stopped(folder: &Path) -> Result<(Self, u64), RunError> {
        Self::read_tolerating_torn_end(&folder.join(files::LEDGER))
    }

    /// Reads a file as [`Self::parse_tolerating_torn_end`] does.
    pub(super) fn read_tolerating_torn_end(path: &Path) -> Result<(Self, u64), RunError> {
        let file = BufReader::with_capacity(1 << 16, durable::open(path)?);
        Self::parse_tolerating_torn_end(file, path)
    }

    /// Reads the whole lines and counts the bytes after the last line end. `path` is for messages.
    pub(super) fn parse_tolerating_torn_end(
        mut lines: impl BufRead,
        path: &Path,
    ) -> Result<(Self, u64), RunError> {
        let (mut state, mut torn, mut line) = (Self::empty(), 0, Vec::new());
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line);
            if read.map_err(|error| RunError::storage("read", path, &error))? == 0 {
                break;
            }
            match line.strip_suffix(b"\n") {
                None => torn = line.len() as u64,
                Some(line) => state.read_line(line)?,
            }
        }
        if state.lines.count() == 0 {
            return Err(RunError::Verification(format!(
                "{} has no header line; this folder holds no run",
                files::LEDGER
            )));
        }
        Ok((state, torn))
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), RunError> {
        let sequence = self.lines.count();
        let malformed = |reason: &str| {
            RunError::Verification(format!(
                "line {} of {} was altered: {reason}",
                sequence + 1,
                files::LEDGER
            ))
        };
        let previous = self.lines.last_digest();
        // Nearly every line is the step after the one before. What such a line must be is known without parsing it.
        let expected = self.lines.next_step().and_then(|step| {
            let (expected, digest) = entry::encode(sequence, previous, &step).ok()?;
            (expected.as_bytes() == line).then_some((step, digest))
        });
        let (entry, digest) = match expected {
            Some(step) => step,
            None => entry::decode(line, sequence, previous).map_err(malformed)?,
        };
        self.check_follows(&entry).map_err(malformed)?;
        self.push(entry, digest);
        Ok(())
    }

    /// Returns the line for `entry`, with its line end, and its digest.
    pub(super) fn line_after(&self, entry: &Entry) -> Result<(String, String), RunError> {
        self.check_follows(entry)
            .map_err(|reason| RunError::Failed(format!("the ledger refuses an entry: {reason}")))?;
        let (mut line, digest) = entry::encode(self.lines.count(), self.lines.last_digest(), entry)
            .map_err(|error| RunError::Failed(error.to_string()))?;
        line.push('\n');
        Ok((line, digest))
    }

    /// Adds `entry` and returns its line.
    pub(super) fn extend(&mut self, entry: Entry) -> Result<String, RunError> {
        let (line, digest) = self.line_after(&entry)?;
        self.push(entry, digest);
        Ok(line)
    }

    /// Adds an entry that follows, whose line has this digest.
    pub(super) fn push(&mut self, entry: Entry, digest: String) {
        if let Entry::Step { step, attempt, .. } | Entry::UnprotectedStep { step, attempt } = &entry {
            self.steps = self.steps.max(step + 1);
            self.reservations += 1;
            if *attempt > 1 {
                self.repeated.insert(*step, *attempt);
            }
        }
        if let Entry::Parent(parent) = &entry {
            self.parent_places.insert(parent.sha256.clone(), self.parents.len());
            self.parents.push(parent.clone());
        }
        self.lines.push(entry, digest);
    }

    /// Checks the grammar: a header first, at most one release, no skipped step, nothing after
    /// completion.
    fn check_follows(&self, entry: &Entry) -> Result<(), &'static str> {
        let first = self.lines.count() == 0;
        match entry {
            Entry::Header(_) if first => Ok(()),
            Entry::Header(_) => Err("a second header"),
            _ if first => Err("the first line is not a header"),
            _ if self.completed().is_some() => Err("a line after completion"),
            Entry::Parent(parent) if self.parent(&parent.sha256).is_some() => {
                Err("a stage that is named twice")
            }
            Entry::Parent(_) if self.lines.count() == self.parents.len() as u64 + 1 => Ok(()),
            Entry::Parent(_) => Err("an earlier stage after the run began"),
            Entry::Release { .. } if self.release().is_some() => Err("a second vocabulary release"),
            Entry::Release { .. } if self.steps > 0 => Err("a vocabulary release after training began"),
            Entry::Step { step, attempt, .. } if self.header().protected => self.check_step(*step, *attempt),
            Entry::UnprotectedStep { step, attempt } if !self.header().protected => {
                self.check_step(*step, *attempt)
            }
            Entry::Step { .. } | Entry::UnprotectedStep { .. } => {
                Err("a step of another kind than the header states")
            }
            Entry::Completed { files, .. } if !files.iter().all(is_below) => {
                Err("a file outside of the run's folder")
            }
            Entry::Resume { steps_done, .. } | Entry::Completed { steps_done, .. } => {
                if *steps_done <= self.steps_reserved() {
                    Ok(())
                } else {
                    Err("more steps done than reserved")
                }
            }
            Entry::Tokenizer { .. } if self.tokenizer().is_some() => Err("a second tokenizer"),
            Entry::InitialWeights { .. } if self.initial_weights().is_some() => {
                Err("a second set of initial weights")
            }
            Entry::InitialWeights { .. } if self.steps > 0 => Err("initial weights after training began"),
            Entry::LabelHistogram { .. } if self.label_histogram().is_some() => {
                Err("a second label histogram")
            }
            Entry::LabelCounts { .. } if self.label_counts().is_some() => Err("a second set of label counts"),
            Entry::LabelHistogram { .. } | Entry::LabelCounts { .. } if self.steps > 0 => {
                Err("a label histogram after training began")
            }
            Entry::LabelCounts { .. } if self.label_histogram().is_none() && !self.header().public_data => {
                Err("label counts that were not charged")
            }
            Entry::Votes { round, .. } => self.check_round(*round),
            Entry::VoteCounts { .. } => self.check_counts(),
            Entry::Texts { .. } | Entry::Batches { .. } => self.check_texts(entry),
            Entry::Release { .. }
            | Entry::Tokenizer { .. }
            | Entry::LabelHistogram { .. }
            | Entry::LabelCounts { .. }
            | Entry::InitialWeights { .. } => Ok(()),
        }
    }

    fn check_round(&self, round: u64) -> Result<(), &'static str> {
        let is_next = round == self.rounds().count() as u64;
        if is_next { Ok(()) } else { Err("a round of votes was skipped or repeated") }
    }

    fn check_counts(&self) -> Result<(), &'static str> {
        let is_charged = matches!(self.last(), Some(Entry::Votes { .. }));
        if is_charged { Ok(()) } else { Err("votes that the line before does not charge") }
    }

    fn check_texts(&self, entry: &Entry) -> Result<(), &'static str> {
        match entry {
            Entry::Batches { first, .. } if self.texts().is_some() && *first == self.batches() => Ok(()),
            Entry::Batches { .. } => Err("a batch that was not charged, or was skipped or repeated"),
            _ if self.texts().is_some() => Err("a second charge of texts"),
            _ => Ok(()),
        }
    }

    fn check_step(&self, step: u64, attempt: u64) -> Result<(), &'static str> {
        if step > self.steps_reserved() {
            Err("a step was skipped")
        } else if attempt != self.attempts_of(step) + 1 {
            Err("an attempt of a step was skipped or repeated")
        } else {
            Ok(())
        }
    }

    /// Returns the header. Every ledger that was read or created has one.
    #[must_use]
    pub fn header(&self) -> &Header {
        match self.groups().next() {
            Some(Entry::Header(header)) => header,
            // `parse` and `create` put the header first; `check_follows` admits nothing before it.
            _ => unreachable!("a ledger begins with its header"),
        }
    }

    /// Returns the entries in order.
    pub fn entries(&self) -> impl Iterator<Item = Cow<'_, Entry>> {
        self.lines.from(0)
    }

    /// Returns the entries in order, of steps at the same event the first.
    fn groups(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.lines.groups().map(|(entry, _)| entry)
    }

    /// Returns the last entry or, of steps at the same event, the first of them.
    pub(crate) fn last(&self) -> Option<&Entry> {
        self.groups().next_back()
    }

    /// Returns the stages that the run builds on.
    #[must_use]
    pub fn parents(&self) -> &[Parent] {
        &self.parents
    }

    /// Returns the stage with this digest, if the run builds on it.
    #[must_use]
    pub fn parent(&self, sha256: &str) -> Option<&Parent> {
        self.parent_places.get(sha256).and_then(|place| self.parents.get(*place))
    }

    /// Returns the event of the vocabulary's release, if one was reserved.
    #[must_use]
    pub fn release(&self) -> Option<&DpEvent> {
        self.groups().find_map(|entry| match entry {
            Entry::Release { event } => Some(event),
            _ => None,
        })
    }

    /// Returns the SHA-256 of the saved tokenizer, if one was saved.
    #[must_use]
    pub fn tokenizer(&self) -> Option<&str> {
        self.groups().find_map(|entry| match entry {
            Entry::Tokenizer { sha256 } => Some(sha256.as_str()),
            _ => None,
        })
    }

    /// Returns the event of the release of label counts, if one was reserved.
    #[must_use]
    pub fn label_histogram(&self) -> Option<&DpEvent> {
        self.groups().find_map(|entry| match entry {
            Entry::LabelHistogram { event } => Some(event),
            _ => None,
        })
    }

    /// Returns the released counts of labels, once there are any.
    #[must_use]
    pub fn label_counts(&self) -> Option<&[i64]> {
        self.groups().find_map(|entry| match entry {
            Entry::LabelCounts { counts } => Some(counts.as_slice()),
            _ => None,
        })
    }

    /// Returns, for each charged round of votes, the released counts; `None` if they are lost.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = Option<&[i64]>> {
        let after = self.groups().skip(1).map(Some).chain([None]);
        self.groups().zip(after).filter_map(|(entry, next)| match (entry, next) {
            (Entry::Votes { .. }, Some(Entry::VoteCounts { counts })) => Some(Some(counts.as_slice())),
            (Entry::Votes { .. }, _) => Some(None),
            _ => None,
        })
    }

    /// Returns the event of the texts of a paraphrase, if they were charged.
    pub(crate) fn texts(&self) -> Option<&DpEvent> {
        self.groups().find_map(|entry| match entry {
            Entry::Texts { event } => Some(event),
            _ => None,
        })
    }

    /// Returns the number of batches from which texts were drawn, or may have been.
    pub(crate) fn batches(&self) -> u64 {
        let last = self.groups().rev().find_map(|entry| match entry {
            Entry::Batches { first, count } => Some(first.saturating_add(*count)),
            _ => None,
        });
        last.unwrap_or(0)
    }

    /// Returns the SHA-256 of the public checkpoint that training began from, if any.
    #[must_use]
    pub fn initial_weights(&self) -> Option<&str> {
        self.groups().find_map(|entry| match entry {
            Entry::InitialWeights { sha256 } => Some(sha256.as_str()),
            _ => None,
        })
    }

    /// Returns the number of logical steps that were reserved at least once: 0, 1, … without a gap.
    #[must_use]
    pub fn steps_reserved(&self) -> u64 {
        self.steps
    }

    /// Returns the number of times that a logical step was reserved.
    #[must_use]
    pub(crate) fn attempts_of(&self, step: u64) -> u64 {
        if step >= self.steps { 0 } else { self.repeated.get(&step).copied().unwrap_or(1) }
    }

    /// Returns the number of reservations of steps, including those that crashes burned.
    #[must_use]
    pub fn reservations(&self) -> u64 {
        self.reservations
    }

    /// Returns the devices that computed steps, in the order of their first use.
    #[must_use]
    pub fn devices(&self) -> Vec<plan::Device> {
        let mut devices = Vec::new();
        for entry in self.groups() {
            let device = match entry {
                Entry::Header(header) => Some(header.computation.device),
                Entry::Resume { device, .. } => *device,
                _ => None,
            };
            devices.extend(device.filter(|device| !devices.contains(device)));
        }
        devices
    }

    /// Returns the arithmetic in which clipped gradients were summed: exact if every process summed so. Other devices than the CPU
    /// never do.
    pub(crate) fn arithmetic(&self) -> Option<plan::Arithmetic> {
        let of_header = self.header().computation.arithmetic?;
        let is_cpu = self.devices() == [plan::Device::Cpu];
        Some(if is_cpu { of_header } else { plan::Arithmetic::Fast })
    }

    /// Returns the ranks of the processes that computed steps, in order and without repetition;
    /// `None` stands for a single process. Empty if no process had several ranks.
    #[must_use]
    pub(crate) fn placements(&self) -> Vec<Option<Placement>> {
        let mut placements = Vec::new();
        for entry in self.groups() {
            let placement = match entry {
                Entry::Header(header) => header.computation.placement,
                Entry::Resume { placement, .. } => *placement,
                _ => continue,
            };
            if !placements.contains(&placement) {
                placements.push(placement);
            }
        }
        if placements == [None] { Vec::new() } else { placements }
    }

    /// Returns the number of times that a process resumed the run.
    #[must_use]
    pub fn resumes(&self) -> u64 {
        self.groups().filter(|entry| matches!(entry, Entry::Resume { .. })).count() as u64
    }

    /// Returns the number of times that a process resumed a copy of the ledger.
    #[must_use]
    pub fn copies(&self) -> u64 {
        let copied = |entry: &&Entry| matches!(entry, Entry::Resume { copied: true, .. });
        self.groups().filter(copied).count() as u64
    }

    /// Returns the number of steps done and the files written, if the run is complete.
    #[must_use]
    pub fn completed(&self) -> Option<(u64, &[FileDigest])> {
        match self.last() {
            Some(Entry::Completed { steps_done, files, .. }) => Some((*steps_done, files)),
            _ => None,
        }
    }

    /// Returns the files that the finished run wrote; none for an unfinished run.
    #[must_use]
    pub fn files(&self) -> &[FileDigest] {
        self.completed().map_or(&[], |(_, files)| files)
    }

    /// Returns the finished model in formats of 16 bits; none for an unfinished run.
    #[must_use]
    pub fn rounded(&self) -> &[RoundedModel] {
        match self.last() {
            Some(Entry::Completed { rounded, .. }) => rounded,
            _ => &[],
        }
    }

    /// Returns the charges of the run itself, in the order of first use. They exclude a baseline's
    /// steps and the empty events of steps whose pass is already charged.
    #[must_use]
    pub fn charges(&self) -> Charges {
        let mut charges = Charges::default();
        for (entry, count) in self.lines.groups() {
            if let Some(event) = entry.charge()
                && *event != (DpEvent::Composed { events: Vec::new() })
            {
                charges.add(event, count);
            }
        }
        charges
    }

    /// Returns the position of the last line.
    #[must_use]
    pub fn position(&self) -> LedgerPosition {
        LedgerPosition { lines: self.lines.count(), sha256: self.lines.last_digest().to_owned() }
    }

    /// Returns whether `position` belongs to this ledger or to an earlier state of it.
    #[must_use]
    pub fn continues(&self, position: &LedgerPosition) -> bool {
        let last = position.lines.checked_sub(1).and_then(|last| self.lines.digest(last));
        last.is_some_and(|digest| digest == position.sha256)
    }
}

/// Returns whether a file is below the folder of its run.
fn is_below(file: &FileDigest) -> bool {
    Path::new(&file.name).components().all(|part| matches!(part, Component::Normal(_)))
        && !file.name.is_empty()
}
