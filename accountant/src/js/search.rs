//! Parameters that meet a target, for any event that a function of JavaScript makes of them.

use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::read::{self, EventFor};
use super::{object, type_error};
use crate::budget;
use crate::calibrate::{Compute, EpsilonTarget};
use crate::{AccountantError, DpEvent};

/// The smallest noise multiplier whose certified ε at `delta` is at most `epsilon`.
///
/// # Errors
/// A refused argument, with what is allowed; whatever `eventFor` throws.
#[wasm_bindgen(js_name = noiseMultiplier)]
pub fn noise_multiplier(
    #[wasm_bindgen(unchecked_param_type = "number")] epsilon: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(js_name = eventFor, unchecked_param_type = "(noiseMultiplier: number) => Events")]
    event_for: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsValue> {
    let calibration = Calibration::new(&epsilon, &delta, relation, event_for)?;
    let found = calibration.target.noise_multiplier(|noise| calibration.events.event(&[noise]));
    calibration.events.found(found)
}

/// The largest number of steps, up to `most`, whose certified ε at `delta` is at most `epsilon`.
///
/// # Errors
/// A refused argument, with what is allowed; whatever `eventFor` throws.
#[wasm_bindgen]
pub fn steps(
    #[wasm_bindgen(unchecked_param_type = "number")] epsilon: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] most: JsValue,
    #[wasm_bindgen(js_name = eventFor, unchecked_param_type = "(steps: number) => Events")]
    event_for: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsValue> {
    Calibration::new(&epsilon, &delta, relation, event_for)?
        .count("most", &most, |target, most, event| target.steps(most, event))
}

/// The largest expected batch, up to `units`, whose certified ε at `delta` is at most `epsilon`.
///
/// # Errors
/// A refused argument, with what is allowed; whatever `eventFor` throws.
#[wasm_bindgen(js_name = batchSize)]
pub fn batch_size(
    #[wasm_bindgen(unchecked_param_type = "number")] epsilon: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] units: JsValue,
    #[wasm_bindgen(js_name = eventFor, unchecked_param_type = "(batch: number) => Events")]
    event_for: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsValue> {
    Calibration::new(&epsilon, &delta, relation, event_for)?
        .count("units", &units, |target, units, event| target.batch_size(units, event))
}

/// The smallest expected batch, up to `units`, whose certified ε is at most `epsilon` where ε falls with the batch.
///
/// # Errors
/// A refused argument, with what is allowed; whatever `eventFor` throws.
#[wasm_bindgen(js_name = smallestBatchSize)]
pub fn smallest_batch_size(
    #[wasm_bindgen(unchecked_param_type = "number")] epsilon: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] units: JsValue,
    #[wasm_bindgen(js_name = eventFor, unchecked_param_type = "(batch: number) => Events")]
    event_for: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsValue> {
    Calibration::new(&epsilon, &delta, relation, event_for)?
        .count("units", &units, |target, units, event| target.smallest_batch_size(units, event))
}

/// The batch of the least noise-batch ratio for the target, or the cheapest within `slack` of it.
///
/// # Errors
/// A refused argument, with what is allowed; whatever `eventFor` throws.
#[wasm_bindgen(js_name = noiseBatchRatio, unchecked_return_type = "NoiseBatch")]
pub fn noise_batch_ratio(
    #[wasm_bindgen(unchecked_param_type = "number")] epsilon: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] units: JsValue,
    #[wasm_bindgen(unchecked_param_type = "Compute")] compute: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] slack: JsValue,
    #[wasm_bindgen(js_name = eventFor, unchecked_param_type = "(batch: number, steps: number, noiseMultiplier: number) => Events")]
    event_for: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsValue> {
    let calibration = Calibration::new(&epsilon, &delta, relation, event_for)?;
    let compute = match (read::field(&compute, "steps")?, read::field(&compute, "examples")?) {
        (Some(steps), None) => Compute::Steps(steps),
        (None, Some(examples)) => Compute::Examples(examples),
        _ => return Err(type_error("compute: give { steps } or { examples }, one of them")),
    };
    let (units, slack) = (read::whole("units", &units)?, read::number("slack", &slack)?);
    let event = |batch, steps, noise| calibration.events.event(&[batch as f64, steps as f64, noise]);
    let found = calibration.target.noise_batch_ratio(units, compute, slack, event);
    object(&calibration.events.found(found)?)
}

/// Noise for stages that share a budget: `shares` of the squared μ, and together at most `epsilon` at `delta`.
///
/// # Errors
/// A refused argument, with what is allowed; whatever `eventFor` throws.
#[wasm_bindgen(js_name = splitBudget, unchecked_return_type = "Split")]
pub fn split_budget(
    #[wasm_bindgen(unchecked_param_type = "number")] epsilon: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number[]")] shares: JsValue,
    #[wasm_bindgen(js_name = eventFor, unchecked_param_type = "(stage: number, noiseMultiplier: number) => DpEvent")]
    event_for: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsValue> {
    let calibration = Calibration::new(&epsilon, &delta, relation, event_for)?;
    let shares = read::numbers("shares", shares)?;
    let event = |stage, noise| calibration.events.event(&[stage as f64, noise]);
    let found = budget::split(&calibration.target, &shares, event);
    object(&calibration.events.found(found)?)
}

/// A target, and the events that a function of JavaScript makes.
struct Calibration {
    target: EpsilonTarget,
    events: EventFor,
}

/// The event of a whole number.
type EventOf<'a> = &'a dyn Fn(u64) -> DpEvent;

impl Calibration {
    fn new(
        epsilon: &JsValue,
        delta: &JsValue,
        relation: JsValue,
        event_for: JsValue,
    ) -> Result<Self, JsValue> {
        let epsilon = read::number("epsilon", epsilon)?;
        let (delta, relation) = (read::delta(delta)?, read::relation(relation)?);
        Ok(Self { target: EpsilonTarget { epsilon, delta, relation }, events: EventFor::new(event_for)? })
    }

    /// A search for a whole number up to `most`, which the caller calls `name`.
    fn count(
        self,
        name: &'static str,
        most: &JsValue,
        search: impl FnOnce(&EpsilonTarget, u64, EventOf<'_>) -> Result<u64, AccountantError>,
    ) -> Result<f64, JsValue> {
        let event = |tried: u64| self.events.event(&[tried as f64]);
        let found = search(&self.target, read::whole(name, most)?, &event);
        self.events.found(found).map(|found| found as f64)
    }
}
