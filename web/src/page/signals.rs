//! Additions to the signals of Sycamore.
//!
//! All signals are in one cell, which is borrowed while one is read: a closure that `with` calls must set and create no other.

use std::time::Duration;

use sycamore_reactive::{ReadSignal, Signal, create_effect, create_signal};

use super::browser::debounce;

/// Time for which a condition must hold before [`sustained`] reports it.
const DELAY: Duration = Duration::from_millis(100);

/// Sets a signal only if its value changes, so that nothing that reads it runs needlessly.
pub(crate) fn set_if_changed<T: PartialEq + 'static>(signal: Signal<T>, value: T) {
    if signal.with_untracked(|now| *now != value) {
        signal.set(value);
    }
}

/// Returns whether `condition` has held for 100 ms. Figures that are recomputed within a few frames are not dimmed,
/// because the page would be drawn twice.
pub(crate) fn sustained(condition: Signal<bool>) -> ReadSignal<bool> {
    let reported = create_signal(condition.get_untracked());
    let mut later = debounce(DELAY, move |()| set_if_changed(reported, condition.get_untracked()));
    create_effect(move || if condition.get() { later(()) } else { set_if_changed(reported, false) });
    *reported
}
