//! Saves and opens plans: as files and as links.

use std::time::Duration;

use js_sys::{decode_uri_component, encode_uri_component};
use plan::PlanFile;
use sycamore_reactive::Signal;
use wasm_bindgen_futures::JsFuture;
use web_sys::HtmlInputElement;

use super::browser::{set_timeout, window};
use super::client;
use super::downloads;
use super::state::PlannerState;
use crate::link;
use crate::report::plan_in;

/// Prefix of a link's fragment. The number is the version of `plan.json`.
const LINK_PREFIX: &str = "#plan1=";
/// Largest number of characters of a link that is read.
const MAX_LINK: usize = 100_000;
/// Largest number of bytes of a file that is read: a plan is about a page of text.
const MAX_PLAN_BYTES: f64 = 1e6;

/// Saves the certified text as `plan.json`.
pub(crate) fn save(state: PlannerState) {
    if state.stale.get_untracked() || state.refusal.with_untracked(Option::is_some) {
        return state.announce("This plan is not certified yet.");
    }
    let text = state.plan.with_untracked(PlanFile::text);
    state.announce(match downloads::save("plan.json", "application/json", &text) {
        Some(()) => "Saved plan.json",
        None => "The browser refused to save the file.",
    });
}

/// Opens the chosen file: a plan or a report.
pub(crate) fn open_file(state: PlannerState, input: &HtmlInputElement) {
    let Some(file) = input.files().and_then(|files| files.get(0)) else { return };
    // Lets the person choose the same file again after changing it.
    input.set_value("");
    if file.size() > MAX_PLAN_BYTES {
        return state.reject("This file is larger than 1 MB, so it cannot be a plan.json");
    }
    wasm_bindgen_futures::spawn_local(async move {
        match JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string()) {
            Some(text) => client::open(plan_in(&text).to_owned()),
            None => state.reject("The browser could not read this file"),
        }
    });
}

/// Time for which the button says what happened to the link.
const LABEL_TIME: Duration = Duration::from_secs(3);

/// Copies a link to the plan, without file names. If the browser refuses, the link appears in the
/// address bar.
pub(crate) fn copy_link(state: PlannerState, label: Signal<&'static str>) {
    let text = state.plan.with_untracked(link::text);
    let fragment = format!("{LINK_PREFIX}{}", String::from(encode_uri_component(&text)));
    let address = window().location().href().unwrap_or_default();
    let address = format!("{}{fragment}", address.split('#').next().unwrap_or_default());
    let clipboard = window().navigator().clipboard();
    wasm_bindgen_futures::spawn_local(async move {
        // Without a secure connection, there is no clipboard.
        let copied =
            !clipboard.is_undefined() && JsFuture::from(clipboard.write_text(&address)).await.is_ok();
        let said = match copied || replace_address(&address) {
            true if copied => "Link copied",
            true => "Link in address bar",
            false => "Link refused by browser",
        };
        label.set(said);
        state.announce(said);
        set_timeout(move || label.set("Link"), LABEL_TIME);
    });
}

/// Changes the address without opening it.
fn replace_address(address: &str) -> bool {
    let history = window().history();
    history.is_ok_and(|history| {
        history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(address)).is_ok()
    })
}

/// Opens the plan in the address bar, if there is one.
pub(crate) fn open_link(state: PlannerState) {
    if !client::is_connected() {
        return;
    }
    let fragment = window().location().hash().unwrap_or_default();
    let Some(encoded) = fragment.strip_prefix(LINK_PREFIX) else { return };
    match decode_uri_component(encoded) {
        _ if encoded.len() > MAX_LINK => {
            state.reject("The link is longer than 100,000 characters, so it holds no plan")
        }
        Ok(text) => client::open(text.into()),
        Err(_) => state.reject("The link is damaged: copy it again as a whole"),
    }
    // A reload keeps the person's changes to the plan.
    let address = window().location().href().unwrap_or_default();
    replace_address(address.split('#').next().unwrap_or_default());
}
