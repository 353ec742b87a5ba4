//! A text of one's own, dropped on the start view: its fields and counts, and the plan for it.

use dp_tokenizer::survey::{Kind, Survey, Users, Wanted};
use plan::Encoding;
use sycamore_reactive::{Signal, create_signal, untrack};
use wasm_bindgen::JsCast;
use web_sys::{DragEvent, File};

use super::browser::window;
use super::client;
use super::dom::{El, button, el, input_of, listen, table_row};
use super::field::select;
use super::state::PlannerState;
use super::text_worker::{ACCEPTED, TextWorker, is_parquet, keep_dropped};
use crate::numbers::{BYTES, COUNTS, approximate, grouped};
use crate::own_text::{misfit, plan_for, round_figure, unit};
use crate::preview::{MAX_COUNTED_BYTES, TextRequest, TextStatus};

/// Bytes of text in a token of a vocabulary that is learnt from a text.
const BYTES_PER_TOKEN: f64 = 4.0;

/// A text that somebody gave to the page. A copy refers to the same signals.
#[derive(Clone, Copy)]
struct OwnText {
    state: PlannerState,
    worker: TextWorker,
    /// The browser's handle of the file. It stays on this thread.
    file: Signal<Option<File>>,
    /// The encoding that was chosen; `None` for the one that the text tells.
    encoding: Signal<Option<Encoding>>,
    found: Signal<Option<Kind>>,
    counted: Signal<Option<(Wanted, Survey)>>,
    /// Reason why there are no counts.
    error: Signal<Option<String>>,
}

/// Builds the place for a text, and what is known of the last one.
pub(super) fn view(state: PlannerState) -> El {
    let text = OwnText {
        state,
        worker: TextWorker::new(),
        file: create_signal(None),
        encoding: create_signal(None),
        found: create_signal(None),
        counted: create_signal(None),
        error: create_signal(None),
    };
    let running = move || text.worker.is_running();
    let stop = move || vec![button("Stop", move |_| text.worker.stop()).id("stop-reading")];
    drop_place(text)
        .child(el("div").show_when(running, move || text.worker.progress("Counting…")))
        .child(el("div").class("files").show_when(running, stop))
        .dynamic(move || text.error.get_clone().map(error))
        .dynamic(move || encodings(text))
        .dynamic(move || text.found.get_clone().map(|found| untrack(|| result(text, found))))
}

fn drop_place(text: OwnText) -> El {
    let input =
        el("input").id("own-text").attr("type", "file").attr("accept", ACCEPTED).on("change", move |event| {
            let Some(input) = input_of(&event) else { return };
            let file = input.files().and_then(|files| files.get(0));
            // Lets the person choose the same file again after changing it.
            input.set_value("");
            text.open(file);
        });
    let label = el("label").attr("for", "own-text").child("Drop your text here, or choose a file…");
    let note = "JSON lines, JSON, CSV, TSV, parquet or plain text, also as .gz or .zst. It is read in this page and sent nowhere. The plan gets the names of \
                the file and its fields, and round figures.";
    // A file that misses the place would otherwise take the place of the page.
    listen(
        &window(),
        "drop",
        Box::new(move |event| {
            let dropped = event.dyn_ref::<DragEvent>().and_then(DragEvent::data_transfer);
            // Once the other view is open, this one is gone.
            if client::is_connected() {
                text.open(dropped.and_then(|data| data.files()).and_then(|files| files.get(0)));
            }
        }),
    );
    el("div")
        .id("drop")
        .class("drop")
        .child(el("span").class("file").child(input).child(label))
        .child(el("p").class("hint").child(note))
}

fn error(reason: String) -> El {
    let text = el("p").child(el("strong").child("This text is not counted. ")).child(reason);
    el("div").class("error").id("not-counted").attr("role", "alert").child(text)
}

/// Builds the choice of the encoding. Nothing in a text tells Windows-1252, so it is never guessed.
fn encodings(text: OwnText) -> Option<El> {
    if text.file.with(|file| file.as_ref().is_none_or(|file| is_parquet(&file.name()))) {
        return None;
    }
    let windows = Encoding::Windows1252.name();
    let choices = [("", "UTF-8, or UTF-16 by its marks"), (windows, windows)];
    let selected = move || text.encoding.get().map_or("", Encoding::name);
    let choose = move |name: String| {
        text.encoding.set((name == windows).then_some(Encoding::Windows1252));
        text.found.set(None);
        text.counted.set(None);
        text.error.set(None);
        text.look(None);
    };
    let label = el("label").attr("for", "own-encoding").child("Encoding of the file");
    let choice = select("own-encoding", choices.into_iter(), selected, choose);
    Some(el("div").class("field").child(label).child(choice))
}

impl OwnText {
    fn open(&self, file: Option<File>) {
        let Some(file) = file else { return };
        let size = file.size();
        self.worker.stop();
        self.found.set(None);
        self.counted.set(None);
        self.error.set(None);
        self.encoding.set(None);
        keep_dropped(&file);
        self.file.set(Some(file));
        if size > MAX_COUNTED_BYTES {
            self.fail("The file is larger than 4 GB: “trainer-native init FILE” makes a plan for it.");
        } else {
            self.look(None);
        }
    }

