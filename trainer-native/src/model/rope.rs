//! What a `config.json` says of rotary positions, which has been said in several ways.

use serde_json::{Map, Value, json};

use super::Settings;
use crate::nn::RotaryScaling;

/// The field that a scaling is under in a plan and in files of `transformers` 4.
pub(super) const SCALING: &str = "rope_scaling";
/// The field of the base, likewise.
pub(super) const BASE: &str = "rope_theta";

/// The base. Newer files put it among other parameters.
pub(super) fn base(config: &Value) -> Option<Value> {
    base_among(config, parameters(config))
}

/// [`base`], where these are the other parameters.
pub(super) fn base_among(config: &Value, parameters: &Value) -> Option<Value> {
    [parameters, config].into_iter().map(|place| &place[BASE]).find(|base| !base.is_null()).cloned()
}

/// What is done to the frequencies, in the words of a plan; `null` for nothing. What no plan can say stays in the answer.
pub(super) fn scaling(config: &Value) -> Value {
    scaling_among(config, parameters(config))
}

/// [`scaling`], where these are the parameters.
pub(super) fn scaling_among(config: &Value, parameters: &Value) -> Value {
    let Some(parameters) = parameters.as_object() else { return Value::Null };
    let is_said = |(name, value): &(&String, &Value)| match name.as_str() {
        BASE | "type" | "rope_type" => false,
        "partial_rotary_factor" => value.as_f64() != Some(1.0),
        _ => !value.is_null(),
    };
    let own = parameters.iter().filter(is_said).map(|(name, value)| (name.clone(), value.clone()));
    let mut fields: Map<String, Value> = own.collect();
    let kind = ["rope_type", "type"].iter().find_map(|name| parameters.get(*name)?.as_str());
    match kind.unwrap_or("default") {
        "default" if fields.is_empty() => return Value::Null,
        kind => _ = fields.insert("rope_type".to_owned(), json!(kind)),
    }
    if matches!(kind, Some("llama3" | "yarn")) {
        let longest = || config["max_position_embeddings"].clone();
        fields.entry("original_max_position_embeddings").or_insert_with(longest);
    }
    Value::Object(fields)
}

fn parameters(config: &Value) -> &Value {
    let old = &config[SCALING];
    let is_given = old.as_object().is_some_and(|fields| !fields.is_empty());
    if is_given { old } else { &config["rope_parameters"] }
}

/// The scaling that a model's settings ask for.
pub(super) fn of_settings(settings: &Settings) -> RotaryScaling {
    let scaling = settings.value(SCALING);
    let number = |name: &str| scaling[name].as_f64().unwrap_or(1.0);
    match scaling["rope_type"].as_str() {
        Some("linear") => RotaryScaling::Linear(number("factor")),
        Some("llama3") => RotaryScaling::Llama3 {
            factor: number("factor"),
            low: number("low_freq_factor"),
            high: number("high_freq_factor"),
            original_context: number("original_max_position_embeddings"),
        },
        Some("yarn") => {
            let factor = number("factor");
            let given = |name: &str| scaling[name].as_f64();
            let usual = if factor > 1.0 { 0.1 * factor.ln() + 1.0 } else { 1.0 };
            RotaryScaling::Yarn {
                factor,
                fast: given("beta_fast").unwrap_or(32.0),
                slow: given("beta_slow").unwrap_or(1.0),
                original_context: number("original_max_position_embeddings"),
                amplitude: given("attention_factor").unwrap_or(usual),
            }
        }
        _ => RotaryScaling::None,
    }
}
