//! Fields of a checkpoint's `config.json` that a plan gives in `model.config`, because its sizes do
//! not determine them.

use serde_json::{Map, Value};

use super::{HuggingFace, ModelError};

/// A field of `config.json` that the plan may give.
#[derive(Debug)]
pub struct ConfigField {
    /// Name of the field in `config.json`.
    pub name: &'static str,
    /// Value, as JSON, if a plan does not give one.
    pub usual: &'static str,
    /// The values that the field accepts.
    pub field_type: FieldType,
}

/// The values that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// True or false.
    Flag,
    /// True or false, or `null` for the family's usual choice.
    FlagOrNull,
    /// A finite number above 0.
    Positive,
    /// A finite number above 0, or `null`.
    PositiveOrNull,
    /// A whole number from 1.
    Count,
    /// A whole number from 1, or `null`.
    CountOrNull,
    /// The layers that see all tokens before a token, and those that see only the last ones; `null`
    /// for the family's usual order.
    LayerTypes,
    /// For each layer, 1 if it has rotary positions and 0 if not; `null` for the family's usual choice.
    RotatingLayers,
    /// The scaling of the frequencies of rotary positions; `null` for none.
    RopeScaling,
}

/// The values of a model's fields: those that its plan gives, and the family's usual ones for all
/// others.
#[derive(Clone, Debug, Default)]
pub struct ConfigValues(Map<String, Value>);

impl ConfigField {
    /// Creates a field with its usual value as JSON.
    pub const fn new(name: &'static str, usual: &'static str, field_type: FieldType) -> Self {
        Self { name, usual, field_type }
    }

    /// Returns [`ConfigField::usual`], parsed.
    pub fn usual(&self) -> Value {
        serde_json::from_str(self.usual).unwrap_or_default()
    }
}

impl FieldType {
    /// Returns whether a field accepts this value.
    pub fn accepts(self, value: &Value) -> bool {
        let is_positive = |value: &Value| value.as_f64().is_some_and(|number| number > 0.0);
        let is_count =
            |value: &Value| value.as_u64().is_some_and(|count| (1..=u64::from(u32::MAX)).contains(&count));
        match self {
            Self::Flag => value.is_boolean(),
            Self::FlagOrNull => value.is_null() || value.is_boolean(),
            Self::Positive => is_positive(value),
            Self::PositiveOrNull => value.is_null() || is_positive(value),
            Self::Count => is_count(value),
            Self::CountOrNull => value.is_null() || is_count(value),
            Self::LayerTypes => {
                let is_type = |value: &Value| value == "full_attention" || value == "sliding_attention";
                value.is_null() || value.as_array().is_some_and(|types| types.iter().all(is_type))
            }
            Self::RotatingLayers => {
                value.is_null()
                    || value.as_array().is_some_and(|flags| flags.iter().all(|flag| flag == 0 || flag == 1))
            }
            Self::RopeScaling => value.is_null() || is_rope_scaling(value),
        }
    }

    /// Describes the accepted values.
    pub fn allowed(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::FlagOrNull => "true, false, or null",
            Self::Positive => "a number > 0",
            Self::PositiveOrNull => "a number > 0, or null",
            Self::Count => "a whole number ≥ 1",
            Self::CountOrNull => "a whole number ≥ 1, or null",
            Self::LayerTypes => "a list with \"full_attention\" or \"sliding_attention\" for each layer",
            Self::RotatingLayers => "a list with 1 (rotary positions) or 0 (none) for each layer",
            Self::RopeScaling => {
                "null; {\"rope_type\": \"linear\", \"factor\": …}; {\"rope_type\": \"llama3\", \"factor\": …, \
                 \"low_freq_factor\": …, \"high_freq_factor\": …, \"original_max_position_embeddings\": …}, the high factor above \
                 the low one; or {\"rope_type\": \"yarn\", \"factor\": …, \"original_max_position_embeddings\": …} and, if it has \
                 them, attention_factor, beta_fast and beta_slow; all > 0"
            }
        }
    }
}

