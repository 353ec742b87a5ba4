//! The mark of the private stage that made a tokenizer.

use serde_json::{Value, json};

use super::Tokenizer;

/// Names the private stage that made a tokenizer, so that a copy of the file without the statement beside it does not
/// pass for a public one. The mark is the field `privacy` of the model in a `tokenizer.json`, the only place where
/// Hugging Face tokenizers ignores an unknown field. A file that this library saves again has lost the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageMark(Value);

impl StageMark {
    /// Returns the mark of the stage with this id.
    #[must_use]
    pub fn new(made_by: &str, id: &str) -> Self {
        Self(json!({ "made_by": made_by, "id": id }))
    }

    /// Returns this mark with the log-probabilities of the tokens that follow from the stage's released words, in nats,
    /// to three decimals.
    ///
    /// # Shapes
    /// - values: `[vocab_size]`
    #[must_use]
    pub fn with_log_probabilities(mut self, values: &[f32]) -> Self {
        let rounded = values.iter().map(|value| (f64::from(*value) * 1e3).round() / 1e3);
        self.0["log_probabilities"] = rounded.collect::<Vec<f64>>().into();
        self
    }

    /// Returns the log-probabilities of the tokens, if the mark has one of at least −100 for each of `vocab_size`
    /// tokens.
    #[must_use]
    pub fn log_probabilities(&self, vocab_size: usize) -> Option<Vec<f32>> {
        let values = self.0["log_probabilities"].as_array()?;
        let values: Option<Vec<f32>> = values.iter().map(|value| Some(value.as_f64()? as f32)).collect();
        values.filter(|values| {
            values.len() == vocab_size && values.iter().all(|value| (-100.0..=0.0).contains(value))
        })
    }

    /// Returns this mark with the stage's released words, with pairs of them that follow each other, as places among
    /// the words, each with its noisy count, and with the number of words in a text. The place after the last word
    /// stands for the beginning of a text, and for its end.
    #[must_use]
    pub fn with_words(
        mut self,
        words: &[(String, f64)],
        pairs: &[(usize, usize, f64)],
        words_a_text: usize,
    ) -> Self {
        self.0["words"] = words.iter().map(|(word, count)| json!([word, rounded(count)])).collect();
        self.0["pairs"] = pairs.iter().map(|(a, b, count)| json!([a, b, rounded(count)])).collect();
        self.0["words_a_text"] = words_a_text.into();
        self
    }

    /// Returns this mark with the SHA-256 of public files that stood for words that the stage did not release.
    #[must_use]
    pub fn with_prior(mut self, digests: &[String]) -> Self {
        self.0["prior"] = digests.into();
        self
    }

    /// Returns this mark with words that the stage counted by label: the label, the word's place among the words, and
    /// its noisy count. The place after the last word counts the texts with this label.
    #[must_use]
    pub fn with_words_by_label(mut self, counts: &[(String, usize, f64)]) -> Self {
        let row = |(label, word, count): &(String, usize, f64)| json!([label, word, rounded(count)]);
        self.0["words_by_label"] = counts.iter().map(row).collect();
        self
    }

    /// Returns the words that the stage counted by label, with counts above 0, as [`Self::with_words_by_label`] has
    /// them. The list is empty if the mark has no labels.
    #[must_use]
    pub fn words_by_label(&self) -> Option<Vec<(String, usize, f64)>> {
        let words = self.0["words"].as_array()?.len();
        let counted = |item: &Value| match item.as_array()?.as_slice() {
            [label, word, number] => {
                let word = usize::try_from(word.as_u64()?).ok().filter(|place| *place <= words)?;
                Some((label.as_str()?.to_owned(), word, count(number)?))
            }
            _ => None,
        };
        match &self.0["words_by_label"] {
            Value::Null => Some(Vec::new()),
            rows => rows.as_array()?.iter().map(counted).collect(),
        }
    }

    /// Returns the stage's released words with their counts, all above 0, if the mark has them.
    #[must_use]
    pub fn words(&self) -> Option<Vec<(String, f64)>> {
        let counted = |item: &Value| match item.as_array()?.as_slice() {
            [word, number] => Some((word.as_str()?.to_owned(), count(number)?)),
            _ => None,
        };
        let words: Option<Vec<_>> = self.0["words"].as_array()?.iter().map(counted).collect();
        words.filter(|words| !words.is_empty())
    }

