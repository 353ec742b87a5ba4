//! A running preview: its reading, and its result.

use dp_tokenizer::preview::{Preview, Table};
use dp_tokenizer::release::Method;
use leptos::prelude::*;
use wasm_bindgen::JsValue;
use web_sys::HtmlInputElement;

use crate::numbers::grouped;
use crate::page::state::PlannerState;
use crate::page::text_worker::TextWorker;
use crate::preview::{MAX_FILE_BYTES, TextRequest, TextStatus, settings};

const LINES: [&str; 2] = [".txt", ".text"];
const JSON_LINES: [&str; 2] = [".jsonl", ".ndjson"];
const TABLES: [(&str, Table); 2] = [(".csv", Table::Csv), (".tsv", Table::Tsv)];

/// The state of the preview panel. A copy refers to the same signals.
#[derive(Clone, Copy)]
pub(super) struct Session {
    pub(super) state: PlannerState,
    pub(super) worker: TextWorker,
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
            worker: TextWorker::new(),
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
        self.worker.stop();
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
        let (session, request) = (*self, TextRequest::Preview { settings: Box::new(settings), table });
        if !self.worker.start(&request, &source, bytes, move |status| session.receive(status)) {
            self.fail("This browser cannot start a web worker.");
        }
    }

    fn receive(&self, status: TextStatus) {
        match status {
            TextStatus::Done(result) => {
                self.state.announce(format!("{} words would be released", grouped(result.released_words)));
                self.result.set(Some(*result));
            }
            TextStatus::Failed(reason) => self.fail(&reason),
            _ => {}
        }
    }

    fn fail(&self, reason: &str) {
        self.error.set(Some(reason.to_owned()));
        self.state.announce(format!("No preview. {reason}"));
    }
}
