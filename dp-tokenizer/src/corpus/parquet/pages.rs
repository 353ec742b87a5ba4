//! Checks the counts and sizes in a parquet file for which the parquet crate allocates memory before it reads the data. In a damaged
//! file they may exceed all memory, and a failed allocation ends the program. To read one row, pages before it are skipped.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{
    ChunkReader, FileReader, Length, RowGroupReader, SerializedFileReader, SerializedPageReader,
};
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use super::thrift::{self, variable};

/// The largest page, in bytes without compression. Writers cut columns into pages of about 1 MiB.
pub(super) const MOST_PAGE_BYTES: u64 = 256 << 20;

fn damaged() -> ParquetError {
    ParquetError::General(super::DAMAGED.to_owned())
}

/// What a table is read from: a file, or the file of a browser.
pub(in crate::corpus) trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// An opened table. A copy refers to the same one; each reader has a place of its own in it.
#[derive(Clone)]
pub(super) struct Input {
    file: Arc<Mutex<dyn ReadSeek>>,
    /// The size in bytes.
    pub(super) size: u64,
}

impl Input {
    pub(super) fn new(file: impl ReadSeek + 'static, size: u64) -> Self {
        Self { file: Arc::new(Mutex::new(file)), size }
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Input {
    type T = BufReader<InputFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(InputFrom { input: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = Vec::new();
        let read =
            InputFrom { input: self.clone(), at: start }.take(length as u64).read_to_end(&mut bytes)?;
        if read == length { Ok(bytes.into()) } else { Err(damaged()) }
    }
}

/// A file from a place on.
pub(super) struct InputFrom {
    input: Input,
    at: u64,
}

impl Read for InputFrom {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        // Each reading begins with its own place, so one that was cut off by a panic does no harm.
        let mut file = self.input.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(out)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A file whose pages are checked while they are read. Columns are flat, without lists or groups.
pub(super) struct Checked {
    pub(super) reader: SerializedFileReader<Input>,
    /// The same file, for its pages.
    pub(super) pages: Arc<Pages>,
    /// The size of the file in bytes.
    pub(super) size: u64,
}

impl FileReader for Checked {
    fn metadata(&self) -> &ParquetMetaData {
        self.reader.metadata()
    }

    fn num_row_groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    fn get_row_group(&self, group: usize) -> Result<Box<dyn RowGroupReader + '_>> {
        Ok(Box::new(self.group(group, None)?))
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_file(projection, self)
    }
}

impl Checked {
    fn group(&self, group: usize, skipped: Option<Arc<AtomicU64>>) -> Result<Group<'_>> {
        let (group, pages) = (self.reader.get_row_group(group)?, Arc::clone(&self.pages));
        Ok(Group { group, pages, size: self.size, skipped })
    }

    /// Returns a group for one column, without the pages before the one with row `before`. Once the column is read, the
    /// counter holds the number of rows of that page before this row.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn group_from(&self, group: usize, before: u64) -> Result<(Group<'_>, Arc<AtomicU64>)> {
        let left = Arc::new(AtomicU64::new(before));
        Ok((self.group(group, Some(Arc::clone(&left)))?, left))
    }
}

pub(super) struct Group<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    pages: Arc<Pages>,
    size: u64,
    /// The number of rows to skip, less those of whole pages that were skipped.
    skipped: Option<Arc<AtomicU64>>,
}

impl RowGroupReader for Group<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.group.metadata()
    }

    fn num_columns(&self) -> usize {
        self.group.num_columns()
    }

    fn get_column_page_reader(&self, column: usize) -> Result<Box<dyn PageReader>> {
        let stated = self.metadata().column(column);
        let (start, length) = stated.byte_range();
        if start.checked_add(length).is_none_or(|end| end > self.size) {
            return Err(damaged());
        }
        let is_optional = stated.column_descr().max_def_level() > 0;
        let inflate = match stated.compression() {
            Compression::GZIP(_) => Some(inflated_gzip as Inflate),
            Compression::ZSTD(_) => Some(inflated_zstd as Inflate),
            _ => None,
        };
        // The parquet crate would inflate a page to any size, so pages are read as they are and inflated here.
        let uncompressed =
            || stated.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build();
        let chunk = if inflate.is_some() { &uncompressed()? } else { stated };
        let rows = usize::try_from(self.metadata().num_rows()).map_err(|_| damaged())?;
        let pages = SerializedPageReader::new(Arc::clone(&self.pages), chunk, rows, None)?;
        let skipped = self.skipped.clone();
        Ok(Box::new(CheckedPages { pages, is_optional, inflate, skipped }))
    }

    fn get_column_bloom_filter(&self, column: usize) -> Option<&Sbbf> {
        self.group.get_column_bloom_filter(column)
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// The file as the pages of its columns are read from it. A page that states more than [`MOST_PAGE_BYTES`] is refused.
pub(super) struct Pages(pub(super) Input);

impl Length for Pages {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Pages {
    type T = Header;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(Header { rest: self.0.get_read(start)?, is_checked: false })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// A page from its header on, which is checked when it is read. A page whose header was read before is not checked
/// again.
pub(super) struct Header {
    rest: BufReader<InputFrom>,
    is_checked: bool,
}

impl Read for Header {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if !std::mem::replace(&mut self.is_checked, true) {
            let error = match thrift::uncompressed_size(self.rest.fill_buf()?) {
                Some(0..=MOST_PAGE_BYTES) => None,
                Some(size) => Some(too_large(size)),
                None => Some(damaged()),
            };
            error.map_or(Ok(()), |error| Err(std::io::Error::other(error)))?;
        }
        self.rest.read(out)
    }
}

fn too_large(size: u64) -> ParquetError {
    ParquetError::General(format!(
        "a page of {size} bytes or more; allowed: at most {MOST_PAGE_BYTES}; write the file with smaller pages"
    ))
}

/// Returns the content of a compressed part of a page.
type Inflate = fn(&[u8]) -> Result<Vec<u8>>;

fn inflated_gzip(compressed: &[u8]) -> Result<Vec<u8>> {
    bounded(flate2::read::MultiGzDecoder::new(compressed))
}

fn inflated_zstd(compressed: &[u8]) -> Result<Vec<u8>> {
    bounded(ruzstd::decoding::StreamingDecoder::new(compressed).map_err(|_| damaged())?)
}

/// Reads at most [`MOST_PAGE_BYTES`].
fn bounded(decoder: impl Read) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    decoder.take(MOST_PAGE_BYTES + 1).read_to_end(&mut content)?;
    match content.len() as u64 {
        0..=MOST_PAGE_BYTES => Ok(content),
        size => Err(too_large(size)),
    }
}

/// Inflates a page that was read compressed.
fn inflated_page(mut page: Page, inflate: Inflate) -> Result<Page> {
    match &mut page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } if !buf.is_empty() => {
            *buf = inflate(buf)?.into();
        }
        // The levels of this page are not compressed. Without a value, nothing follows them.
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, is_compressed: true, .. } => {
            let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len).ok_or_else(damaged)?;
            let (levels, values) = buf.split_at_checked(levels as usize).ok_or_else(damaged)?;
            if !values.is_empty() {
                *buf = [levels, &inflate(values)?].concat().into();
            }
        }
        _ => {}
    }
    Ok(page)
}

