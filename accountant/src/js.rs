//! The accountant for web pages and Node: plain objects in, plain objects out, with TypeScript declarations.

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};

use crate::{AccountantError, Delta, DpEvent, NeighboringRelation, calibrate, rdp, tradeoff};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A certified interval: the true value is never above `upper` nor below `lower`. */
export interface Bounds { lower: number; upper: number }

/** Which pairs of data sets must be hard to tell apart. */
export type Relation = "add_or_remove_one" | "replace_one" | "zero_out";

/** The law of the number of trials of a private selection. */
export type Trials =
  | { distribution: "truncated_negative_binomial"; shape: number; stop: number }
  | { distribution: "poisson"; mean: number }
  | { distribution: "fixed"; count: number };

/** One use of the private data. `noise_multiplier` is noise over what one unit contributes. */
export type Event =
  | { type: "gaussian"; noise_multiplier: number }
  | { type: "poisson_sampled_gaussian"; sampling_probability: number; noise_multiplier: number }
  | { type: "truncated_poisson_sampled_gaussian"; sampling_probability: number; noise_multiplier: number; units: number; largest_batch: number }
  | { type: "fixed_size_sampled_gaussian"; sample_size: number; population: number; noise_multiplier: number }
  | { type: "shuffled_gaussian"; noise_multiplier: number; batches: number; epochs: number }
  | { type: "balls_in_bins_gaussian"; noise_multiplier: number; batches: number; epochs: number }
  | { type: "thresholded_histogram"; noise_multiplier: number; threshold_delta: number }
  | { type: "laplace"; noise_multiplier: number }
  | { type: "discrete_gaussian"; standard_deviation: number; sensitivity: number }
  | { type: "private_selection"; event: Event; trials: Trials }
  | { type: "composed"; events: Event[] }
  | { type: "self_composed"; event: Event; count: number };
"#;

fn read<T: DeserializeOwned>(name: &str, value: JsValue) -> Result<T, JsError> {
    serde_wasm_bindgen::from_value(value).map_err(|error| JsError::new(&format!("{name}: {error}")))
}

fn write<T: Serialize>(value: Result<T, AccountantError>) -> Result<JsValue, JsError> {
    Ok(serde_wasm_bindgen::to_value(&value?)?)
}

fn whole(
    event: JsValue,
    delta: f64,
    relation: JsValue,
) -> Result<(DpEvent, Delta, NeighboringRelation), JsError> {
    Ok((read("event", event)?, Delta::new(delta)?, read("relation", relation)?))
}

/// Bounds on ε at `delta`.
///
/// # Errors
/// What is wrong and what is allowed.
#[wasm_bindgen(js_name = epsilon, unchecked_return_type = "Bounds")]
pub fn epsilon_js(
    #[wasm_bindgen(unchecked_param_type = "Event")] event: JsValue,
    delta: f64,
    #[wasm_bindgen(unchecked_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsError> {
    let (event, delta, relation) = whole(event, delta, relation)?;
    write(crate::epsilon(&event, delta, relation))
}

/// Bounds on the ε of a group of `units`, such as the records of one user, at `delta`.
///
/// # Errors
/// What is wrong and what is allowed.
#[wasm_bindgen(js_name = groupEpsilon, unchecked_return_type = "Bounds")]
pub fn group_epsilon_js(
    #[wasm_bindgen(unchecked_param_type = "Event")] event: JsValue,
    units: u32,
    delta: f64,
    #[wasm_bindgen(unchecked_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsError> {
    let (event, delta, relation) = whole(event, delta, relation)?;
    write(crate::group_epsilon(&event, units, delta, relation))
}

/// Bounds on δ at `epsilon`.
///
/// # Errors
/// What is wrong and what is allowed.
#[wasm_bindgen(js_name = delta, unchecked_return_type = "Bounds")]
pub fn delta_js(
    #[wasm_bindgen(unchecked_param_type = "Event")] event: JsValue,
    epsilon: f64,
    #[wasm_bindgen(unchecked_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsError> {
    write(crate::delta(&read("event", event)?, epsilon, read("relation", relation)?))
}

/// Bounds on the best true positive rate of a membership test with the given false positive rate.
///
/// # Errors
/// What is wrong and what is allowed.
#[wasm_bindgen(js_name = truePositiveRate, unchecked_return_type = "Bounds")]
pub fn true_positive_rate_js(
    #[wasm_bindgen(unchecked_param_type = "Event")] event: JsValue,
    false_positive_rate: f64,
    #[wasm_bindgen(unchecked_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsError> {
    let (event, relation): (DpEvent, _) = (read("event", event)?, read("relation", relation)?);
    write(tradeoff::true_positive_rate(&event, false_positive_rate, relation))
}

/// Rényi divergence of the given order.
///
/// # Errors
/// What is wrong and what is allowed.
#[wasm_bindgen(js_name = renyiDivergence)]
pub fn renyi_divergence_js(
    #[wasm_bindgen(unchecked_param_type = "Event")] event: JsValue,
    order: f64,
    #[wasm_bindgen(unchecked_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsError> {
    Ok(rdp::divergence(&read("event", event)?, order, read("relation", relation)?)?)
}

/// A privacy statement in words; `unit` is what a unit is called.
///
/// # Errors
/// What is wrong and what is allowed.
#[wasm_bindgen(js_name = statement)]
pub fn statement_js(
    #[wasm_bindgen(unchecked_param_type = "Event")] event: JsValue,
    delta: f64,
    #[wasm_bindgen(unchecked_param_type = "Relation")] relation: JsValue,
    unit: &str,
) -> Result<String, JsError> {
    let (event, delta, relation) = whole(event, delta, relation)?;
    Ok(crate::statement(&event, delta, relation, unit)?)
}

/// The smallest noise multiplier that meets ε over `steps` Poisson-sampled steps.
///
/// # Errors
/// What is wrong and what is allowed.
#[wasm_bindgen(js_name = noiseMultiplier)]
pub fn noise_multiplier_js(
    epsilon: f64,
    delta: f64,
    sampling_probability: f64,
    steps: u32,
    #[wasm_bindgen(unchecked_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsError> {
    let event = |noise_multiplier| {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
        DpEvent::SelfComposed { event: Box::new(step), count: u64::from(steps) }
    };
    let (delta, relation) = (Delta::new(delta)?, read("relation", relation)?);
    Ok(calibrate::noise_multiplier(epsilon, delta, relation, event)?)
}

/// The accountant's version.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    crate::VERSION.to_owned()
}
