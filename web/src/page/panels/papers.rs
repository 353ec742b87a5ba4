//! Published figures beside the certified ones.

use crate::numbers::interval;
use crate::page::dom::{El, button, el, scrollable, section, table_head};
use crate::page::state::PlannerState;
use crate::presets::{self, Preset};

pub(crate) fn papers(state: PlannerState) -> El {
    let certified = move |index| {
        let bounds = state
            .secondary_results
            .papers
            .with(|all| all.iter().find(|(paper, _)| *paper == index).map(|(_, bounds)| *bounds));
        bounds.map_or("…".to_owned(), interval)
    };
    let rows = presets::papers().enumerate().map(|(index, preset)| {
        el("tr")
            .child(el("th").attr("scope", "row").child(preset.title))
            .child(el("td").child(preset.published))
            .child(el("td").class("verified").dynamic_text(move || certified(index)))
            .child(el("td").class("why").child(preset.remark))
            .child(el("td").child(open(state, preset)))
    });
    let names = ["Paper", "Published ε", "Certified ε", "Why they differ", ""];
    let table = el("table").id("papers").child(table_head(&names)).child(rows.fold(el("tbody"), El::child));
    section("panel", "papers-title", "Published and certified ε")
        .child(scrollable("Published and certified ε of five papers", table))
}

fn open(state: PlannerState, preset: &'static Preset) -> El {
    let open = button("Open", move |_| {
        if let Some(plan) = preset.plan() {
            state.replace(plan);
        }
    });
    open.attr("aria-label", &format!("Open {}", preset.title))
}
