//! Reads rotary positions from a `config.json`, which states them in one of several forms.

use serde_json::{Map, Value, json};

use super::{ConfigField, ConfigValues, FieldType, ModelError};
use crate::nn::{Rotary, RotaryPairs, RotaryScaling};

/// The field of a scaling, in a plan and in files of `transformers` 4.
pub(super) const SCALING: &str = "rope_scaling";
/// The field of base, scaling and share in files of `transformers` 5.
pub(super) const PARAMETERS: &str = "rope_parameters";
/// The field of the base, in a plan and in files of `transformers` 4.
pub(super) const BASE: &str = "rope_theta";
/// The field of the share of each head that is rotated, in files of `transformers` 5.
const SHARE: &str = "partial_rotary_factor";

/// Returns the field of the base, with the family's usual value.
pub(super) const fn rope_theta(usual: &'static str) -> ConfigField {
    ConfigField::new(BASE, usual, FieldType::Positive)
}

/// The field of the scaling of the frequencies.
pub(super) const ROPE_SCALING: ConfigField = ConfigField::new(SCALING, "null", FieldType::RopeScaling);

/// Returns the base. Newer files put it among other parameters.
pub fn base(config: &Value) -> Option<Value> {
    base_among(config, parameters(config))
}

/// Returns the [`base`] of a file that may state it in `parameters`.
pub(super) fn base_among(config: &Value, parameters: &Value) -> Option<Value> {
    [parameters, config].into_iter().map(|place| &place[BASE]).find(|base| !base.is_null()).cloned()
}

/// Returns the scaling of the frequencies, in the words of a plan; `null` for none. The result
/// keeps fields that no plan can state, so that they are refused.
pub fn scaling(config: &Value) -> Value {
    scaling_among(config, parameters(config))
}

/// Returns the [`scaling`] that `parameters` state.
pub(super) fn scaling_among(config: &Value, parameters: &Value) -> Value {
    let Some(parameters) = parameters.as_object() else { return Value::Null };
    let is_said = |(name, value): &(&String, &Value)| match name.as_str() {
        BASE | "type" | "rope_type" => false,
        SHARE => value.as_f64() != Some(1.0),
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

/// Returns the share of each head's coordinates that positions rotate. `name` is its field in a
/// plan and in older files.
pub(super) fn share(config: &Value, name: &str) -> Option<Value> {
    let given = [&parameters(config)[SHARE], &config[name]];
    given.into_iter().find(|share| !share.is_null()).cloned()
}

/// Returns the [`base`] if a plan and older files name it differently.
pub(super) fn base_called(config: &Value, name: &str) -> Option<Value> {
    base(config).or_else(|| config.get(name).filter(|base| !base.is_null()).cloned())
}

/// Returns the [`scaling`] of a family that rotates a share of each head.
pub(super) fn scaling_of_share(config: &Value) -> Value {
    let mut parameters = parameters(config).clone();
    if let Some(fields) = parameters.as_object_mut() {
        fields.remove(SHARE);
    }
    scaling_among(config, &parameters)
}

/// Creates positions that rotate the share of a head of the given width that a field gives.
///
/// # Errors
/// [`ModelError`] if the share is not an even number of coordinates.
pub(super) fn partial(
    base: f64,
    share: &ConfigField,
    config: &ConfigValues,
    width: usize,
) -> Result<Rotary, ModelError> {
    let (name, share) = (share.name, config.positive(share));
    let rotated = (width as f64 * share) as usize;
    of_width(
        base,
        rotated,
        width,
        &format!("{name} = {share} of the {width} coordinates of a head is {rotated}"),
    )
}

/// Creates positions that rotate so many coordinates of a head of the given width. The refusal begins with `given`.
///
/// # Errors
/// [`ModelError`] if their number is not even.
pub(super) fn of_width(base: f64, d_head: usize, width: usize, given: &str) -> Result<Rotary, ModelError> {
    if d_head > 0 && d_head <= width && d_head.is_multiple_of(2) {
        return Ok(Rotary { base, d_head, scaling: RotaryScaling::None, pairs: RotaryPairs::Halves });
    }
    Err(ModelError::Config(format!("{given}; allowed: an even number from 2 to the width of a head")))
}

fn parameters(config: &Value) -> &Value {
    let old = &config[SCALING];
    let is_given = old.as_object().is_some_and(|fields| !fields.is_empty());
    if is_given { old } else { &config[PARAMETERS] }
}

/// Returns the refusal of `rope_parameters` that are not given for each kind of layer, in a family whose kinds have
/// different ones.
pub(super) fn not_by_layer(config: &Value) -> Option<String> {
    let is_kind = |name: &String| name == "full_attention" || name == "sliding_attention";
    let parameters = config[PARAMETERS].as_object()?;
    parameters.keys().any(|name| !is_kind(name)).then(|| {
        let given = &config[PARAMETERS];
        format!("{PARAMETERS} = {given}; allowed: an object with full_attention and sliding_attention")
    })
}

/// Returns the refusal of a field of rotary positions that is no object.
pub(crate) fn malformed(config: &Value) -> Option<String> {
    let is_object = |name: &str| config[name].is_null() || config[name].is_object();
    let name = [SCALING, PARAMETERS].into_iter().find(|name| !is_object(name))?;
    Some(format!("{name} = {}; allowed: an object, or null", config[name]))
}

/// Returns the name under which a file states a field of the plan.
pub(crate) fn name_in_file<'a>(config: &Value, field: &'a str) -> &'a str {
    let is_early = config[SCALING].as_object().is_some_and(|fields| !fields.is_empty());
    if field == SCALING && !is_early { PARAMETERS } else { field }
}

/// Returns the scaling that the configuration asks for.
pub(super) fn of_config(config: &ConfigValues) -> RotaryScaling {
    read(config.value(&ROPE_SCALING))
}

/// Returns the growth of the angle of each pair of a head from one position to the next, in radians.
pub fn frequencies(config: &Value, d_head: usize) -> Vec<f64> {
    let base = base(config).and_then(|base| base.as_f64()).unwrap_or(10_000.0);
    let rotary = Rotary { base, d_head, scaling: read(&scaling(config)), pairs: RotaryPairs::Halves };
    (0..d_head / 2).map(|pair| rotary.frequency(pair)).collect()
}

fn read(scaling: &Value) -> RotaryScaling {
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
