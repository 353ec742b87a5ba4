//! Writes a token file from front to back.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{DIGEST_BYTES, HEADER_BYTES, MAGIC, TokenFileError, VERSION};
use crate::unit::PrivacyUnit;
use durable::{ExclusiveFile, for_the_owner_alone};

/// The place of a part in a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPlace {
    /// The unit to which the part belongs.
    pub unit: u64,
    /// Whether a record begins with the part.
    pub begins_record: bool,
    /// Whether a record ends with the part.
    pub ends_record: bool,
}

impl PartPlace {
    /// Returns the place of a part that is a whole record.
    #[must_use]
    pub fn whole_record(unit: u64) -> Self {
        Self { unit, begins_record: true, ends_record: true }
    }
}

/// Writes a token file, which exists only after [`TokenWriter::finish`]. The writer takes 16 bytes of memory per part
/// and 8 per unit, or none where each part is a unit of its own.
#[derive(Debug)]
pub struct TokenWriter {
    path: PathBuf,
    file: BufWriter<ExclusiveFile>,
    unit: PrivacyUnit,
    tokenizer_sha256: [u8; 32],
    vocab_size: u64,
    tokens: u64,
    /// For each part, the index of its first token, and its unit with flags, in a file without a name.
    parts: BufWriter<File>,
    /// The unit of each part; `None` until a unit is not the number of its part.
    owners: Option<Vec<u64>>,
    count: u64,
    units: u64,
    bytes: Vec<u8>,
    /// The digest of everything after the header.
    digest: Sha256,
}

