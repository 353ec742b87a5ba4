//! The mark of the private stage that made a tokenizer.

use serde_json::{Value, json};

use super::Tokenizer;

/// Names the private stage that made a tokenizer, so that a copy of the file without the statement beside it does not pass for a
/// public one. It is the field `privacy` of the model in a `tokenizer.json`, the only place for it that Hugging Face tokenizers
/// reads over; what that library saves again has lost it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageMark(Value);

impl StageMark {
    /// The mark of the stage with this id.
    #[must_use]
    pub fn new(made_by: &str, id: &str) -> Self {
        Self(json!({ "made_by": made_by, "id": id }))
    }

    /// This mark with the log-probabilities of the tokens that the stage's released words tell, in nats, to three decimals.
    ///
    /// # Shapes
    /// - values: `[vocab_size]`
    #[must_use]
    pub fn with_log_probabilities(mut self, values: &[f32]) -> Self {
        let rounded = values.iter().map(|value| (f64::from(*value) * 1e3).round() / 1e3);
        self.0["log_probabilities"] = rounded.collect::<Vec<f64>>().into();
        self
    }

    /// The log-probabilities of the tokens, if the mark has one of at least −100 for each of `vocab_size` tokens.
    #[must_use]
    pub fn log_probabilities(&self, vocab_size: usize) -> Option<Vec<f32>> {
        let values = self.0["log_probabilities"].as_array()?;
        let values: Option<Vec<f32>> = values.iter().map(|value| Some(value.as_f64()? as f32)).collect();
        values.filter(|values| {
            values.len() == vocab_size && values.iter().all(|value| (-100.0..=0.0).contains(value))
        })
    }

    /// The mark in a model's JSON. Whatever stands there is one: a mark that is not understood still says that there was a stage.
    pub(crate) fn read(model: &Value) -> Option<Self> {
        Some(model["privacy"].clone()).filter(|mark| !mark.is_null()).map(Self)
    }

    pub(crate) fn write(&self, model: &mut Value) {
        model["privacy"] = self.0.clone();
    }

    /// The name that no other stage has; `None` in a mark that is not understood.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0["id"].as_str()
    }
}

impl Tokenizer {
    /// This tokenizer with the mark of the private stage that made it.
    ///
    /// ```
    /// use tokenizer::{StageMark, Tokenizer};
    /// let tokenizer = Tokenizer::bytes(&[])?;
    /// assert_eq!(tokenizer.mark(), None);
    /// let json = tokenizer.with_mark(StageMark::new("dp-tokenizer train", "6f")).to_json();
    /// assert_eq!(Tokenizer::from_json(&json)?.mark().and_then(StageMark::id), Some("6f"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_mark(mut self, mark: StageMark) -> Self {
        self.mark = Some(Box::new(mark));
        self
    }

    /// The mark of the private stage that made it; `None` where there is none, which does not say that there was no stage.
    #[must_use]
    pub fn mark(&self) -> Option<&StageMark> {
        self.mark.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_come_back_and_others_are_none() {
        let mark = StageMark::new("a", "b").with_log_probabilities(&[-0.1234, -7.0]);
        assert_eq!(mark.log_probabilities(2), Some(vec![-0.123, -7.0]));
        assert_eq!((mark.id(), mark.log_probabilities(3)), (Some("b"), None));
        for wrong in [json!([0.5, -1.0]), json!([-1e300, -1.0]), json!(["-1", -1.0]), json!({}), json!(null)]
        {
            assert_eq!(StageMark(json!({ "log_probabilities": wrong })).log_probabilities(2), None);
        }
    }
}
