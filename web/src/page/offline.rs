//! Registers the service worker, which keeps the page's files so that it works offline.

use std::time::Duration;

use sycamore_reactive::Signal;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::JsFuture;
use web_sys::ServiceWorkerRegistration;

use super::browser::{set_timeout, window};

/// The service worker. The build writes the names of the page's files into it.
const SCRIPT: &str = "./sw.js";

/// Registers the service worker. Without it, the page still works while it is open. `is_kept` is set once all files are kept.
pub(crate) fn register(is_kept: Signal<bool>) {
    // The files of a development build change too often to be kept.
    if cfg!(debug_assertions) {
        return;
    }
    let container = window().navigator().service_worker();
    if container.is_undefined() {
        return;
    }
    // The service worker has one message.
    let listener = Closure::<dyn FnMut()>::new(move || is_kept.set(true));
    container.set_onmessage(Some(listener.as_ref().unchecked_ref()));
    listener.forget();
    wasm_bindgen_futures::spawn_local(async move {
        if JsFuture::from(container.register(SCRIPT)).await.is_err() {
            return;
        }
        let Ok(ready) = container.ready() else { return };
        let Ok(registration) = JsFuture::from(ready).await else { return };
        let registration: ServiceWorkerRegistration = registration.unchecked_into();
        set_timeout(
            move || {
                if let Some(active) = registration.active() {
                    let _ = active.post_message(&"the page is idle".into());
                }
            },
            Duration::from_secs(2),
        );
    });
}
