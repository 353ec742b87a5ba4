//! Settings of a `tokenizer_config.json` that `transformers` applies beside a `tokenizer.json`, and that are not applied here.
//!
//! A generic class takes all stages from `tokenizer.json`. The others take the vocabulary and make the stages by their settings.

use serde_json::{Map, Value, json};

use super::roles::{EOS_NAMES, PAD_NAMES, RoleIds};
use super::{Role, Tokenizer, UNK};
use crate::FormatError;
use crate::encode::Model;
use crate::special_tokens::TokenOptions;

/// The field of a model's JSON that keeps what a `tokenizer_config.json` stated.
const STATED: &str = "tokenizer_config";
const PADDING_SIDE: &str = "padding_side";

/// Classes that take all stages from `tokenizer.json`.
const GENERIC: [&str; 2] = ["PreTrainedTokenizer", "TokenizersBackend"];

/// Classes that pad before a text unless `padding_side` says otherwise.
const LEFT: [&str; 4] = ["CodeLlamaTokenizer", "CohereTokenizer", "GemmaTokenizer", "LlamaTokenizer"];

/// How the stages of a file cut a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// At GPT-2's pattern, into bytes.
    Bytes,
    /// At another pattern, into bytes.
    BytesAtPattern,
    /// At marks of blanks, of which one may begin a text.
    Marks,
    /// At blanks, before words with marks.
    MarkedWords,
    /// Not at all before the model, which has marks of blanks.
    Whole,
    /// At blanks and punctuation.
    Bert,
    Other,
}

/// What a class makes beside the vocabulary.
struct Class {
    name: &'static str,
    cut: Cut,
    /// The roles whose tokens it puts around a text, in their order.
    around: &'static [Role],
    /// The tokens of roles that the settings do not state.
    tokens: &'static [(Role, &'static str)],
}

const END: &str = "<|endoftext|>";
const OF_ROBERTA: &[(Role, &str)] = &[
    (Role::Bos, "<s>"),
    (Role::Eos, "</s>"),
    (Role::Cls, "<s>"),
    (Role::Sep, "</s>"),
    (Role::Unk, "<unk>"),
    (Role::Pad, "<pad>"),
    (Role::Mask, "<mask>"),
];
const OF_BERT: &[(Role, &str)] = &[
    (Role::Cls, "[CLS]"),
    (Role::Sep, "[SEP]"),
    (Role::Unk, "[UNK]"),
    (Role::Pad, "[PAD]"),
    (Role::Mask, "[MASK]"),
];
const OF_GEMMA: &[(Role, &str)] = &[
    (Role::Bos, "<bos>"),
    (Role::Eos, "<eos>"),
    (Role::Unk, "<unk>"),
    (Role::Pad, "<pad>"),
    (Role::Mask, "<mask>"),
];
const OF_GPT2: &[(Role, &str)] = &[(Role::Bos, END), (Role::Eos, END), (Role::Unk, END)];
const OF_GPT_NEOX: &[(Role, &str)] =
    &[(Role::Bos, END), (Role::Eos, END), (Role::Unk, END), (Role::Pad, "<|padding|>")];
const OF_LLAMA: &[(Role, &str)] = &[(Role::Bos, "<s>"), (Role::Eos, "</s>"), (Role::Unk, "<unk>")];
const OF_QWEN2: &[(Role, &str)] = &[(Role::Eos, END), (Role::Unk, END), (Role::Pad, END)];
const OF_T5: &[(Role, &str)] = &[(Role::Eos, "</s>"), (Role::Unk, "<unk>"), (Role::Pad, "<pad>")];

const fn class(
    name: &'static str,
    cut: Cut,
    around: &'static [Role],
    tokens: &'static [(Role, &'static str)],
) -> Class {
    Class { name, cut, around, tokens }
}

/// Classes of the model families here.
const CLASSES: [Class; 10] = [
    class("BertTokenizer", Cut::Bert, &[Role::Cls, Role::Sep], OF_BERT),
    class("CodeGenTokenizer", Cut::Bytes, &[], OF_GPT2),
    class("GPT2Tokenizer", Cut::Bytes, &[], OF_GPT2),
    class("GPTNeoXTokenizer", Cut::Bytes, &[], OF_GPT_NEOX),
    class("GemmaTokenizer", Cut::Whole, &[], OF_GEMMA),
    class("LlamaTokenizer", Cut::Marks, &[], OF_LLAMA),
    class("Qwen2Tokenizer", Cut::BytesAtPattern, &[], OF_QWEN2),
    class("RobertaTokenizer", Cut::Bytes, &[Role::Cls, Role::Sep], OF_ROBERTA),
    class("T5Tokenizer", Cut::MarkedWords, &[Role::Eos], OF_T5),
    class("XLMRobertaTokenizer", Cut::MarkedWords, &[Role::Bos, Role::Eos], OF_ROBERTA),
];

