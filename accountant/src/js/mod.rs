//! The accountant for web pages and Node: plain objects in and out, with TypeScript declarations.
//!
//! Events and results have the same JSON as on the command line. A refusal has the command line's message: a `TypeError` for a
//! value of a wrong type, a `RangeError` for one out of range, and an `Error` for a question that has no certified answer.

mod queries;
mod read;
mod search;

use heap as _;
use serde::Serialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::AccountantError;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("../../js/types.d.ts");

/// The accountant's version, as certificates name it.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    crate::VERSION.to_owned()
}

/// The method of certified bounds, as certificates name it.
#[wasm_bindgen]
#[must_use]
pub fn method() -> String {
    crate::METHOD.to_owned()
}

fn type_error(message: &str) -> JsValue {
    js_sys::TypeError::new(message).into()
}

fn refusal(refused: AccountantError) -> JsValue {
    let message = refused.to_string();
    match refused {
        AccountantError::OutOfRange { .. } => js_sys::RangeError::new(&message).into(),
        _ => js_sys::Error::new(&message).into(),
    }
}

fn object<T: Serialize>(value: &T) -> Result<JsValue, JsValue> {
    serde_wasm_bindgen::to_value(value).map_err(|failed| js_sys::Error::new(&failed.to_string()).into())
}

fn answer<T: Serialize>(value: Result<T, AccountantError>) -> Result<JsValue, JsValue> {
    object(&value.map_err(refusal)?)
}
