//! `tokenizer.json`, the format of Hugging Face tokenizers.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::added_tokens::{added_tokens_json, read_added_tokens};
use super::model_json::{ModelPart, read_model, write_model};
use super::sentencepiece_json::Stages;
use crate::FormatError;
use crate::decode::Decoder;
use crate::encode::Model;
use crate::normalize::Normalizer;
use crate::postprocess::PostProcessor;
use crate::pretokenize::{METASPACE, Marks, PreTokenizer, WordFinder};
use crate::tokenizer::{Role, Shaping, StageMark, Tokenizer, UNK, ids_by_place};

/// A file whose model is not read yet.
#[derive(Deserialize)]
struct FilePart<'a> {
    #[serde(borrow, default)]
    model: ModelPart<'a>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Tokenizer {
    /// Returns the tokenizer as a `tokenizer.json`, from which Hugging Face tokenizers gives the same ids.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Stages { normalizer, pre_tokenizer, decoder } = self.stages_json();
        let mut model = write_model(&self.model);
        if let Some(mark) = self.mark() {
            mark.write(&mut model);
        }
        self.write_stated(&mut model);
        self.write_tokens_behind_a_gap(&mut model);
        let file = json!({
            "version": "1.0",
            "truncation": self.shaping.as_ref().map(|shaping| &shaping.truncation),
            "padding": self.shaping.as_ref().map(|shaping| &shaping.padding),
            "added_tokens": added_tokens_json(self),
            "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": self.post_processor.json(),
            "decoder": decoder,
            "model": model,
        });
        format!("{file:#}\n")
    }

    /// Returns the `tokenizer_config.json` that lets `transformers` load the tokenizer beside it.
    #[must_use]
    pub fn to_config_json(&self) -> String {
        let name = |wanted: &'static str| self.special.id(wanted).map(|_| wanted);
        let token = |id: Option<u32>| id.and_then(|id| self.token(id));
        let mut file = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": token(self.pad_id()),
            "eos_token": token(self.eos_id()),
            "unk_token": token(self.unk_id().or(self.roles.of(Role::Unk))).or(name(UNK)),
            "clean_up_tokenization_spaces": false,
        });
        // Tokens of BERT's and T5's objectives, where the vocabulary has them.
        for (role, usual) in
            [(Role::Cls, "[CLS]"), (Role::Sep, "[SEP]"), (Role::Mask, "[MASK]"), (Role::Bos, "")]
        {
            if let Some(token) = token(self.roles.of(role)).or(name(usual)) {
                file[format!("{}_token", role.name())] = json!(token);
            }
        }
        let sentinels: Vec<&str> = (0..)
            .map(|at| format!("<extra_id_{at}>"))
            .map_while(|sentinel| self.special.tokens.iter().find(|token| token.1 == sentinel))
            .map(|token| token.1.as_str())
            .collect();
        if self.pads_left() {
            file["padding_side"] = json!("left");
        }
        if !sentinels.is_empty() {
            file["additional_special_tokens"] = json!(sentinels);
        }
        format!("{file:#}\n")
    }

    /// Reads a `tokenizer.json`.
    ///
    /// ```
    /// use tokenizer::Tokenizer;
    /// let error = Tokenizer::from_json("{").err().map(|e| e.to_string());
    /// assert!(error.is_some_and(|e| e.starts_with("tokenizer.json, line 1, column 1")));
    /// ```
    ///
    /// # Errors
    /// [`FormatError`] for a file that is damaged, or that asks for a pipeline which is not implemented.
    pub fn from_json(text: &str) -> Result<Self, FormatError> {
        let FilePart { model: mut part, others } = serde_json::from_str(text).map_err(|error| {
            if error.is_data() {
                return FormatError::inconsistent("the file and its field `model` must be JSON objects");
            }
            FormatError::Json {
                line: error.line(),
                column: error.column(),
                reason: "not JSON, or cut off; write the file again".to_owned(),
            }
        })?;
        let (file, fields) = (Value::Object(others), part.others());
        let normalizer = Normalizer::read(&file["normalizer"])?;
        let mut pre_tokenizer = PreTokenizer::read(&file["pre_tokenizer"])?;
        let is_byte_level = pre_tokenizer.is_byte_level();
        let (model, apart) = read_model(&part, &fields, &file["added_tokens"], is_byte_level)?;
        if model.spells_bytes() {
            pre_tokenizer.leave_bytes_to_model();
        }
        let post_processor = PostProcessor::read(&file["post_processor"])?;
        let mut tokenizer = Self::of_model(model);
        let by_place = pre_tokenizer.marks_by_place(!normalizer.is_identity());
        tokenizer.by_place = by_place.then_some(ids_by_place);
        tokenizer.normalizer = normalizer;
        tokenizer.pre_tokenizer = pre_tokenizer;
        tokenizer.decoder = Decoder::read(&file["decoder"])?;
        tokenizer.special = read_added_tokens(&file["added_tokens"], &tokenizer, &apart)?;
        let mark_cuts = match &tokenizer.model {
            Model::Bpe(model) if tokenizer.special.normalized().is_none() => model.mark_cuts(),
            _ => None,
        };
        tokenizer.words = match (tokenizer.marks(), mark_cuts) {
            (Some(marks), Some(cuts)) => WordFinder::AtRuns(marks, cuts),
            _ => tokenizer.pre_tokenizer.words(),
        };
        let size = tokenizer.vocab_size();
        if let Some(id) = post_processor.ids().into_iter().find(|id| *id as usize >= size) {
            return Err(FormatError::inconsistent(format!(
                "post_processor adds the token {id}; allowed: ids below {size}"
            )));
        }
        tokenizer.post_processor = post_processor;
        tokenizer.shaping = Shaping::read(&file);
        tokenizer.mark = StageMark::read(&fields).map(Box::new);
        tokenizer.read_stated(&fields);
        Ok(tokenizer)
    }

    /// Writes added tokens into the vocabulary where their order in the list would give them other ids. Hugging Face's
    /// library takes ids from the vocabulary first.
    fn write_tokens_behind_a_gap(&self, model: &mut Value) {
        let is_own = |name: &str| self.model.id(name).is_some();
        let added = || self.special.tokens.iter().filter(|(_, name)| !is_own(name));
        let has_gap = added().zip(self.model.len() as u32..).any(|((id, _), place)| *id != place);
        let Some(vocab) = model["vocab"].as_object_mut().filter(|_| has_gap) else { return };
        vocab.extend(added().map(|(id, name)| (name.clone(), json!(id))));
    }

    fn stages_json(&self) -> Stages {
        match &self.model {
            Model::SentencePiece(model) => Stages::of(model.model()),
            _ => Stages {
                normalizer: self.normalizer.json(),
                pre_tokenizer: self.pre_tokenizer.json(),
                decoder: self.decoder.json(),
            },
        }
    }

    /// Returns when a mark goes before a text; `None` if the stages before the model do more than turn blanks into
    /// marks.
    fn marks(&self) -> Option<Marks> {
        let normalizer = self.normalizer.json();
        if let Some(space) = self.pre_tokenizer.metaspace() {
            // With `split`, the text is cut before each mark, so marks do not merge.
            let is_marks_alone = normalizer.is_null() && space.replacement == METASPACE && !space.split;
            return is_marks_alone.then_some(Marks::Metaspace(*space));
        }
        // No blank is left by then, so a split at blanks leaves the text whole.
        let pre_tokenizer = self.pre_tokenizer.json();
        let splits_at_blanks = pre_tokenizer["type"] == "Split"
            && pre_tokenizer["pattern"] == json!({"String": " "})
            && pre_tokenizer["invert"] != true;
        if !(pre_tokenizer.is_null() || splits_at_blanks) {
            return None;
        }
        let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": METASPACE});
        let prepend = json!({"type": "Prepend", "prepend": METASPACE});
        match &normalizer {
            one if *one == replace => Some(Marks::Never),
            all if all["normalizers"] == json!([prepend, replace]) => Some(Marks::Always),
            _ => None,
        }
    }
}
