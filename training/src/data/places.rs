//! The places of stretches of text in their files, in a few bytes each.

use dp_tokenizer::corpus::Position;

/// The place of a stretch of text in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub record: Position,
    /// The number of the stretch in its record.
    pub piece: u32,
    /// Whether the record ends with the stretch.
    pub ends_record: bool,
    /// A part of the text's digest, by which a changed file is noticed.
    pub checksum: u32,
}

/// Places in the order of the files: about 6 bytes each where records are lines. An entry is the distance from the record before it,
/// and the checksum; a place in each block is known without those before it.
#[derive(Debug, Default)]
pub(super) struct Places {
    blocks: Vec<Block>,
    /// Entries, in chunks that are never moved.
    chunks: Vec<Vec<u8>>,
    count: usize,
    last: Option<Place>,
}

#[derive(Debug)]
struct Block {
    /// Number of its first place.
    first: usize,
    /// The chunk with its entries, and where they begin in it.
    chunk: u32,
    begin: u32,
    piece: u32,
    record: Position,
}

/// The most places in a block.
const BLOCK: usize = 64;
/// The size of a chunk, and of the longest entry.
const CHUNK_BYTES: usize = 1 << 16;
const ENTRY_BYTES: usize = 10 + 4;

impl Places {
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a place behind all others.
    pub fn push(&mut self, place: Place) {
        let distance = self.distance_to(&place);
        if distance.is_none() {
            if self.chunks.last().is_none_or(|chunk| chunk.len() + BLOCK * ENTRY_BYTES > CHUNK_BYTES) {
                self.chunks.push(Vec::with_capacity(CHUNK_BYTES));
            }
            let begin = self.chunks.last().map_or(0, Vec::len) as u32;
            let (chunk, first) = (self.chunks.len() as u32 - 1, self.count);
            self.blocks.push(Block { first, chunk, begin, piece: place.piece, record: place.record });
        }
        if let Some(chunk) = self.chunks.last_mut() {
            push_number(chunk, distance.unwrap_or(0) << 1 | u64::from(place.ends_record));
            chunk.extend(place.checksum.to_le_bytes());
        }
        self.count += 1;
        self.last = Some(place);
    }

    /// Returns the distance from the last record if the place follows it in its block: 0 for the next stretch of that record.
    fn distance_to(&self, place: &Place) -> Option<u64> {
        let last = self.last.filter(|last| last.record.file == place.record.file)?;
        let in_block = self.count - self.blocks.last()?.first;
        let distance =
            place.record.offset.checked_sub(last.record.offset).filter(|distance| distance >> 63 == 0)?;
        let follows = if distance == 0 { place.piece == last.piece + 1 } else { place.piece == 0 };
        (follows && in_block < BLOCK).then_some(distance)
    }

    /// Returns the place with a number.
    pub fn get(&self, number: usize) -> Option<Place> {
        let block =
            self.blocks.get(self.blocks.partition_point(|block| block.first <= number).checked_sub(1)?)?;
        let mut entries = self.chunks.get(block.chunk as usize)?.get(block.begin as usize..)?;
        let mut place = Place { record: block.record, piece: block.piece, ends_record: false, checksum: 0 };
        for at in block.first..=number.min(self.count.checked_sub(1)?) {
            let entry = take_number(&mut entries)?;
            let (checksum, rest) = entries.split_first_chunk()?;
            entries = rest;
            if at > block.first {
                place.piece = if entry >> 1 == 0 { place.piece + 1 } else { 0 };
                place.record.offset += entry >> 1;
            }
            place.ends_record = entry & 1 == 1;
            place.checksum = u32::from_le_bytes(*checksum);
        }
        (number < self.count).then_some(place)
    }

    /// Returns the number of bytes that the places take.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.chunks.iter().map(Vec::capacity).sum::<usize>()
    }
}

/// Appends a number in groups of seven bits, the lowest first.
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_place_is_given_back(
            steps in prop::collection::vec((0_u8..20, prop_oneof![1_u64..9, 1..1_000_000_u64, any::<u64>().prop_map(|n| n >> 8)], 1_u32..4, any::<u32>()), 0..400)
        ) {
            let mut record = Position::default();
            let (mut places, mut want) = (Places::default(), Vec::new());
            for (file, distance, pieces, checksum) in steps {
                if file == 0 {
                    record = Position { file: record.file + 1, offset: 0 };
                }
                record.offset = record.offset.saturating_add(distance);
                want.extend((0..pieces).map(|piece| Place { record, piece, ends_record: piece + 1 == pieces, checksum }));
            }
            want.dedup_by_key(|place| (place.record, place.piece));
            want.iter().for_each(|place| places.push(*place));
            prop_assert_eq!(places.len(), want.len());
            for (number, place) in want.iter().enumerate().rev() {
                prop_assert_eq!(places.get(number), Some(*place));
            }
            prop_assert_eq!(places.get(want.len()), None);
        }
    }

    /// The bound that `trainer-native/README.md` states: 8 bytes a record.
    #[test]
    fn a_line_takes_at_most_eight_bytes() {
        let mut places = Places::default();
        for line in 0..1_000_000 {
            let record = Position { file: 0, offset: 300 * line };
            places.push(Place { record, piece: 0, ends_record: true, checksum: line as u32 });
        }
        let each = places.bytes() as f64 / 1e6;
        assert!(each <= 8.0, "{each} bytes a place");
    }
}
