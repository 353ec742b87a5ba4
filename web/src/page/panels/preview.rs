//! The vocabulary that the plan would release from a text at hand, counted in a worker of its own.

use std::cell::RefCell;

use chart::{Chart, Scale, Series};
use dp_tokenizer::preview::Preview;
use dp_tokenizer::release::{Method, Paper, PaperHistogram};
use js_sys::{Array, Uint8Array};
use leptos::prelude::*;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{HtmlInputElement, MessageEvent, Worker};

use super::hint;
use crate::ask;
use crate::numbers::{BYTES, grouped, roughly};
use crate::page::client;
use crate::page::desk::Desk;
use crate::page::dom::{El, button, el, input_of, row, section};
use crate::page::field::select;
use crate::page::plot::{Plot, Shown, plot};
use crate::vocabulary::{Errand, MOST_BYTES, Numbered, Report, settings};
use crate::worker::READY;

/// Beside the page; its loader starts the worker's WASM.
const SCRIPT: &str = "./vocabulary_loader.js";

/// Distinct words of a unit that the papers' methods count.
const PAPER_WORDS: u32 = 64;

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// What is being looked at, and what came of it.
#[derive(Clone, Copy)]
struct Look {
    desk: Desk,
    number: RwSignal<u64>,
    /// Bytes read and to read, while a worker is at it.
    progress: RwSignal<Option<(f64, f64)>>,
    training: RwSignal<bool>,
    seen: RwSignal<Option<Preview>>,
    refused: RwSignal<Option<String>>,
    method: RwSignal<Option<Method>>,
}

impl Look {
    fn idle(desk: Desk) -> Self {
        Self {
            desk,
            number: RwSignal::new(0),
            progress: RwSignal::new(None),
            training: RwSignal::new(false),
            seen: RwSignal::new(None),
            refused: RwSignal::new(None),
            method: RwSignal::new(None),
        }
    }

    fn refuse(&self, reason: &str) {
        self.progress.set(None);
        self.refused.set(Some(reason.to_owned()));
        self.desk.announce(format!("No preview: {reason}"));
    }

    /// Ends the worker, whatever it does: what it has read goes with it.
    fn stop(&self) {
        self.progress.set(None);
        self.training.set(false);
        self.number.update(|number| *number += 1);
        if let Some(worker) = WORKER.take() {
            worker.terminate();
        }
    }

    fn begin(&self, source: JsValue, bytes: f64, json: bool) {
        self.stop();
        self.refused.set(None);
        self.seen.set(None);
        let wanted = self.desk.certified.with_untracked(|it| {
            let (plan, certified) = it.as_ref()?;
            settings(plan, certified, self.method.get_untracked(), json)
        });
        let Some(settings) = wanted else {
            self.refuse("this plan releases no vocabulary; choose “Learnt from the text” under Vocabulary.");
            return;
        };
        let id = self.number.get_untracked();
        let errand = Uint8Array::from(ask::packed(&Errand { id, settings }).as_slice());
        let Some(worker) = client::start(SCRIPT, "") else {
            self.refuse("this browser cannot start a worker.");
            return;
        };
        self.progress.set(Some((0.0, bytes)));
        let (look, message) = (*self, Array::of2(&errand.into(), &source));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if event.data() == READY {
                WORKER.with_borrow(|worker| worker.as_ref().map(|worker| worker.post_message(&message)));
            } else if let Some(Numbered { id, report }) =
                ask::unpacked(&Uint8Array::new(&event.data()).to_vec())
                && id == look.number.get_untracked()
            {
                look.hear(report);
            }
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        on_message.forget();
        WORKER.set(Some(worker));
    }

    fn hear(&self, report: Report) {
        match report {
            Report::Read(bytes) => self.progress.update(|progress| {
                if let Some((read, _)) = progress {
                    *read = bytes;
                }
            }),
            Report::Training => self.training.set(true),
            Report::Seen(seen) => {
                self.stop();
                self.desk.announce(format!("{} words would be released", grouped(seen.released_words)));
                self.seen.set(Some(*seen));
            }
            Report::Refused(reason) => {
                self.stop();
                self.refuse(&reason);
            }
        }
    }

