//! The certified figures, beside those of a pinned plan if there is one.

use plan::PlanFile;
use sycamore_reactive::untrack;

use crate::page::dom::{El, button, el, scrollable, section, table_head, table_row};
use crate::page::field::error_box;
use crate::page::state::PlannerState;
use crate::page::widgets::with_outdated_note;
use crate::protocol::{Certified, Refusal};
use crate::statement::figures;

pub(crate) fn result(state: PlannerState) -> El {
    let shown = move || {
        let own = state.certified.get_clone();
        own.map(|own| state.pinned.with(|pinned| table(&own, pinned.as_ref())))
    };
    let is_pinned = move || state.pinned.with(Option::is_some);
    let toggle_pin = move |_| {
        state.pinned.set(if untrack(is_pinned) { None } else { state.certified.get_clone_untracked() });
    };
    let label = move || if is_pinned() { "Unpin the other plan" } else { "Pin this plan for comparison" };
    let panel = section("panel figures", "figures-title", "Result")
        .dynamic(move || state.refusal.get_clone().map(|refusal| refused(state, refusal)));
    with_outdated_note(state, panel)
        .child(el("div").id("figures").toggle_class("stale", move || state.dimmed.get()).dynamic(shown))
        .child(
            button("", toggle_pin)
                .id("pin")
                .dynamic_attr("aria-pressed", move || Some(is_pinned().to_string()))
                .dynamic_text(move || label().to_owned()),
        )
}

/// Shows why the current plan cannot be certified.
fn refused(state: PlannerState, refusal: Refusal) -> El {
    let place = refusal.path.clone();
    let place = if place.is_empty() { "The plan is not valid".to_owned() } else { place };
    let place = el("p").class("place").child(place);
    el("div").class("refusal").id("refusal").child(place).child(error_box(state, refusal))
}

fn table(own: &(PlanFile, Certified), pinned: Option<&(PlanFile, Certified)>) -> El {
    let other = pinned.map(|(plan, certified)| figures(plan, certified));
    let head = other.is_some().then(|| table_head(&["", "This plan", "Pinned plan"]));
    let row = |(index, (name, value)): (usize, (&'static str, String))| {
        let beside = other.as_ref().map(|rows| rows[index].1.clone());
        let differs = beside.as_ref().is_some_and(|beside| *beside != value);
        let row = table_row(name, std::iter::once(value).chain(beside).map(Into::into));
        if differs { row.class("differs") } else { row }
    };
    let body = figures(&own.0, &own.1).into_iter().enumerate().map(row).fold(el("tbody"), El::child);
    scrollable("Figures", el("table").child(head).child(body))
}
