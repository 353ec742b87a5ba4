//! Counts the shares of a corpus in several processes, which send their counts to one of them.
//!
//! What is sent has the form of the file of a part (`shard`), without a digest.

use mechanisms::Words;

use super::CountOptions;
use super::parallel::{Collected, collect_blocks};
use super::run::owner_hash;
use super::shard::{Sizes, write_units};
use super::spill::{SpillBuffer, SpillFile, damaged};
use super::units::{UnitItems, room};
use crate::corpus::{LineFiles, ShareBlocks};
use crate::unit::{PrivacyUnit, UnitError};

/// Bytes beyond the memory of their process go to a temporary file.
struct Bytes {
    spill: SpillFile,
    /// The most bytes in memory.
    most: usize,
    held: usize,
}

impl Bytes {
    fn new(options: &CountOptions) -> Self {
        let most = usize::try_from(room(options) / 8).unwrap_or(usize::MAX);
        Self { spill: SpillFile::new(options.spill_folder.clone()), most, held: 0 }
    }

    /// Appends bytes to one of all buffers.
    fn push(&mut self, all: &mut [SpillBuffer], to: usize, bytes: &[u8]) -> Result<(), UnitError> {
        all.get_mut(to).ok_or_else(damaged)?.push(bytes);
        self.held += bytes.len();
        if self.held > self.most {
            self.held = 0;
            return all.iter_mut().try_for_each(|buffer| buffer.store(&self.spill));
        }
        Ok(())
    }
}

/// The items of the units in one share of a corpus. They are private: only a mechanism may publish anything about them.
pub struct CountedShare {
    sizes: Sizes,
    data: [SpillBuffer; 1],
    bytes: Bytes,
}

impl CountedShare {
    /// Counts the items of each unit of the records in share `number` of `shares`, as [`LineFiles::share_of`] divides the files.
    ///
    /// # Errors
    /// As [`UnitItems::read`]. A share may be without records.
    pub fn read(
        files: &LineFiles,
        sizes: &[u64],
        number: u64,
        shares: u64,
        unit: PrivacyUnit,
        words: Words,
        options: &CountOptions,
    ) -> Result<Self, UnitError> {
        let spill = SpillFile::new(options.spill_folder.clone());
        let blocks = ShareBlocks::new(files.share_of(sizes, number, shares)?);
        let collected = collect_blocks(blocks, Some(unit), words, options, &spill)?;
        let (mut data, mut bytes) = ([SpillBuffer::default()], Bytes::new(options));
        let sizes =
            write_units(collected, unit, spill, room(options), &mut |piece| bytes.push(&mut data, 0, piece))?;
        Ok(Self { sizes, data, bytes })
    }

    /// Returns the sizes of the counts, for [`GatheredShares::into_items`].
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        serde_json::to_vec(&self.sizes).unwrap_or_default()
    }

    /// Returns the number of bytes of the counts.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.data[0].length()
    }

    /// Returns a function that fills its argument with the next bytes of the counts.
    ///
    /// # Errors
    /// Those of the function: if data in the temporary file cannot be read back.
    pub fn bytes(&self) -> impl FnMut(&mut [u8]) -> Result<(), UnitError> {
        let mut reader = self.data[0].reader(&self.bytes.spill, usize::MAX);
        move |bytes| reader.fill(bytes)
    }
}

/// The counts of all shares, as they arrive.
pub struct GatheredShares {
    data: Vec<SpillBuffer>,
    bytes: Bytes,
    options: CountOptions,
}

impl GatheredShares {
    /// Returns the counts of `shares` shares before any bytes arrive.
    #[must_use]
    pub fn new(shares: usize, options: &CountOptions) -> Self {
        let data = (0..shares).map(|_| SpillBuffer::default()).collect();
        Self { data, bytes: Bytes::new(options), options: options.clone() }
    }

    /// Takes the next bytes of a share.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn push(&mut self, share: usize, bytes: &[u8]) -> Result<(), UnitError> {
        self.bytes.push(&mut self.data, share, bytes)
    }

    /// Returns the items of each unit of the corpus: the same as if one process had read all of it. `heads` are those of the shares, in
    /// order. The parts of a user are brought together, wherever they lie.
    ///
    /// # Errors
    /// If the data are not those of the heads, or the temporary file cannot be written or read back.
    pub fn into_items(self, heads: &[Vec<u8>], unit: PrivacyUnit) -> Result<UnitItems, UnitError> {
        let Self { data, bytes, options } = self;
        if heads.len() != data.len() {
            return Err(damaged());
        }
        let (mut runs, mut blocks) = (Vec::new(), Vec::new());
        for (number, (data, head)) in data.into_iter().zip(heads).enumerate() {
            let sizes: Sizes = serde_json::from_slice(head).map_err(|_| damaged())?;
            runs.push(sizes.run(data, number, unit)?);
            blocks.push((number as u64, sizes.units));
        }
        let collected = Collected { runs: vec![runs], blocks, ..Collected::default() };
        let grouped = unit == PrivacyUnit::User;
        UnitItems::of_gathered(collected, grouped, owner_hash, bytes.spill, room(&options))
    }
}
