//! A worker that serves the page's requests one by one, and functions that all workers of the page
//! share.

use js_sys::Uint8Array;
use serde::Serialize;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use crate::handler::handle;
use crate::protocol::{Request, decode, encode};

/// The message that a worker sends once it listens. Earlier messages to it are lost.
pub(crate) const READY: &str = "ready";

/// Serves requests for as long as the page lives.
pub(crate) fn serve() {
    listen(|scope, message| {
        // Page and worker are built together, so every message is a request.
        if let Some(request) = decode::<Request>(&Uint8Array::new(&message).to_vec()) {
            post(scope, &handle(&request));
        }
    });
}

/// Calls `on_message` with every message to this worker, and tells the page that it listens.
pub(crate) fn listen(on_message: fn(&DedicatedWorkerGlobalScope, JsValue)) {
    log_panics();
    let scope: DedicatedWorkerGlobalScope = js_sys::global().unchecked_into();
    let own = scope.clone();
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        on_message(&own, event.data());
    });
    scope.set_onmessage(Some(listener.as_ref().unchecked_ref()));
    listener.forget();
    // Strings can always be posted.
    let _ = scope.post_message(&READY.into());
}

/// Posts a message to the page.
pub(crate) fn post(scope: &DedicatedWorkerGlobalScope, message: &impl Serialize) {
    // Bytes can always be posted. A page that is gone needs no message.
    let _ = scope.post_message(&Uint8Array::from(encode(message).as_slice()));
}

/// Logs panics to the console in a development build. A release build has no panic messages.
pub(crate) fn log_panics() {
    #[cfg(debug_assertions)]
    console_error_panic_hook::set_once();
}