    /// Returns pairs of the stage's released words that follow each other, as places among the words, with counts above
    /// 0. The place after the last word stands for the beginning of a text, and for its end.
    #[must_use]
    pub fn pairs(&self) -> Option<Vec<(usize, usize, f64)>> {
        let words = self.0["words"].as_array()?.len();
        let place = |value: &Value| usize::try_from(value.as_u64()?).ok().filter(|place| *place <= words);
        let counted = |item: &Value| match item.as_array()?.as_slice() {
            [first, second, number] => Some((place(first)?, place(second)?, count(number)?)),
            _ => None,
        };
        self.0["pairs"].as_array()?.iter().map(counted).collect()
    }

    /// Returns the approximate number of words in a text, from 1 to 1,000.
    #[must_use]
    pub fn words_a_text(&self) -> Option<usize> {
        let words = usize::try_from(self.0["words_a_text"].as_u64()?).ok()?;
        Some(words).filter(|words| (1..=1000).contains(words))
    }

    /// Reads the mark from a model's JSON. Any value is one: a mark that is not understood still says that there was a
    /// stage.
    pub(crate) fn read(model: &Value) -> Option<Self> {
        Some(model["privacy"].clone()).filter(|mark| !mark.is_null()).map(Self)
    }

    pub(crate) fn write(&self, model: &mut Value) {
        model["privacy"] = self.0.clone();
    }

    /// Returns the id, which no other stage has; `None` in a mark that is not understood.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0["id"].as_str()
    }
}

fn rounded(count: &f64) -> f64 {
    (count * 1e3).round().max(1.0) / 1e3
}

/// Reads a noisy count above 0.
fn count(value: &Value) -> Option<f64> {
    value.as_f64().filter(|count| *count > 0.0 && *count < 1e15)
}

impl Tokenizer {
    /// Returns this tokenizer with the mark of the private stage that made it.
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

    /// Returns the mark of the private stage that made this tokenizer. `None` does not prove that there was no stage.
    #[must_use]
    pub fn mark(&self) -> Option<&StageMark> {
        self.mark.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_pairs_come_back_and_others_are_none() {
        let words = [("\u{2581}a".to_owned(), 12.5), ("\u{2581}b".to_owned(), 1.0)];
        let mark = StageMark::new("a", "b").with_words(&words, &[(1, 0, 3.0), (1, 2, 2.0)], 7);
        assert_eq!(
            (mark.words(), mark.pairs()),
            (Some(words.to_vec()), Some(vec![(1, 0, 3.0), (1, 2, 2.0)]))
        );
        assert_eq!((mark.words_a_text(), StageMark::new("a", "b").words()), (Some(7), None));
        for wrong in [
            json!([]),
            json!([["a", -1.0]]),
            json!([["a", 1e300]]),
            json!([["a"]]),
            json!([[1, 1.0]]),
            json!(3),
        ] {
            assert_eq!(StageMark(json!({ "words": wrong })).words(), None);
        }
        for wrong in [
            json!([[0, 2, 1.0]]),
            json!([[0, 0, 0.0]]),
            json!([[0, 1.0]]),
            json!([[-1, 0, 1.0]]),
            json!(null),
        ] {
            assert_eq!(StageMark(json!({ "words": [["a", 1.0]], "pairs": wrong })).pairs(), None);
        }
        assert_eq!(StageMark(json!({ "words_a_text": 0 })).words_a_text(), None);
    }

    #[test]
    fn words_by_label_come_back_and_others_are_none() {
        let words = StageMark::new("a", "b").with_words(&[("x".to_owned(), 2.0)], &[], 7);
        let rows = [("joy".to_owned(), 0, 1.5), ("joy".to_owned(), 1, 3.0)];
        assert_eq!(words.words_by_label(), Some(Vec::new()));
        assert_eq!(words.with_words_by_label(&rows).words_by_label(), Some(rows.to_vec()));
        for wrong in [
            json!([["joy", 2, 1.0]]),
            json!([["joy", 0, 0.0]]),
            json!([["joy", 0]]),
            json!([[7, 0, 1.0]]),
            json!(3),
        ] {
            let mark = json!({ "words": [["x", 1.0]], "words_by_label": wrong });
            assert_eq!(StageMark(mark).words_by_label(), None);
        }
    }

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
