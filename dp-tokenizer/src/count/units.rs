//! The items that each unit holds, with their counts.

use mechanisms::Words;

use super::CountOptions;
use super::group::{Address, group, push_addressed, read_items};
use super::intern::short_bytes;
use super::merge::{Merged, merge, numbers_of, read_long};
use super::parallel::{Collected, collect};
use super::run::{Builder, Names, Run, owner_hash};
use super::spill::{SpillBuffer, SpillFile, SpillReader, damaged};
use crate::corpus::Source;
use crate::unit::{Piece, PrivacyUnit, UnitError};
use tokenizer::BLANK;

/// The items of all units. They are private: only a mechanism may publish anything about them.
pub struct UnitItems {
    pub(super) names: Names,
    units: Units,
    /// The number of units.
    pub(crate) count: u64,
    /// Whether two units have the same address, which is a hash of the user for users.
    pub(crate) shares_address: bool,
    pub(super) spill: SpillFile,
}

/// The form in which the units are stored.
enum Units {
    /// Units in blocks, in the order of the corpus.
    InBlocks {
        /// The blocks of each thread, in order.
        threads: Vec<Vec<Segment>>,
        /// The number of each block, in order, with that of its first unit.
        first_units: Vec<(u64, u64)>,
    },
    /// Units by rising address, with the common numbers of items.
    Addressed(SpillBuffer),
}

/// Blocks of units with the item numbers of one run.
struct Segment {
    list: SpillBuffer,
    order: Option<SpillBuffer>,
    numbers: SpillBuffer,
    count: u64,
}

impl UnitItems {
    /// Counts the items of each unit of a corpus, on several threads and within the given memory.
    ///
    /// ```
    /// use dp_tokenizer::corpus::Source;
    /// use dp_tokenizer::count::{CountOptions, UnitItems, Words};
    /// use dp_tokenizer::release::{ReleaseConfig, release_items};
    /// use dp_tokenizer::unit::PrivacyUnit;
    /// let notes = Source::Embedded { records: 2000, seed: 7 };
    /// let items = UnitItems::read(&notes, PrivacyUnit::Record, Words::ByClass, &CountOptions::default())
    ///     .map_err(|e| e.to_string())?;
    /// let config = ReleaseConfig::new(mechanisms::ReleaseMethod::Sips, 1.0, 1e-7).map_err(|e| e.to_string())?;
    /// let released = release_items(&items, &config, &mechanisms::TestRng::from_seed(1)).map_err(|e| e.to_string())?;
    /// assert!(released.words.iter().any(|w| w.0 == "▁daily"));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// [`UnitError`] if the corpus cannot be read or divided into units, or the temporary file cannot be written.
    pub fn read(
        source: &Source,
        unit: PrivacyUnit,
        words: Words,
        options: &CountOptions,
    ) -> Result<Self, UnitError> {
        let spill = SpillFile::new(options.spill_folder.clone());
        let collected = collect(source, Some(unit), words, options, &spill)?;
        Self::of_gathered(collected, unit == PrivacyUnit::User, owner_hash, spill, room(options))
    }

    /// Counts public text, where units are irrelevant: the units of the result are arbitrary parts of the text.
    pub(crate) fn read_public(
        source: &Source,
        words: Words,
        options: &CountOptions,
    ) -> Result<Self, UnitError> {
        let spill = SpillFile::new(options.spill_folder.clone());
        let collected = collect(source, None, words, options, &spill)?;
        Self::of_gathered(collected, false, owner_hash, spill, room(options))
    }

    /// Counts the items of pieces, all in memory.
    pub(crate) fn from_pieces(
        pieces: impl IntoIterator<Item = Result<Piece, UnitError>>,
        words: Words,
    ) -> Result<Self, UnitError> {
        let mut builder = Builder::new(1, words);
        for piece in pieces {
            let piece = piece?;
            builder.part(&piece.unit.to_be_bytes(), &piece.text);
        }
        let collected = Collected { runs: vec![vec![builder.finish()]], ..Collected::default() };
        let number: Address = |owner| owner.try_into().map_or(0, u64::from_be_bytes);
        // The limit has 64 bits even where addresses have 32, so that no part of it limits anything: web pages have no
        // files to move data to.
        Self::of_gathered(collected, true, number, SpillFile::new(None), u64::MAX)
    }

