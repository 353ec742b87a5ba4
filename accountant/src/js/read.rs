//! Checks the values that JavaScript passes.

use std::cell::RefCell;

use js_sys::{Array, Function, Object, Reflect};
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};

use super::{refusal, type_error};
use crate::rdp::Conversion;
use crate::{AccountantError, Delta, DpEvent, NeighboringRelation};

/// Largest depth of an event. An object that contains itself is refused by this limit.
const DEEPEST: u32 = 100;
/// Largest number of values in one object.
const MOST: u32 = 1_000_000;

fn read<T: DeserializeOwned>(name: &str, value: JsValue, allowed: &str) -> Result<T, JsValue> {
    serde_wasm_bindgen::from_value(value)
        .map_err(|refused| type_error(&format!("{name}: {refused}; allowed: {allowed}")))
}

/// Reads an event, or a list of events on the same data.
pub(super) fn event(value: JsValue) -> Result<DpEvent, JsValue> {
    let allowed =
        "one event such as {\"type\": \"gaussian\", \"noise_multiplier\": 1.0}, or a list of events";
    measure(&value, DEEPEST, &mut 0)?;
    if Array::is_array(&value) {
        return Ok(DpEvent::Composed { events: read("event", value, allowed)? });
    }
    read("event", value, allowed)
}

/// Counts the contents of an object, so that no object can exhaust the stack or the memory. All
/// values are counted, not only events, because the valid fields of an event are known only once
/// all of them are read.
fn measure(value: &JsValue, left: u32, count: &mut u32) -> Result<(), JsValue> {
    *count += 1;
    if left == 0 || *count > MOST {
        let message = format!(
            "event: nested deeper than {DEEPEST}, or more than {MOST} values; count repeated events with self_composed"
        );
        return Err(js_sys::RangeError::new(&message).into());
    }
    let Some(object) = value.dyn_ref::<Object>() else { return Ok(()) };
    // Lists, maps and sets.
    if let Some(items) = js_sys::try_iter(value)? {
        return items.into_iter().try_for_each(|inner| measure(&inner?, left - 1, count));
    }
    Object::values(object).iter().try_for_each(|inner| measure(&inner, left - 1, count))
}

/// Reads the relation; adding or removing one unit unless given.
pub(super) fn relation(value: JsValue) -> Result<NeighboringRelation, JsValue> {
    if value.is_undefined() {
        return Ok(NeighboringRelation::AddOrRemoveOne);
    }
    read("relation", value, "\"add_or_remove_one\", \"replace_one\" or \"zero_out\"")
}

/// Reads the conversion of Rényi divergences to ε.
pub(super) fn conversion(value: JsValue) -> Result<Conversion, JsValue> {
    read("conversion", value, "\"classic\" or \"improved\"")
}

/// Reads a number. JavaScript would convert a text, `null` or nothing to one.
pub(super) fn number(name: &str, value: &JsValue) -> Result<f64, JsValue> {
    value.as_f64().ok_or_else(|| type_error(&format!("{name} must be a number; got {}", kind(value))))
}

/// The type of a value, such as `string`.
fn kind(value: &JsValue) -> String {
    value.js_typeof().as_string().unwrap_or_default()
}

/// Reads a list of numbers.
pub(super) fn numbers(name: &str, value: JsValue) -> Result<Vec<f64>, JsValue> {
    read(name, value, "a list of numbers")
}

/// Reads the name of a unit; `record` unless given.
pub(super) fn unit(value: &JsValue) -> Result<String, JsValue> {
    if value.is_undefined() {
        return Ok("record".to_owned());
    }
    value.as_string().ok_or_else(|| type_error(&format!("unit must be a string; got {}", kind(value))))
}

/// Reads δ.
pub(super) fn delta(value: &JsValue) -> Result<Delta, JsValue> {
    Delta::new(number("delta", value)?).map_err(refusal)
}

/// Reads a whole number that a JavaScript number holds exactly.
pub(super) fn whole(name: &'static str, value: &JsValue) -> Result<u64, JsValue> {
    let value = number(name, value)?;
    if (0.0..=9_007_199_254_740_991.0).contains(&value) && value.fract() == 0.0 {
        return Ok(value as u64);
    }
    Err(refusal(AccountantError::OutOfRange { name, value, allowed: "a whole number from 0 to 2^53 - 1" }))
}

/// Reads the number of units in a group; one unless given.
pub(super) fn group(value: &JsValue) -> Result<u32, JsValue> {
    let units = if value.is_undefined() { 1 } else { whole("group", value)? };
    // A number beyond 32 bits is as much out of range as the largest one within.
    Ok(u32::try_from(units).unwrap_or(u32::MAX))
}

/// Reads a whole number from a field, if the object has the field.
pub(super) fn field(object: &JsValue, name: &'static str) -> Result<Option<u64>, JsValue> {
    let value = Reflect::get(object, &name.into())?;
    if value.is_undefined() {
        return Ok(None);
    }
    whole(name, &value).map(Some)
}

/// A JavaScript function that returns the event of some parameters.
pub(super) struct EventFor {
    function: Function,
    thrown: RefCell<Option<JsValue>>,
}

impl EventFor {
    /// Accepts a function.
    pub(super) fn new(value: JsValue) -> Result<Self, JsValue> {
        let function = value.dyn_into().map_err(|_| {
            type_error("eventFor: give a function, such as noise => ({ type: \"gaussian\", noise_multiplier: noise })")
        })?;
        Ok(Self { function, thrown: RefCell::new(None) })
    }

    /// Returns the function's event. A search cannot fail while it runs, so an error that the function throws is kept
    /// for [`Self::found`], and an event that every question refuses ends the search.
    pub(super) fn event(&self, parameters: &[f64]) -> DpEvent {
        let parameters: Array = parameters.iter().copied().map(JsValue::from_f64).collect();
        let made = self.function.apply(&JsValue::UNDEFINED, &parameters).and_then(event);
        made.unwrap_or_else(|thrown| {
            self.thrown.replace(Some(thrown));
            DpEvent::Gaussian { noise_multiplier: f64::NAN }
        })
    }

    /// Returns the result of the search, or the error that the function threw.
    pub(super) fn found<T>(self, found: Result<T, AccountantError>) -> Result<T, JsValue> {
        match self.thrown.into_inner() {
            Some(thrown) => Err(thrown),
            None => found.map_err(refusal),
        }
    }
}
