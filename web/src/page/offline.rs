//! Once loaded the page needs no network: its service worker keeps the page's own files.

use std::time::Duration;

use leptos::prelude::{set_timeout, window};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::ServiceWorkerRegistration;

/// Beside the page; the build writes the names of its files into it.
const SCRIPT: &str = "./sw.js";

/// Asks the browser to keep the page. A browser that does not is none the worse: the page works as long as it is open.
pub fn keep() {
    // A development build changes its files at every keystroke.
    if cfg!(debug_assertions) {
        return;
    }
    let container = window().navigator().service_worker();
    if container.is_undefined() {
        return;
    }
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
