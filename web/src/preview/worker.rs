//! The worker for vocabulary previews. It reads a file in chunks and keeps only what the release needs.

use std::io::{self, BufReader, Read};

use dp_tokenizer::preview::{preview, preview_table};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, DedicatedWorkerGlobalScope, FileReaderSync};

use super::{CHUNK_BYTES, PreviewMessage, PreviewRequest, PreviewStatus, error_text};
use crate::protocol::decode;
use crate::worker::{listen, post};

/// Serves previews until the page ends the worker, which is how the page stops a preview.
pub fn serve() {
    listen(|scope, message| {
        let parts = Array::from(&message);
        // Page and worker are built together, so every message is a request.
        if let Some(request) = decode(&Uint8Array::new(&parts.get(0)).to_vec()) {
            run(scope, request, parts.get(1));
        }
    });
}

/// Runs one preview on `source`, a file or a string.
fn run(scope: &DedicatedWorkerGlobalScope, request: PreviewRequest, source: JsValue) {
    let PreviewRequest { id, settings, table } = request;
    let report = |status| post(scope, &PreviewMessage { id, status });
    let outcome = match source.dyn_into::<Blob>() {
        Ok(file) => {
            let chunks = FileChunks { file, offset: 0.0, report: &report };
            let reader = BufReader::with_capacity(CHUNK_BYTES, chunks);
            match table {
                Some(table) => preview_table(reader, table, &settings),
                None => preview(reader, &settings),
            }
        }
        Err(pasted) => preview(pasted.as_string().unwrap_or_default().as_bytes(), &settings),
    };
    report(match outcome {
        Ok(result) => PreviewStatus::Done(Box::new(result)),
        Err(error) => PreviewStatus::Failed(error_text(&error)),
    });
}

/// Reads a file chunk by chunk and reports the progress.
struct FileChunks<'a, F: Fn(PreviewStatus)> {
    file: Blob,
    offset: f64,
    report: &'a F,
}

impl<F: Fn(PreviewStatus)> Read for FileChunks<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let failed = |_| io::Error::other("the browser cannot read the file; choose it again");
        if self.offset >= self.file.size() {
            (self.report)(PreviewStatus::Training);
            return Ok(0);
        }
        let end = self.offset + buffer.len() as f64;
        let chunk = self.file.slice_with_f64_and_f64(self.offset, end).map_err(failed)?;
        let bytes =
            FileReaderSync::new().and_then(|reader| reader.read_as_array_buffer(&chunk)).map_err(failed)?;
        let bytes = Uint8Array::new(&bytes);
        let length = (bytes.length() as usize).min(buffer.len());
        bytes.slice(0, length as u32).copy_to(&mut buffer[..length]);
        self.offset += length as f64;
        (self.report)(PreviewStatus::Reading(self.offset));
        Ok(length)
    }
}
