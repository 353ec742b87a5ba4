//! Tokenizers for web pages and Node, with TypeScript declarations. A refusal has the command line's message: a `TypeError` for
//! a value of a wrong type, a `RangeError` for one out of range, a `SyntaxError` for text that is no JSON, otherwise an `Error`.

use heap as _;
use js_sys::{Array, Object, Reflect, Symbol, Uint32Array};
use mechanisms::{PrivacyUnit, ReleaseMethod, Words};
use serde::Deserialize;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::preview::{self, PreviewError, Settings};
use crate::release::ReleaseError;
use tokenizer::FormatError;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("../js/types.d.ts");

/// Text to token ids and back.
#[wasm_bindgen]
pub struct Tokenizer(tokenizer::Tokenizer);

#[wasm_bindgen]
impl Tokenizer {
    /// Reads the text of a tokenizer.json.
    ///
    /// # Errors
    /// A text that is damaged or has a stage that is not supported.
    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(
        #[wasm_bindgen(unchecked_param_type = "string")] text: JsValue,
    ) -> Result<Tokenizer, JsValue> {
        tokenizer::Tokenizer::from_json(&string("text", &text)?).map(Self).map_err(|refused| {
            let message = refused.to_string();
            match refused {
                FormatError::Json { .. } => js_sys::SyntaxError::new(&message).into(),
                _ => error(&message),
            }
        })
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
    ///
    /// # Errors
    /// An id that is no whole number below 2³².
    #[wasm_bindgen(js_name = idToToken)]
    pub fn id_to_token(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] id: JsValue,
    ) -> Result<Option<String>, JsValue> {
        Ok(self.0.token(token_id(&id)?).map(str::to_owned))
    }

    /// The id of a token, as written in the vocabulary.
    ///
    /// # Errors
    /// A token that is no string.
    #[wasm_bindgen(js_name = tokenToId)]
    pub fn token_to_id(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] token: JsValue,
    ) -> Result<Option<u32>, JsValue> {
        Ok(self.0.id(&string("token", &token)?))
    }

    /// The ids of a text. No token is added at either end.
    ///
    /// # Errors
    /// A text that is no string.
    pub fn encode(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: JsValue,
    ) -> Result<Vec<u32>, JsValue> {
        Ok(self.0.encode(&string("text", &text)?))
    }

    /// The ids of many texts, in the same order; faster than one by one.
    ///
    /// # Errors
    /// Texts that are no array of strings.
    #[wasm_bindgen(js_name = encodeBatch, unchecked_return_type = "Uint32Array[]")]
    pub fn encode_batch(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string[]")] texts: JsValue,
    ) -> Result<Vec<JsValue>, JsValue> {
        let texts = array("texts", &texts)?;
        let texts: Vec<String> = texts.iter().map(|text| string("texts", &text)).collect::<Result<_, _>>()?;
        let ids = self.0.encode_batch(&texts, 1);
        Ok(ids.iter().map(|ids| Uint32Array::from(ids.as_slice()).into()).collect())
    }

    /// The text of ids. Special tokens appear by name, and ids outside the vocabulary are skipped.
    ///
    /// # Errors
    /// Ids that are no array of whole numbers below 2³².
    pub fn decode(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Uint32Array | number[]")] ids: JsValue,
    ) -> Result<String, JsValue> {
        let ids = match ids.dyn_ref::<Uint32Array>() {
            Some(ids) => ids.to_vec(),
            None => array("ids", &ids)?.iter().map(|id| token_id(&id)).collect::<Result<_, _>>()?,
        };
        Ok(self.0.decode(&ids))
    }
}

/// The type of a value, such as `string`.
fn kind(value: &JsValue) -> String {
    value.js_typeof().as_string().unwrap_or_default()
}

fn string(name: &str, value: &JsValue) -> Result<String, JsValue> {
    value.as_string().ok_or_else(|| type_error(&format!("{name} must be a string; got {}", kind(value))))
}

fn array<'a>(name: &str, value: &'a JsValue) -> Result<&'a Array, JsValue> {
    value.dyn_ref().ok_or_else(|| type_error(&format!("{name} must be an array; got {}", kind(value))))
}

fn token_id(value: &JsValue) -> Result<u32, JsValue> {
    let id =
        value.as_f64().ok_or_else(|| type_error(&format!("an id must be a number; got {}", kind(value))))?;
    if (0.0..=f64::from(u32::MAX)).contains(&id) && id.fract() == 0.0 {
        return Ok(id as u32);
    }
    Err(range_error(&format!("an id must be a whole number from 0 to 2^32 - 1; got {id}")))
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
    #[wasm_bindgen(unchecked_param_type = "string")] text: JsValue,
    #[wasm_bindgen(unchecked_param_type = "PreviewSettings")] settings: JsValue,
) -> Result<JsValue, JsValue> {
    // No setting is an object, and one that holds itself would have no end.
    let is_flat = settings.dyn_ref::<Object>().is_some_and(|fields| {
        !Reflect::has(fields, &Symbol::iterator()).unwrap_or(true)
            && Object::values(fields).iter().all(|value| !value.is_object())
    });
    if !is_flat {
        return Err(settings_error(&"allowed: an object of numbers and strings"));
    }
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
    let seen = preview::preview(string("text", &text)?.as_bytes(), &settings).map_err(|refused| {
        let message = refused.to_string();
        match refused {
            PreviewError::Release(ReleaseError::OutOfRange { .. }) => range_error(&message),
            _ => error(&message),
        }
    })?;
    serde_wasm_bindgen::to_value(&seen).map_err(|failed| error(&failed.to_string()))
}

fn settings_error(wrong: &dyn std::fmt::Display) -> JsValue {
    type_error(&format!("settings: {wrong}"))
}

fn type_error(message: &str) -> JsValue {
    js_sys::TypeError::new(message).into()
}

fn range_error(message: &str) -> JsValue {
    js_sys::RangeError::new(message).into()
}

fn error(message: &str) -> JsValue {
    js_sys::Error::new(message).into()
}
