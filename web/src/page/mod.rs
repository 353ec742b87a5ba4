//! The page: input panels on the left, results on the right, and workers that compute.
//!
//! Modules use only those above them in this list:
//!
//! ```text
//! dom, signals, downloads, offline     the browser
//! secondary_results, state             signals: the plan, its figures, the undo history
//! client, followups, plan_io           workers, files and links
//! field, widgets, chart_view           inputs, shared parts, charts
//! panels, header                       the page itself
//! ```

mod chart_view;
mod client;
mod dom;
mod downloads;
mod field;
mod followups;
mod header;
mod offline;
mod panels;
mod plan_io;
mod secondary_results;
mod signals;
mod state;
mod widgets;

use std::time::Duration;

use leptos::leptos_dom::helpers::debounce;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{KeyboardEvent, Window};

use dom::{El, el, listen};
use state::PlannerState;

/// How long a certified plan must stay unchanged before follow-ups are requested. While a slider moves, only ε is
/// recomputed.
const FOLLOWUP_DELAY: Duration = Duration::from_millis(150);
/// How long no announcement must come before screen readers get the last one.
const ANNOUNCEMENT_DELAY: Duration = Duration::from_millis(500);

/// Starts the page, or, in a worker, serves its requests.
pub fn start() {
    if js_sys::global().dyn_into::<Window>().is_err() {
        crate::worker::serve();
        return;
    }
    crate::worker::log_panics();
    leptos::mount::mount_to_body(planner);
    offline::register();
}

fn planner() {
    let state = PlannerState::new();
    client::connect(state, followups::record);
    plan_io::open_link();
    Effect::new(move |_| {
        state.plan.track();
        if !state.take_solved() {
            client::certify(state);
        }
    });
    let mut request_followups = debounce(FOLLOWUP_DELAY, move |()| followups::request(state));
    Effect::new(move |_| {
        state.certified.track();
        request_followups(());
    });
    listen(&window(), "keydown", Box::new(move |event| undo_by_key(state, event.unchecked_ref())));
    let announced = last_announcement(state.announcement.into());
    let inputs =
        el("form").class("inputs").attr("aria-label", "Plan").on("submit", |event| event.prevent_default());
    let inputs = inputs
        .child(panels::data(state))
        .child(panels::budget(state))
        .child(panels::vocabulary(state))
        .child(panels::training(state))
        .child(panels::model(state));
    let results = el("div")
        .class("results")
        .id("results")
        .attr("tabindex", "-1")
        .child(panels::result(state))
        .child(panels::meaning(state))
        .child(panels::charts(state))
        .child(panels::charges(state))
        .child(panels::preview(state))
        .child(panels::papers(state))
        .child(panels::statement(state));
    let live_region = el("p").class("visually-hidden").attr("role", "status").attr("aria-live", "polite");
    El(leptos::tachys::dom::body().into())
        .child(el("a").class("skip").attr("href", "#results").child("Skip to the results"))
        .child(header::header(state))
        .child(el("main").child(inputs).child(results))
        .child(el("footer").child(el("p").child(
            "Everything is computed in your browser, by the same code that the trainer uses. Nothing is sent anywhere: the \
             page’s security policy blocks it. Once loaded, the page works offline.",
        )))
        .child(live_region.dynamic_text(move || announced.get()));
}

/// The last announcement, once there has been no other for a while.
fn last_announcement(announcement: Signal<String>) -> ReadSignal<String> {
    let (announced, set) = signal(String::new());
    let mut set_later = debounce(ANNOUNCEMENT_DELAY, move |text| set.set(text));
    Effect::new(move |_| set_later(announcement.get()));
    announced
}

/// Ctrl+Z and Ctrl+Shift+Z undo and redo changes of the plan. Text fields keep the browser's own undo.
fn undo_by_key(state: PlannerState, event: &KeyboardEvent) {
    let typing = event.target().is_some_and(|target| {
        target.dyn_into::<web_sys::HtmlInputElement>().is_ok_and(|input| input.type_() != "range")
    });
    if typing || !(event.ctrl_key() || event.meta_key()) || event.key().to_lowercase() != "z" {
        return;
    }
    event.prevent_default();
    if event.shift_key() { state.redo() } else { state.undo() }
}