    pub(super) fn of_gathered(
        collected: Collected,
        grouped: bool,
        address: Address,
        spill: SpillFile,
        room: u64,
    ) -> Result<Self, UnitError> {
        let Collected { runs, mut blocks, .. } = collected;
        let all: Vec<&Run> = runs.iter().flatten().collect();
        let Merged { names, numbers } = merge(&all, &spill, half_of(room))?;
        if grouped {
            let runs = runs.into_iter().flatten().collect();
            let (mut list, mut entry) = (SpillBuffer::default(), Vec::new());
            let (mut count, mut last, mut shares_address) = (0, None, false);
            group(runs, &numbers, address, &spill, room / 2, &mut |name, held| {
                count += 1;
                shares_address |= last.replace(address(name)) == Some(address(name));
                entry.clear();
                push_addressed(&mut entry, address(name), held);
                list.push(&entry);
                if list.held() as u64 > room / 8 { list.store(&spill) } else { Ok(()) }
            })?;
            return Ok(Self { names, units: Units::Addressed(list), count, shares_address, spill });
        }
        let mut numbers = numbers.into_iter();
        let mut segment = |run: Run| Segment {
            count: run.names.count(),
            list: run.lists.into_iter().next().unwrap_or_default(),
            order: run.order,
            numbers: numbers.next().unwrap_or_default(),
        };
        let threads = runs.into_iter().map(|runs| runs.into_iter().map(&mut segment).collect()).collect();
        blocks.sort_unstable();
        let mut count = 0;
        let numbered = blocks.into_iter().map(|(block, of_block)| {
            count += of_block;
            (block, count - of_block)
        });
        let units = Units::InBlocks { threads, first_units: numbered.collect() };
        Ok(Self { names, units, count, shares_address: false, spill })
    }

    /// Returns the number of distinct items.
    pub(crate) fn distinct(&self) -> usize {
        self.names.count() as usize
    }

    /// Calls `take` with the number of each unit and its distinct items with their counts, all above 0.
    ///
    /// Numbers and order of the units depend on the corpus alone. Items come by rising number.
    ///
    /// # Errors
    /// If data in the temporary file cannot be read back.
    pub(crate) fn each_unit(&self, mut take: impl FnMut(u64, &[(u64, u32)])) -> Result<(), UnitError> {
        let mut held = Vec::new();
        match &self.units {
            Units::InBlocks { threads, first_units } => {
                let mut cursors: Vec<Cursor<'_>> =
                    threads.iter().map(|segments| Cursor::new(segments, &self.spill)).collect();
                cursors.iter_mut().try_for_each(Cursor::advance)?;
                for &(block, first) in first_units {
                    let here = cursors.iter_mut().find(|cursor| cursor.block == Some(block));
                    here.ok_or_else(damaged)?.units(first, &mut held, &mut take)?;
                }
            }
            Units::Addressed(list) => {
                let mut reader = list.reader(&self.spill, usize::MAX);
                while let Some(unit) = read_address(&mut reader)? {
                    let count = reader.expect()?;
                    read_items(&mut reader, count, &mut held)?;
                    if held.iter().any(|h| h.0 >= self.names.count()) {
                        return Err(damaged());
                    }
                    take(unit, &held);
                }
            }
        }
        Ok(())
    }

