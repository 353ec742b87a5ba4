//! Reads windows of a token file.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::tables::{Fault, Tables, TokenPart};
use super::write::{file_digest, io_error};
use super::{DIGEST_BYTES, HEADER_BYTES, MAGIC, TokenFileError, VERSION};
use crate::unit::PrivacyUnit;

/// An open token file. Its tables are in memory: where parts have t tokens on average, they take about 3 + log₂ t bits per part,
/// and where units have several parts, as users do, also log₂ of the number of parts and log₂ of the number of units. Tokens are read
/// from disk, by several threads at once if needed.
#[derive(Debug)]
pub struct TokenDataset {
    path: PathBuf,
    file: File,
    unit: PrivacyUnit,
    token_bytes: u64,
    tokens: u64,
    vocab_size: u64,
    tokenizer_sha256: [u8; 32],
    tables: Tables,
    sha256: [u8; 32],
}

impl TokenDataset {
    /// Opens a file, reads it once to compare it with its digest, and checks its tables.
    ///
    /// # Errors
    /// [`TokenFileError::Malformed`] where header and tables do not fit each other or the file's size, or a byte was changed.
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        Self::open_with(path, true)
    }

    /// Opens a file as [`Self::open`] does, without reading its tokens: another process compares them with the digest.
    ///
    /// # Errors
    /// As [`Self::open`], except for a byte of a token that was changed.
    pub fn open_unread(path: &Path) -> Result<Self, TokenFileError> {
        Self::open_with(path, false)
    }

    fn open_with(path: &Path, reads_all: bool) -> Result<Self, TokenFileError> {
        let io = |error: std::io::Error| io_error(path, &error);
        let malformed = |reason| TokenFileError::Malformed { path: path.to_owned(), reason };
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        if size < HEADER_BYTES {
            return Err(malformed("shorter than a header"));
        }
        let mut header = [0; HEADER_BYTES as usize];
        read_at(&file, 0, &mut header).map_err(io)?;
        let word = |at: usize| header[at..at + 8].iter().rev().fold(0_u64, |sum, b| sum << 8 | u64::from(*b));
        if header[..8] != MAGIC || word(8) as u32 != VERSION {
            return Err(malformed("another magic number or version"));
        }
        let token_bytes = word(8) >> 32;
        let (parts, units, tokens, vocab_size) = (word(16), word(24), word(32), word(40));
        if !matches!(token_bytes, 2 | 4) || vocab_size > 1 << 32 {
            return Err(malformed("tokens of neither 2 nor 4 bytes"));
        }
        let tables = (|| {
            let start =
                HEADER_BYTES.checked_add(tokens.checked_mul(token_bytes)?.checked_next_multiple_of(8)?)?;
            let length = parts.checked_mul(24)?.checked_add(units.checked_mul(8)?)?;
            (start.checked_add(length)?.checked_add(DIGEST_BYTES)? == size).then_some(start)
        })();
        let start = tables.ok_or_else(|| malformed("its size is not the one its header states"))?;
        let mut tokenizer_sha256 = [0; 32];
        tokenizer_sha256.copy_from_slice(&header[48..80]);
        let unit = match word(80) {
            0 => PrivacyUnit::Record,
            1 => PrivacyUnit::User,
            words => {
                PrivacyUnit::Words(u32::try_from(words - 1).map_err(|_| malformed("units of no known kind"))?)
            }
        };
        let mut data = Self {
            path: path.to_owned(),
            file,
            unit,
            token_bytes,
            tokens,
            vocab_size,
            tokenizer_sha256,
            tables: Tables::default(),
            sha256: [0; 32],
        };
        read_at(&data.file, size - DIGEST_BYTES, &mut data.sha256).map_err(io)?;
        if reads_all {
            data.check_digest(&header, size)?;
        }
        // The numbers fit the file's size, so no table is larger than the file.
        let mut file = BufReader::with_capacity(1 << 20, &data.file);
        file.seek(SeekFrom::Start(start)).map_err(io)?;
        let tables = Tables::read(file, parts, units, tokens);
        data.tables = tables.map_err(|fault| match fault {
            Fault::Unreadable(error) => io(error),
            Fault::Malformed(reason) => malformed(reason),
        })?;
        Ok(data)
    }

    fn check_digest(&self, header: &[u8], size: u64) -> Result<(), TokenFileError> {
        let io = |error: std::io::Error| io_error(&self.path, &error);
        let mut contents = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        let (mut at, end) = (HEADER_BYTES, size - DIGEST_BYTES);
        while at < end {
            let count = (end - at).min(buffer.len() as u64) as usize;
            read_at(&self.file, at, &mut buffer[..count]).map_err(io)?;
            contents.update(&buffer[..count]);
            at += count as u64;
        }
        if self.sha256 == file_digest(header, contents) {
            return Ok(());
        }
        let path = self.path.clone();
        Err(TokenFileError::Malformed { path, reason: "its contents do not match its digest" })
    }

    /// Returns the privacy unit.
    #[must_use]
    pub fn unit(&self) -> PrivacyUnit {
        self.unit
    }

    /// Returns the SHA-256 of the file of the tokenizer that encoded the corpus.
    #[must_use]
    pub fn tokenizer_sha256(&self) -> &[u8; 32] {
        &self.tokenizer_sha256
    }

    /// Returns the digest at the end of the file. It is private if the text is.
    #[must_use]
    pub fn sha256(&self) -> &[u8; 32] {
        &self.sha256
    }

    /// Returns the size of the vocabulary, below which all ids lie.
    #[must_use]
    pub fn vocab_size(&self) -> u64 {
        self.vocab_size
    }

    /// Returns the number of parts. It is private if the text is, as are the next two.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.tables.parts() as u64
    }

    /// Returns the number of units.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.tables.units() as u64
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns a part, counted from 0 in the order of the corpus.
    #[must_use]
    pub fn part(&self, number: u64) -> Option<TokenPart> {
        self.tables.part(usize::try_from(number).ok()?)
    }

    /// Returns the numbers of a unit's parts, in the order of the corpus.
    #[must_use]
    pub fn parts_of(&self, unit: u64) -> Option<impl ExactSizeIterator<Item = u64>> {
        self.tables.parts_of(usize::try_from(unit).ok()?)
    }

    #[cfg(test)]
    pub(super) fn bytes_of_tables(&self) -> usize {
        self.tables.bytes()
    }

    /// Replaces the content of `out` by these tokens: those of a part, or a window of them.
    ///
    /// # Errors
    /// [`TokenFileError`] for a range beyond the end, an id beyond the vocabulary, or a file that cannot be read.
    pub fn read(&self, tokens: Range<u64>, out: &mut Vec<u32>) -> Result<(), TokenFileError> {
        out.clear();
        if !(tokens.start <= tokens.end && tokens.end <= self.tokens) {
            let Range { start: from, end: to } = tokens;
            return Err(TokenFileError::RangeOutOfBounds { from, to, tokens: self.tokens });
        }
        let mut bytes = vec![0; ((tokens.end - tokens.start) * self.token_bytes) as usize];
        let at = HEADER_BYTES + tokens.start * self.token_bytes;
        read_at(&self.file, at, &mut bytes).map_err(|error| io_error(&self.path, &error))?;
        if self.token_bytes == 2 {
            out.extend(bytes.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]]))));
        } else {
            out.extend(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        }
        match out.iter().find(|id| u64::from(**id) >= self.vocab_size) {
            Some(&id) => Err(TokenFileError::IdOutOfRange { id, vocab_size: self.vocab_size }),
            None => Ok(()),
        }
    }
}

/// Reads without the file's cursor, so that threads do not interfere.
#[cfg(unix)]
fn read_at(file: &File, at: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut at: u64, mut bytes: &mut [u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        at += count as u64;
        bytes = &mut bytes[count..];
    }
    Ok(())
}
