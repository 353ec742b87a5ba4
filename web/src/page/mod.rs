//! The page and its workers. The start view asks a few questions and proposes a plan. The expert view has all settings and results;
//! it is a module of its own, which takes the plan over through the session storage.
//!
//! Modules use only those above them in this list:
//!
//! ```text
//! browser, dom, signals, downloads, kept, offline    the browser
//! secondary_results, state             signals: the plan, its figures, the undo history
//! client, text_worker, followups, plan_io    workers, files and links
//! field, widgets, chart_view           inputs, shared parts, charts
//! panels, header, own_text, start_view the page itself
//! ```

mod browser;
mod chart_view;
mod client;
mod dom;
mod downloads;
mod field;
mod followups;
mod header;
mod kept;
mod offline;
mod own_text;
mod panels;
mod plan_io;
mod secondary_results;
mod signals;
mod start_view;
mod state;
mod text_worker;
mod widgets;

use std::time::Duration;

use sycamore_reactive::{ReadSignal, create_effect, create_signal};
use wasm_bindgen::JsCast;
use web_sys::{KeyboardEvent, Window};

use browser::{begin, body, debounce, document, window};
use dom::{El, button, el, listen};
use start_view::Wish;
use state::PlannerState;

use crate::protocol::Task;

/// Time for which a certified plan must stay unchanged before follow-ups are requested. While a
/// slider moves, only ε is recomputed.
const FOLLOWUP_DELAY: Duration = Duration::from_millis(150);
/// Time without another announcement after which screen readers get the last one.
const ANNOUNCEMENT_DELAY: Duration = Duration::from_millis(500);

/// The module of the expert view.
const EXPERT_SCRIPT: &str = "./expert_loader.js";
/// The notice that the expert view could not be loaded.
const NOT_LOADED: &str = "not-loaded";
/// Time for which an edited plan must stay unchanged before it is kept for a reload.
const KEEP_DELAY: Duration = Duration::from_millis(200);

/// Starts the page with the view that was open last, or, in a worker, serves its requests.
pub fn start() {
    if js_sys::global().dyn_into::<Window>().is_err() {
        crate::worker::serve();
        return;
    }
    crate::worker::log_panics();
    if kept::read(kept::EXPERT).is_some_and(|place| !place.is_empty()) {
        load_expert_view();
    } else {
        begin(start_page);
    }
}

/// Starts the expert view in place of the start view.
pub fn start_expert() {
    crate::worker::log_panics();
    body().set_inner_html("");
    begin(expert_page);
    let place = kept::read(kept::EXPERT).unwrap_or_default();
    if let Some(element) = document().get_element_by_id(&place) {
        element.scroll_into_view();
    }
}

/// Opens the expert view at the element with this id, with the current plan.
fn open_expert_view(place: &str) {
    kept::write(kept::EXPERT, place);
    client::disconnect();
    load_expert_view();
}

fn load_expert_view() {
    let script =
        el("script").attr("type", "module").attr("src", EXPERT_SCRIPT).on("error", |_| say_not_loaded());
    // What the script asks for may be missing, too.
    listen(&window(), "error", Box::new(|_| say_not_loaded()));
    El(body().into()).child(script);
}

/// Says that the expert view could not be loaded, unless it was.
fn say_not_loaded() {
    if ["inputs", NOT_LOADED].iter().any(|id| document().get_element_by_id(id).is_some()) {
        return;
    }
    let again = button("Reload the page", |_| {
        // Without a page to reload, there is nothing to do.
        let _ = window().location().reload();
    });
    let text = "The expert settings could not be loaded. Your plan is kept. Check the connection, then reload the page.";
    let notice = header::notice(
        NOT_LOADED,
        "Not loaded",
        el("div").class("error").child(text).child(again.class("dismiss")),
    );
    let shown = notice.0.clone();
    El(body().into()).child(notice);
    shown.scroll_into_view();
}