impl Tokenizer {
    /// Returns this tokenizer with the roles that the `tokenizer_config.json` beside its file states.
    ///
    /// ```
    /// let tokenizer = tokenizer::Tokenizer::bytes(&["<|end|>".to_owned()])?;
    /// assert_eq!(tokenizer.eos_id(), None);
    /// let tokenizer = tokenizer.with_config(r#"{"eos_token": "<|end|>"}"#)?;
    /// assert_eq!(tokenizer.eos_id(), Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn with_config(mut self, config: &str) -> Result<Self, FormatError> {
        let config: Value = serde_json::from_str(config).map_err(|error| FormatError::Inconsistent {
            reason: format!("tokenizer_config.json, line {}: not JSON; mend or remove it", error.line()),
        })?;
        self.state(&config);
        self.not_applied = not_applied(&self, &config);
        Ok(self)
    }

    /// Applies a `tokenizer_config.json`.
    fn state(&mut self, config: &Value) {
        self.roles = RoleIds::from_names(self, |role| token(config, role));
        self.pads_left = pads_left(self, config);
    }

    /// Names the settings of the `tokenizer_config.json` that change ids, decoded texts or special tokens in `transformers`, and not here.
    #[must_use]
    pub fn unapplied_settings(&self) -> Option<String> {
        let names = (!self.not_applied.is_empty()).then(|| self.not_applied.join(", "))?;
        Some(format!(
            "tokenizer_config.json: not applied, as tokenizer.json says otherwise, though transformers does: {names}"
        ))
    }

    /// Applies what [`Self::write_stated`] wrote.
    pub(crate) fn read_stated(&mut self, model: &Value) {
        self.state(&model[STATED]);
    }

    /// Writes into a model's JSON what a `tokenizer_config.json` stated and the names of tokens do not tell, so that it
    /// stays with the tokenizer. Hugging Face tokenizers ignores unknown fields only there.
    pub(crate) fn write_stated(&self, model: &mut Value) {
        let usual = |role: Role| match role {
            Role::Pad => self.first_of(PAD_NAMES),
            // A byte-level BPE has no unknown token, but may have one of the usual name.
            Role::Unk => self.unk_id().or_else(|| self.first_of(&[UNK])),
            Role::Eos => self.first_of(EOS_NAMES),
            Role::Bos => None,
            Role::Cls => self.first_of(&["[CLS]"]),
            Role::Sep => self.first_of(&["[SEP]"]),
            Role::Mask => self.first_of(&["[MASK]"]),
        };
        let mut own = Map::new();
        for role in Role::ALL {
            let unusual = self.roles.of(role).filter(|id| usual(role) != Some(*id));
            if let Some(token) = unusual.and_then(|id| self.token(id)) {
                own.insert(format!("{}_token", role.name()), json!(token));
            }
        }
        if self.pads_left != pads_left(self, &Value::Null) {
            let side = if self.pads_left { "left" } else { "right" };
            own.insert(PADDING_SIDE.to_owned(), json!(side));
        }
        if !own.is_empty() {
            model[STATED] = Value::Object(own);
        }
    }
}

/// Whether padding goes before a text.
fn pads_left(tokenizer: &Tokenizer, config: &Value) -> bool {
    let (name, cut) = (class_name(config), cut(tokenizer));
    match config[PADDING_SIDE].as_str() {
        Some(side) => side == "left",
        // Where no class is stated, transformers takes Gemma's for Gemma's files.
        None => LEFT.contains(&name) && !is_of_bytes(name, cut) || name.is_empty() && cut == Cut::Whole,
    }
}

/// Returns the token of a role: the stated one, or the one that the class has where none is stated.
fn token(config: &Value, role: Role) -> Option<&str> {
    match config.get(format!("{}_token", role.name())) {
        Some(token) => token.as_str().or(token["content"].as_str()),
        None => {
            let class = CLASSES.iter().find(|class| class.name == class_name(config))?;
            class.tokens.iter().find(|token| token.0 == role).map(|token| token.1)
        }
    }
}

/// Whether transformers takes a file of bytes as it is, although Llama's class is stated.
fn is_of_bytes(class: &str, cut: Cut) -> bool {
    class == "LlamaTokenizer" && matches!(cut, Cut::Bytes | Cut::BytesAtPattern)
}

