//! Tokenizers for web pages and Node, with TypeScript declarations. A refusal throws an `Error`.

use mechanisms::{PrivacyUnit, ReleaseMethod, Words};
use serde::Deserialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::preview::{self, Settings};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("../js/types.d.ts");

/// Text to token ids and back.
#[wasm_bindgen]
pub struct Tokenizer(crate::Tokenizer);

#[wasm_bindgen]
impl Tokenizer {
    /// Reads the text of a tokenizer.json.
    ///
    /// # Errors
    /// A text that is damaged or has a stage that is not supported.
    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(text: &str) -> Result<Tokenizer, JsValue> {
        crate::Tokenizer::from_json(text).map(Self).map_err(|refused| error(&refused.to_string()))
    }

    /// The text of a tokenizer.json.
    #[wasm_bindgen(js_name = toJson)]
    #[must_use]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// Number of tokens; all ids are below it.
    #[wasm_bindgen(getter, js_name = vocabSize)]
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    /// The token with this id, as written in the vocabulary.
    #[wasm_bindgen(js_name = idToToken)]
    #[must_use]
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.0.token(id).map(str::to_owned)
    }

    /// The id of a token, as written in the vocabulary.
    #[wasm_bindgen(js_name = tokenToId)]
    #[must_use]
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.id(token)
    }

    /// The ids of a text. No token is added at either end.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.0.encode(text)
    }

    /// The ids of many texts, in the same order; faster than one by one.
    #[wasm_bindgen(js_name = encodeBatch, unchecked_return_type = "Uint32Array[]")]
    #[must_use]
    pub fn encode_batch(&self, texts: Vec<String>) -> Vec<JsValue> {
        let ids = self.0.encode_batch(&texts, 1);
        ids.iter().map(|ids| js_sys::Uint32Array::from(ids.as_slice()).into()).collect()
    }

    /// The text of ids. Special tokens appear by name, and ids outside the vocabulary are skipped.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        self.0.decode(ids)
    }
}

/// [`Settings`] with defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreviewSettings {
    noise_multiplier: f64,
    threshold_delta: f64,
    vocab_size: usize,
    text_field: Option<String>,
    user_field: Option<String>,
    unit: Option<PrivacyUnit>,
    #[serde(default)]
    words: Words,
    method: Option<ReleaseMethod>,
    sentence: Option<String>,
}

/// NOT PRIVATE: what a release would keep of a text, for its owner. Shows raw counts of the text.
///
/// # Errors
/// Settings out of range; a text that is empty, binary or of another format; a release without words.
#[wasm_bindgen(unchecked_return_type = "Preview")]
pub fn preview(
    text: &str,
    #[wasm_bindgen(unchecked_param_type = "PreviewSettings")] settings: JsValue,
) -> Result<JsValue, JsValue> {
    // By way of JSON, which notices fields that no setting has.
    let value: serde_json::Value =
        serde_wasm_bindgen::from_value(settings).map_err(|wrong| settings_error(&wrong))?;
    let given: PreviewSettings = serde_json::from_value(value).map_err(|wrong| settings_error(&wrong))?;
    let settings = Settings {
        text_field: given.text_field,
        user_field: given.user_field,
        unit: given.unit.unwrap_or(PrivacyUnit::Record),
        words: given.words,
        method: given.method.unwrap_or(ReleaseMethod::Pooled).into(),
        noise_multiplier: given.noise_multiplier,
        threshold_delta: given.threshold_delta,
        vocab_size: given.vocab_size,
        sentence: given.sentence,
    };
    let seen = preview::preview(text.as_bytes(), &settings).map_err(|refused| error(&refused.to_string()))?;
    serde_wasm_bindgen::to_value(&seen).map_err(|failed| error(&failed.to_string()))
}

fn settings_error(wrong: &dyn std::fmt::Display) -> JsValue {
    error(&format!("settings: {wrong}"))
}

fn error(message: &str) -> JsValue {
    js_sys::Error::new(message).into()
}
