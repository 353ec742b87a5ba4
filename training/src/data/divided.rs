//! Text that stays in its files, of which each rank reads its own share once.
//!
//! A rank keeps the places of its share's stretches of text, or of its records, and which units these belong to. No rank keeps
//! those of another. For a lot, the ranks exchange how long the drawn units are, and each sends what it reads of its own share to the
//! ranks that compute with it. So neither memory nor reading grows with the number of ranks.
//!
//! | unit | memory of a rank with a share of n stretches |
//! |---|---|
//! | record, words | up to 8 bytes each |
//! | user | up to 16 bytes each, and 12 bytes for each user of the share; while reading, another 100 bytes for each user |

use std::collections::HashMap;
use std::ops::Range;

use dp_tokenizer::corpus::{CorpusError, LineFiles, Position, Record};
use dp_tokenizer::unit::{PrivacyUnit, UnitError};
use sha2::{Digest, Sha256};

use super::digest::ContentDigest;
use super::places::{Place, Places};
use super::unit_text::{CHANGED, Stretch, refused};
use crate::RunError;
use crate::ranks::Ranks;

/// The plan's field that names the training text.
const FIELD: &str = "data.source";

/// A stretch of text, or a record, as it is kept of a share.
pub(super) struct Item {
    pub sha256: [u8; 32],
}