/// Returns the names of settings that change ids, texts or special tokens in `transformers`, and not here.
fn not_applied(tokenizer: &Tokenizer, config: &Value) -> Vec<String> {
    let name = class_name(config);
    let cut = cut(tokenizer);
    let is_generic = GENERIC.contains(&name) || is_of_bytes(name, cut);
    let class = CLASSES.iter().find(|class| class.name == name);
    let settings = Settings { tokenizer, config, cut };
    let mut names = settings.tokens();
    names.extend(settings.of_any_class());
    if !is_generic {
        names.extend(settings.of_stages(name));
        names.extend(class.into_iter().flat_map(|class| settings.of_class(class)));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The class, of which transformers takes the older name for the same.
fn class_name(config: &Value) -> &str {
    let name = config["tokenizer_class"].as_str().unwrap_or_default();
    name.strip_suffix("Fast").unwrap_or(name)
}

fn cut(tokenizer: &Tokenizer) -> Cut {
    let (before, normalizer) = (tokenizer.pre_tokenizer.json(), tokenizer.normalizer.json());
    let parts = parts(&before, "pretokenizers");
    let kinds: Vec<&str> = parts.iter().filter_map(|part| part["type"].as_str()).collect();
    match kinds[..] {
        ["ByteLevel"] if parts[0]["use_regex"] != false => Cut::Bytes,
        ["Split", "ByteLevel"] => Cut::BytesAtPattern,
        ["BertPreTokenizer"] => Cut::Bert,
        ["WhitespaceSplit", "Metaspace"] => Cut::MarkedWords,
        [.., "Metaspace"] => Cut::Marks,
        _ if kinds_of(&normalizer).any(|kind| kind == "Prepend") => Cut::Marks,
        [] | ["Split"] if kinds_of(&normalizer).any(|kind| kind == "Replace") => Cut::Whole,
        _ => Cut::Other,
    }
}

/// The stages in a sequence, or the only one.
fn parts<'a>(stage: &'a Value, list: &str) -> Vec<&'a Value> {
    match stage[list].as_array() {
        Some(parts) => parts.iter().collect(),
        None => Some(stage).filter(|stage| !stage.is_null()).into_iter().collect(),
    }
}

fn kinds_of(normalizer: &Value) -> impl Iterator<Item = &str> {
    parts(normalizer, "normalizers").into_iter().filter_map(|part| part["type"].as_str())
}

/// Whether Python takes a value for true.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

struct Settings<'a> {
    tokenizer: &'a Tokenizer,
    config: &'a Value,
    cut: Cut,
}

