//! Reads the files of all parts of a corpus, and checks that they are one corpus.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use mechanisms::Words;
use sha2::{Digest, Sha256};

use super::CountOptions;
use super::parallel::Collected;
use super::run::{PARTS, Run, owner_hash};
use super::shard::{DIGEST_BYTES, Header, MAGIC, Shard, Sizes, VERSION, failed};
use super::spill::{SpillBuffer, SpillFile};
use super::units::{UnitItems, room};
use crate::corpus::CorpusError;
use crate::identity::Sketch;
use crate::unit::{PrivacyUnit, UnitError};

/// A file and its header, which fit each other.
struct Opened {
    path: PathBuf,
    header: Header,
    unit: PrivacyUnit,
}

impl Opened {
    fn shard(&self) -> Shard {
        Shard { index: self.header.shard, of: self.header.shards }
    }

    fn open(path: &Path) -> Result<Self, UnitError> {
        let is_other =
            "it is not a file that `dp-tokenizer count` wrote, or it is damaged; count this part again";
        let damaged = || failed(path, is_other);
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let length = file.metadata().map_err(|error| failed(path, error))?.len();
        let read = |at: u64, bytes: &mut [u8]| {
            let mut file = &file;
            file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes)).map_err(|_| damaged())
        };
        let end = length.checked_sub(DIGEST_BYTES + 8).ok_or_else(damaged)?;
        let (mut magic, mut header_length) = ([0; 8], [0; 8]);
        read(0, &mut magic)?;
        read(end, &mut header_length)?;
        let header_length = u64::from_le_bytes(header_length);
        let start = end.checked_sub(header_length).ok_or_else(damaged)?;
        if magic != *MAGIC || start < MAGIC.len() as u64 {
            return Err(damaged());
        }
        let mut header = vec![0; header_length as usize];
        read(start, &mut header)?;
        check_digest(&file, length).map_err(|_| damaged())?;
        let version =
            serde_json::from_slice::<serde_json::Value>(&header).map_err(|_| damaged())?["version"].clone();
        if version != VERSION {
            let reason =
                format!("version {version} of this file is not read, only {VERSION}; count this part again");
            return Err(failed(path, reason));
        }
        let header: Header = serde_json::from_slice(&header).map_err(|_| damaged())?;
        let unit = header.unit.parse().map_err(|_| damaged())?;
        let opened = Self { path: path.to_owned(), header, unit };
        opened.fits(start).then_some(opened).ok_or_else(damaged)
    }

    /// Whether the numbers in the header are those of a file whose header begins at `start`.
    fn fits(&self, start: u64) -> bool {
        let Header { shard, shards, units, short_items, long_items, items_bytes, lists_bytes, .. } =
            &self.header;
        let lists = if self.unit == PrivacyUnit::User { PARTS } else { 1 };
        let sum =
            lists_bytes.iter().try_fold(MAGIC.len() as u64 + items_bytes, |sum, list| sum.checked_add(*list));
        let short = short_items.checked_mul(16);
        let least = short.and_then(|short| short.checked_add(long_items.checked_mul(3)?));
        (1..=*shards).contains(shard)
            && *shards <= Shard::MAX_COUNT
            && lists_bytes.len() == lists
            && sum == Some(start)
            && least.is_some_and(|least| least <= *items_bytes)
            && *units <= start
    }

    /// Returns the data of the file as those of a run. `index` is the file's number among all.
    fn run(&self, index: usize) -> Result<Run, UnitError> {
        let Header { units, short_items, long_items, items_bytes, ref lists_bytes, .. } = self.header;
        let sizes = Sizes { units, short_items, long_items, items_bytes, lists_bytes: lists_bytes.clone() };
        let start = MAGIC.len() as u64;
        let end = start + items_bytes + lists_bytes.iter().sum::<u64>();
        sizes.run(SpillBuffer::of_file(index, start..end), index, self.unit)
    }
}

fn check_digest(file: &File, length: u64) -> std::io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 20, file);
    reader.seek(SeekFrom::Start(MAGIC.len() as u64))?;
    let mut left = length - DIGEST_BYTES - MAGIC.len() as u64;
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    while left > 0 {
        let size = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        reader.read_exact(&mut buffer[..size])?;
        digest.update(&buffer[..size]);
        left -= size as u64;
    }
    let mut stated = [0; DIGEST_BYTES as usize];
    reader.read_exact(&mut stated)?;
    let digest = Sha256::new().chain_update(MAGIC).chain_update(digest.finalize()).finalize();
    if digest[..] == stated { Ok(()) } else { Err(std::io::Error::other("other digest")) }
}

