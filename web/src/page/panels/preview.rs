//! The vocabulary that the plan would release from a text at hand, counted in a worker of its own.

use std::cell::RefCell;

use chart::{Chart, Series, Spacing};
use dp_tokenizer::preview::{Method, Preview};
use js_sys::Array;
use leptos::prelude::*;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, HtmlInputElement, MessageEvent, Worker};

use crate::numbers::{BYTES, grouped, roughly};
use crate::page::client;
use crate::page::desk::Desk;
use crate::page::plot::{Plot, Shown};
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
        let errand = serde_json::to_string(&Errand { id, settings }).unwrap_or_default();
        let Some(worker) = client::start(SCRIPT, "") else {
            self.refuse("this browser cannot start a worker.");
            return;
        };
        self.progress.set(Some((0.0, bytes)));
        let (look, message) = (*self, Array::of2(&errand.into(), &source));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            let text = event.data().as_string().unwrap_or_default();
            if text == READY {
                WORKER.with_borrow(|worker| worker.as_ref().map(|worker| worker.post_message(&message)));
            } else if let Ok(Numbered { id, report }) = serde_json::from_str(&text)
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

    fn upload(&self, event: &Event) {
        let input = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
        let Some(input) = input else { return };
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
#[component]
pub fn PreviewPanel() -> impl IntoView {
    let look = Look::idle(expect_context::<Desk>());
    let told = move || {
        look.progress.get().map(|(read, all)| {
            let what = if look.training.get() { "Releasing words and training…" } else { "Reading…" };
            let (read, whole) = (roughly(read, &BYTES), roughly(all, &BYTES));
            format!("{what} {read} of {whole}")
        })
    };
    view! {
        <section class="panel" aria-labelledby="preview-title" id="preview">
            <h2 id="preview-title">"The vocabulary on your text"</h2>
            <p class="banner" role="note">
                "A preview reads the raw text on this machine and shows raw counts: it is not private. Nothing of it enters the \
                 plan, the link or an export, and nothing leaves this page."
            </p>
            <Given look/>
            <div id="progress">
                {move || told().map(|told| view! {
                    <p>{told}</p>
                    <progress aria-label="Read" max=move || look.progress.get().map_or(1.0, |(_, all)| all)
                        prop:value=move || look.progress.get().map_or(0.0, |(read, _)| read)></progress>
                })}
            </div>
            {move || look.refused.get().map(|reason| view! {
                <div class="refused" id="no-preview">
                    <p><strong>"No preview: "</strong>{reason}</p>
                    <button type="button" class="remedy" on:click=move |_| look.refused.set(None)>"Choose another text"</button>
                </div>
            })}
            {move || look.seen.get().map(|seen| view! { <Seen seen/> })}
        </section>
    }
}

/// The text, and how its words are to be released.
#[component]
fn Given(look: Look) -> impl IntoView {
    let pasted = RwSignal::new(String::new());
    let busy = move || look.progress.with(Option::is_some);
    let method = move |event| {
        look.method.set(match event_target_value(&event).as_str() {
            "hoory" => Some(Method::Hoory2021(PAPER_WORDS)),
            "ponomareva" => Some(Method::Ponomareva2022(PAPER_WORDS)),
            _ => None,
        });
    };
    view! {
        <div class="pair">
            <div class="field">
                <label for="paste">"Paste text, a record a line"</label>
                <textarea id="paste" rows="4" prop:value=move || pasted.get()
                    on:input=move |event| pasted.set(event_target_value(&event))></textarea>
            </div>
            <div class="field">
                <label for="method">"Words are released by"</label>
                <select id="method" on:change=method>
                    <option value="plan">"The plan’s method"</option>
                    <option value="hoory">"Hoory 2021, threshold corrected"</option>
                    <option value="ponomareva">"Ponomareva 2022, threshold corrected"</option>
                </select>
                <p class="hint">"With the plan’s unit, and the noise and threshold of its vocabulary’s share."</p>
            </div>
        </div>
        <div class="files">
            <button type="button" id="count" on:click=move |_| look.paste(&pasted.get_untracked())>"Count the pasted text"</button>
            <span class="file">
                <input id="upload" type="file" accept=".txt,.jsonl,.ndjson,text/plain" on:change=move |event| look.upload(&event)/>
                <label for="upload">"Choose a file, up to 200 MB…"</label>
            </span>
            <button type="button" id="stop" disabled=move || !busy() on:click=move |_| look.stop()>"Stop"</button>
        </div>
    }
}

#[component]
fn Seen(seen: Preview) -> impl IntoView {
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
    let rows = figures.map(|(name, value)| view! { <tr><th scope="row">{name}</th><td>{value}</td></tr> });
    let survival = survival(&seen);
    let words = |words: Vec<String>| words.iter().map(|word| spaced(word)).collect::<Vec<_>>().join(" · ");
    let lost = seen.lost.iter().map(|(word, units)| format!("{} ({})", spaced(word), grouped(*units)));
    let lost = lost.collect::<Vec<_>>().join(" · ");
    let tokens = |all: Vec<String>| {
        all.into_iter().map(|token| view! { <span class="token">{spaced(&token)}</span> }).collect_view()
    };
    let (before, after) = (seen.before.len(), seen.after.len());
    view! {
        <div class="stack" id="seen">
            <table><caption>"What would be released"</caption><tbody>{rows.into_iter().collect_view()}</tbody></table>
            <Plot
                id="survival"
                caption="A word that few units hold stays hidden. The chance of a word, from below, and what this one draw gave."
                shown=Shown::AtLeast
                chart=Signal::derive(move || survival.clone())
                stale=Signal::derive(|| false)
            />
            <h3>{format!("The beginning of the text without noise: {before} tokens")}</h3>
            <p class="tokens" id="before">{tokens(seen.before)}</p>
            <h3>{format!("With the private vocabulary: {after} tokens")}</h3>
            <p class="tokens" id="after">{tokens(seen.after)}</p>
            <h3>"Most frequent words released"</h3>
            <p class="words">{words(seen.kept)}</p>
            <h3>"Most frequent words lost, and how many units hold them"</h3>
            <p class="words">{lost}</p>
        </div>
    }
}

fn survival(seen: &Preview) -> Chart {
    let bins = || seen.survival.iter();
    let chance = bins().filter_map(|bin| Some((bin.units, bin.probability?))).collect();
    let drawn = bins().map(|bin| (bin.units, bin.released as f64 / bin.words as f64)).collect();
    Chart {
        title: "Which words survive".to_owned(),
        across: "units that hold the word".to_owned(),
        upward: "survive".to_owned(),
        across_spacing: Spacing::Logarithmic,
        upward_spacing: Spacing::Linear,
        series: vec![
            Series { name: "chance, at least".to_owned(), points: chance },
            Series { name: "share in this draw".to_owned(), points: drawn },
        ],
        here: None,
    }
}

/// A token or word as people read it.
fn spaced(token: &str) -> String {
    token.replace('\u{2581}', "␣")
}
