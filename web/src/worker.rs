//! The worker's side: requests in, replies out, one after the other.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use crate::answer::reply;
use crate::ask::Request;

/// What the worker says once it can be asked; what was sent earlier is lost.
pub const READY: &str = "ready";

/// Serves requests for as long as the page lives.
pub fn serve() {
    console_error_panic_hook::set_once();
    let scope: DedicatedWorkerGlobalScope = js_sys::global().unchecked_into();
    let port = scope.clone();
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let text = event.data().as_string().unwrap_or_default();
        // Page and worker are built together: only they speak here.
        let Ok(request) = serde_json::from_str::<Request>(&text) else { return };
        post(&port, &serde_json::to_string(&reply(&request)).unwrap_or_default());
    });
    scope.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    on_message.forget();
    post(&scope, READY);
}

fn post(scope: &DedicatedWorkerGlobalScope, text: &str) {
    // Strings can always be posted; a page that is gone needs no reply.
    let _ = scope.post_message(&text.into());
}
