//! The worker that reads texts. It reads a file in chunks and keeps only what the counts or the release need.

use std::io::{self, Read, Seek, SeekFrom};

use dp_tokenizer::corpus::{CorpusError, Records};
use dp_tokenizer::preview::{Preview, PreviewError, Settings, preview, preview_records};
use dp_tokenizer::survey::{self, Kind, Survey, Wanted};
use dp_tokenizer::unit::UnitError;
use js_sys::{Array, Uint8Array};
use plan::Encoding;
use send_wrapper::SendWrapper;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, DedicatedWorkerGlobalScope, FileReaderSync};

use super::{TextRequest, TextStatus, error_text};
use crate::own_text::usual_fields;
use crate::protocol::decode;
use crate::worker::{listen, post};

/// The functions that open a file. Each module of the page has those that it needs, so that it is small.
struct Reader {
    kind: fn(&str, FileChunks, Option<Encoding>) -> Result<Kind, CorpusError>,
    open: fn(&str, FileChunks, &Wanted) -> Result<Records, CorpusError>,
}

/// Serves requests about texts until the page ends the worker, which is how the page stops one.
pub fn serve_texts() {
    const TEXTS: Reader = Reader {
        kind: |name, text, encoding| survey::kind(name, text, encoding),
        open: |name, text, wanted| survey::open(name, text, wanted),
    };
    listen(|scope, message| serve(scope, &message, &TEXTS));
}

/// Serves requests about tables in parquet, as [`serve_texts`] does.
pub fn serve_tables() {
    const TABLES: Reader = Reader {
        kind: |name, table, _| survey::kind_of_parquet(name, table),
        open: |name, table, wanted| survey::open_parquet(name, table, wanted),
    };
    listen(|scope, message| serve(scope, &message, &TABLES));
}

fn serve(scope: &DedicatedWorkerGlobalScope, message: &JsValue, reader: &Reader) {
    let parts = Array::from(message);
    // Page and worker are built together, so every message is a request.
    if let Some(request) = decode(&Uint8Array::new(&parts.get(0)).to_vec()) {
        post(scope, &answer(scope, request, &parts.get(1), reader));
    }
}

/// Carries out one request on `source`, a file or a string. Returns its last status.
fn answer(
    scope: &DedicatedWorkerGlobalScope,
    request: TextRequest,
    source: &JsValue,
    reader: &Reader,
) -> TextStatus {
    let file = source.dyn_ref::<Blob>();
    match request {
        TextRequest::Preview { settings, file: named } => {
            let outcome = match (file, named) {
                (Some(file), Some((name, encoding))) => {
                    preview_file(reader, &name, FileChunks::new(Some(scope), file), encoding, &settings)
                }
                _ => preview(source.as_string().unwrap_or_default().as_bytes(), &settings),
            };
            match outcome {
                Ok(result) => TextStatus::Done(Box::new(result)),
                Err(error) => TextStatus::Failed(error_text(&error)),
            }
        }
        TextRequest::Look { name, wanted, encoding } => {
            let look = |file| look(scope, file, &name, wanted, encoding, reader);
            let looked = file.map_or(Ok(None), look);
            looked.map_or_else(|error| TextStatus::Failed(error.to_string()), TextStatus::Counted)
        }
    }
}

fn preview_file(
    reader: &Reader,
    name: &str,
    file: FileChunks,
    encoding: Encoding,
    settings: &Settings,
) -> Result<Preview, PreviewError> {
    let (text, user) = (settings.text_field.clone(), settings.user_field.clone());
    let records = (reader.open)(name, file, &Wanted { text, user, encoding, ..Wanted::default() });
    preview_records(records.map_err(UnitError::from)?, settings)
}

/// Finds the fields of a file, tells the page, and counts them.
fn look(
    scope: &DedicatedWorkerGlobalScope,
    file: &Blob,
    name: &str,
    wanted: Option<Wanted>,
    encoding: Option<Encoding>,
    reader: &Reader,
) -> Result<Option<(Wanted, Survey)>, CorpusError> {
    let found = (reader.kind)(name, FileChunks::new(None, file), encoding)?;
    let wanted = wanted.or_else(|| usual_fields(&found));
    post(scope, &TextStatus::Found(Box::new(found)));
    let count = |wanted: Wanted| {
        let records = (reader.open)(name, FileChunks::new(Some(scope), file), &wanted)?;
        survey::survey(records).map(|counted| (wanted, counted))
    };
    wanted.map(count).transpose()
}

/// Reads a file chunk by chunk and reports the progress to the page, if it is to know.
struct FileChunks {
    /// The browser's objects stay on the thread of this worker, which has no other.
    file: SendWrapper<(Blob, Option<DedicatedWorkerGlobalScope>)>,
    offset: f64,
    /// Bytes read so far, from any place.
    read: f64,
}

impl FileChunks {
    fn new(scope: Option<&DedicatedWorkerGlobalScope>, file: &Blob) -> Self {
        Self { file: SendWrapper::new((file.clone(), scope.cloned())), offset: 0.0, read: 0.0 }
    }

    fn report(&self, status: &TextStatus) {
        if let Some(scope) = &self.file.1 {
            post(scope, status);
        }
    }
}

impl Read for FileChunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let failed = |_| io::Error::other("the browser cannot read the file; choose it again");
        let file = self.file.0.clone();
        if self.offset >= file.size() {
            if self.read >= file.size() {
                self.report(&TextStatus::Training);
            }
            return Ok(0);
        }
        let end = self.offset + buffer.len() as f64;
        let chunk = file.slice_with_f64_and_f64(self.offset, end).map_err(failed)?;
        let bytes =
            FileReaderSync::new().and_then(|reader| reader.read_as_array_buffer(&chunk)).map_err(failed)?;
        let bytes = Uint8Array::new(&bytes);
        let length = (bytes.length() as usize).min(buffer.len());
        bytes.slice(0, length as u32).copy_to(&mut buffer[..length]);
        self.offset += length as f64;
        self.read += length as f64;
        self.report(&TextStatus::Reading(self.read.min(file.size())));
        Ok(length)
    }
}

impl Seek for FileChunks {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.offset = match to {
            SeekFrom::Start(place) => place as f64,
            SeekFrom::End(after) => self.file.0.size() + after as f64,
            SeekFrom::Current(after) => self.offset + after as f64,
        };
        Ok(self.offset as u64)
    }
}
