//! A running preview: its reading, and its result.

use dp_tokenizer::preview::Preview;
use dp_tokenizer::release::Method;
use plan::Encoding;
use sycamore_reactive::{Signal, create_effect, create_signal};
use wasm_bindgen::JsValue;
use web_sys::File;

use crate::numbers::grouped;
use crate::page::state::PlannerState;
use crate::page::text_worker::{TextWorker, dropped};
use crate::preview::{MAX_FILE_BYTES, TextRequest, TextStatus, settings};

/// The state of the preview panel. A copy refers to the same signals.
#[derive(Clone, Copy)]
pub(super) struct Session {
    pub(super) state: PlannerState,
    pub(super) worker: TextWorker,
    pub(super) result: Signal<Option<Preview>>,
    /// Reason why there is no preview.
    pub(super) error: Signal<Option<String>>,
    /// The text in the text area.
    pub(super) pasted: Signal<String>,
    /// The release method, if it is not the plan's.
    pub(super) method: Signal<Option<Method>>,
}

impl Session {
    pub(super) fn new(state: PlannerState) -> Self {
        Self {
            state,
            worker: TextWorker::new(),
            result: create_signal(None),
            error: create_signal(None),
            pasted: create_signal(String::new()),
            method: create_signal(None),
        }
    }

    /// Previews a file, with the fields and the encoding of the plan.
    pub(super) fn start_with_file(&self, file: File) {
        let (name, size) = (file.name(), file.size());
        let is_text = [".txt", ".txt.gz", ".txt.zst", ".text"]
            .iter()
            .any(|end| name.to_ascii_lowercase().ends_with(end));
        if size > MAX_FILE_BYTES {
            self.fail("The file is larger than 200 MB. Choose a smaller part of it.");
        } else {
            let encoding = self.state.plan.with_untracked(|plan| plan.data.encoding);
            self.start(file.into(), size, !is_text, Some((name, encoding)));
        }
    }

    /// Previews the file that was dropped, if there is one, once the plan is certified.
    pub(super) fn start_with_dropped(&self) {
        let (session, file) = (*self, create_signal(dropped()));
        create_effect(move || {
            if session.state.certified.with(Option::is_some)
                && let Some(file) = file.update(Option::take)
            {
                session.start_with_file(file);
            }
        });
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

    fn start(&self, source: JsValue, bytes: f64, fields: bool, file: Option<(String, Encoding)>) {
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
        let (session, request) = (*self, TextRequest::Preview { settings: Box::new(settings), file });
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
