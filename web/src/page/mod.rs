//! The page itself: panels over one plan, and a worker that answers.

mod aside;
mod client;
mod curve;
mod desk;
mod exchange;
mod field;
mod files;
mod inquiry;
mod offline;
mod panels;
mod plot;
mod verdict;

use std::time::Duration;

use leptos::ev;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{KeyboardEvent, Window};

use desk::Desk;
use panels::{
    AttackPanel, BudgetPanel, DataPanel, LedgerPanel, ModelPanel, PapersPanel, PreviewPanel, StatementPanel,
    TrainingPanel, VocabularyPanel,
};
use verdict::{Figures, Header};

/// Puts the page into the document; in a worker, serves it.
pub fn start() {
    if js_sys::global().dyn_into::<Window>().is_err() {
        crate::worker::serve();
        return;
    }
    console_error_panic_hook::set_once();
    leptos::mount::mount_to_body(Planner);
    offline::keep();
}

#[component]
fn Planner() -> impl IntoView {
    let desk = Desk::open();
    provide_context(desk);
    client::open(desk);
    exchange::read_link();
    Effect::new(move |_| {
        desk.plan.track();
        if !desk.is_found() {
            client::certify(desk);
        }
    });
    window_event_listener(ev::keydown, move |event| undo_by_key(desk, &event));
    let said = spoken(desk.notice.into());
    view! {
        <a class="skip" href="#results">"Skip to the results"</a>
        <Header/>
        <main>
            <form class="inputs" aria-label="Plan" on:submit=|event| event.prevent_default()>
                <DataPanel/>
                <BudgetPanel/>
                <VocabularyPanel/>
                <TrainingPanel/>
                <ModelPanel/>
            </form>
            <div class="results" id="results" tabindex="-1">
                <Figures/>
                <AttackPanel/>
                <curve::Curves/>
                <LedgerPanel/>
                <PreviewPanel/>
                <PapersPanel/>
                <StatementPanel/>
            </div>
        </main>
        <footer>
            <p>
                "Everything on this page is computed in it, by the code that trains. Nothing is sent anywhere: its security \
                 policy forbids it. Once loaded it works without a network."
            </p>
        </footer>
        <p class="aside" role="status" aria-live="polite">{move || said.get()}</p>
    }
}

/// What a screen reader is told: the last notice, once nothing else has happened for half a second.
fn spoken(notice: Signal<String>) -> ReadSignal<String> {
    let (said, say) = signal(String::new());
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    Effect::new(move |_| {
        let text = notice.get();
        if let Some(earlier) = waiting.get_value() {
            earlier.clear();
        }
        let timer = set_timeout_with_handle(move || say.set(text.clone()), Duration::from_millis(500));
        waiting.set_value(timer.ok());
    });
    said
}

/// Undo and redo of the plan; text fields keep their own.
fn undo_by_key(desk: Desk, event: &KeyboardEvent) {
    let typing = event.target().is_some_and(|target| {
        target.dyn_into::<web_sys::HtmlInputElement>().is_ok_and(|input| input.type_() != "range")
    });
    if typing || !(event.ctrl_key() || event.meta_key()) || event.key().to_lowercase() != "z" {
        return;
    }
    event.prevent_default();
    if event.shift_key() { desk.redo() } else { desk.undo() }
}
