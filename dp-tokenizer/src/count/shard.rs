//! Counts parts of a corpus in separate processes. Each writes a file, and these files together are the corpus.
//!
//! All numbers are little endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `DPTOKRUN` |
//! | | the distinct items: those of at most 15 bytes in 16 bytes each, then longer ones with their length in 2 bytes |
//! | | the units in 64 lists by the hash of the user, each with its name, its items and their counts; without users one list of units in the order of the text |
//! | | the header as JSON |
//! | 8 | its length |
//! | 32 | SHA-256 of everything before |
//!
//! The file is as private as the text: only its owner can read it. It gets its name only when it is complete.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mechanisms::Words;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::CountOptions;
use super::group::{group, push_owner};
use super::merge::{Merged, merge};
use super::parallel::{Collected, collect_blocks};
use super::run::{Names, PARTS, Run, list_of, owner_hash, push_item};
use super::spill::{SpillBuffer, SpillFile, push_number};
use super::units::{UnitItems, half_of, room};
use crate::corpus::{Blocks, Source};
use crate::identity::Sketch;
use crate::unit::{PrivacyUnit, UnitError};
use durable::ExclusiveFile;

pub(super) const MAGIC: &[u8; 8] = b"DPTOKRUN";
pub(super) const VERSION: u32 = 2;
/// The most hashes of each kind in the sketch of a part.
const SKETCH: usize = 1 << 12;
pub(super) const DIGEST_BYTES: u64 = 32;

/// One of several parts of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    pub(super) index: u32,
    pub(super) of: u32,
}

/// The error for a text that names no part of a corpus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowed: K/N, part K of N, with K from 1 to N and N at most {most}", most = Shard::MAX_COUNT)]
pub struct UnknownShard;

impl Shard {
    pub(super) const MAX_COUNT: u32 = 1_000_000;
}

impl FromStr for Shard {
    type Err = UnknownShard;

    /// Parses `K/N`.
    ///
    /// ```
    /// use dp_tokenizer::count::Shard;
    /// assert_eq!("3/8".parse::<Shard>()?.to_string(), "3/8");
    /// assert!("9/8".parse::<Shard>().is_err() && "0/8".parse::<Shard>().is_err());
    /// # Ok::<(), dp_tokenizer::count::UnknownShard>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, UnknownShard> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with('+'));
        let (index, of) = text.split_once('/').ok_or(UnknownShard)?;
        match (number(index), number(of)) {
            (Some(index), Some(of)) if 1 <= index && index <= of && of <= Self::MAX_COUNT => {
                Ok(Self { index, of })
            }
            _ => Err(UnknownShard),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// The options that all parts of a corpus have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardOptions {
    /// The unit of the release.
    pub unit: PrivacyUnit,
    /// The definition of a word.
    pub words: Words,
    /// A name of the corpus, which tells its parts from those of another one.
    pub corpus: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) shard: u32,
    pub(super) shards: u32,
    pub(super) unit: String,
    pub(super) words: Words,
    pub(super) corpus: Option<String>,
    /// The number of units: private, as is all of the file.
    pub(super) units: u64,
    pub(super) short_items: u64,
    pub(super) long_items: u64,
    /// The lengths in bytes of the items and of each list.
    pub(super) items_bytes: u64,
    pub(super) lists_bytes: Vec<u64>,
    /// The SHA-256 of the items and the lists.
    pub(super) contents_sha256: String,
    /// A sketch of the text: its records and its runs of words; absent if the text can be read only once.
    pub(super) sketch: Option<Sketch>,
}

/// Counts the items of each unit of a part of a corpus and writes them to `path`, for [`UnitItems::from_shards`].
///
/// A user may have text in several parts. Without users, the parts are those of the corpus in order. A part may be empty.
///
/// # Errors
/// As [`UnitItems::read`]; [`UnitError::Run`] where the file cannot be written. Then there is no file.
pub fn count_shard(
    source: &Source,
    shard: Shard,
    common: &ShardOptions,
    options: &CountOptions,
    path: &Path,
) -> Result<(), UnitError> {
    if let Source::Files(files) = source
        && shard.of > 1
    {
        crate::corpus::check_comparable(files)?;
    }
    let spill = SpillFile::new(options.spill_folder.clone());
    let blocks = Blocks::open(source)?;
    let collected = collect_blocks(blocks, Some(common.unit), common.words, options, &spill)?;
    let sketch = crate::corpus::public_sketch(source, SKETCH)?;
    let mut out = Writer::create(path)?;
    let written = write_units(collected, common.unit, spill, room(options), &mut |bytes| out.put(bytes))?;
    let Sizes { units, short_items, long_items, items_bytes, lists_bytes } = written;
    let header = Header {
        version: VERSION,
        shard: shard.index,
        shards: shard.of,
        unit: common.unit.to_string(),
        words: common.words,
        corpus: common.corpus.clone(),
        units,
        short_items,
        long_items,
        items_bytes,
        lists_bytes,
        contents_sha256: durable::hex(&out.digest.clone().finalize()),
        sketch,
    };
    out.finish(&header)
}

