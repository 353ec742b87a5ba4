//! What `config.json` says of positions that turn a part of each head.

use serde_json::Value;

use super::{ModelError, Sizes};
use crate::nn::Rotary;

/// A field of `rope_parameters`, where newer files put it. Where these ask for scaled positions, the answer is all of them,
/// which is the value of no model here.
pub(super) fn partial_rope(config: &Value, field: &str) -> Option<Value> {
    let all = &config["rope_parameters"];
    let parameters = all.as_object()?;
    let is_plain = parameters.iter().all(|(name, value)| match name.as_str() {
        "rope_type" | "type" => value.is_null() || value == "default",
        name => matches!(name, "rope_theta" | "partial_rotary_factor"),
    });
    if is_plain { parameters.get(field).filter(|value| !value.is_null()).cloned() } else { Some(all.clone()) }
}

impl Sizes {
    /// Rotary positions of this share of each head.
    ///
    /// # Errors
    /// [`ModelError`] if that is no even number of coordinates.
    pub(super) fn partial_rotary(self, base: f64, share: f64) -> Result<Rotary, ModelError> {
        let d_head = (self.d_model as f64 / self.heads as f64 * share) as usize;
        if d_head > 0 && d_head.is_multiple_of(2) {
            return Ok(Rotary { base, d_head });
        }
        let allowed = "a number of heads of which the part that positions turn, 1/4 in gpt_neox and 2/5 in phi, is even";
        Err(ModelError { what: "heads", value: self.heads, allowed })
    }
}