    /// Calls `take` with the number and name of each item, by rising number.
    ///
    /// # Errors
    /// If data in the temporary file cannot be read back.
    pub(crate) fn each_name(&self, mut take: impl FnMut(u64, &str)) -> Result<(), UnitError> {
        let mut reader = self.names.bytes.reader(&self.spill, usize::MAX);
        let mut name = String::new();
        let mut named = |number: u64, bytes: &[u8]| -> Result<(), UnitError> {
            let item = std::str::from_utf8(bytes).map_err(|_| damaged())?;
            name.clear();
            name.extend(item.chars().map(|c| if c == ' ' { BLANK } else { c }));
            take(number, &name);
            Ok(())
        };
        for number in 0..self.names.short {
            let mut key = [0; 16];
            reader.fill(&mut key)?;
            let (bytes, length) = short_bytes(u128::from_be_bytes(key));
            named(number, &bytes[..length])?;
        }
        for number in self.names.short..self.names.count() {
            named(number, &read_long(&mut reader)?)?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn is_spilled(&self) -> bool {
        self.spill.is_used()
    }
}

/// Iterates over the blocks of one thread.
struct Cursor<'a> {
    segments: std::slice::Iter<'a, Segment>,
    spill: &'a SpillFile,
    open: Option<(SpillReader<'a>, Vec<u64>)>,
    /// The number of the next block; `None` at the end.
    block: Option<u64>,
}

impl<'a> Cursor<'a> {
    fn new(segments: &'a [Segment], spill: &'a SpillFile) -> Self {
        Self { segments: segments.iter(), spill, open: None, block: None }
    }

    /// Moves to the first block of the next segment that is not empty.
    fn advance(&mut self) -> Result<(), UnitError> {
        (self.open, self.block) = (None, None);
        for segment in self.segments.by_ref() {
            let mut reader = segment.list.reader(self.spill, usize::MAX);
            if let Some(head) = reader.number()? {
                let of = numbers_of(segment.count, segment.order.as_ref(), &segment.numbers, self.spill)?;
                (self.open, self.block) = (Some((reader, of)), Some(head >> 1));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Calls `take` with the units of the next block, and moves on.
    fn units(
        &mut self,
        first: u64,
        held: &mut Vec<(u64, u32)>,
        take: &mut impl FnMut(u64, &[(u64, u32)]),
    ) -> Result<(), UnitError> {
        let (reader, of) = self.open.as_mut().ok_or_else(damaged)?;
        for unit in first.. {
            match reader.number()? {
                Some(head) if head & 1 == 1 => {
                    self.block = Some(head >> 1);
                    return Ok(());
                }
                Some(head) => {
                    read_items(reader, head >> 1, held)?;
                    for item in &mut *held {
                        item.0 = *of.get(item.0 as usize).ok_or_else(damaged)?;
                    }
                    // The order must not depend on how the text was read.
                    held.sort_unstable();
                    take(unit, held);
                }
                None => break,
            }
        }
        self.advance()
    }
}

/// Returns the limit on memory in bytes.
pub(super) fn room(options: &CountOptions) -> u64 {
    options.memory.max(1 << 16) as u64
}

/// Returns half of a limit on memory, as far as addresses reach.
pub(super) fn half_of(room: u64) -> usize {
    usize::try_from(room / 2).unwrap_or(usize::MAX / 2)
}

fn read_address(reader: &mut SpillReader<'_>) -> Result<Option<u64>, UnitError> {
    if reader.is_at_end()? {
        return Ok(None);
    }
    let mut address = [0; 8];
    reader.fill(&mut address)?;
    Ok(Some(u64::from_le_bytes(address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_unit_wherever_its_pieces_stand() {
        let piece = |unit, text: &str| Ok(Piece { unit, text: text.into() });
        let all = UnitItems::from_pieces(
            [piece(0, "a bb a"), piece(1, "bb"), piece(0, " a cc bb")],
            Words::ByClass,
        )
        .unwrap();
        let mut names = Vec::new();
        all.each_name(|_, name| names.push(name.to_owned())).unwrap();
        let mut units = Vec::new();
        all.each_unit(|unit, held| {
            let mut items: Vec<_> = held.iter().map(|&(n, c)| (names[n as usize].as_str(), c)).collect();
            items.sort_unstable();
            units.push((unit, items));
        })
        .unwrap();
        units.sort_unstable();
        let first = vec![("a", 1), ("▁a", 2), ("▁bb", 2), ("▁cc", 1)];
        assert_eq!(units, [(0, first), (1, vec![("bb", 1)])]);
        assert_eq!(all.distinct(), 5);
    }
}
