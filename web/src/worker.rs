//! The worker's side: requests in, replies out, one after the other.

use js_sys::Uint8Array;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use crate::answer::reply;
use crate::ask::{Request, packed, unpacked};

/// What the worker says once it can be asked; what was sent earlier is lost.
pub const READY: &str = "ready";

/// Serves requests for as long as the page lives.
pub fn serve() {
    crate::page::tell_of_faults();
    let scope: DedicatedWorkerGlobalScope = js_sys::global().unchecked_into();
    let port = scope.clone();
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        // Page and worker are built together: only they speak here.
        let Some(request) = unpacked::<Request>(&Uint8Array::new(&event.data()).to_vec()) else { return };
        post(&port, &Uint8Array::from(packed(&reply(&request)).as_slice()));
    });
    scope.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    on_message.forget();
    post(&scope, &READY.into());
}

fn post(scope: &DedicatedWorkerGlobalScope, message: &JsValue) {
    // Texts and bytes can always be posted; a page that is gone needs no reply.
    let _ = scope.post_message(message);
}