    fn upload(&self, input: &HtmlInputElement) {
        let Some(file) = input.files().and_then(|files| files.get(0)) else { return };
        input.set_value("");
        let (name, size) = (file.name().to_lowercase(), file.size());
        if size > MOST_BYTES {
            self.refuse("the file is larger than 200 MB; give a part of it.");
        } else if [".gz", ".zst", ".zip", ".xz", ".bz2"].iter().any(|packed| name.ends_with(packed)) {
            self.refuse("the file is packed; unpack it first, then choose the .txt or .jsonl inside.");
        } else {
            let json = [".jsonl", ".ndjson"].iter().any(|lines| name.ends_with(lines));
            self.begin(file.into(), size, json);
        }
    }

    fn paste(&self, text: &str) {
        if text.trim().is_empty() {
            self.refuse("there is no text; paste some lines, each a record, or choose a file.");
        } else {
            let json = text.trim_start().starts_with('{');
            self.begin(text.into(), text.len() as f64, json);
        }
    }
}

/// The preview.
pub fn preview(desk: Desk) -> El {
    let look = Look::idle(desk);
    let told = move || {
        look.progress.get().map(|(read, all)| {
            let what = if look.training.get() { "Releasing words and training…" } else { "Reading…" };
            let (read, whole) = (roughly(read, &BYTES), roughly(all, &BYTES));
            format!("{what} {read} of {whole}")
        })
    };
    let done = move || look.progress.get().unwrap_or((0.0, 1.0));
    let bar = move || {
        vec![
            el("p").text(move || told().unwrap_or_default()),
            el("progress")
                .attr("aria-label", "Read")
                .attr_of("max", move || Some(done().1.to_string()))
                .prop("value", move || done().0.into()),
        ]
    };
    let refused = move || {
        look.refused.get().map(|reason| {
            let told = el("p").add(el("strong").add("No preview: ")).add(reason);
            let again = button("Choose another text", move |_| look.refused.set(None)).class("remedy");
            el("div").class("refused").id("no-preview").add(told).add(again)
        })
    };
    let banner = el("p").class("banner").attr("role", "note").add(
        "A preview reads the raw text on this machine and shows raw counts: it is not private. Nothing of it enters the \
         plan, the link or an export, and nothing leaves this page.",
    );
    section("panel", "preview-title", "The vocabulary on your text")
        .id("preview")
        .add(banner)
        .add(given(look))
        .add(el("div").id("progress").when(move || look.progress.with(Option::is_some), bar))
        .live(refused)
        .live(move || look.seen.get().map(|result| untrack(|| seen(desk, result))))
}

/// The text, and how its words are to be released.
fn given(look: Look) -> El {
    let pasted = RwSignal::new(String::new());
    let busy = move || look.progress.with(Option::is_some);
    let method = move |name: String| {
        let paper = match name.as_str() {
            "hoory" => Some(Paper::Hoory2021),
            "ponomareva" => Some(Paper::Ponomareva2022),
            _ => None,
        };
        look.method.set(paper.map(|paper| Method::Paper(PaperHistogram { paper, words: PAPER_WORDS })));
    };
    let methods = [
        ("plan", "The plan’s method"),
        ("hoory", "Hoory 2021, threshold corrected"),
        ("ponomareva", "Ponomareva 2022, threshold corrected"),
    ];
    let paste = el("div")
        .class("field")
        .add(el("label").attr("for", "paste").add("Paste text, a record a line"))
        .add(el("textarea").id("paste").attr("rows", "4").on_value("input", move |text| pasted.set(text)));
    let method = el("div")
        .class("field")
        .add(el("label").attr("for", "method").add("Words are released by"))
        .add(select("method", methods.into_iter(), || "plan", method))
        .add(hint("With the plan’s unit, and the noise and threshold of its vocabulary’s share."));
    let upload = el("input")
        .id("upload")
        .attr("type", "file")
        .attr("accept", ".txt,.jsonl,.ndjson,text/plain")
        .on("change", move |event| {
            if let Some(input) = input_of(&event) {
                look.upload(&input);
            }
        });
    let buttons = el("div")
        .class("files")
        .add(button("Count the pasted text", move |_| look.paste(&pasted.get_untracked())).id("count"))
        .add(
            el("span")
                .class("file")
                .add(upload)
                .add(el("label").attr("for", "upload").add("Choose a file, up to 200 MB…")),
        )
        .add(button("Stop", move |_| look.stop()).id("stop").flag("disabled", move || !busy()));
    el("div").add(el("div").class("pair").add(paste).add(method)).add(buttons)
}

