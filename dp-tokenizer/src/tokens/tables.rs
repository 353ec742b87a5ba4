//! The tables of a token file in memory, in a few bits per part.

use std::io::{self, Read};
use std::ops::Range;

use sucds::int_vectors::CompactVector;
use sucds::mii_sequences::{EliasFano, EliasFanoBuilder};

/// Text of one unit within one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPart {
    /// The unit to which the part belongs.
    pub unit: u64,
    /// The range of the part's tokens in the file.
    pub tokens: Range<u64>,
    /// Whether the record begins here.
    pub begins_record: bool,
    /// Whether the record ends here.
    pub ends_record: bool,
}

/// The tokens and the unit of each part.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The index of each part's first token; one more entry than parts.
    starts: EliasFano,
    /// For each part, 2 if it begins a record, plus 1 if it ends one; `None` if every part is a whole record.
    marks: Option<CompactVector>,
    /// The units; `None` if part number n is the only one of unit number n, as where records are the units.
    units: Option<Units>,
}

/// The units of parts, where a unit may have any number of them.
#[derive(Debug)]
struct Units {
    /// The unit of each part.
    owners: CompactVector,
    /// The index of each unit's first entry in `parts`; one more entry than units.
    starts: EliasFano,
    parts: CompactVector,
}

/// The reason why tables cannot be read.
pub(super) enum Fault {
    Unreadable(io::Error),
    Malformed(&'static str),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

const WHOLE_RECORD: u64 = 3;

impl Tables {
    /// Reads the tables, and checks that they fit each other.
    pub fn read(mut file: impl Read, parts: u64, units: u64, tokens: u64) -> Result<Self, Fault> {
        let mut next = || {
            let mut word = [0; 8];
            file.read_exact(&mut word).map(|()| u64::from_le_bytes(word))
        };
        let mut starts = Rising::new(parts, tokens, "the parts do not follow each other")?;
        let mut marks = Column::new(|_| WHOLE_RECORD, parts, WHOLE_RECORD);
        let mut owners = Column::new(|part| part, parts, units.saturating_sub(1));
        for _ in 0..parts {
            starts.push(next()?)?;
            let marked = next()?;
            marks.push(marked & WHOLE_RECORD)?;
            if marked >> 2 >= units {
                return Err(Fault::Malformed("a part belongs to no unit"));
            }
            owners.push(marked >> 2)?;
        }
        let units = match owners.found.take() {
            None if units == parts => {
                // Both lists count up from 0.
                for number in (0..units).chain(0..parts) {
                    if next()? != number {
                        return Err(Fault::Malformed("a unit lists parts of another"));
                    }
                }
                None
            }
            found => {
                let owners = found.map_or_else(|| owners.expected_so_far(), Ok)?;
                Some(Units::read(next, owners, units)?)
            }
        };
        Ok(Self { starts: starts.finish(tokens)?, marks: marks.found, units })
    }

    pub fn parts(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn units(&self) -> usize {
        self.units.as_ref().map_or(self.parts(), |units| units.starts.len().saturating_sub(1))
    }

    pub fn part(&self, number: usize) -> Option<TokenPart> {
        let tokens = self.starts.select(number)?..self.starts.select(number.checked_add(1)?)?;
        let marks = self.marks.as_ref().map_or(Some(WHOLE_RECORD), |marks| marks.get_int(number))?;
        let unit = self.units.as_ref().map_or(Some(number as u64), |units| units.owners.get_int(number))?;
        Some(TokenPart { unit, tokens, begins_record: marks & 2 != 0, ends_record: marks & 1 != 0 })
    }

    pub fn parts_of(&self, unit: usize) -> Option<impl ExactSizeIterator<Item = u64>> {
        let places = match &self.units {
            None => (unit < self.parts()).then_some(unit..unit + 1)?,
            Some(units) => units.places(unit)?,
        };
        let part = |place| self.units.as_ref().and_then(|units| units.parts.get_int(place));
        Some(places.map(move |place| part(place).unwrap_or(place as u64)))
    }

    /// Returns the number of bytes in memory.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        use sucds::Serializable;
        let of_units = |units: &Units| {
            units.owners.size_in_bytes() + units.starts.size_in_bytes() + units.parts.size_in_bytes()
        };
        self.starts.size_in_bytes()
            + self.marks.as_ref().map_or(0, Serializable::size_in_bytes)
            + self.units.as_ref().map_or(0, of_units)
    }
}

impl Units {
    fn read(
        mut next: impl FnMut() -> io::Result<u64>,
        owners: CompactVector,
        units: u64,
    ) -> Result<Self, Fault> {
        let mut starts = Rising::new(units, owners.len() as u64, "the units do not follow each other")?;
        for _ in 0..units {
            starts.push(next()?)?;
        }
        let count = owners.len() as u64;
        let (starts, parts) = (starts.finish(count)?, packed(count, count)?);
        let mut units = Self { owners, starts, parts };
        // Each unit must list its own parts, by rising number. Then each part is listed once.
        for unit in 0..units.starts.len() - 1 {
            let mut last = None;
            for _ in units.places(unit).unwrap_or_default() {
                let part = next()?;
                let is_own = part < count && units.owners.get_int(part as usize) == Some(unit as u64);
                if !is_own || last.is_some_and(|last| part <= last) {
                    return Err(Fault::Malformed("a unit lists parts of another"));
                }
                last = Some(part);
                push(&mut units.parts, part)?;
            }
        }
        if units.parts.len() as u64 == count {
            Ok(units)
        } else {
            Err(Fault::Malformed("a part belongs to no unit"))
        }
    }

    fn places(&self, unit: usize) -> Option<Range<usize>> {
        Some(self.starts.select(unit)? as usize..self.starts.select(unit.checked_add(1)?)? as usize)
    }
}

/// A list of numbers from 0 on, none of which is below the one before it.
struct Rising {
    numbers: EliasFanoBuilder,
    is_empty: bool,
    otherwise: &'static str,
}

impl Rising {
    /// Returns a builder for `count` non-decreasing numbers up to `largest`, with room for a final `largest`.
    fn new(count: u64, largest: u64, otherwise: &'static str) -> Result<Self, Fault> {
        let numbers = EliasFanoBuilder::new(largest.saturating_add(1), (count as usize).saturating_add(1));
        let numbers = numbers.map_err(|_| Fault::Malformed(otherwise))?;
        Ok(Self { numbers, is_empty: true, otherwise })
    }

    fn push(&mut self, number: u64) -> Result<(), Fault> {
        if (!self.is_empty || number == 0) && self.numbers.push(number).is_ok() {
            self.is_empty = false;
            return Ok(());
        }
        Err(Fault::Malformed(self.otherwise))
    }

    fn finish(mut self, largest: u64) -> Result<EliasFano, Fault> {
        self.is_empty = false;
        self.push(largest)?;
        Ok(self.numbers.build())
    }
}

/// A list of numbers that takes no memory as long as each number is the expected one.
struct Column {
    expected: fn(u64) -> u64,
    count: u64,
    largest: u64,
    length: u64,
    found: Option<CompactVector>,
}

impl Column {
    fn new(expected: fn(u64) -> u64, count: u64, largest: u64) -> Self {
        Self { expected, count, largest, length: 0, found: None }
    }

    fn push(&mut self, number: u64) -> Result<(), Fault> {
        if self.found.is_none() && number != (self.expected)(self.length) {
            self.found = Some(self.expected_so_far()?);
        }
        self.length += 1;
        self.found.as_mut().map_or(Ok(()), |found| push(found, number))
    }

    fn expected_so_far(&self) -> Result<CompactVector, Fault> {
        let mut numbers = packed(self.count, self.largest)?;
        (0..self.length).map(self.expected).try_for_each(|number| push(&mut numbers, number))?;
        Ok(numbers)
    }
}

const TOO_LARGE: Fault = Fault::Malformed("a number is larger than its table allows");

/// Returns room for `count` numbers up to `largest`, each in as many bits as `largest` has.
fn packed(count: u64, largest: u64) -> Result<CompactVector, Fault> {
    let bits = (u64::BITS - largest.leading_zeros()).max(1);
    CompactVector::with_capacity(count as usize, bits as usize).map_err(|_| TOO_LARGE)
}

fn push(numbers: &mut CompactVector, number: u64) -> Result<(), Fault> {
    numbers.push_int(number).map_err(|_| TOO_LARGE)
}
