//! The entries of a ledger and their digests, in memory that grows with the number of different events and not of steps.

use std::borrow::Cow;

use super::entry::{self, Entry};

/// Entries in order. Steps that follow one another at the same event are kept once.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    groups: Vec<Group>,
    count: u64,
    /// The digest of each line whose index is a multiple of [`STRIDE`]. Those between follow from them and the entries.
    digests: Vec<String>,
    last_digest: Option<String>,
}

/// Distance of kept digests.
const STRIDE: u64 = 1024;

/// An entry, or steps from this one on that differ in their number alone.
#[derive(Clone, Debug)]
struct Group {
    /// Index of the first line.
    start: u64,
    first: Entry,
    count: u64,
}

impl Group {
    /// Returns the entry `place` lines after the first.
    fn at(&self, place: u64) -> Cow<'_, Entry> {
        if place == 0 {
            return Cow::Borrowed(&self.first);
        }
        let mut entry = self.first.clone();
        if let Entry::Step { step, .. } | Entry::UnprotectedStep { step, .. } = &mut entry {
            *step += place;
        }
        Cow::Owned(entry)
    }

    /// Returns whether the group goes on with an entry.
    fn goes_on_with(&self, entry: &Entry) -> bool {
        match (&self.first, entry) {
            (
                Entry::Step { step: first, attempt, event },
                Entry::Step { step, attempt: other, event: same },
            ) => step.checked_sub(*first) == Some(self.count) && attempt == other && event == same,
            (
                Entry::UnprotectedStep { step: first, attempt },
                Entry::UnprotectedStep { step, attempt: other },
            ) => step.checked_sub(*first) == Some(self.count) && attempt == other,
            _ => false,
        }
    }
}

impl Lines {
    /// Returns the number of entries.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the digest of the last line, or what the first line names in its place.
    pub fn last_digest(&self) -> &str {
        self.last_digest.as_deref().unwrap_or(entry::NO_PREVIOUS)
    }

    /// Returns each entry, or the first of steps at the same event, with the number of lines.
    pub fn groups(&self) -> impl DoubleEndedIterator<Item = (&Entry, u64)> {
        self.groups.iter().map(|group| (&group.first, group.count))
    }

    /// Returns the entries from this index on.
    pub fn from(&self, index: u64) -> impl Iterator<Item = Cow<'_, Entry>> {
        let place = self.groups.partition_point(|group| group.start + group.count <= index);
        self.groups[place..].iter().flat_map(move |group| {
            (index.saturating_sub(group.start)..group.count).map(|place| group.at(place))
        })
    }

    /// Returns the step after the last line, at the same event, if that line is a step.
    pub fn next_step(&self) -> Option<Entry> {
        let group = self.groups.last()?;
        let is_step = matches!(group.first, Entry::Step { .. } | Entry::UnprotectedStep { .. });
        is_step.then(|| group.at(group.count).into_owned())
    }

    /// Adds an entry, whose line has this digest.
    pub fn push(&mut self, entry: Entry, digest: String) {
        match self.groups.last_mut() {
            Some(group) if group.goes_on_with(&entry) => group.count += 1,
            _ => self.groups.push(Group { start: self.count, first: entry, count: 1 }),
        }
        if self.count.is_multiple_of(STRIDE) {
            self.digests.push(digest.clone());
        }
        self.last_digest = Some(digest);
        self.count += 1;
    }

    /// Returns the digest of the line with this index.
    pub fn digest(&self, index: u64) -> Option<String> {
        if index >= self.count {
            return None;
        }
        let kept = index / STRIDE;
        let mut digest = self.digests.get(usize::try_from(kept).ok()?)?.clone();
        for (sequence, entry) in (kept * STRIDE + 1..=index).zip(self.from(kept * STRIDE + 1)) {
            digest = entry::encode(sequence, &digest, &entry).ok()?.1;
        }
        Some(digest)
    }
}
