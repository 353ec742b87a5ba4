//! Additions to Leptos's signals.

use std::time::Duration;

use leptos::leptos_dom::helpers::debounce;
use leptos::prelude::*;

/// Time for which a condition must hold before [`sustained`] reports it.
const DELAY: Duration = Duration::from_millis(100);

/// Sets a signal only if its value changes, so that nothing that reads it runs needlessly.
pub(crate) fn set_if_changed<T: PartialEq + Send + Sync + 'static>(signal: RwSignal<T>, value: T) {
    signal.maybe_update(|now| {
        let changed = *now != value;
        *now = value;
        changed
    });
}

/// Returns whether `condition` has held for 100 ms. Figures that are recomputed within a few frames are not dimmed,
/// because the page would be drawn twice.
pub(crate) fn sustained(condition: RwSignal<bool>) -> ReadSignal<bool> {
    let reported = RwSignal::new(condition.get_untracked());
    let mut later = debounce(DELAY, move |()| set_if_changed(reported, condition.get_untracked()));
    Effect::new(move |_| if condition.get() { later(()) } else { set_if_changed(reported, false) });
    reported.read_only()
}
