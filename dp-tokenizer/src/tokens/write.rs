//! Writes a token file from front to back.

use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::{DIGEST_BYTES, HEADER_BYTES, MAGIC, TokenFileError, VERSION};
use crate::unit::PrivacyUnit;

/// Where a part of a corpus stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPlace {
    /// The unit it belongs to.
    pub unit: u64,
    /// Whether a record begins with it.
    pub begins_record: bool,
    /// Whether a record ends with it.
    pub ends_record: bool,
}

impl PartPlace {
    /// A part that is a whole record.
    #[must_use]
    pub fn whole_record(unit: u64) -> Self {
        Self { unit, begins_record: true, ends_record: true }
    }
}

/// Writes a token file, which exists only after [`TokenWriter::finish`]. Memory: 24 bytes per part.
#[derive(Debug)]
pub struct TokenWriter {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    unit: PrivacyUnit,
    tokenizer_sha256: [u8; 32],
    vocab_size: u64,
    tokens: u64,
    /// For each part, the index of its first token, and its unit with flags.
    parts: Vec<(u64, u64)>,
    units: u64,
    bytes: Vec<u8>,
    /// Of everything after the header.
    digest: Sha256,
}

impl TokenWriter {
    /// Begins a file under a temporary name in the same folder. All ids must be below `vocab_size`.
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
        let file = NamedTempFile::new_in(folder)
            .and_then(|mut file| file.write_all(&[0; HEADER_BYTES as usize]).map(|()| file))
            .map_err(|error| io_error(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file),
            unit,
            tokenizer_sha256,
            vocab_size,
            tokens: 0,
            parts: Vec::new(),
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
        self.parts.push((self.tokens, unit << 2 | u64::from(begins_record) << 1 | u64::from(ends_record)));
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
        file.as_file().sync_all().map_err(|error| io_error(&path, &error))?;
        file.persist(&path).map_err(|error| io_error(&path, &error.error))?;
        Ok(())
    }

    fn write_tables(&mut self) -> std::io::Result<()> {
        let token_bytes = token_bytes(self.vocab_size);
        let written = self.tokens * u64::from(token_bytes);
        let gap = written.next_multiple_of(8) - written;
        self.put(&[0; 8][..gap as usize])?;
        for (start, marks) in self.parts.clone() {
            self.put(&start.to_le_bytes())?;
            self.put(&marks.to_le_bytes())?;
        }
        let mut by_unit: Vec<u64> = (0..self.parts.len() as u64).collect();
        // Stable: a unit's parts stay in the corpus's order.
        by_unit.sort_by_key(|&part| self.parts[part as usize].1 >> 2);
        let mut next = 0;
        for unit in 0..self.units {
            self.put(&(next as u64).to_le_bytes())?;
            next +=
                by_unit[next..].iter().take_while(|&&part| self.parts[part as usize].1 >> 2 == unit).count();
        }
        by_unit.iter().try_for_each(|part| self.put(&part.to_le_bytes()))?;
        let header = self.header();
        let digest = file_digest(&header, std::mem::take(&mut self.digest));
        self.file.write_all(&digest)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        self.file.flush()
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.digest.update(bytes);
        self.file.write_all(bytes)
    }

    fn header(&self) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend(VERSION.to_le_bytes());
        header.extend(token_bytes(self.vocab_size).to_le_bytes());
        for number in [self.parts.len() as u64, self.units, self.tokens, self.vocab_size] {
            header.extend(number.to_le_bytes());
        }
        header.extend(self.tokenizer_sha256);
        let unit = match self.unit {
            PrivacyUnit::Record => 0,
            PrivacyUnit::User => 1,
            PrivacyUnit::Words(words) => u64::from(words) + 1,
        };
        header.extend(unit.to_le_bytes());
        header
    }
}

/// Two bytes are enough for the ids of most vocabularies.
fn token_bytes(vocab_size: u64) -> u32 {
    if vocab_size <= 1 << 16 { 2 } else { 4 }
}

/// What the file ends with, from its header and the digest of what follows the header.
pub(super) fn file_digest(header: &[u8], contents: Sha256) -> [u8; DIGEST_BYTES as usize] {
    Sha256::new().chain_update(header).chain_update(contents.finalize()).finalize().into()
}

pub(super) fn io_error(path: &Path, error: &std::io::Error) -> TokenFileError {
    TokenFileError::Io { path: path.to_owned(), reason: error.to_string() }
}
