//! A worker that reads one text, and the progress of it.

use std::cell::RefCell;

use js_sys::{Array, Uint8Array};
use leptos::prelude::*;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{MessageEvent, Worker};

use super::client;
use super::dom::{El, el};
use crate::numbers::{BYTES, approximate};
use crate::preview::{TextRequest, TextStatus};
use crate::protocol::{decode, encode};
use crate::worker::READY;

/// The script that starts the worker's WASM.
const SCRIPT: &str = "./vocabulary_loader.js";

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Number of bytes read, and of all bytes.
#[derive(Clone, Copy)]
struct Progress {
    read: f64,
    total: f64,
}

/// The reading of a text. A copy refers to the same signals. The page reads one text at a time.
#[derive(Clone, Copy)]
pub(crate) struct TextWorker {
    /// Number of the current reading. Messages of others are dropped.
    id: RwSignal<u64>,
    /// `None` while no text is read.
    progress: RwSignal<Option<Progress>>,
    /// Whether the text is read, and what was asked for is being computed.
    computing: RwSignal<bool>,
}

impl TextWorker {
    pub(crate) fn new() -> Self {
        Self { id: RwSignal::new(0), progress: RwSignal::new(None), computing: RwSignal::new(false) }
    }

    /// Returns whether a text is being read.
    pub(crate) fn is_running(&self) -> bool {
        self.progress.with(Option::is_some)
    }

    /// Asks a new worker about a text of so many bytes, a file or a string, in place of the one before. Returns whether the browser has
    /// workers.
    pub(crate) fn start(
        &self,
        request: &TextRequest,
        source: &JsValue,
        bytes: f64,
        receive: impl Fn(TextStatus) + 'static,
    ) -> bool {
        self.stop();
        let Some(worker) = client::start_worker(SCRIPT, "") else { return false };
        self.progress.set(Some(Progress { read: 0.0, total: bytes }));
        let (reading, id) = (*self, self.id.get_untracked());
        let message = Array::of2(&Uint8Array::from(encode(request).as_slice()), source);
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if reading.id.get_untracked() != id {
            } else if event.data() == READY {
                WORKER.with_borrow(|worker| worker.as_ref().map(|worker| worker.post_message(&message)));
            } else if let Some(status) = decode::<TextStatus>(&Uint8Array::new(&event.data()).to_vec()) {
                reading.note(&status);
                receive(status);
            }
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        on_message.forget();
        WORKER.set(Some(worker));
        true
    }

    /// Updates the progress, and ends the worker after its last message.
    fn note(&self, status: &TextStatus) {
        match status {
            TextStatus::Reading(bytes) => self.progress.update(|progress| {
                if let Some(progress) = progress {
                    progress.read = *bytes;
                }
            }),
            TextStatus::Training => self.computing.set(true),
            TextStatus::Found(_) => {}
            TextStatus::Done(_) | TextStatus::Counted(_) | TextStatus::Failed(_) => self.stop(),
        }
    }

    /// Ends the worker. Everything that it has read is gone.
    pub(crate) fn stop(&self) {
        self.progress.set(None);
        self.computing.set(false);
        self.id.update(|id| *id += 1);
        if let Some(worker) = WORKER.take() {
            worker.terminate();
        }
    }

    /// Builds the display of the progress. `then` says what follows the reading.
    pub(crate) fn progress(&self, then: &'static str) -> Vec<El> {
        let (progress, computing) = (self.progress, self.computing);
        let progress = move || progress.get().unwrap_or(Progress { read: 0.0, total: 1.0 });
        let text = move || {
            let Progress { read, total } = progress();
            let activity = if computing.get() { then } else { "Reading…" };
            format!("{activity} {} of {}", approximate(read, &BYTES), approximate(total, &BYTES))
        };
        let bar = el("progress")
            .attr("aria-label", "Bytes read")
            .dynamic_attr("max", move || Some(progress().total.to_string()))
            .prop("value", move || progress().read.into());
        vec![el("p").dynamic_text(text), bar]
    }
}
