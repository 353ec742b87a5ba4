//! Makes parts that several panels share.

use sycamore_reactive::ReadSignal;

use super::dom::{El, el};
use super::state::PlannerState;

/// Builds a panel of input fields with a heading.
pub(crate) fn fieldset(title: &'static str) -> El {
    el("fieldset").class("panel").child(el("legend").child(title))
}

/// Builds an explanation below fields.
pub(crate) fn hint(text: &'static str) -> El {
    el("p").class("hint").child(text)
}

/// Builds an element that is grey while its content belongs to an earlier plan.
pub(crate) fn dimmable(dimmed: ReadSignal<bool>, tag: &str, class: &str) -> El {
    el(tag).class(class).toggle_class("stale", move || dimmed.get())
}

/// Adds a note to `panel` while the current plan is not valid: what follows belongs to an earlier one.
pub(crate) fn with_outdated_note(state: PlannerState, panel: El) -> El {
    let refused = move || state.refusal.with(Option::is_some);
    panel.show_when(refused, || {
        let text =
            "The current plan is not valid. What is still shown here belongs to the last certified plan.";
        el("p").class("outdated").child(text)
    })
}