/// Returns whether the value is a scaling of [`crate::nn::RotaryScaling`], with all of its numbers and
/// nothing else.
fn is_rope_scaling(value: &Value) -> bool {
    let (needed, optional): (&[&str], &[&str]) = match value["rope_type"].as_str() {
        Some("linear") => (&["factor"], &[]),
        Some("llama3") => {
            (&["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"], &[])
        }
        Some("yarn") => {
            (&["factor", "original_max_position_embeddings"], &["attention_factor", "beta_fast", "beta_slow"])
        }
        _ => return false,
    };
    let is_known = |(name, value): (&String, &Value)| {
        let name = name.as_str();
        name == "rope_type"
            || needed.iter().chain(optional).any(|known| *known == name) && FieldType::Positive.accepts(value)
    };
    let fits = value.as_object().is_some_and(|fields| fields.iter().all(is_known));
    let [low, high] = ["low_freq_factor", "high_freq_factor"].map(|name| value[name].as_f64());
    fits && needed.iter().all(|name| !value[*name].is_null()) && (low.is_none() || high > low)
}

impl ConfigValues {
    /// Returns the values for a plan's model of this family.
    ///
    /// # Errors
    /// [`ModelError::Config`] for a field that the family does not have, or a value that the field
    /// does not accept.
    pub fn of_plan(family: &HuggingFace, model: &plan::Model) -> Result<Self, ModelError> {
        for (name, value) in &model.config {
            let Some(field) = family.config_fields.iter().find(|field| field.name == name) else {
                let names: Vec<&str> = family.config_fields.iter().map(|field| field.name).collect();
                let allowed = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                let family = model.family.name();
                let what =
                    format!("{name:?} is no field of it for the family {family:?}; allowed: {allowed}");
                return Err(ModelError::Config(what));
            };
            if !field.field_type.accepts(value) {
                let what = format!("{name} = {value}; allowed: {}", field.field_type.allowed());
                return Err(ModelError::Config(what));
            }
        }
        let value =
            |field: &ConfigField| model.config.get(field.name).cloned().unwrap_or_else(|| field.usual());
        let values = family.config_fields.iter().map(|field| (field, value(field)));
        // A flag that is `null` is left out: the family's own code writes its usual choice to `config.json`.
        let stated =
            values.filter(|(field, value)| field.field_type != FieldType::FlagOrNull || !value.is_null());
        Ok(Self(stated.map(|(field, value)| (field.name.to_owned(), value)).collect()))
    }

    /// Adds the values to a `config.json`, whose existing fields stay.
    pub fn write_to(&self, config: &mut Value) {
        let Some(fields) = config.as_object_mut() else { return };
        for (name, value) in &self.0 {
            fields.entry(name.as_str()).or_insert_with(|| value.clone());
        }
    }

    /// Returns the value of a field, or `null` if the family does not have it.
    pub fn value(&self, field: &ConfigField) -> &Value {
        self.0.get(field.name).unwrap_or(&Value::Null)
    }

    /// Returns whether the family has the field.
    pub fn has(&self, field: &ConfigField) -> bool {
        self.0.contains_key(field.name)
    }

    /// Returns the number of a field, or `None` for `null` and if the family does not have it.
    pub fn number(&self, field: &ConfigField) -> Option<f64> {
        self.value(field).as_f64()
    }

    /// Returns the number of a field of [`FieldType::Positive`], or the usual one if the family does
    /// not have it.
    pub fn positive(&self, field: &ConfigField) -> f64 {
        self.number(field).or_else(|| field.usual().as_f64()).unwrap_or(f64::NAN)
    }

    /// Returns the whole number of a field, or `None` for `null` and if the family does not have
    /// it.
    pub fn count(&self, field: &ConfigField) -> Option<usize> {
        self.value(field).as_u64().and_then(|count| usize::try_from(count).ok())
    }

    /// Returns whether a field is on; false if the family does not have it.
    pub fn flag(&self, field: &ConfigField) -> bool {
        self.value(field) == &Value::Bool(true)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_usual_value_of_each_field_is_one_that_it_takes() {
        for family in plan::Family::all() {
            for field in crate::model::Backbone::hugging_face(family).config_fields {
                assert!(field.field_type.accepts(&field.usual()), "{family:?}: {}", field.name);
            }
        }
    }
}
