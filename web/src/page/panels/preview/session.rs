//! A running preview: its worker, its progress, and its result.

use std::cell::RefCell;

use dp_tokenizer::preview::{Preview, Table};
use dp_tokenizer::release::Method;
use js_sys::{Array, Uint8Array};
use leptos::prelude::*;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{HtmlInputElement, MessageEvent, Worker};

use crate::numbers::grouped;
use crate::page::client;
use crate::page::state::PlannerState;
use crate::preview::{MAX_FILE_BYTES, PreviewMessage, PreviewRequest, PreviewStatus, settings};
use crate::protocol::{decode, encode};
use crate::worker::READY;

/// The script that starts the worker's WASM.
const SCRIPT: &str = "./vocabulary_loader.js";
const LINES: [&str; 2] = [".txt", ".text"];
const JSON_LINES: [&str; 2] = [".jsonl", ".ndjson"];
const TABLES: [(&str, Table); 2] = [(".csv", Table::Csv), (".tsv", Table::Tsv)];

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Number of bytes read, and of all bytes.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    pub(super) read: f64,
    pub(super) total: f64,
}

/// The state of the preview panel. A copy refers to the same signals.
#[derive(Clone, Copy)]
pub(super) struct Session {
    pub(super) state: PlannerState,
    /// Number of the current preview. Messages about other previews are dropped.
    id: RwSignal<u64>,
    /// `None` while no worker runs.
    pub(super) progress: RwSignal<Option<Progress>>,
    /// Whether the text is read and vocabularies are being trained.
    pub(super) training: RwSignal<bool>,
    pub(super) result: RwSignal<Option<Preview>>,
    /// Reason why there is no preview.
    pub(super) error: RwSignal<Option<String>>,
    /// The text in the text area.
    pub(super) pasted: RwSignal<String>,
    /// The release method, if it is not the plan's.
    pub(super) method: RwSignal<Option<Method>>,
}

impl Session {
    pub(super) fn new(state: PlannerState) -> Self {
        Self {
            state,
            id: RwSignal::new(0),
            progress: RwSignal::new(None),
            training: RwSignal::new(false),
            result: RwSignal::new(None),
            error: RwSignal::new(None),
            pasted: RwSignal::new(String::new()),
            method: RwSignal::new(None),
        }
    }

    /// Previews the chosen file.
    pub(super) fn start_with_file(&self, input: &HtmlInputElement) {
        let Some(file) = input.files().and_then(|files| files.get(0)) else { return };
        // Lets the person choose the same file again.
        input.set_value("");
        let (name, size) = (file.name().to_lowercase(), file.size());
        let ends_with = |extensions: [&str; 2]| extensions.iter().any(|extension| name.ends_with(extension));
        let table = TABLES.iter().find(|(extension, _)| name.ends_with(extension)).map(|(_, table)| *table);
        let fields = table.is_some() || ends_with(JSON_LINES);
        if size > MAX_FILE_BYTES {
            self.fail("The file is larger than 200 MB. Choose a smaller part of it.");
        } else if !fields && !ends_with(LINES) {
            self.fail("Choose a .txt, .jsonl, .csv or .tsv file. Unpack or convert others first.");
        } else {
            self.start(file.into(), size, fields, table);
        }
    }

    /// Previews pasted text.
    pub(super) fn start_with_text(&self, text: &str) {
        if text.trim().is_empty() {
            self.fail("There is no text. Paste some lines, one record per line, or choose a file.");
        } else {
            let json = text.trim_start().starts_with('{');
            self.start(text.into(), text.len() as f64, json, None);
        }
    }

    fn start(&self, source: JsValue, bytes: f64, fields: bool, table: Option<Table>) {
        self.stop();
        self.error.set(None);
        self.result.set(None);
        let settings = self.state.certified.with_untracked(|it| {
            let (plan, certified) = it.as_ref()?;
            settings(plan, certified, self.method.get_untracked(), fields)
        });
        let Some(settings) = settings else {
            self.fail(
                "This plan releases no vocabulary. Choose the tokenizer “Learned privately” in the panel “Vocabulary”.",
            );
            return;
        };
        let id = self.id.get_untracked();
        let request = Uint8Array::from(encode(&PreviewRequest { id, settings, table }).as_slice());
        let Some(worker) = client::start_worker(SCRIPT, "") else {
            self.fail("This browser cannot start a web worker.");
            return;
        };
        self.progress.set(Some(Progress { read: 0.0, total: bytes }));
        let (session, message) = (*self, Array::of2(&request.into(), &source));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if event.data() == READY {
                WORKER.with_borrow(|worker| worker.as_ref().map(|worker| worker.post_message(&message)));
            } else if let Some(message) = decode::<PreviewMessage>(&Uint8Array::new(&event.data()).to_vec())
                && message.id == session.id.get_untracked()
            {
                session.receive(message.status);
            }
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        on_message.forget();
        WORKER.set(Some(worker));
    }

    fn receive(&self, status: PreviewStatus) {
        match status {
            PreviewStatus::Reading(bytes) => self.progress.update(|progress| {
                if let Some(progress) = progress {
                    progress.read = bytes;
                }
            }),
            PreviewStatus::Training => self.training.set(true),
            PreviewStatus::Done(result) => {
                self.stop();
                self.state.announce(format!("{} words would be released", grouped(result.released_words)));
                self.result.set(Some(*result));
            }
            PreviewStatus::Failed(reason) => {
                self.stop();
                self.fail(&reason);
            }
        }
    }

    /// Ends the worker. Everything that it has read is gone.
    pub(super) fn stop(&self) {
        self.progress.set(None);
        self.training.set(false);
        self.id.update(|id| *id += 1);
        if let Some(worker) = WORKER.take() {
            worker.terminate();
        }
    }

    fn fail(&self, reason: &str) {
        self.progress.set(None);
        self.error.set(Some(reason.to_owned()));
        self.state.announce(format!("No preview. {reason}"));
    }
}