/// The sizes of the data that [`write_units`] wrote. They are as private as the text.
#[derive(Serialize, Deserialize)]
pub(super) struct Sizes {
    pub(super) units: u64,
    pub(super) short_items: u64,
    pub(super) long_items: u64,
    pub(super) items_bytes: u64,
    pub(super) lists_bytes: Vec<u64>,
}

impl Sizes {
    fn items(names: &Names, lists: usize) -> Self {
        let (short_items, long_items, items_bytes) = (names.short, names.long, names.bytes.length());
        Self { units: 0, short_items, long_items, items_bytes, lists_bytes: vec![0; lists] }
    }

    /// Returns the data as those of a run, which is this part of the corpus.
    pub(super) fn run(&self, data: SpillBuffer, part: usize, unit: PrivacyUnit) -> Result<Run, UnitError> {
        let lengths = [self.items_bytes].into_iter().chain(self.lists_bytes.iter().copied());
        let mut parts = data.divide(lengths)?.into_iter();
        let bytes = parts.next().unwrap_or_default();
        let names = Names { bytes, short: self.short_items, long: self.long_items };
        let in_block = |list: SpillBuffer| {
            // Without users, the list is a single block of units.
            let mut before = Vec::new();
            push_number(&mut before, (part as u64) << 1 | 1);
            if unit == PrivacyUnit::User { list } else { list.after(before) }
        };
        Ok(Run { lists: parts.map(in_block).collect(), names, order: None })
    }
}

/// Takes bytes, one piece after the other.
type Put<'a> = dyn FnMut(&[u8]) -> Result<(), UnitError> + 'a;

/// Passes the items and the units to `put`, with users by their hash, and other units in the order of the text.
pub(super) fn write_units(
    collected: Collected,
    unit: PrivacyUnit,
    spill: SpillFile,
    room: u64,
    put: &mut Put<'_>,
) -> Result<Sizes, UnitError> {
    match unit {
        PrivacyUnit::User => write_owners(collected, &spill, room, put),
        _ => write_in_order(collected, spill, room, put),
    }
}

/// Brings the parts of each user together and passes the users to `put` by their hash.
fn write_owners(
    collected: Collected,
    spill: &SpillFile,
    room: u64,
    put: &mut Put<'_>,
) -> Result<Sizes, UnitError> {
    let runs: Vec<Run> = collected.runs.into_iter().flatten().collect();
    let Merged { names, numbers } = merge(&runs.iter().collect::<Vec<_>>(), spill, half_of(room))?;
    names.bytes.reader(spill, usize::MAX).each_piece(&mut *put)?;
    let mut written = Sizes::items(&names, PARTS);
    let mut entry = Vec::new();
    group(runs, &numbers, owner_hash, spill, room / 2, &mut |name, held| {
        entry.clear();
        push_owner(&mut entry, name, held);
        written.units += 1;
        written.lists_bytes[list_of(name, PARTS)] += entry.len() as u64;
        put(&entry)
    })?;
    Ok(written)
}

/// Passes the units to `put` in the order of the text.
fn write_in_order(
    collected: Collected,
    spill: SpillFile,
    room: u64,
    put: &mut Put<'_>,
) -> Result<Sizes, UnitError> {
    let items = UnitItems::of_gathered(collected, false, owner_hash, spill, room)?;
    items.names.bytes.reader(&items.spill, usize::MAX).each_piece(&mut *put)?;
    let mut written = Sizes::items(&items.names, 1);
    let (mut entry, mut outcome) = (Vec::new(), Ok(()));
    items.each_unit(|_, held| {
        entry.clear();
        push_number(&mut entry, (held.len() as u64) << 1);
        held.iter().for_each(|&(item, count)| push_item(&mut entry, item, count));
        written.units += 1;
        written.lists_bytes[0] += entry.len() as u64;
        if outcome.is_ok() {
            outcome = put(&entry);
        }
    })?;
    outcome.map(|()| written)
}

/// A file that has its name only once it is complete.
struct Writer {
    path: PathBuf,
    file: BufWriter<ExclusiveFile>,
    digest: Sha256,
}

pub(super) fn failed(path: &Path, reason: impl ToString) -> UnitError {
    UnitError::Run { path: path.to_owned(), reason: reason.to_string() }
}

impl Writer {
    fn create(path: &Path) -> Result<Self, UnitError> {
        let file = ExclusiveFile::take_for(path).map_err(|error| failed(path, io::Error::from(error)))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        let mut writer = Self { path: path.to_owned(), file, digest: Sha256::new() };
        writer.file.write_all(MAGIC).map_err(|error| failed(path, error))?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), UnitError> {
        self.digest.update(bytes);
        self.file.write_all(bytes).map_err(|error| failed(&self.path, error))
    }

    fn finish(mut self, header: &Header) -> Result<(), UnitError> {
        let Self { path, .. } = &self;
        let path = path.clone();
        let header = serde_json::to_vec(header).map_err(|error| failed(&path, error))?;
        self.put(&header)?;
        self.put(&(header.len() as u64).to_le_bytes())?;
        let digest = Sha256::new().chain_update(MAGIC).chain_update(self.digest.finalize()).finalize();
        let named = self.file.write_all(&digest).and_then(|()| {
            let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.persist(&path)
        });
        named.map_err(|error| failed(&path, error))
    }
}