impl TokenWriter {
    /// Begins a file under a hidden name in the same folder, which only this process writes. All ids must be below `vocab_size`.
    ///
    /// ```
    /// use dp_tokenizer::unit::PrivacyUnit;
    /// use dp_tokenizer::tokens::{PartPlace, TokenDataset, TokenWriter};
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("notes.tokens");
    /// let mut writer = TokenWriter::create(&path, PrivacyUnit::Record, [0; 32], 100)?;
    /// writer.push(PartPlace::whole_record(0), &[5, 6, 7])?;
    /// writer.push(PartPlace::whole_record(1), &[8])?;
    /// writer.finish()?;
    /// let data = TokenDataset::open(&path)?;
    /// let mut window = Vec::new();
    /// data.read(1..3, &mut window)?;
    /// assert_eq!((data.units(), window), (2, vec![6, 7]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TokenFileError::Io`] where the folder cannot be written.
    pub fn create(
        path: &Path,
        unit: PrivacyUnit,
        tokenizer_sha256: [u8; 32],
        vocab_size: u64,
    ) -> Result<Self, TokenFileError> {
        let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let opened = (|| {
            let mut file = ExclusiveFile::take_for(path)?;
            file.write_all(&[0; HEADER_BYTES as usize])?;
            let parts = tempfile::tempfile_in(folder)?;
            for_the_owner_alone(&parts).map(|()| (file, parts))
        })();
        let (file, parts) = opened.map_err(|error: std::io::Error| io_error(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file),
            unit,
            tokenizer_sha256,
            vocab_size,
            tokens: 0,
            parts: BufWriter::with_capacity(1 << 16, parts),
            owners: None,
            count: 0,
            units: 0,
            bytes: Vec::new(),
            digest: Sha256::new(),
        })
    }

    /// Adds the next part of the corpus.
    ///
    /// # Errors
    /// [`TokenFileError::IdOutOfRange`], after which the file is as before; [`TokenFileError::Io`].
    pub fn push(&mut self, place: PartPlace, tokens: &[u32]) -> Result<(), TokenFileError> {
        let PartPlace { unit, begins_record, ends_record } = place;
        if let Some(&id) = tokens.iter().find(|id| u64::from(**id) >= self.vocab_size) {
            return Err(TokenFileError::IdOutOfRange { id, vocab_size: self.vocab_size });
        }
        self.bytes.clear();
        if token_bytes(self.vocab_size) == 2 {
            self.bytes.extend(tokens.iter().flat_map(|&id| (id as u16).to_le_bytes()));
        } else {
            self.bytes.extend(tokens.iter().flat_map(|id| id.to_le_bytes()));
        }
        self.digest.update(&self.bytes);
        self.file.write_all(&self.bytes).map_err(|error| io_error(&self.path, &error))?;
        let marked = unit << 2 | u64::from(begins_record) << 1 | u64::from(ends_record);
        let part = [self.tokens.to_le_bytes(), marked.to_le_bytes()].concat();
        self.parts.write_all(&part).map_err(|error| io_error(&self.path, &error))?;
        if self.owners.is_none() && unit != self.count {
            self.owners = Some((0..self.count).collect());
        }
        if let Some(owners) = &mut self.owners {
            owners.push(unit);
        }
        self.count += 1;
        self.tokens += tokens.len() as u64;
        self.units = self.units.max(unit + 1);
        Ok(())
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// [`TokenFileError::Io`]; then nothing is left behind.
    pub fn finish(mut self) -> Result<(), TokenFileError> {
        let path = self.path.clone();
        self.write_tables().map_err(|error| io_error(&path, &error))?;
        let file = self.file.into_inner().map_err(|error| io_error(&path, error.error()))?;
        file.persist(&path).map_err(|error| io_error(&path, &error))
    }

    fn write_tables(&mut self) -> std::io::Result<()> {
        let token_bytes = token_bytes(self.vocab_size);
        let written = self.tokens * u64::from(token_bytes);
        let gap = written.next_multiple_of(8) - written;
        self.put(&[0; 8][..gap as usize])?;
        self.copy_parts()?;
        match self.owners.take() {
            None => {
                for number in (0..self.count).chain(0..self.count) {
                    self.put(&number.to_le_bytes())?;
                }
            }
            Some(owners) => {
                let (starts, parts) = by_unit(&owners, self.units as usize);
                for number in starts.iter().chain(&parts) {
                    self.put(&number.to_le_bytes())?;
                }
            }
        }
        let header = self.header();
        let digest = file_digest(&header, std::mem::take(&mut self.digest));
        self.file.write_all(&digest)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        self.file.flush()
    }

    fn copy_parts(&mut self) -> std::io::Result<()> {
        self.parts.flush()?;
        let mut file = self.parts.get_ref().try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            self.put(&buffer[..count])?;
        }
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.digest.update(bytes);
        self.file.write_all(bytes)
    }

    fn header(&self) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend(VERSION.to_le_bytes());
        header.extend(token_bytes(self.vocab_size).to_le_bytes());
        for number in [self.count, self.units, self.tokens, self.vocab_size] {
            header.extend(number.to_le_bytes());
        }
        header.extend(self.tokenizer_sha256);
        let unit = match self.unit {
            PrivacyUnit::Record => 0,
            PrivacyUnit::User => 1,
            // No reader knows this kind: text cannot be divided among owners.
            PrivacyUnit::Owner => u64::MAX,
            PrivacyUnit::Words(words) => u64::from(words) + 1,
        };
        header.extend(unit.to_le_bytes());
        header
    }
}

/// Returns the table of units: for each unit, the index of its first part in the list that follows, and this list,
/// which has the parts unit by unit in the order of the corpus.
fn by_unit(owners: &[u64], units: usize) -> (Vec<u64>, Vec<u64>) {
    let mut ends = vec![0; units];
    owners.iter().for_each(|&unit| ends[unit as usize] += 1);
    let mut next = 0;
    for end in &mut ends {
        next += *end;
        *end = next;
    }
    let mut parts = vec![0; owners.len()];
    // From the last part on, the place of each unit moves from its end to its start.
    for (part, &unit) in owners.iter().enumerate().rev() {
        ends[unit as usize] -= 1;
        parts[ends[unit as usize] as usize] = part as u64;
    }
    (ends, parts)
}

/// Returns the bytes of a token: two for the ids of most vocabularies, else four.
fn token_bytes(vocab_size: u64) -> u32 {
    if vocab_size <= 1 << 16 { 2 } else { 4 }
}

/// Returns the digest at the end of the file, from its header and the digest of what follows the header.
pub(super) fn file_digest(header: &[u8], contents: Sha256) -> [u8; DIGEST_BYTES as usize] {
    Sha256::new().chain_update(header).chain_update(contents.finalize()).finalize().into()
}

pub(super) fn io_error(path: &Path, error: &std::io::Error) -> TokenFileError {
    TokenFileError::Io { path: path.to_owned(), reason: error.to_string() }
}
