//! The privacy statement, the commands that run the plan, and the report.

use sycamore_reactive::ReadSignal;

use super::charts::signals;
use crate::page::browser::window;
use crate::page::dom::{Content, El, button, el, scrollable, section, table_row};
use crate::page::state::PlannerState;
use crate::page::widgets::{dimmable, with_outdated_note};
use crate::page::{downloads, kept};
use crate::report::{COMMANDS, html};
use crate::statement::{Section, Signed, figures, odds, sections, terms};

pub(crate) fn statement(state: PlannerState) -> El {
    let text = move || {
        let sections =
            state.certified.with(|it| it.as_ref().map(|(plan, certified)| sections(plan, certified)));
        let shown = |section: Section| {
            [el("h3").child(section.heading), el("p").child(section.text)].map(Content::from)
        };
        sections.into_iter().flatten().flat_map(shown).collect::<Vec<_>>()
    };
    let chances = move || state.secondary_results.attacker.get().map(|figures| el("p").child(odds(&figures)));
    let explained = move || {
        let rows = state.certified.with(|it| it.as_ref().map(|(plan, _)| terms(plan)));
        let row = |(name, text): (&'static str, String)| table_row(name, [text.into()]);
        rows.into_iter().flatten().map(row).fold(el("tbody"), El::child)
    };
    let table = move || {
        let rows = state.certified.with(|it| it.as_ref().map(|(plan, certified)| figures(plan, certified)));
        let row = |(name, value): (&'static str, String)| table_row(name, [value.into()]);
        rows.into_iter().flatten().map(row).fold(el("tbody"), El::child)
    };
    let head = el("div")
        .class("pair signed")
        .child(kept_text("author", "Author of this statement", kept::AUTHOR))
        .child(kept_text("organisation", "Organisation", kept::ORGANISATION))
        .child(kept_text("description", "Description of the data", kept::DESCRIPTION))
        .child(el("p").class("date").child(format!("Date: {}", today())));
    let hash = move || {
        let hash = state.certified.with(|it| it.as_ref().map(|(_, certified)| certified.hash.clone()));
        hash.unwrap_or_default()
    };
    let hash = el("p").class("hash").child("Plan SHA-256 ").child(el("code").dynamic_text(hash));
    let save = button("Save report", save_report(state)).id("report");
    let is_outdated = move || state.secondary_results.dimmed.get() || state.refusal.with(Option::is_some);
    let save = save.dynamic_flag("disabled", is_outdated);
    let print = button("Print", move |_| drop(window().print())).id("print");
    with_outdated_note(state, section("panel statement", "statement-title", "Privacy statement"))
        .child(head)
        .child(dimmable(state.dimmed, "div", "current").dynamic(text))
        .child(dimmable(state.secondary_results.dimmed, "div", "current").dynamic(chances))
        .child(el("h3").child("Terms"))
        .child(dimmable(state.dimmed, "table", "terms current").dynamic(explained))
        .child(dimmable(state.dimmed, "table", "current printed").dynamic(table))
        .child(hash.child(" · accountant ").child(accountant::VERSION))
        .child(el("h3").class("run").child("Run this plan"))
        .child(scrollable("Commands", el("pre").child(el("code").child(COMMANDS))))
        .child(el("div").class("files").child(save).child(print))
}

/// Shows an input for a text that belongs to the statement, not to the plan.
fn kept_text(id: &'static str, label: &'static str, name: &'static str) -> El {
    let input = el("input").id(id).attr("type", "text").attr("autocomplete", "off");
    let text = kept::read(name).unwrap_or_default();
    let input = input
        .prop("value", move || text.clone().into())
        .on_value("input", move |text| kept::write(name, &text));
    el("div").class("field").child(el("label").attr("for", id).child(label)).child(input)
}

/// Returns the reader's local date, as in ISO 8601.
fn today() -> String {
    let now = js_sys::Date::new_0();
    format!("{}-{:02}-{:02}", now.get_full_year(), now.get_month() + 1, now.get_date())
}

/// Returns what the author has filled in, and the date.
fn signed() -> Signed {
    let text = |name| kept::read(name).unwrap_or_default();
    Signed {
        author: text(kept::AUTHOR),
        organisation: text(kept::ORGANISATION),
        description: text(kept::DESCRIPTION),
        date: today(),
    }
}

/// Saves the report of the last certified plan, with its charts.
fn save_report(state: PlannerState) -> impl Fn(web_sys::Event) {
    let charts = signals(state);
    move |_| {
        let charts: Vec<chart::Chart> = charts.into_iter().map(ReadSignal::get_clone_untracked).collect();
        let attacker = state.secondary_results.attacker.get_untracked();
        let text = state.certified.with_untracked(|it| {
            it.as_ref().map(|(plan, certified)| html(plan, certified, attacker, &charts, &signed()))
        });
        // A browser that refuses a download reports it itself.
        let _ = text.and_then(|text| downloads::save("report.html", "text/html", &text));
    }
}