    /// Reads the file and counts these fields, or those with usual names.
    fn look(&self, wanted: Option<Wanted>) {
        let Some(file) = self.file.get_clone_untracked() else { return };
        let encoding = self.encoding.get_untracked();
        let (text, request) = (*self, TextRequest::Look { name: file.name(), wanted, encoding });
        if !self.worker.start(&request, &file, file.size(), move |status| text.receive(status)) {
            self.fail("This browser cannot start a web worker.");
        }
    }

    fn receive(&self, status: TextStatus) {
        match status {
            TextStatus::Found(found) if self.found.with_untracked(Option::is_none) => {
                self.found.set(Some(*found))
            }
            TextStatus::Counted(Some((wanted, counted))) => {
                self.counted.set(Some((wanted, counted)));
                self.take();
            }
            TextStatus::Failed(reason) => self.fail(&reason),
            _ => {}
        }
    }

    /// Makes the plan for the text, as one step that can be undone.
    fn take(&self) {
        let (file, found, counted) = (
            self.file.get_clone_untracked(),
            self.found.get_clone_untracked(),
            self.counted.get_clone_untracked(),
        );
        let (Some(file), Some(found), Some((wanted, counted))) = (file, found, counted) else { return };
        let current = self.state.plan.get_clone_untracked();
        if let Some(plan) = plan_for(&current, &file.name(), &found, &wanted, &counted) {
            self.state.announce(format!(
                "{} records counted. The plan is for this text.",
                grouped(counted.records)
            ));
            self.state.replace(plan);
        }
    }

    fn fail(&self, reason: &str) {
        self.error.set(Some(reason.to_owned()));
        self.state.announce(format!("This text is not counted. {reason}"));
    }
}

/// Builds what was found: the choice of fields, the counts, and what the plan has of them.
fn result(text: OwnText, found: Kind) -> El {
    if let Some(messages) = &found.messages {
        return el("p").class("banner").child(format!(
            "{messages:?} holds conversations, which need a checkpoint with a chat template: “trainer-native init FILE --checkpoint DIR” makes \
             their plan."
        ));
    }
    let shown = el("div").id("own-text-found");
    let shown = if found.fields.is_empty() { shown } else { shown.child(choices(text, &found)) };
    let counts = move || text.counted.get_clone().map(|(_, counted)| counts(&counted));
    let misfit = move || {
        let counted = text.counted.get_clone()?.1;
        let said = text.state.plan.with(|plan| misfit(plan, &counted))?;
        Some(el("p").class("banner").id("misfit").child(said))
    };
    shown.dynamic(counts).dynamic(misfit)
}

/// Builds the choice of the fields with the text and the user.
fn choices(text: OwnText, found: &Kind) -> El {
    let encoding = found.encoding;
    let chosen = move |counted: Option<(Wanted, Survey)>| {
        let none = || Wanted { encoding, ..Wanted::default() };
        counted.map_or_else(none, |(wanted, _)| wanted)
    };
    let list = |id: &str, label: &'static str, none: &'static str, is_user: bool| {
        let selected = move || {
            let Wanted { text, user, .. } = chosen(text.counted.get_clone());
            if is_user { user } else { text }.unwrap_or_default()
        };
        let choose = move |name: String| {
            let (mut wanted, name) =
                (chosen(text.counted.get_clone_untracked()), Some(name).filter(|name| !name.is_empty()));
            if is_user {
                wanted.user = name
            } else {
                wanted.text = name
            }
            if wanted.text.is_some() {
                text.look(Some(wanted));
            }
        };
        let option = |all: El, name: &str| {
            let (value, label) = (name.to_owned(), if name.is_empty() { none } else { name }.to_owned());
            let option = el("option").attr("value", name).child(label);
            all.child(option.prop("selected", move || (selected() == value).into()))
        };
        let names = std::iter::once("").chain(found.fields.iter().map(String::as_str));
        let select = names.fold(el("select").id(id).on_value("change", choose), option);
        el("div").class("field").child(el("label").attr("for", id).child(label)).child(select)
    };
    el("div")
        .class("pair")
        .child(list("own-text-field", "Field with the text", "Choose it", false))
        .child(list("own-user-field", "Field with the user", "None", true))
}

fn counts(counted: &Survey) -> El {
    let (_, count) = unit(counted);
    let mut rows = vec![("Records", grouped(counted.records))];
    if let Some(Users { count, half, nine_tenths, most }) = counted.users {
        rows.push(("Users", grouped(count)));
        rows.push((
            "Records of a user",
            format!(
                "half have at most {}, nine in ten at most {}, one has {}",
                grouped(half),
                grouped(nine_tenths),
                grouped(most)
            ),
        ));
    }
    rows.push(("Words", grouped(counted.words)));
    let tokens = counted.bytes as f64 / BYTES_PER_TOKEN;
    rows.push((
        "Text",
        format!(
            "{}, about {} tokens",
            approximate(counted.bytes as f64, &BYTES),
            approximate(tokens, &COUNTS)
        ),
    ));
    if counted.replaced_lines > 0 {
        rows.push((
            "Lines with invalid bytes, which the trainer refuses unless their encoding is named",
            grouped(counted.replaced_lines),
        ));
    }
    let table = el("table").child(el("caption").child("For you alone: these counts are private"));
    let body =
        rows.into_iter().map(|(name, value)| table_row(name, [value.into()])).fold(el("tbody"), El::child);
    let reason = format!(
        "The plan says N = {}: the number becomes public, so it is a round figure below the count. Change it where even a rough number \
         must stay secret.",
        grouped(round_figure(count))
    );
    el("div").class("stack").child(table.child(body)).child(el("p").class("hint").child(reason))
}
