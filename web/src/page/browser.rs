//! The window, its document and its timers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use sycamore_reactive::{RootHandle, batch, create_root};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Document, HtmlElement, Window};

thread_local! {
    /// The owner of all signals.
    static ROOT: Cell<Option<RootHandle>> = const { Cell::new(None) };
}

/// Builds a view, whose signals live as long as the page.
pub(crate) fn begin(view: fn()) {
    ROOT.set(Some(create_root(view)));
}

/// Runs what the browser calls: a handler of an event, a message or a timer. Effects of the signals that it sets run once, after it.
pub(crate) fn handle(event: impl FnOnce()) {
    match ROOT.get() {
        Some(root) => root.run_in(|| batch(event)),
        // No view has begun, so there are no signals.
        None => event(),
    }
}

/// Returns the window.
///
/// # Panics
/// In a worker, which has none.
#[expect(clippy::expect_used, reason = "the page runs in a window")]
pub(crate) fn window() -> Window {
    web_sys::window().expect("a window")
}

#[expect(clippy::expect_used, reason = "the page runs in a document")]
pub(crate) fn document() -> Document {
    window().document().expect("a document")
}

#[expect(clippy::expect_used, reason = "the page's script is in the body")]
pub(crate) fn body() -> HtmlElement {
    document().body().expect("a body")
}

/// Calls `then` once after a while.
pub(crate) fn set_timeout(then: impl FnOnce() + 'static, after: Duration) {
    timeout(Box::new(then), after);
}

fn timeout(then: Box<dyn FnOnce()>, after: Duration) -> Option<i32> {
    let then = Closure::once_into_js(move || handle(then));
    let milliseconds = after.as_millis() as i32;
    window().set_timeout_with_callback_and_timeout_and_arguments_0(then.unchecked_ref(), milliseconds).ok()
}

/// Calls `then` before the next frame is drawn.
pub(crate) fn request_animation_frame(then: impl FnOnce() + 'static) {
    let then = Closure::once_into_js(move || handle(then));
    // A browser without frames draws nothing.
    let _ = window().request_animation_frame(then.unchecked_ref());
}

/// A timer that calls a function again and again, until it is cleared.
pub(crate) struct Interval(i32);

impl Interval {
    /// Returns [`None`] if the browser has no timers.
    pub(crate) fn new(each: impl Fn() + 'static, every: Duration) -> Option<Self> {
        let each = Closure::<dyn Fn()>::new(move || handle(&each)).into_js_value();
        let milliseconds = every.as_millis() as i32;
        let id = window()
            .set_interval_with_callback_and_timeout_and_arguments_0(each.unchecked_ref(), milliseconds);
        id.ok().map(Self)
    }

    pub(crate) fn clear(&self) {
        window().clear_interval_with_handle(self.0);
    }
}

/// Returns a function that hands its last argument to `then`, once it has not been called for a while.
pub(crate) fn debounce<T: 'static>(quiet: Duration, then: impl FnMut(T) + 'static) -> impl FnMut(T) {
    let (then, waiting) = (Rc::new(RefCell::new(then)), Cell::new(None::<i32>));
    move |argument| {
        if let Some(id) = waiting.take() {
            window().clear_timeout_with_handle(id);
        }
        let then = Rc::clone(&then);
        waiting.set(timeout(Box::new(move || then.borrow_mut()(argument)), quiet));
    }
}