impl Item {
    fn checksum(&self) -> u32 {
        let [a, b, c, d, ..] = self.sha256;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// The places of a rank's share of the text, by unit.
pub struct Divided {
    files: LineFiles,
    unit: PrivacyUnit,
    ranks: Ranks,
    places: Places,
    own: OwnUnits,
    /// Number of units on all ranks.
    units: u64,
    /// Digest of the text of all ranks.
    digest: ContentDigest,
}

impl Divided {
    /// Reads this rank's share of the text, and returns what is kept of it. `items` divides a record, which has this number in the
    /// corpus. All ranks call this together.
    ///
    /// # Errors
    /// [`RunError::Refused`] on all ranks: if a file cannot be read, `items` refuses a record, or a rank has other files.
    pub(super) fn read(
        files: LineFiles,
        unit: PrivacyUnit,
        ranks: &Ranks,
        mut items: impl FnMut(u64, Record) -> Result<Vec<Item>, RunError>,
    ) -> Result<Self, RunError> {
        let sizes = same_sizes(&files, ranks)?;
        let mut scan = Scan::default();
        let outcome = scan.read(&files, unit, &sizes, ranks, &mut items);
        let waiting = outcome.as_ref().err().map(|fault| ranks.wait_with(&fault.in_share()));
        let records = ranks.numbers(scan.records);
        drop(waiting);
        let before = records[..ranks.rank()].iter().sum();
        ranks.agree(outcome.map_err(|fault| fault.numbered(before, &files, unit, &mut items)))?;
        if records.iter().all(|&records| records == 0) {
            return ranks.agree(Err(refused(FIELD, &files.without_records())));
        }
        let Scan { places, mut digest, users, .. } = scan;
        let (own, units) = match unit {
            PrivacyUnit::User => {
                let (numbers, units) = number_users(&users.ids, ranks);
                users.of_stretches.iter().for_each(|&user| digest.push_unit(numbers[user as usize]));
                (OwnUnits::of_users(&users.of_stretches, &numbers), units)
            }
            _ => {
                let counts = ranks.numbers(places.len() as u64);
                let first: u64 = counts[..ranks.rank()].iter().sum();
                (first..first + places.len() as u64).for_each(|unit| digest.push_unit(unit));
                (OwnUnits::InOrder { first, count: places.len() }, counts.iter().sum())
            }
        };
        let mut whole = ContentDigest::default();
        for digest in ranks.exchange(&digest.to_bytes()) {
            whole.append(&ContentDigest::of_bytes(&digest));
        }
        Ok(Self { files, unit, ranks: ranks.clone(), places, own, units, digest: whole })
    }

    pub(super) fn files(&self) -> &LineFiles {
        &self.files
    }

    pub(super) fn unit(&self) -> PrivacyUnit {
        self.unit
    }

    pub(super) fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Returns the number of units on all ranks, which is private if the text is private.
    pub(super) fn units(&self) -> u64 {
        self.units
    }

    /// Returns the digest of the text of all ranks.
    pub(super) fn digest(&self) -> ContentDigest {
        self.digest
    }

    /// Returns the number of stretches of this rank's share.
    pub(super) fn stretches(&self) -> usize {
        self.places.len()
    }

    /// Finds the stretches of units on all ranks, in the corpus's order. `tokens` counts those of a stretch of this rank's share. All
    /// ranks call this together, with the same units, each once.
    ///
    /// # Errors
    /// Those of `tokens`, on all ranks.
    pub(super) fn find(
        &self,
        units: &[u64],
        mut tokens: impl FnMut(usize) -> Result<u32, RunError>,
    ) -> Result<HashMap<u64, Vec<Stretch>>, RunError> {
        let mut own = Vec::new();
        let outcome = (0..).zip(units).try_for_each(|(index, &unit)| {
            self.own.of(unit).try_for_each(|at| {
                let number = self.own.stretch(at);
                let place = self.place(number)?;
                own.push((
                    index,
                    Stretch {
                        rank: self.ranks.rank(),
                        number: number as u64,
                        tokens: tokens(number)? as usize,
                        begins_record: place.piece == 0,
                        ends_record: place.ends_record,
                    },
                ));
                Ok(())
            })
        });
        self.ranks.agree(outcome)?;
        let sent: Vec<u8> = own.iter().flat_map(|(index, stretch)| message(*index, stretch)).collect();
        let mut found: HashMap<u64, Vec<Stretch>> = HashMap::new();
        for (rank, bytes) in self.ranks.exchange(&sent).into_iter().enumerate() {
            let of_rank = bytes.chunks_exact(8).map(|eight| of_message(rank, eight));
            let all: Vec<(u32, Stretch)> =
                if rank == self.ranks.rank() { std::mem::take(&mut own) } else { of_rank.collect() };
            for (index, stretch) in all {
                if let Some(unit) = units.get(index as usize) {
                    found.entry(*unit).or_default().push(stretch);
                }
            }
        }
        Ok(found)
    }

    /// Reads the record of a stretch of this rank's share, and returns the number of the stretch in it.
    ///
    /// # Errors
    /// [`RunError::Failed`] if its file can no longer be read.
    pub(super) fn record(&self, number: usize) -> Result<(Record, usize), RunError> {
        let place = self.place(number)?;
        let record = self.files.read(place.record);
        let record = record.map_err(|error| RunError::Failed(format!("{FIELD}: {error}")))?;
        Ok((record, place.piece as usize))
    }

    /// Refuses a stretch that is no longer as it was.
    ///
    /// # Errors
    /// [`RunError::Failed`].
    pub(super) fn check(&self, number: usize, item: &Item) -> Result<(), RunError> {
        if self.place(number)?.checksum == item.checksum() {
            return Ok(());
        }
        Err(RunError::Failed(format!("{FIELD}: {CHANGED}")))
    }

    /// Passes one record of each unit to `take`: the one that `choose` picks by the number of the unit and the number of its records on all
    /// ranks. Each rank reads its own share, where each record is one stretch. All ranks call this together.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read, and those of `take`.
    pub(super) fn for_one_of_each_unit(
        &self,
        choose: impl Fn(u64, u64) -> u64,
        mut take: impl FnMut(Record) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let unreadable = |error: CorpusError| refused(FIELD, &error);
        let chosen = self.choose(choose);
        let sizes = self.files.sizes().map_err(unreadable)?;
        let (rank, count) = (self.ranks.rank() as u64, self.ranks.count() as u64);
        let mut records = self.files.share_of(&sizes, rank, count).map_err(unreadable)?;
        for number in 0.. {
            let Some(record) = records.next().filter(|_| records.is_in_share()) else { break };
            let (_, record) = record.map_err(unreadable)?;
            if chosen.as_ref().is_none_or(|chosen| chosen.get(number) == Some(&true)) {
                take(record)?;
            }
        }
        Ok(())
    }

    /// Returns which records of this rank's share `choose` picks; `None` if all, because each unit has one.
    fn choose(&self, choose: impl Fn(u64, u64) -> u64) -> Option<Vec<bool>> {
        let OwnUnits::Users { numbers, starts, stretches } = &self.own else { return None };
        let mut chosen = vec![false; stretches.len()];
        let counts: Vec<u64> = starts.array_windows().map(|[start, end]| u64::from(end - start)).collect();
        let elsewhere = records_elsewhere(numbers, &counts, &self.ranks);
        for (((&unit, &start), &count), [before, all]) in
            numbers.iter().zip(starts).zip(&counts).zip(elsewhere)
        {
            let place = choose(unit, all).checked_sub(before).filter(|place| *place < count);
            if let Some(place) = place {
                chosen[stretches[start as usize + place as usize] as usize] = true;
            }
        }
        Some(chosen)
    }

    fn place(&self, number: usize) -> Result<Place, RunError> {
        self.places
            .get(number)
            .ok_or_else(|| RunError::Failed(format!("{FIELD}: a stretch that this rank did not read")))
    }
}

/// Returns a stretch of the unit with this index as eight bytes.
fn message(index: u32, stretch: &Stretch) -> [u8; 8] {
    let marks = u32::from(stretch.begins_record) << 1 | u32::from(stretch.ends_record);
    let length = (stretch.tokens as u32) << 2 | marks;
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&index.to_le_bytes());
    bytes[4..].copy_from_slice(&length.to_le_bytes());
    bytes
}

fn of_message(rank: usize, bytes: &[u8]) -> (u32, Stretch) {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    let (index, length) = (number(&bytes[..4]), number(&bytes[4..]));
    let stretch = Stretch {
        rank,
        number: u64::MAX,
        tokens: (length >> 2) as usize,
        begins_record: length & 2 != 0,
        ends_record: length & 1 != 0,
    };
    (index, stretch)
}

/// Returns the sizes of the files, by which the ranks divide the text. Ranks whose files differ in size, or at places all over
/// the text, are refused; a difference elsewhere is not noticed.
fn same_sizes(files: &LineFiles, ranks: &Ranks) -> Result<Vec<u64>, RunError> {
    let read = files.sizes().and_then(|sizes| {
        let sample = if ranks.are_several() { files.sample(&sizes)? } else { Vec::new() };
        Ok((sizes, sample))
    });
    let (sizes, sample) = ranks.agree(read.map_err(|error| refused(FIELD, &error)))?;
    let mut digest = Sha256::new();
    sizes.iter().for_each(|size| digest.update(size.to_le_bytes()));
    digest.update(sample);
    ranks.check_same(
        &digest.finalize(),
        "data.source: its files differ from those of rank 0; put them on a file system that all machines share, or copy them to each",
    )?;
    Ok(sizes)
}

/// What a rank reads of its share.
#[derive(Default)]
struct Scan {
    records: u64,
    places: Places,
    digest: ContentDigest,
    users: Users,
}

/// The reason why a rank cannot read its share.
enum Fault {
    Reading(RunError),
    /// A refused record of the share, counted from 0, with its place.
    Record(u64, Position, RunError),
}

impl Fault {
    /// Returns the error while the shares of earlier ranks are not read yet.
    fn in_share(&self) -> RunError {
        match self {
            Self::Reading(error) => RunError::Refused(error.to_string()),
            Self::Record(_, _, error) => RunError::Refused(format!(
                "{error} (the number counts from the beginning of this rank's share)"
            )),
        }
    }