fn seen(desk: Desk, seen: Preview) -> El {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let figures = [
        ("Units", grouped(seen.units)),
        ("Distinct words", grouped(seen.distinct_words)),
        ("Released", grouped(seen.released_words)),
        ("Lost", grouped(seen.distinct_words - seen.released_words.min(seen.distinct_words))),
        ("Coverage: words of the text that are known", percent(seen.coverage)),
        ("Tokens in the vocabulary", grouped(seen.vocab_size)),
        ("Bytes a token", format!("{:.2}", seen.bytes_per_token)),
        ("Bytes a token without noise", format!("{:.2}", seen.plain_bytes_per_token)),
        ("Lines with bytes replaced", grouped(seen.replaced_lines)),
    ];
    let rows = figures.into_iter().map(|(name, value)| row(name, [value.into()])).fold(el("tbody"), El::add);
    let survival = survival(&seen);
    let words = |words: Vec<String>| el("p").class("words").add(words.join(" · "));
    let kept = seen.kept.iter().map(|word| spaced(word)).collect();
    let lost =
        seen.lost.iter().map(|(word, units)| format!("{} ({})", spaced(word), grouped(*units))).collect();
    let tokens = |id: &str, all: &[String]| {
        let token = |token: &String| el("span").class("token").add(spaced(token));
        all.iter().map(token).fold(el("p").class("tokens").id(id), El::add)
    };
    let title = |text: String| el("h3").add(text);
    let (before, after) = (seen.before.len(), seen.after.len());
    let chart = plot(desk, SURVIVAL, Signal::derive(move || survival.clone()), Signal::derive(|| false));
    el("div")
        .class("stack")
        .id("seen")
        .add(el("table").add(el("caption").add("What would be released")).add(rows))
        .add(chart)
        .add(title(format!("The beginning of the text without noise: {before} tokens")))
        .add(tokens("before", &seen.before))
        .add(title(format!("With the private vocabulary: {after} tokens")))
        .add(tokens("after", &seen.after))
        .add(title("Most frequent words released".to_owned()))
        .add(words(kept))
        .add(title("Most frequent words lost, and how many units hold them".to_owned()))
        .add(words(lost))
}

const SURVIVAL: Plot = Plot {
    id: "survival",
    caption: "A word that few units hold stays hidden. The chance of a word, from below, and what this one draw gave.",
    shown: Shown::AtLeast,
};

fn survival(seen: &Preview) -> Chart {
    let bins = || seen.survival.iter();
    let chance = bins().filter_map(|bin| Some((bin.units, bin.probability?))).collect();
    let drawn = bins().map(|bin| (bin.units, bin.released as f64 / bin.words as f64)).collect();
    Chart {
        title: "Which words survive".to_owned(),
        x_label: "units that hold the word".to_owned(),
        y_label: "survive".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        series: vec![
            Series { name: "chance, at least".to_owned(), points: chance },
            Series { name: "share in this draw".to_owned(), points: drawn },
        ],
        highlight: None,
    }
}

/// A token or word as people read it.
fn spaced(token: &str) -> String {
    token.replace('\u{2581}', "␣")
}
