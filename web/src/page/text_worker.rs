//! A worker that reads one text, and the progress of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use js_sys::{Array, Reflect, Uint8Array};
use sycamore_reactive::{Signal, create_signal};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{File, MessageEvent, Worker};

use super::browser::{Interval, handle, window};
use super::client;
use super::dom::{El, el};
use crate::numbers::{BYTES, approximate};
use crate::preview::{TextRequest, TextStatus};
use crate::protocol::{decode, encode};
use crate::worker::READY;

/// What the choosers of a text offer.
pub(crate) const ACCEPTED: &str = ".jsonl,.ndjson,.json,.csv,.tsv,.parquet,.txt,.text,.iob,.conll,.gz,.zst";
/// The scripts that start the WASM of the workers for texts and for tables in parquet.
const TEXTS: &str = "./vocabulary_loader.js";
const TABLES: &str = "./parquet_loader.js";
/// The property of the window that holds the last file that was dropped. The expert view is another module.
const DROPPED: &str = "droppedText";

/// Seconds within which a worker that reads must report its progress, and one that computes must answer. After them, the page ends it;
/// the next request starts another one.
const READING_SECONDS: f64 = 30.0;
const COMPUTING_SECONDS: f64 = 600.0;
/// Interval at which the page looks for a late worker.
const LATE_CHECK: Duration = Duration::from_secs(1);
/// Time between two looks that says that the machine slept.
const SLEPT_SECONDS: f64 = 10.0;

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    /// When the page looked last, and when it last heard from the worker, in milliseconds.
    static LOOKED: Cell<f64> = const { Cell::new(0.0) };
    static HEARD: Cell<f64> = const { Cell::new(0.0) };
}

/// Returns whether a file is a table in parquet, by its name.
pub(crate) fn is_parquet(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".parquet")
}

fn script(request: &TextRequest) -> &'static str {
    match request {
        TextRequest::Look { name, .. } | TextRequest::Preview { file: Some((name, _)), .. }
            if is_parquet(name) =>
        {
            TABLES
        }
        _ => TEXTS,
    }
}

/// Keeps a file for the expert view, as long as this page is open.
pub(crate) fn keep_dropped(file: &File) {
    // A window takes any property.
    let _ = Reflect::set(&window(), &DROPPED.into(), file);
}

/// Returns the last file that was dropped.
pub(crate) fn dropped() -> Option<File> {
    Reflect::get(&window(), &DROPPED.into()).ok()?.dyn_into().ok()
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
    id: Signal<u64>,
    /// `None` while no text is read.
    progress: Signal<Option<Progress>>,
    /// Whether the text is read, and what was asked for is being computed.
    computing: Signal<bool>,
}

impl TextWorker {
    pub(crate) fn new() -> Self {
        Self { id: create_signal(0), progress: create_signal(None), computing: create_signal(false) }
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
        let Some(worker) = client::start_worker(script(request), "") else { return false };
        let receive = Rc::new(receive);
        self.progress.set(Some(Progress { read: 0.0, total: bytes }));
        let (reading, id) = (*self, self.id.get_untracked());
        let message = Array::of2(&Uint8Array::from(encode(request).as_slice()), source);
        let (on_end, on_late) = (Rc::clone(&receive), Rc::clone(&receive));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if reading.id.get_untracked() != id {
                return;
            }
            HEARD.set(js_sys::Date::now());
            if event.data() == READY {
                WORKER.with_borrow(|worker| worker.as_ref().map(|worker| worker.post_message(&message)));
            } else if let Some(status) = decode::<TextStatus>(&Uint8Array::new(&event.data()).to_vec()) {
                handle(|| {
                    reading.note(&status);
                    receive(status);
                });
            }
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        on_message.forget();
        let ended =
            "The worker that read this file ended. The file is damaged, or too large for this browser.";
        let on_error = Closure::<dyn FnMut()>::new(move || {
            if reading.id.get_untracked() == id {
                handle(|| {
                    reading.stop();
                    on_end(TextStatus::Failed(ended.to_owned()));
                });
            }
        });
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        on_error.forget();
        WORKER.set(Some(worker));
        self.end_if_late(id, move |seconds| {
            let late = format!(
                "The worker that reads this file did not answer for {seconds} seconds, so it was ended."
            );
            on_late(TextStatus::Failed(format!(
                "{late} Try again; “trainer-native init FILE” reads a file outside of the browser."
            )));
        });
        true
    }

    /// Ends the worker of the reading `id` if it does not answer in time, and calls `on_late` with that time.
    fn end_if_late(&self, id: u64, on_late: impl Fn(f64) + 'static) {
        let reading = *self;
        let now = js_sys::Date::now();
        LOOKED.set(now);
        HEARD.set(now);
        let handle = Rc::new(Cell::new(None::<Interval>));
        let own = Rc::clone(&handle);
        let look = move || {
            if reading.id.get_untracked() != id {
                own.take().inspect(Interval::clear);
                return;
            }
            let now = js_sys::Date::now();
            if now - LOOKED.replace(now) > 1000.0 * SLEPT_SECONDS {
                HEARD.set(now);
            }
            let seconds = if reading.computing.get_untracked() { COMPUTING_SECONDS } else { READING_SECONDS };
            if now - HEARD.get() > 1000.0 * seconds {
                reading.stop();
                on_late(seconds);
            }
        };
        handle.set(Interval::new(look, LATE_CHECK));
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
