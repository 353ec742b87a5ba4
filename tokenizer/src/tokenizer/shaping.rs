//! The sections `truncation` and `padding` of a `tokenizer.json`.

use serde_json::Value;

use super::Tokenizer;

/// The lengths to which a file has the ids of a text cut and filled. Encoding here gives all ids of a text, as
/// `transformers` does unless it is asked; the sections are written back as they were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shaping {
    pub truncation: Value,
    pub padding: Value,
}

impl Shaping {
    /// Reads the sections; `None` if both are `null`.
    pub fn read(file: &Value) -> Option<Box<Self>> {
        let [truncation, padding] = ["truncation", "padding"].map(|section| file[section].clone());
        let is_given = !truncation.is_null() || !padding.is_null();
        is_given.then(|| Box::new(Self { truncation, padding }))
    }
}

impl Tokenizer {
    /// Describes the lengths that the file states for its outputs and encoding does not apply: a cut to a number of
    /// tokens, or padding. `None` if the file states none.
    #[must_use]
    pub fn unapplied_lengths(&self) -> Option<String> {
        let Shaping { truncation, padding } = &**self.shaping.as_ref()?;
        let cut =
            (!truncation.is_null()).then(|| format!("truncation to {} tokens", truncation["max_length"]));
        let filled = (!padding.is_null()).then(|| match &padding["strategy"]["Fixed"] {
            Value::Null => "padding to the longest text of a batch".to_owned(),
            length => format!("padding to {length} tokens"),
        });
        Some(cut.into_iter().chain(filled).collect::<Vec<_>>().join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file() -> Value {
        serde_json::from_str(include_str!("../../tests/fixtures/unigram.json")).unwrap()
    }

    #[test]
    fn sections_about_lengths_are_named_and_written_back_and_no_id_is_lost() {
        let plain = Tokenizer::from_json(&file().to_string()).unwrap();
        assert_eq!(plain.unapplied_lengths(), None);
        let mut shaped = file();
        shaped["truncation"] =
            json!({ "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0 });
        shaped["padding"] = json!({ "strategy": { "Fixed": 8 }, "direction": "Right", "pad_id": 0 });
        let tokenizer = Tokenizer::from_json(&shaped.to_string()).unwrap();
        assert_eq!(tokenizer.unapplied_lengths().unwrap(), "truncation to 2 tokens and padding to 8 tokens");
        let text = "then the café and more";
        assert_eq!(tokenizer.encode(text), plain.encode(text));
        let written: Value = serde_json::from_str(&tokenizer.to_json()).unwrap();
        assert_eq!(
            (&written["truncation"], &written["padding"]),
            (&shaped["truncation"], &shaped["padding"])
        );
        shaped["truncation"] = Value::Null;
        shaped["padding"]["strategy"] = json!("BatchLongest");
        let tokenizer = Tokenizer::from_json(&shaped.to_string()).unwrap();
        assert_eq!(tokenizer.unapplied_lengths().unwrap(), "padding to the longest text of a batch");
    }

    /// A unigram model without an unknown piece would drop characters. Hugging Face's library stops at such a text, and refuses the other
    /// three files.
    #[test]
    fn a_unigram_file_without_an_unknown_piece_is_refused() {
        for (id, what) in
            [(Value::Null, "would vanish"), (json!("3"), "\"3\""), (json!(-1), "-1"), (json!(3.0), "3.0")]
        {
            let mut file = file();
            file["model"]["unk_id"] = id;
            file["model"]["byte_fallback"] = json!(false);
            let refused = Tokenizer::from_json(&file.to_string()).err().unwrap().to_string();
            assert!(refused.contains("model.unk_id") && refused.contains(what), "{refused}");
        }
    }

    /// Oracle: tokenizers 0.23 gives the tokens the ids that follow the vocabulary, whatever the file says.
    #[test]
    fn added_tokens_whose_ids_are_not_those_of_their_places_are_refused() {
        let size = Tokenizer::from_json(&file().to_string()).unwrap().vocab_size();
        let read = |ids: [usize; 2]| {
            let mut file = file();
            let token = |(name, id): (&str, usize)| json!({ "id": id, "content": name, "special": true });
            let own = file["added_tokens"].as_array_mut().unwrap();
            own.extend(["<new a>", "<new b>"].into_iter().zip(ids).map(token));
            Tokenizer::from_json(&file.to_string()).map(|tokenizer| tokenizer.vocab_size())
        };
        assert_eq!(read([size, size + 1]).unwrap(), size + 2);
        for ids in [[size, size], [size + 1, size], [size, size + 7]] {
            let refused = read(ids).unwrap_err().to_string();
            assert!(refused.contains("its place in the list gives it"), "{refused}");
        }
    }
}