impl Settings<'_> {
    /// Names tokens that are no special tokens of the file, or have other options there: transformers adds them.
    fn tokens(&self) -> Vec<String> {
        let roles = Role::ALL.iter().map(|role| format!("{}_token", role.name()));
        let mut names: Vec<String> = roles.filter(|name| !self.has(&self.config[name], None)).collect();
        for list in ["additional_special_tokens", "extra_special_tokens"] {
            let given = &self.config[list];
            let listed = given.as_array().into_iter().flatten();
            let named = given.as_object().into_iter().flatten().map(|(_, token)| token);
            if !listed.chain(named).all(|token| self.has(token, None)) {
                names.push(list.to_owned());
            }
        }
        let decoder = self.config["added_tokens_decoder"].as_object().into_iter().flatten();
        let mut decoder = decoder.map(|(id, token)| self.has(token, id.parse().ok()));
        if decoder.any(|is_own| !is_own) {
            names.push("added_tokens_decoder".to_owned());
        }
        names
    }

    /// Whether the file has this token with these options and, if it is stated, with this id; `true` of what is no token.
    fn has(&self, token: &Value, id: Option<u32>) -> bool {
        let Some(name) = token.as_str().or(token["content"].as_str()) else { return true };
        let special = &self.tokenizer.special;
        let Some(place) = special.tokens.iter().position(|own| own.1 == name) else {
            // The control symbols of a `.model` are pieces.
            return matches!(self.tokenizer.model, Model::SentencePiece(_))
                && self.tokenizer.id(name).is_some();
        };
        let own = special.options[place];
        let flag = |name: &str, own: bool| token[name].as_bool().unwrap_or(own);
        let given = TokenOptions {
            single_word: flag("single_word", own.single_word),
            lstrip: flag("lstrip", own.lstrip),
            rstrip: flag("rstrip", own.rstrip),
            normalized: flag("normalized", own.normalized),
            special: if id.is_some() { flag("special", own.special) } else { true },
        };
        own == given && id.is_none_or(|id| id == special.tokens[place].0)
    }

    fn of_any_class(&self) -> Vec<String> {
        let is = |name: &str| is_true(&self.config[name]);
        let corrupts = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output";
        let cleans = is("clean_up_tokenization_spaces")
            && (is(corrupts) || !matches!(self.tokenizer.model, Model::Bpe(_)));
        let named = [("clean_up_tokenization_spaces", cleans), (corrupts, cleans && is(corrupts))];
        let unknown = token(self.config, Role::Unk).and_then(|token| self.tokenizer.id(token));
        let own = self.tokenizer.unk_id();
        let is_other = unknown.is_some() && own.is_some() && unknown != own;
        let further = [("split_special_tokens", is("split_special_tokens")), ("unk_token", is_other)];
        let named = named.into_iter().chain(further);
        named.filter(|(_, applies)| *applies).map(|(name, _)| name.to_owned()).collect()
    }

    /// Names settings by which a class makes stages, where the file has others.
    fn of_stages(&self, class: &str) -> Vec<String> {
        let mut names = Vec::new();
        // Without a class, the usual values of settings are unknown.
        let is_stated = !class.is_empty();
        let normalizer = self.tokenizer.normalizer.json();
        if normalizer["type"] == "BertNormalizer" {
            for (name, stage, usual) in [
                ("do_lower_case", "lowercase", Value::Bool(true)),
                ("strip_accents", "strip_accents", Value::Null),
                ("tokenize_chinese_chars", "handle_chinese_chars", Value::Bool(true)),
            ] {
                let given = self.config.get(name).or(Some(&usual).filter(|_| is_stated));
                if given.is_some_and(|given| *given != normalizer[stage]) {
                    names.push(name.to_owned());
                }
            }
        }
        let Some(scheme) = self.scheme().filter(|_| !["T5Tokenizer", "MBartTokenizer"].contains(&class))
        else {
            return names;
        };
        let is_llama = class == "LlamaTokenizer";
        let begins = match self.config.get("add_prefix_space") {
            None if !is_stated => return names,
            None => matches!(self.cut, Cut::Marks | Cut::MarkedWords),
            Some(Value::Null) => is_llama,
            Some(given) => is_true(given),
        };
        if begins != (scheme != "never") {
            names.push("add_prefix_space".to_owned());
        } else if is_llama && begins && is_true(&self.config["legacy"]) != (scheme == "always") {
            names.push("legacy".to_owned());
        }
        names
    }

    /// Where the file begins a text with a blank: `always`, at the `first` part only, or `never`. None if it has no such choice.
    fn scheme(&self) -> Option<String> {
        let before = self.tokenizer.pre_tokenizer.json();
        let parts = parts(&before, "pretokenizers");
        let last = parts.last();
        match (self.cut, last.map(|part| part["type"].as_str().unwrap_or_default())) {
            (Cut::Bytes | Cut::BytesAtPattern, Some(_)) => {
                let begins = last.is_some_and(|part| part["add_prefix_space"] == true);
                Some(if begins { "always" } else { "never" }.to_owned())
            }
            (Cut::Marks | Cut::MarkedWords, Some("Metaspace")) => {
                Some(last.and_then(|part| part["prepend_scheme"].as_str()).unwrap_or("always").to_owned())
            }
            (Cut::Marks, _) => Some("always".to_owned()),
            _ => None,
        }
    }

    /// Names what a class makes otherwise than the file: its way of cutting, or the tokens of its roles.
    fn of_class(&self, class: &Class) -> Vec<String> {
        let stated = |role: Role| self.config.get(format!("{}_token", role.name()));
        let lacks = |(role, token): &(Role, &str)| {
            stated(*role).is_none() && self.tokenizer.special.id(token).is_none()
        };
        let around = self.tokenizer.post_processor.ids();
        let is_word_piece = matches!(self.tokenizer.model, Model::WordPiece(_));
        if class.cut != self.cut
            || class.tokens.iter().any(lacks)
            || !class.around.is_empty() && around.len() != class.around.len()
            || class.cut == Cut::Bert && !is_word_piece
        {
            return vec!["tokenizer_class".to_owned()];
        }
        let id = |role: Role| token(self.config, role).and_then(|token| self.tokenizer.id(token));
        let places = class.around.iter().zip(around);
        let unfit = places.filter(|(role, place)| stated(**role).is_some() && id(**role) != Some(*place));
        unfit.map(|(role, _)| format!("{}_token", role.name())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gemma's files have this normalizer and no other stage.
    const FILE: &str = r#"{
        "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        "model": { "type": "BPE", "vocab": { "a": 0, "▁": 1 }, "merges": [] }
    }"#;

    #[test]
    fn padding_on_the_right_stays_where_the_file_alone_means_the_left() {
        for (config, left) in [("{}", true), (r#"{"padding_side": "right"}"#, false)] {
            let tokenizer = Tokenizer::from_json(FILE).unwrap().with_config(config).unwrap();
            let again = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
            assert_eq!([tokenizer.pads_left(), again.pads_left()], [left; 2], "{config}");
        }
    }
}