impl UnitItems {
    /// Returns the items of each unit of a corpus whose parts [`super::count_shard`] counted: the same as if one
    /// process had read all parts. If `unit` is [`None`], as for public text, files of any unit are accepted.
    ///
    /// # Errors
    /// [`UnitError::Run`] if a file is damaged, a part is missing, two files hold the same one, or they are of several corpora
    /// or counted otherwise; [`UnitError::Corpus`] if all parts are empty.
    pub fn from_shards(
        paths: &[PathBuf],
        unit: Option<PrivacyUnit>,
        words: Words,
        options: &CountOptions,
    ) -> Result<Self, UnitError> {
        let mut all = paths.iter().map(|path| Opened::open(path)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = all.first() else {
            return Err(failed(Path::new("the list of files"), "it is empty; give the file of each part"));
        };
        let unit = unit.unwrap_or(first.unit);
        check_options(&all, unit, words)?;
        all.sort_by_key(Opened::shard);
        check_complete(&all)?;
        let runs = all.iter().enumerate().map(|(index, one)| one.run(index)).collect::<Result<_, _>>()?;
        let blocks = all.iter().enumerate().map(|(index, one)| (index as u64, one.header.units)).collect();
        let spill =
            SpillFile::beside(options.spill_folder.clone(), all.into_iter().map(|one| one.path).collect());
        // One list is translated after the other, so that the numbers of only one part are in memory.
        let collected = Collected { runs: vec![runs], blocks, ..Collected::default() };
        Self::of_gathered(collected, unit == PrivacyUnit::User, owner_hash, spill, room(options))
    }
}

/// Refuses parts that are not counted as asked.
fn check_options(all: &[Opened], unit: PrivacyUnit, words: Words) -> Result<(), UnitError> {
    for (one, first) in all.iter().zip(std::iter::repeat(&all[0])) {
        let Header { shards, words: counted, corpus, .. } = &one.header;
        let refused = |reason: String| Err(failed(&one.path, reason));
        if one.unit != unit {
            return refused(format!(
                "it was counted by unit {}, not {unit}; state its unit, or count it again",
                one.unit
            ));
        }
        if *counted != words {
            let name = |words| match words {
                Words::ByClass => "by-class",
                Words::AsWritten => "as-written",
                Words::Runs => "as runs",
                Words::Pairs => "as pairs",
                Words::PairsByLabel => "as pairs by label",
            };
            return refused(format!(
                "its words were counted {}, not {}; state its words, or count it again",
                name(*counted),
                name(words)
            ));
        }
        if (*shards, corpus) != (first.header.shards, &first.header.corpus) {
            let of = |one: &Opened| match &one.header.corpus {
                Some(corpus) => format!("{} parts of {corpus:?}", one.header.shards),
                None => format!("{} parts of a corpus without a name", one.header.shards),
            };
            return refused(format!(
                "it is one of {}, but {} is one of {}",
                of(one),
                first.path.display(),
                of(first)
            ));
        }
    }
    Ok(())
}

/// Refuses parts that are missing or there twice. The files are in the order of the parts.
fn check_complete(all: &[Opened]) -> Result<(), UnitError> {
    if let Some([first, second]) = all.array_windows().find(|[first, second]| first.shard() == second.shard())
    {
        let reason = format!(
            "it is shard {}, as {} is; leave one of them out: text that is counted twice breaks the promise",
            second.shard(),
            first.path.display()
        );
        return Err(failed(&second.path, reason));
    }
    let Some(last) = all.last() else { return Ok(()) };
    let of = last.header.shards;
    let missing: Vec<String> = (1..=of)
        .filter(|index| all.binary_search_by_key(index, |one| one.header.shard).is_err())
        .take(5)
        .map(|index| index.to_string())
        .collect();
    if !missing.is_empty() {
        let (noun, verb) = if missing.len() == 1 { ("shard", "is") } else { ("shards", "are") };
        let more = if of as usize - all.len() > missing.len() { ", …" } else { "" };
        let reason = format!(
            "it is shard {}, but {noun} {}{more} of {of} {verb} missing; give the files of all, or count what is missing",
            last.shard(),
            missing.join(", ")
        );
        return Err(failed(&last.path, reason));
    }
    let held: Vec<&Opened> = all.iter().filter(|one| one.header.units > 0).collect();
    if let Some((first, second)) = same_text(&held) {
        let reason = format!(
            "it holds text that {} holds as well; count each file of the corpus in one part: text that is counted twice breaks the \
             promise",
            first.path.display()
        );
        return Err(failed(&second.path, reason));
    }
    if held.is_empty() {
        let source_name = last.path.display().to_string();
        return Err(CorpusError::Empty { source_name }.into());
    }
    Ok(())
}

/// Returns two parts with the same counts, or of which one holds half of the text of the other.
fn same_text<'a>(all: &[&'a Opened]) -> Option<(&'a Opened, &'a Opened)> {
    let mut known: HashMap<&str, &Opened> = HashMap::new();
    for one in all {
        if let Some(first) = known.insert(&one.header.contents_sha256, one) {
            return Some((first, one));
        }
    }
    let (sketched, sketches): (Vec<&Opened>, Vec<Sketch>) =
        all.iter().filter_map(|one| Some((*one, one.header.sketch.clone()?))).unzip();
    Sketch::first_pair(&sketches).map(|(first, second)| (sketched[first], sketched[second]))
}
