//! ε, δ and other costs of an event.

use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::{answer, read, refusal};
use crate::rdp::{self, Conversion};
use crate::{audit, convert, tradeoff};

/// Bounds on ε at `delta`, of one unit or of a group of `group` units such as the records of one user.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(unchecked_return_type = "Bounds")]
pub fn epsilon(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "number")] group: JsValue,
) -> Result<JsValue, JsValue> {
    let (group, delta, relation) = (read::group(&group)?, read::delta(&delta)?, read::relation(relation)?);
    answer(crate::group_epsilon(&read::event(event)?, group, delta, relation))
}

/// ε at `delta` to nearly all digits, inside certified bounds.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = exactEpsilon, unchecked_return_type = "Estimate")]
pub fn exact_epsilon(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsValue> {
    answer(crate::exact_epsilon(&read::event(event)?, read::delta(&delta)?, read::relation(relation)?))
}

/// Bounds on δ at `epsilon`, of one unit or of a group of `group` units.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(unchecked_return_type = "Bounds")]
pub fn delta(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] epsilon: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "number")] group: JsValue,
) -> Result<JsValue, JsValue> {
    let (group, relation) = (read::group(&group)?, read::relation(relation)?);
    answer(crate::group_delta(&read::event(event)?, group, read::number("epsilon", &epsilon)?, relation))
}

/// Bounds on the best true positive rate of a membership test with the given false positive rate, of one unit or of a
/// group of `group` units.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = truePositiveRate, unchecked_return_type = "Bounds")]
pub fn true_positive_rate(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(js_name = falsePositiveRate, unchecked_param_type = "number")]
    false_positive_rate: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "number")] group: JsValue,
) -> Result<JsValue, JsValue> {
    let rate = read::number("falsePositiveRate", &false_positive_rate)?;
    let (group, event, relation) = (read::group(&group)?, read::event(event)?, read::relation(relation)?);
    answer(tradeoff::group_true_positive_rate(&event, group, rate, relation))
}

/// Bounds on the chance that an attacker who starts from fifty to fifty says rightly whether one unit, or a group of
/// `group` units, was there.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(unchecked_return_type = "Bounds")]
pub fn odds(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "number")] group: JsValue,
) -> Result<JsValue, JsValue> {
    let (group, relation) = (read::group(&group)?, read::relation(relation)?);
    answer(tradeoff::group_odds(&read::event(event)?, group, relation))
}

/// Bounds on the μ at which one Gaussian mechanism costs the same ε at `delta`.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = gaussianEquivalent, unchecked_return_type = "Bounds")]
pub fn gaussian_equivalent(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<JsValue, JsValue> {
    answer(crate::gaussian_equivalent(&read::event(event)?, read::delta(&delta)?, read::relation(relation)?))
}

/// ρ of zero-concentrated differential privacy, for events of plain Gaussian mechanisms.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen]
pub fn zcdp(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsValue> {
    crate::zcdp(&read::event(event)?, read::relation(relation)?).map_err(refusal)
}

/// Rényi divergence of an order above 1, the worse direction.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = renyiDivergence)]
pub fn renyi_divergence(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] order: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
) -> Result<f64, JsValue> {
    let order = read::number("order", &order)?;
    rdp::divergence(&read::event(event)?, order, read::relation(relation)?).map_err(refusal)
}

/// The looser ε by way of Rényi divergences, as most papers report it; `improved` conversion unless given.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = renyiEpsilon)]
pub fn renyi_epsilon(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Conversion")] conversion: JsValue,
) -> Result<f64, JsValue> {
    let conversion =
        if conversion.is_undefined() { Conversion::Improved } else { read::conversion(conversion)? };
    let (event, delta, relation) = (read::event(event)?, read::delta(&delta)?, read::relation(relation)?);
    rdp::epsilon(&event, delta, relation, conversion).map_err(refusal)
}

/// A privacy statement in words; `unit` is what a unit is called, `record` unless given.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen]
pub fn statement(
    #[wasm_bindgen(unchecked_param_type = "Events")] event: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "Relation")] relation: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "string")] unit: JsValue,
) -> Result<String, JsValue> {
    let (event, delta, relation) = (read::event(event)?, read::delta(&delta)?, read::relation(relation)?);
    crate::statement(&event, delta, relation, &read::unit(&unit)?).map_err(refusal)
}

/// The largest ε at `delta` that promises no more than one Gaussian mechanism of this μ does.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = epsilonOfMu)]
pub fn epsilon_of_mu(
    #[wasm_bindgen(unchecked_param_type = "number")] mu: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
) -> Result<f64, JsValue> {
    convert::epsilon_of_mu(read::number("mu", &mu)?, read::delta(&delta)?).map_err(refusal)
}

/// The largest ε at `delta` that keeps every membership test of this false positive rate to this true positive rate.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = epsilonOfRates)]
pub fn epsilon_of_rates(
    #[wasm_bindgen(js_name = falsePositiveRate, unchecked_param_type = "number")]
    false_positive_rate: JsValue,
    #[wasm_bindgen(js_name = truePositiveRate, unchecked_param_type = "number")] true_positive_rate: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
) -> Result<f64, JsValue> {
    let false_positive_rate = read::number("falsePositiveRate", &false_positive_rate)?;
    let true_positive_rate = read::number("truePositiveRate", &true_positive_rate)?;
    convert::epsilon_of_rates(false_positive_rate, true_positive_rate, read::delta(&delta)?).map_err(refusal)
}

/// The ε that an audit refutes: `correct` of `guesses` right about which of `canaries` were trained on.
///
/// # Errors
/// A refused argument, with what is allowed.
#[wasm_bindgen(js_name = auditedEpsilon)]
pub fn audited_epsilon(
    #[wasm_bindgen(unchecked_param_type = "number")] canaries: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] guesses: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] correct: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] delta: JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] confidence: JsValue,
) -> Result<f64, JsValue> {
    let canaries = read::whole("canaries", &canaries)?;
    let (guesses, correct) = (read::whole("guesses", &guesses)?, read::whole("correct", &correct)?);
    let (delta, confidence) = (read::delta(&delta)?, read::number("confidence", &confidence)?);
    audit::epsilon_lower_bound(canaries, guesses, correct, delta, confidence).map_err(refusal)
}
