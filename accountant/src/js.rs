//! The accountant for web pages and Node: JSON in, JSON out.
//!
//! Events are the JSON of [`crate::DpEvent`], relations `add_or_remove_one`, `replace_one`, `zero_out`.

use wasm_bindgen::prelude::wasm_bindgen;

use crate::{Delta, DpEvent, NeighboringRelation};

fn event(json: &str) -> Result<DpEvent, String> {
    serde_json::from_str(json).map_err(|error| format!("event: {error}"))
}

fn relation(name: &str) -> Result<NeighboringRelation, String> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .map_err(|error| format!("relation: {error}"))
}

fn delta_of(value: f64) -> Result<Delta, String> {
    Delta::new(value).map_err(|error| error.to_string())
}

fn json<T: serde::Serialize>(value: Result<T, crate::AccountantError>) -> Result<String, String> {
    let value = value.map_err(|error| error.to_string())?;
    serde_json::to_string(&value).map_err(|error| error.to_string())
}

/// `{"lower": …, "upper": …}` for ε at `delta`.
///
/// # Errors
/// A message saying what is wrong and what is allowed.
#[wasm_bindgen(js_name = epsilon)]
pub fn epsilon_js(event_json: &str, delta: f64, relation_name: &str) -> Result<String, String> {
    json(crate::epsilon(&event(event_json)?, delta_of(delta)?, relation(relation_name)?))
}

/// `{"lower": …, "upper": …}` for δ at `epsilon`.
///
/// # Errors
/// A message saying what is wrong and what is allowed.
#[wasm_bindgen(js_name = delta)]
pub fn delta_js(event_json: &str, epsilon: f64, relation_name: &str) -> Result<String, String> {
    json(crate::delta(&event(event_json)?, epsilon, relation(relation_name)?))
}

/// The privacy statement in words.
///
/// # Errors
/// A message saying what is wrong and what is allowed.
#[wasm_bindgen(js_name = statement)]
pub fn statement_js(event_json: &str, delta: f64, relation_name: &str, unit: &str) -> Result<String, String> {
    let (event, relation) = (event(event_json)?, relation(relation_name)?);
    crate::statement(&event, delta_of(delta)?, relation, unit).map_err(|error| error.to_string())
}

/// The smallest noise multiplier with which `steps` Poisson-sampled steps meet `epsilon` at `delta`.
///
/// # Errors
/// A message saying what is wrong and what is allowed.
#[wasm_bindgen(js_name = noiseMultiplier)]
pub fn noise_multiplier_js(
    epsilon: f64,
    delta: f64,
    sampling_probability: f64,
    steps: u32,
    relation_name: &str,
) -> Result<f64, String> {
    crate::calibrate::noise_multiplier(
        epsilon,
        delta_of(delta)?,
        relation(relation_name)?,
        |noise_multiplier| {
            let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
            DpEvent::SelfComposed { event: Box::new(step), count: u64::from(steps) }
        },
    )
    .map_err(|error| error.to_string())
}