struct CheckedPages {
    pages: SerializedPageReader<Pages>,
    /// Whether values may be missing, so that a page begins with a list of the missing ones.
    is_optional: bool,
    /// How pages that are read in their compressed form are inflated.
    inflate: Option<Inflate>,
    /// The number of rows that may still be skipped; `None` once a page of values was read.
    skipped: Option<Arc<AtomicU64>>,
}

impl CheckedPages {
    /// Skips the pages that end before the wanted row. A dictionary is read.
    fn skip(&mut self) -> Result<()> {
        while let Some(left) = &self.skipped {
            let rows = match self.pages.peek_next_page()? {
                Some(page) if page.is_dict => return Ok(()),
                Some(page) => page.num_rows.or(page.num_levels),
                None => None,
            };
            let rest = left.load(Ordering::Relaxed).checked_sub(rows.ok_or_else(damaged)? as u64);
            match rest {
                Some(rest) => {
                    left.store(rest, Ordering::Relaxed);
                    self.pages.skip_next_page()?;
                }
                None => self.skipped = None,
            }
        }
        Ok(())
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.skip()?;
        let page = self.pages.get_next_page()?;
        let page = match self.inflate {
            Some(inflate) => page.map(|page| inflated_page(page, inflate)).transpose()?,
            None => page,
        };
        if page.as_ref().is_none_or(|page| is_sound(page, self.is_optional) == Some(true)) {
            return Ok(page);
        }
        Err(damaged())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

/// Whether a page can hold the number of values that it states; `None` if it ends too soon.
fn is_sound(page: &Page, is_optional: bool) -> Option<bool> {
    let (values, encoding, most) = match page {
        // A value takes at least one byte.
        Page::DictionaryPage { buf, num_values, .. } => return Some(*num_values as usize <= buf.len()),
        Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
            let before = match def_level_encoding {
                _ if !is_optional => 0,
                Encoding::RLE => {
                    let length = buf.get(..4)?.try_into().ok()?;
                    4 + u32::from_le_bytes(length) as usize
                }
                _ => num_values.div_ceil(8) as usize,
            };
            (buf.get(before..)?, *encoding, *num_values)
        }
        Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let before = def_levels_byte_len.checked_add(*rep_levels_byte_len)? as usize;
            (buf.get(before..)?, *encoding, *num_values)
        }
    };
    let most = u64::from(most);
    Some(match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => Deltas::at(values, 0)?.count <= most,
        Encoding::DELTA_BYTE_ARRAY => {
            let prefixes = Deltas::at(values, 0)?;
            prefixes.count <= most && Deltas::at(values, prefixes.end(values)?)?.count <= most
        }
        _ => true,
    })
}

/// The header of a list of numbers in the format's delta encoding.
struct Deltas {
    block: u64,
    parts: u64,
    count: u64,
    /// The offset at which the blocks begin.
    blocks: usize,
}

impl Deltas {
    fn at(bytes: &[u8], mut at: usize) -> Option<Self> {
        let (block, parts) = (variable(bytes, &mut at)?, variable(bytes, &mut at)?);
        let count = variable(bytes, &mut at)?;
        variable(bytes, &mut at)?; // The first number.
        Some(Self { block, parts, count, blocks: at })
    }

    /// Returns where the list ends. Each block has a least difference, the width of each part in bits, and the parts.
    fn end(&self, bytes: &[u8]) -> Option<usize> {
        let numbers = self.block.checked_div(self.parts).filter(|&numbers| numbers > 0)?;
        let (mut at, mut left) = (self.blocks, self.count.saturating_sub(1));
        while left > 0 {
            variable(bytes, &mut at)?;
            let widths = bytes.get(at..at.checked_add(usize::try_from(self.parts).ok()?)?)?;
            at += widths.len();
            for &width in widths {
                if left > 0 {
                    let length = u64::from(width).checked_mul(numbers)? / 8;
                    at = at.checked_add(usize::try_from(length).ok()?)?;
                }
                left = left.saturating_sub(numbers);
            }
        }
        Some(at)
    }
}
