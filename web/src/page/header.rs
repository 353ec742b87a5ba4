//! The sticky header: ε, δ, the plan's status, and the plan's actions.

use sycamore_reactive::{create_effect, create_selector, create_signal};

use super::dom::{El, button, el, input_of};
use super::field::{explanation, name_of};
use super::plan_io;
use super::state::PlannerState;
use crate::numbers::{rounded_down, rounded_up};
use crate::protocol::Refusal;
use crate::statement::is_public;

/// Builds the header of the page, with more actions at their start.
pub(crate) fn header(state: PlannerState, title: &'static str, more: El) -> El {
    let title = el("h1").child(title);
    let title = title
        .child(el("span").class("plan-name").dynamic_text(move || state.plan.with(|plan| plan.name.clone())));
    el("header")
        .child(title)
        .child(headline(state))
        .child(actions(state, more))
        .dynamic(move || reason(state))
        .dynamic(move || state.rejected.get_clone().map(|refusal| rejected(state, refusal)))
}

/// Shows why the plan is refused, in the place of ε.
fn reason(state: PlannerState) -> Option<El> {
    let refusal = state.refusal.get_clone()?;
    let text = explanation(name_of(&refusal.path), &refusal.given, &refusal.allowed, "");
    Some(el("div").class("reason").id("reason").child(text))
}

/// Shows why a file or link was not opened.
fn rejected(state: PlannerState, refusal: Refusal) -> El {
    let place = if refusal.path.is_empty() { String::new() } else { format!("{}: ", refusal.path) };
    let text = explanation("", &format!("{place}{}", refusal.given), &refusal.allowed, &refusal.fix);
    let dismiss = button("Keep the current plan", move |_| state.rejected.set(None)).class("dismiss");
    notice("rejected", "Not opened", el("div").class("error").child(text).child(dismiss))
}

/// Builds an alert with a heading.
pub(crate) fn notice(id: &str, heading: &'static str, text: El) -> El {
    let heading = el("p").class("place").child(heading);
    el("div").class("refusal").id(id).attr("role", "alert").child(heading).child(text)
}

/// Shows bounds on ε, δ, μ and the status.
fn headline(state: PlannerState) -> El {
    let refused = move || state.refusal.with(Option::is_some);
    let status = create_selector(move || match (refused(), state.dimmed.get()) {
        (true, _) => ("status refused", "✕ Not valid"),
        (false, true) => ("status busy", "… Computing"),
        (false, false) if state.plan.with(is_public) => ("status refused", "✕ Not private"),
        (false, false) => ("status verified", "Verified"),
    });
    let epsilon = move || {
        let epsilon = state.certified.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon));
        epsilon.filter(|_| !refused() && !state.plan.with(is_public))
    };
    // ε of an earlier plan is not shown under this one.
    let current = move || epsilon().filter(|_| !state.dimmed.get());
    let upper = move || {
        let missing = if refused() { "ε –" } else { "ε …" };
        current().map_or(missing.to_owned(), |bounds| format!("ε ≤ {}", rounded_up(bounds.upper, 4)))
    };
    let lower = move || {
        current().map_or(String::new(), |bounds| format!("(and ≥ {})", rounded_down(bounds.lower, 4)))
    };
    let strength =
        move || current().map_or(String::new(), |bounds| accountant::strength(bounds.upper).to_owned());
    let delta = move || format!("at δ = {:e}", state.plan.with(|plan| plan.privacy.delta));
    let mu = move || {
        let attacker = state.secondary_results.attacker.get().filter(|_| !refused());
        attacker.map_or(String::new(), |figures| format!("μ ≤ {}", rounded_up(figures.mu.upper, 3)))
    };
    let exact = |end: fn(accountant::Bounds) -> f64| move || epsilon().map(|bounds| end(bounds).to_string());
    el("p")
        .class("headline")
        .toggle_class("stale", move || state.dimmed.get())
        .dynamic_attr("aria-busy", move || Some(state.stale.get().to_string()))
        .child(
            el("span")
                .class("epsilon")
                .id("epsilon")
                .dynamic_attr("data-exact", exact(|bounds| bounds.upper))
                .dynamic_attr("data-lower", exact(|bounds| bounds.lower))
                .dynamic_text(upper),
        )
        .child(el("span").class("bounds").dynamic_text(lower))
        .child(el("span").class("delta").dynamic_text(delta))
        .child(
            el("span")
                .class("delta mu")
                .toggle_class("stale", move || state.secondary_results.stale.get())
                .dynamic_text(mu),
        )
        .child(el("span").class("delta").id("strength").dynamic_text(strength))
        .child(
            el("span")
                .id("status")
                .dynamic_attr("class", move || Some(status.get().0.to_owned()))
                .dynamic_text(move || status.get().1.to_owned()),
        )
}

/// Shows the buttons to undo, redo, link, open and save.
fn actions(state: PlannerState, more: El) -> El {
    let unsaved = move || state.dimmed.get() || state.refusal.with(Option::is_some);
    let file = el("input").id("import").attr("type", "file").attr("accept", ".json,.html,application/json");
    let file = file.on("change", move |event| {
        if let Some(input) = input_of(&event) {
            plan_io::open_file(state, &input);
        }
    });
    let undo = button("Undo", move |_| state.undo()).id("undo");
    let redo = button("Redo", move |_| state.redo()).id("redo");
    // A click may come before the figures of the last change, which is then saved with them.
    let wanted = create_signal(false);
    create_effect(move || {
        if wanted.get() && (!state.stale.get() || state.refusal.with(Option::is_some)) {
            wanted.set(false);
            plan_io::save(state);
        }
    });
    let save = button("Save plan.json", move |_| wanted.set(true)).id("export").class("primary");
    el("div")
        .class("actions")
        .attr("role", "toolbar")
        .attr("aria-label", "Plan")
        .child(more)
        .child(undo.dynamic_flag("disabled", move || !state.can_undo()))
        .child(redo.dynamic_flag("disabled", move || !state.can_redo()))
        .child(link(state))
        .child(el("span").class("file").child(file).child(el("label").attr("for", "import").child("Open…")))
        .child(save.dynamic_flag("disabled", unsaved))
}

/// Makes the button that copies a link to the plan, and says so.
fn link(state: PlannerState) -> El {
    let label = create_signal("Link");
    let copy = move |_| plan_io::copy_link(state, label);
    let text = move || label.get().to_owned();
    button("", copy).id("link").dynamic_text(text).dynamic_flag("disabled", move || !state.is_read())
}
