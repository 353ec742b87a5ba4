//! The privacy statement, the commands that run the plan, and the report.

use leptos::prelude::*;

use super::charts::signals;
use crate::numbers::percent;
use crate::page::dom::{Content, El, button, el, scrollable, section};
use crate::page::downloads;
use crate::page::state::PlannerState;
use crate::page::widgets::{dimmable, with_outdated_note};
use crate::report::{COMMANDS, html};
use crate::statement::{Section, sections};

pub(crate) fn statement(state: PlannerState) -> El {
    let text = move || {
        let sections =
            state.certified.with(|it| it.as_ref().map(|(plan, certified)| sections(plan, certified)));
        let shown = |section: Section| {
            [el("h3").child(section.heading), el("p").child(section.text)].map(Content::from)
        };
        sections.into_iter().flatten().flat_map(shown).collect::<Vec<_>>()
    };
    let odds = move || {
        let chance = state.secondary_results.attacker.get().map(|figures| percent(figures.odds.upper));
        chance.map(|chance| {
            el("p").child(format!(
                "An attacker who knows everything else and starts from even odds is right with a probability of at most \
                 {chance} %."
            ))
        })
    };
    let hash = move || {
        let hash = state.certified.with(|it| it.as_ref().map(|(_, certified)| certified.hash.clone()));
        hash.unwrap_or_default()
    };
    let hash = el("p").class("hash").child("Plan SHA-256 ").child(el("code").dynamic_text(hash));
    let save = button("Save report", save_report(state)).id("report");
    let save = save.dynamic_flag("disabled", move || state.secondary_results.dimmed.get());
    let print = button("Print", move |_| drop(window().print())).id("print");
    with_outdated_note(state, section("panel statement", "statement-title", "Privacy statement"))
        .child(dimmable(state.dimmed, "div", "").dynamic(text))
        .child(dimmable(state.secondary_results.dimmed, "div", "").dynamic(odds))
        .child(hash.child(" · accountant ").child(accountant::VERSION))
        .child(el("h3").child("Run this plan"))
        .child(scrollable("Commands", el("pre").child(el("code").child(COMMANDS))))
        .child(el("div").class("files").child(save).child(print))
}

/// Saves the report of the last certified plan, with its charts.
fn save_report(state: PlannerState) -> impl Fn(web_sys::Event) {
    let charts = signals(state);
    move |_| {
        let charts: Vec<chart::Chart> = charts.iter().map(Signal::get_untracked).collect();
        let attacker = state.secondary_results.attacker.get_untracked();
        let text = state.certified.with_untracked(|it| {
            it.as_ref().map(|(plan, certified)| html(plan, certified, attacker, &charts))
        });
        // A browser that refuses a download reports it itself.
        let _ = text.and_then(|text| downloads::save("report.html", "text/html", &text));
    }
}
