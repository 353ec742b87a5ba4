//! Records of the user's files, one file after the other.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::{BadUtf8, CorpusError, Files, Format, Record, json_line};

/// Extensions of binary forms that would only give rubbish if read as text.
const NOT_TEXT: &[&str] = &[
    "parquet",
    "arrow",
    "feather",
    "zip",
    "7z",
    "bz2",
    "xz",
    "tar",
    "pdf",
    "docx",
    "xlsx",
    "sqlite",
    "npy",
    "npz",
    "pt",
    "bin",
    "safetensors",
];

const BUFFER_BYTES: usize = 1 << 20;

pub(super) struct FileRecords {
    files: Files,
    next_file: usize,
    current: Option<OpenFile>,
    buffer: Vec<u8>,
    replaced_lines: u64,
    failed: bool,
}

struct OpenFile {
    path: PathBuf,
    format: Format,
    reader: BufReader<Box<dyn Read + Send>>,
    line: u64,
}

impl FileRecords {
    pub(super) fn open(files: Files) -> Result<Self, CorpusError> {
        // A missing last file should not come to light hours into a run.
        for path in &files.paths {
            open_file(path, files.format)?;
        }
        Ok(Self { files, next_file: 0, current: None, buffer: Vec::new(), replaced_lines: 0, failed: false })
    }

    pub(super) fn replaced_lines(&self) -> u64 {
        self.replaced_lines
    }

    fn try_next(&mut self) -> Result<Option<Record>, CorpusError> {
        loop {
            let Some(file) = &mut self.current else {
                let Some(path) = self.files.paths.get(self.next_file) else { return Ok(None) };
                self.current = Some(open_file(path, self.files.format)?);
                self.next_file += 1;
                continue;
            };
            let read = read_line(&mut file.reader, &mut self.buffer, MAX_LINE_BYTES).map_err(|error| {
                CorpusError::Interrupted {
                    path: file.path.clone(),
                    line: file.line,
                    reason: error.to_string(),
                }
            })?;
            file.line += 1;
            match read {
                Line::End => self.current = None,
                Line::TooLong => {
                    return Err(CorpusError::LineTooLong {
                        path: file.path.clone(),
                        line: file.line,
                        cap: MAX_LINE_BYTES,
                    });
                }
                Line::Read => {
                    if let Some(record) = self.record()? {
                        return Ok(Some(record));
                    }
                }
            }
        }
    }

    /// The record of the line in the buffer; none for a blank line.
    fn record(&mut self) -> Result<Option<Record>, CorpusError> {
        const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
        let Some(file) = &self.current else { return Ok(None) };
        let bytes = if file.line == 1 {
            self.buffer.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.buffer)
        } else {
            &self.buffer
        };
        let text = match (std::str::from_utf8(bytes), self.files.bad_utf8) {
            (Ok(text), _) => text.to_owned(),
            (Err(_), BadUtf8::Replace) => {
                self.replaced_lines += 1;
                String::from_utf8_lossy(bytes).into_owned()
            }
            (Err(_), BadUtf8::Refuse) => {
                return Err(CorpusError::NotUtf8 { path: file.path.clone(), line: file.line });
            }
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        if file.format == Format::Text {
            return Ok(Some(Record { text, user: None }));
        }
        json_line::parse(&text, &self.files.text_field, self.files.user_field.as_deref())
            .map(Some)
            .map_err(|reason| CorpusError::BadJson { path: file.path.clone(), line: file.line, reason })
    }
}

impl Iterator for FileRecords {
    type Item = Result<Record, CorpusError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.try_next().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

fn open_file(path: &Path, format: Format) -> Result<OpenFile, CorpusError> {
    let unreadable = |reason: String| CorpusError::Unreadable { path: path.to_owned(), reason };
    let lower = path.to_string_lossy().to_lowercase();
    let (stem, compression) = match (lower.strip_suffix(".gz"), lower.strip_suffix(".zst")) {
        (Some(stem), _) => (stem, Compression::Gzip),
        (_, Some(stem)) => (stem, Compression::Zstd),
        _ => (lower.as_str(), Compression::None),
    };
    let extension = Path::new(stem).extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    let format = match format {
        Format::Auto if NOT_TEXT.contains(&extension.as_str()) => {
            return Err(CorpusError::UnknownFormat { path: path.to_owned(), extension });
        }
        Format::Auto if matches!(extension.as_str(), "jsonl" | "ndjson") => Format::JsonLines,
        Format::Auto => Format::Text,
        chosen => chosen,
    };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let is_dir = file.metadata().map_err(|error| unreadable(error.to_string()))?.is_dir();
    if is_dir {
        return Err(unreadable("is a folder".to_owned()));
    }
    let reader = BufReader::with_capacity(BUFFER_BYTES, decompress(file, compression).map_err(unreadable)?);
    Ok(OpenFile { path: path.to_owned(), format, reader, line: 0 })
}

enum Compression {
    None,
    Gzip,
    Zstd,
}

#[cfg(not(target_arch = "wasm32"))]
fn decompress(file: File, compression: Compression) -> Result<Box<dyn Read + Send>, String> {
    Ok(match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file)))
        }
        Compression::Zstd => Box::new(ZstdFrames::new(BufReader::with_capacity(BUFFER_BYTES, file))),
    })
}

#[cfg(target_arch = "wasm32")]
fn decompress(file: File, compression: Compression) -> Result<Box<dyn Read + Send>, String> {
    match compression {
        Compression::None => Ok(Box::new(file)),
        _ => Err("compressed files are not read in the browser; decompress it first".to_owned()),
    }
}

/// All frames of a zstd file: the decoder itself stops after the first.
#[cfg(not(target_arch = "wasm32"))]
struct ZstdFrames {
    input: Option<BufReader<File>>,
    frame: Option<Box<ruzstd::decoding::StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>>>,
}

#[cfg(not(target_arch = "wasm32"))]
impl ZstdFrames {
    fn new(input: BufReader<File>) -> Self {
        Self { input: Some(input), frame: None }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Read for ZstdFrames {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        use std::io::{BufRead, Error};
        loop {
            if let Some(frame) = &mut self.frame {
                let n = frame.read(out)?;
                if n > 0 || out.is_empty() {
                    return Ok(n);
                }
                self.input = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame =
                ruzstd::decoding::StreamingDecoder::new(input).map_err(|e| Error::other(e.to_string()))?;
            self.frame = Some(Box::new(frame));
        }
    }
}