fn start_page() {
    let state = PlannerState::new();
    let wish = Wish::new();
    let task = move || state.plan.with(|plan| wish.task(plan)).filter(|_| state.is_read());
    connect(state, task, followups::request_odds);
    // A plan that was opened is not replaced by a proposal. The expert view shows it unchanged.
    create_effect(move || {
        if state.opened.get() > 0 {
            state.keep();
            open_expert_view("inputs");
        }
    });
    let examples = start_view::examples(state);
    El(body().into())
        .child(header::header(state, "Plan private language-model training", examples))
        .child(start_view::view(state, wish))
        .child(footer())
        .child(live_region(state));
}

fn expert_page() {
    let state = PlannerState::new();
    let task = move || {
        state.plan.track();
        state.is_read().then(|| state.task())
    };
    connect(state, task, followups::request);
    listen(&window(), "keydown", Box::new(move |event| undo_by_key(state, event.unchecked_ref())));
    let inputs = el("form").id("inputs").class("inputs").attr("aria-label", "Plan");
    let inputs = inputs
        .on("submit", |event| event.prevent_default())
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
    let back = button("Start view", move |_| {
        let asked = "The start view proposes a plan from data, ε, machine and time. Its batch size, steps and model replace those of \
                     your plan. “Undo” brings them back in the expert settings. Go on?";
        if !state.is_edited() || window().confirm_with_message(asked).unwrap_or(true) {
            state.leave_noise_open();
            state.keep();
            kept::write(kept::EXPERT, "");
            let _ = window().location().reload();
        }
    });
    El(body().into())
        .child(el("a").class("skip").attr("href", "#results").child("Skip to the results"))
        .child(header::header(state, "Privacy planner", back.id("start-view")))
        .child(el("main").child(inputs).child(results))
        .child(footer())
        .child(live_region(state));
}

/// Connects the plan to the workers: `task` requests the plan's figures, and `followups` the
/// results that depend on them.
fn connect(state: PlannerState, task: impl Fn() -> Option<Task> + 'static, followups: fn(PlannerState)) {
    client::connect(state, followups::record);
    plan_io::open_link(state);
    listen(&window(), "hashchange", Box::new(move |_| plan_io::open_link(state)));
    // A file that is dropped beside its place must not take the place of the page.
    for event in ["dragover", "drop"] {
        listen(&window(), event, Box::new(|event| event.prevent_default()));
    }
    create_effect(move || {
        let task = task();
        if let Some(task) = task.filter(|_| !state.take_solved()) {
            state.mark_stale();
            client::request(task);
        }
    });
    let mut keep = debounce(KEEP_DELAY, move |()| state.keep());
    let mut request_followups = debounce(FOLLOWUP_DELAY, move |()| followups(state));
    create_effect(move || {
        state.plan.track();
        keep(());
    });
    create_effect(move || {
        state.certified.track();
        request_followups(());
    });
}

fn footer() -> El {
    let is_kept = create_signal(false);
    offline::register(is_kept);
    let text = "Everything is computed in your browser, by the same code that the trainer uses. Nothing is sent anywhere: the page’s \
                security policy blocks it.";
    let offline = move || is_kept.get().then_some(" The page works offline now.");
    el("footer").child(el("p").child(text).child(el("span").id("offline").dynamic(offline)))
}

fn live_region(state: PlannerState) -> El {
    let announced = last_announcement(*state.announcement);
    let region = el("p").class("visually-hidden").attr("role", "status").attr("aria-live", "polite");
    region.dynamic_text(move || announced.get_clone())
}

/// Returns the last announcement, once there has been no other for a while.
fn last_announcement(announcement: ReadSignal<String>) -> ReadSignal<String> {
    let announced = create_signal(String::new());
    let mut set_later = debounce(ANNOUNCEMENT_DELAY, move |text| announced.set(text));
    create_effect(move || set_later(announcement.get_clone()));
    *announced
}

/// Ctrl+Z and Ctrl+Shift+Z undo and redo changes of the plan. Text fields keep the browser's own undo.
fn undo_by_key(state: PlannerState, event: &KeyboardEvent) {
    let typing = event.target().is_some_and(|target| {
        target.dyn_into::<web_sys::HtmlInputElement>().is_ok_and(|input| input.type_() != "range")
    });
    if typing || !(event.ctrl_key() || event.meta_key()) || !event.key().eq_ignore_ascii_case("z") {
        return;
    }
    event.prevent_default();
    if event.shift_key() { state.redo() } else { state.undo() }
}