    /// Returns the error, with the number that the record has in the corpus: `before` records are in the shares of earlier ranks.
    fn numbered(
        self,
        before: u64,
        files: &LineFiles,
        unit: PrivacyUnit,
        items: &mut impl FnMut(u64, Record) -> Result<Vec<Item>, RunError>,
    ) -> RunError {
        let (number, position, error) = match self {
            Self::Reading(error) => return error,
            Self::Record(_, _, error) if before == 0 => return error,
            Self::Record(number, position, error) => (before + number + 1, position, error),
        };
        let Ok(record) = files.read(position) else { return error };
        let again = user_of(&record, unit, number).and_then(|_| items(number, record));
        again.err().unwrap_or(error)
    }
}

impl Scan {
    fn read(
        &mut self,
        files: &LineFiles,
        unit: PrivacyUnit,
        sizes: &[u64],
        ranks: &Ranks,
        items: &mut impl FnMut(u64, Record) -> Result<Vec<Item>, RunError>,
    ) -> Result<(), Fault> {
        let unreadable = |error: CorpusError| Fault::Reading(refused(FIELD, &error));
        let share = files.share_of(sizes, ranks.rank() as u64, ranks.count() as u64);
        let mut records = share.map_err(unreadable)?;
        while let Some(record) = records.next() {
            if !records.is_in_share() {
                break;
            }
            let (position, record) = record.map_err(unreadable)?;
            let of_record = |error| Fault::Record(self.records, position, error);
            let user = user_of(&record, unit, self.records + 1).map_err(of_record)?;
            let items = items(self.records + 1, record).map_err(of_record)?;
            let last = items.len().saturating_sub(1);
            for (piece, item) in items.iter().enumerate() {
                let (piece, ends_record) = (piece as u32, piece == last);
                self.places.push(Place { record: position, piece, ends_record, checksum: item.checksum() });
                self.digest.push(item.sha256);
                if let Some(user) = user {
                    self.users.push(user);
                }
            }
            self.records += 1;
        }
        Ok(())
    }
}

/// A user's name, by the beginning of its SHA-256. Two of 10¹² users are taken for one with a probability below 10⁻¹⁴.
type UserId = [u8; 16];

/// Returns the user of a record if users are the units.
fn user_of(record: &Record, unit: PrivacyUnit, number: u64) -> Result<Option<UserId>, RunError> {
    if unit != PrivacyUnit::User {
        return Ok(None);
    }
    let user = record.user.as_ref().ok_or(UnitError::NoUser { record: number });
    let user = user.map_err(|error| refused(FIELD, &error))?;
    let id = Sha256::digest(user.as_bytes());
    Ok(id.first_chunk().copied())
}

/// The users of a share, in the order in which they appear in it.
#[derive(Default)]
struct Users {
    ids: Vec<UserId>,
    places: HashMap<UserId, u32>,
    /// The place of each stretch's user among the ids.
    of_stretches: Vec<u32>,
}

impl Users {
    fn push(&mut self, user: UserId) {
        let place = *self.places.entry(user).or_insert(self.ids.len() as u32);
        if place as usize == self.ids.len() {
            self.ids.push(user);
        }
        self.of_stretches.push(place);
    }
}

/// Returns the number that each user of the share has among those of all ranks, in the order in which they appear in the corpus, and
/// the number of all users. All ranks call this together. Each user is known to one rank, which its id tells, so that no rank needs to
/// know all.
fn number_users(own: &[UserId], ranks: &Ranks) -> (Vec<u64>, u64) {
    let count = ranks.count();
    let mut asked: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (place, id) in own.iter().enumerate() {
        asked[usize::from(u16::from_le_bytes([id[0], id[1]])) % count].push(place);
    }
    let ids = |places: &Vec<usize>| places.iter().flat_map(|&place| own[place]).collect();
    let of_ranks = ranks.all_to_all(&asked.iter().map(ids).collect::<Vec<Vec<u8>>>());
    let of_ranks: Vec<Vec<UserId>> = of_ranks.iter().map(|ids| ids.as_chunks().0.to_vec()).collect();
    // The share of the first rank that names a user has its first record.
    let mut known: HashMap<UserId, (usize, u64)> = HashMap::new();
    for (rank, ids) in of_ranks.iter().enumerate() {
        ids.iter().for_each(|id| {
            known.entry(*id).or_insert((rank, 0));
        });
    }
    let is_first = |rank: usize| {
        let known = &known;
        move |id: &UserId| u8::from(known.get(id).is_some_and(|(first, _)| *first == rank))
    };
    let answers: Vec<Vec<u8>> =
        of_ranks.iter().enumerate().map(|(rank, ids)| ids.iter().map(is_first(rank)).collect()).collect();
    let mut appears_here = vec![false; own.len()];
    for (places, answers) in asked.iter().zip(ranks.all_to_all(&answers)) {
        places.iter().zip(answers).for_each(|(&place, answer)| appears_here[place] = answer == 1);
    }
    let counts = ranks.numbers(appears_here.iter().filter(|is_first| **is_first).count() as u64);
    let first: u64 = counts[..ranks.rank()].iter().sum();
    let mut numbers = vec![0; own.len()];
    let appearing = numbers.iter_mut().zip(&appears_here).filter(|(_, is_first)| **is_first);
    for (next, (number, _)) in (first..).zip(appearing) {
        *number = next;
    }
    // The rank that knows a user learns the number from the share with its first record, and tells it to the others.
    let told = |places: &Vec<usize>| {
        let first = places.iter().filter(|&&place| appears_here[place]);
        first.flat_map(|&place| numbers[place].to_le_bytes()).collect()
    };
    let told = ranks.all_to_all(&asked.iter().map(told).collect::<Vec<Vec<u8>>>());
    for (rank, (ids, told)) in of_ranks.iter().zip(told).enumerate() {
        let mut told =
            told.as_chunks().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect::<Vec<_>>().into_iter();
        for id in ids {
            if let Some((first, number)) = known.get_mut(id)
                && *first == rank
            {
                *number = told.next().unwrap_or(0);
            }
        }
    }
    let number_of = |id: &UserId| known.get(id).map_or(0, |(_, number)| *number).to_le_bytes();
    let answers: Vec<Vec<u8>> = of_ranks.iter().map(|ids| ids.iter().flat_map(number_of).collect()).collect();
    for (places, answers) in asked.iter().zip(ranks.all_to_all(&answers)) {
        for (&place, number) in places.iter().zip(answers.as_chunks().0) {
            numbers[place] = u64::from_le_bytes(*number);
        }
    }
    (numbers, counts.iter().sum())
}

/// Returns how many records each of these units has in the shares of earlier ranks, and how many in all shares. `counts` are those in this
/// rank's share. All ranks call this together.
fn records_elsewhere(units: &[u64], counts: &[u64], ranks: &Ranks) -> Vec<[u64; 2]> {
    let owner = |unit: u64| (unit % ranks.count() as u64) as usize;
    let pairs = |bytes: &Vec<u8>| -> Vec<[u64; 2]> {
        let number = |eight: &[u8; 8]| u64::from_le_bytes(*eight);
        bytes
            .as_chunks()
            .0
            .as_chunks()
            .0
            .iter()
            .map(|pair: &[[u8; 8]; 2]| pair.each_ref().map(number))
            .collect()
    };
    let mut told: Vec<Vec<u8>> = vec![Vec::new(); ranks.count()];
    for (unit, count) in units.iter().zip(counts) {
        told[owner(*unit)].extend([unit.to_le_bytes(), count.to_le_bytes()].as_flattened());
    }
    let of_ranks: Vec<Vec<[u64; 2]>> = ranks.all_to_all(&told).iter().map(pairs).collect();
    let mut all: HashMap<u64, u64> = HashMap::new();
    let mut earlier = Vec::new();
    for of_rank in &of_ranks {
        let add = |[unit, count]: &[u64; 2]| {
            let so_far = all.entry(*unit).or_default();
            *so_far += count;
            *so_far - count
        };
        earlier.push(of_rank.iter().map(add).collect::<Vec<u64>>());
    }
    let answer = |(of_rank, earlier): (&Vec<[u64; 2]>, Vec<u64>)| {
        let pair = |([unit, _], earlier): (&[u64; 2], u64)| [earlier, all[unit]].map(u64::to_le_bytes);
        of_rank.iter().zip(earlier).flat_map(|of| pair(of).as_flattened().to_vec()).collect()
    };
    let answers: Vec<Vec<u8>> = of_ranks.iter().zip(earlier).map(answer).collect();
    let mut answers: Vec<_> =
        ranks.all_to_all(&answers).iter().map(|bytes| pairs(bytes).into_iter()).collect();
    units.iter().filter_map(|unit| answers[owner(*unit)].next()).collect()
}

/// The units of a share's stretches.
enum OwnUnits {
    /// Each stretch is a unit; the first one has this number.
    InOrder { first: u64, count: usize },
    /// The stretches of each user of the share.
    Users {
        /// Numbers of the users, in ascending order.
        numbers: Vec<u64>,
        /// The place of each user's first stretch in `stretches`, and their number at the end.
        starts: Vec<u32>,
        stretches: Vec<u32>,
    },
}

impl OwnUnits {
    /// Orders stretches by the numbers of their users. A user's stretches stay in the corpus's order.
    fn of_users(of_stretches: &[u32], numbers: &[u64]) -> Self {
        let mut users: Vec<u32> = (0..numbers.len() as u32).collect();
        users.sort_unstable_by_key(|&user| numbers[user as usize]);
        let mut place_of = vec![0; numbers.len()];
        users.iter().enumerate().for_each(|(place, &user)| place_of[user as usize] = place);
        let mut starts = vec![0; numbers.len() + 1];
        of_stretches.iter().for_each(|&user| starts[place_of[user as usize] + 1] += 1);
        for place in 0..numbers.len() {
            starts[place + 1] += starts[place];
        }
        let (mut next, mut stretches) = (starts.clone(), vec![0; of_stretches.len()]);
        for (stretch, &user) in (0..).zip(of_stretches) {
            let at = &mut next[place_of[user as usize]];
            stretches[*at as usize] = stretch;
            *at += 1;
        }
        let numbers = users.iter().map(|&user| numbers[user as usize]).collect();
        Self::Users { numbers, starts, stretches }
    }

    /// Returns the places of a unit's stretches.
    fn of(&self, unit: u64) -> Range<usize> {
        match self {
            Self::InOrder { first, count } => match unit.checked_sub(*first) {
                Some(place) if place < *count as u64 => place as usize..place as usize + 1,
                _ => 0..0,
            },
            Self::Users { numbers, starts, .. } => match numbers.binary_search(&unit) {
                Ok(place) => starts[place] as usize..starts[place + 1] as usize,
                Err(_) => 0..0,
            },
        }
    }

    /// Returns the number of the stretch at a place.
    fn stretch(&self, place: usize) -> usize {
        match self {
            Self::InOrder { .. } => place,
            Self::Users { stretches, .. } => stretches[place] as usize,
        }
    }
}
