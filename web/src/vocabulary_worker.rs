//! The worker that looks at text: it reads a file in slices and never holds more of it than the release needs.

use std::io::{self, BufReader, Read};

use dp_tokenizer::preview::preview;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, DedicatedWorkerGlobalScope, FileReaderSync, MessageEvent};

use crate::ask;
use crate::vocabulary::{Errand, Numbered, Report, SLICE, refused};
use crate::worker::READY;

/// Serves errands for as long as the page lets it live; to stop one the page ends the worker.
pub fn serve() {
    crate::page::tell_of_faults();
    let scope: DedicatedWorkerGlobalScope = js_sys::global().unchecked_into();
    let port = scope.clone();
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let parts = Array::from(&event.data());
        let errand = ask::unpacked(&Uint8Array::new(&parts.get(0)).to_vec());
        // Page and worker are built together: only they speak here.
        if let Some(errand) = errand {
            carry_out(&port, errand, parts.get(1));
        }
    });
    scope.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    on_message.forget();
    // Strings can always be posted; a page that is gone needs no reply.
    let _ = scope.post_message(&READY.into());
}

fn carry_out(port: &DedicatedWorkerGlobalScope, Errand { id, settings }: Errand, source: JsValue) {
    let say = |report| {
        let _ = port.post_message(&Uint8Array::from(ask::packed(&Numbered { id, report }).as_slice()));
    };
    let outcome = match source.dyn_into::<Blob>() {
        Ok(file) => preview(BufReader::with_capacity(SLICE, Slices { file, at: 0.0, say: &say }), &settings),
        Err(pasted) => preview(pasted.as_string().unwrap_or_default().as_bytes(), &settings),
    };
    say(match outcome {
        Ok(seen) => Report::Seen(Box::new(seen)),
        Err(error) => Report::Refused(refused(&error)),
    });
}

/// A file, read slice by slice.
struct Slices<'a, F: Fn(Report)> {
    file: Blob,
    at: f64,
    say: &'a F,
}

impl<F: Fn(Report)> Read for Slices<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let refused = |_| io::Error::other("the browser cannot read the file; choose it again");
        if self.at >= self.file.size() {
            (self.say)(Report::Training);
            return Ok(0);
        }
        let end = self.at + buffer.len() as f64;
        let slice = self.file.slice_with_f64_and_f64(self.at, end).map_err(refused)?;
        let bytes =
            FileReaderSync::new().and_then(|reader| reader.read_as_array_buffer(&slice)).map_err(refused)?;
        let bytes = Uint8Array::new(&bytes);
        let length = (bytes.length() as usize).min(buffer.len());
        bytes.slice(0, length as u32).copy_to(&mut buffer[..length]);
        self.at += length as f64;
        (self.say)(Report::Read(self.at));
        Ok(length)
    }
}
