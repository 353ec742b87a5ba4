//! The worker that reads texts. It reads a file in chunks and keeps only what the counts or the release need.

use std::io::{self, BufReader, Read};

use dp_tokenizer::corpus::CorpusError;
use dp_tokenizer::preview::{preview, preview_table};
use dp_tokenizer::survey::{Wanted, kind, survey};
use js_sys::{Array, Uint8Array};
use send_wrapper::SendWrapper;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, DedicatedWorkerGlobalScope, FileReaderSync};

use super::{CHUNK_BYTES, TextRequest, TextStatus, error_text};
use crate::own_text::usual_fields;
use crate::protocol::decode;
use crate::worker::{listen, post};

/// Serves requests until the page ends the worker, which is how the page stops one.
pub fn serve() {
    listen(|scope, message| {
        let parts = Array::from(&message);
        // Page and worker are built together, so every message is a request.
        if let Some(request) = decode(&Uint8Array::new(&parts.get(0)).to_vec()) {
            post(scope, &answer(scope, request, &parts.get(1)));
        }
    });
}

/// Carries out one request on `source`, a file or a string. Returns its last status.
fn answer(scope: &DedicatedWorkerGlobalScope, request: TextRequest, source: &JsValue) -> TextStatus {
    let file = source.dyn_ref::<Blob>();
    match request {
        TextRequest::Preview { settings, table } => {
            let outcome = match (file, table) {
                (Some(file), Some(table)) => {
                    preview_table(FileChunks::read_all(scope, file), table, &settings)
                }
                (Some(file), None) => preview(FileChunks::read_all(scope, file), &settings),
                (None, _) => preview(source.as_string().unwrap_or_default().as_bytes(), &settings),
            };
            match outcome {
                Ok(result) => TextStatus::Done(Box::new(result)),
                Err(error) => TextStatus::Failed(error_text(&error)),
            }
        }
        TextRequest::Look { name, wanted } => {
            let looked = file.map_or(Ok(None), |file| look(scope, file, &name, wanted));
            looked.map_or_else(|error| TextStatus::Failed(error.to_string()), TextStatus::Counted)
        }
    }
}

/// Finds the fields of a file, tells the page, and counts them.
fn look(
    scope: &DedicatedWorkerGlobalScope,
    file: &Blob,
    name: &str,
    wanted: Option<Wanted>,
) -> Result<Option<(Wanted, dp_tokenizer::survey::Survey)>, CorpusError> {
    let found = kind(name, FileChunks::new(None, file))?;
    let wanted = wanted.or_else(|| usual_fields(&found));
    post(scope, &TextStatus::Found(Box::new(found)));
    let count = |wanted: Wanted| {
        survey(name, FileChunks::new(Some(scope), file), &wanted).map(|counted| (wanted, counted))
    };
    wanted.map(count).transpose()
}

/// Reads a file chunk by chunk and reports the progress to the page, if it is to know.
struct FileChunks {
    /// The browser's objects stay on the thread of this worker, which has no other.
    file: SendWrapper<(Blob, Option<DedicatedWorkerGlobalScope>)>,
    offset: f64,
}

impl FileChunks {
    fn new(scope: Option<&DedicatedWorkerGlobalScope>, file: &Blob) -> Self {
        Self { file: SendWrapper::new((file.clone(), scope.cloned())), offset: 0.0 }
    }

    fn read_all(scope: &DedicatedWorkerGlobalScope, file: &Blob) -> BufReader<Self> {
        BufReader::with_capacity(CHUNK_BYTES, Self::new(Some(scope), file))
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
        let file = &self.file.0;
        if self.offset >= file.size() {
            self.report(&TextStatus::Training);
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
        self.report(&TextStatus::Reading(self.offset));
        Ok(length)
    }
}
