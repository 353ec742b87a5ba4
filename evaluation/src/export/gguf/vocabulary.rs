//! A tokenizer as llama.cpp reads it. One that llama.cpp would read as another is refused.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use training::infer::TextBounds;
use training::progress::note;

use super::Pairs;

/// The mark of a blank.
const MARK: &str = "▁";

/// The patterns that split text before byte-level BPE, and GGUF's names for them.
pub(super) const SPLITS: [(&str, &str); 2] = [
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "llama-bpe",
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "qwen2",
    ),
];

/// Token types of GGUF.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;
const BYTE: i32 = 6;

/// Tokens by id.
struct Tokens {
    texts: Vec<String>,
    kinds: Vec<i32>,
}

impl Tokens {
    /// The tokens of `own`, a table of as many rows as the model has, and of the file's added tokens.
    fn new<'a>(
        own: impl Iterator<Item = (&'a str, u64)>,
        json: &'a Value,
        rows: usize,
    ) -> Result<Self, String> {
        let texts = (0..rows).map(|id| format!("[UNUSED{id}]")).collect();
        let mut tokens = Self { texts, kinds: vec![UNUSED; rows] };
        let falls_back = json["model"]["byte_fallback"] == true;
        let is_byte = |text: &str| falls_back && text.len() == 6 && byte(text).is_some();
        let own = own.map(|(text, id)| (text, id, if is_byte(text) { BYTE } else { NORMAL }));
        let added = json["added_tokens"].as_array().into_iter().flatten().filter_map(|token| {
            let kind = if token["special"] == true { CONTROL } else { USER_DEFINED };
            Some((token["content"].as_str()?, token["id"].as_u64()?, kind))
        });
        for (text, id, kind) in own.chain(added) {
            let at = id as usize;
            let (Some(place), Some(old)) = (tokens.texts.get_mut(at), tokens.kinds.get_mut(at)) else {
                return Err(format!("token {id} is beyond the model's table of {rows}"));
            };
            (*place, *old) = (text.to_owned(), kind);
        }
        Ok(tokens)
    }

    /// Lets tokens of single bytes stand for their ASCII characters, where no other token has these: llama.cpp falls back to bytes
    /// in no unigram model.
    fn spell_ascii(&mut self) {
        let spelled: HashSet<char> = self.normal().flat_map(|(_, text)| text.chars()).collect();
        for (text, kind) in self.texts.iter_mut().zip(&mut self.kinds) {
            let character = byte(text).filter(|byte| *kind == BYTE && byte.is_ascii()).map(char::from);
            if let Some(character) = character.filter(|own| *own != ' ' && !spelled.contains(own)) {
                (*text, *kind) = (character.to_string(), NORMAL);
            }
        }
    }

    fn write(&self, out: &mut Pairs) {
        out.texts("tokenizer.ggml.tokens", &self.texts);
        out.kinds("tokenizer.ggml.token_type", &self.kinds);
    }

    /// Normal tokens with their ids.
    fn normal(&self) -> impl Iterator<Item = (usize, &str)> {
        self.texts
            .iter()
            .enumerate()
            .filter(|(id, _)| self.kinds[*id] == NORMAL)
            .map(|(id, text)| (id, text.as_str()))
    }
}

/// The byte that `<0x41>` stands for.
fn byte(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

/// Writes a tokenizer with the ids of its special tokens.
///
/// # Errors
/// What llama.cpp would read otherwise.
pub(super) fn write(
    json: &Value,
    config: &Value,
    bounds: &TextBounds,
    out: &mut Pairs,
) -> Result<(), String> {
    let rows = config["vocab_size"].as_u64().unwrap_or_default() as usize;
    match json["model"]["type"].as_str() {
        Some("Unigram") => unigram(json, rows, out)?,
        Some("BPE") if json["model"]["byte_fallback"] == true => marked_merges(json, rows, out)?,
        Some("BPE") => byte_level(json, rows, out)?,
        kind => return Err(format!("llama.cpp has no tokenizer of type {kind:?} for these models")),
    }
    special_ids(config, bounds, out);
    Ok(())
}

/// Writes byte-level BPE.
fn byte_level(json: &Value, rows: usize, out: &mut Pairs) -> Result<(), String> {
    // Whether a word that is a token is taken as it is, whatever its merges.
    let takes_words = json["model"]["ignore_merges"] == true;
    let split = match &json["pre_tokenizer"] {
        own if is_byte_level(own, true) => Some("gpt-2"),
        sequence => match sequence["pretokenizers"].as_array().map(Vec::as_slice) {
            Some([split, bytes]) if is_byte_level(bytes, false) && keeps_matches(split) => {
                let pattern = split["pattern"]["Regex"].as_str();
                SPLITS.iter().find(|(known, _)| Some(*known) == pattern).map(|(_, name)| *name)
            }
            Some([digits, bytes]) if digits["type"] == "Digits" && is_byte_level(bytes, true) => {
                (digits["individual_digits"] == true).then_some("refact")
            }
            _ => None,
        },
    };
    let split = match split {
        Some("llama-bpe") if takes_words => split,
        // It splits as Llama 3 does, and merges.
        Some("llama-bpe") => Some("dbrx"),
        _ => split.filter(|_| !takes_words || all_are_merged(json)),
    };
    let is_plain = json["normalizer"].is_null() || json["normalizer"]["type"] == "NFC";
    let Some(split) = split.filter(|_| is_plain) else {
        return Err("of tokenizers without marks for blanks, llama.cpp reads byte-level BPE that splits text as GPT-2, \
                    Llama 3, Qwen 2 or SmolLM does, and takes words that are tokens as they are with Llama 3's split alone; \
                    it would read this one as another"
            .to_owned());
    };
    if !json["normalizer"].is_null() {
        note("model.gguf: llama.cpp does not normalize text to NFC, as this tokenizer does");
    }
    out.text("tokenizer.ggml.model", "gpt2");
    out.text("tokenizer.ggml.pre", split);
    Tokens::new(vocabulary(json), json, rows)?.write(out);
    let merges: Vec<String> = merges(json)?.iter().map(|(left, right)| format!("{left} {right}")).collect();
    out.texts("tokenizer.ggml.merges", &merges);
    Ok(())
}

/// Whether merges make each token of several characters that is not looked for in the text.
fn all_are_merged(json: &Value) -> bool {
    let merged: HashSet<String> =
        merges(json).into_iter().flatten().map(|(left, right)| format!("{left}{right}")).collect();
    let added = json["added_tokens"].as_array().into_iter().flatten();
    let added: HashSet<&str> = added.filter_map(|token| token["content"].as_str()).collect();
    vocabulary(json)
        .all(|(token, _)| token.chars().nth(1).is_none() || merged.contains(token) || added.contains(token))
}

/// Whether the words are the matches of the pattern, which leaves out no character.
fn keeps_matches(split: &Value) -> bool {
    let removes_others = split["behavior"] == "Removed" && split["invert"] == true;
    removes_others || split["behavior"] == "Isolated" && split["invert"] != true
}

fn is_byte_level(stage: &Value, splits: bool) -> bool {
    stage["type"] == "ByteLevel"
        && stage["use_regex"].as_bool().unwrap_or(true) == splits
        && stage["add_prefix_space"] != true
}

/// The tokens of a BPE model with their ids.
fn vocabulary(json: &Value) -> impl Iterator<Item = (&str, u64)> {
    let tokens = json["model"]["vocab"].as_object().into_iter().flatten();
    tokens.filter_map(|(token, id)| Some((token.as_str(), id.as_u64()?)))
}

/// The merges of a BPE model, in either of their forms.
fn merges(json: &Value) -> Result<Vec<(&str, &str)>, String> {
    let merges = json["model"]["merges"].as_array().ok_or("the tokenizer has no list of merges")?;
    merges
        .iter()
        .map(read_merge)
        .collect::<Option<_>>()
        .ok_or_else(|| "a merge is no pair of tokens".to_owned())
}

fn read_merge(merge: &Value) -> Option<(&str, &str)> {
    match merge {
        Value::Array(pair) => Some((pair.first()?.as_str()?, pair.get(1)?.as_str()?)),
        merge => merge.as_str()?.split_once(' '),
    }
}

/// How a tokenizer marks blanks.
struct Marks {
    /// Whether a text begins with a mark.
    prefix: bool,
    /// Whether text is cut before each mark, so that no token reaches over one.
    cuts: bool,
}

impl Marks {
    fn of(json: &Value) -> Option<Self> {
        let (normalizer, cut) = (&json["normalizer"], &json["pre_tokenizer"]);
        let replaces = |stage: &Value| {
            stage["type"] == "Replace" && stage["pattern"]["String"] == " " && stage["content"] == MARK
        };
        let prepends = |stage: &Value| stage["type"] == "Prepend" && stage["prepend"] == MARK;
        if normalizer.is_null() && cut["type"] == "Metaspace" && cut["replacement"] == MARK {
            let scheme = cut["prepend_scheme"].as_str();
            let prefix = match scheme {
                Some(scheme) => scheme != "never",
                None => cut["add_prefix_space"] != false,
            };
            if scheme == Some("first") {
                note(
                    "model.gguf: llama.cpp marks the text after each special token, this tokenizer the first text alone",
                );
            }
            return Some(Self { prefix, cuts: cut["split"] != false });
        }
        // Blanks are marks by then, so that no text is cut at a blank.
        let cuts_blanks = cut["type"] == "Split" && cut["pattern"]["String"] == " ";
        if !cut.is_null() && !cuts_blanks {
            return None;
        }
        let stages = match normalizer["normalizers"].as_array() {
            Some(stages) => stages.as_slice(),
            None => std::slice::from_ref(normalizer),
        };
        match stages {
            [replace] if replaces(replace) => Some(Self { prefix: false, cuts: false }),
            [prepend, replace] if prepends(prepend) && replaces(replace) => {
                Some(Self { prefix: true, cuts: false })
            }
            _ => None,
        }
    }

    /// Writes how blanks are marked.
    ///
    /// # Errors
    /// A token with a mark inside, where text is cut before each mark: llama.cpp would use it.
    fn write(&self, tokens: &Tokens, out: &mut Pairs) -> Result<(), String> {
        let reaches_over =
            |text: &&str| text.char_indices().skip(1).any(|(at, _)| text[at..].starts_with(MARK));
        if let Some(token) =
            tokens.normal().map(|(_, text)| text).find(|text| self.cuts && reaches_over(text))
        {
            return Err(format!(
                "llama.cpp would use the token {token:?}, at whose blanks this tokenizer cuts"
            ));
        }
        out.flag("tokenizer.ggml.add_space_prefix", self.prefix);
        out.flag("tokenizer.ggml.remove_extra_whitespaces", false);
        Ok(())
    }
}

const NO_MARKS: &str = "llama.cpp reads this model's tokens where blanks alone are replaced, by \"▁\"; it would read this \
                        tokenizer as another";

/// Writes BPE over marked text, in which llama.cpp merges the pair whose token has the best score.
fn marked_merges(json: &Value, rows: usize, out: &mut Pairs) -> Result<(), String> {
    let marks = Marks::of(json).ok_or(NO_MARKS)?;
    let tokens = Tokens::new(vocabulary(json), json, rows)?;
    marks.write(&tokens, out)?;
    out.text("tokenizer.ggml.model", "llama");
    tokens.write(out);
    out.floats("tokenizer.ggml.scores", &scores_of_merges(&tokens, &merges(json)?)?);
    Ok(())
}

/// Scores by which llama.cpp merges the same pairs in the same order: minus the rank of the token that a merge makes.
///
/// # Errors
/// A pair that llama.cpp would merge and this tokenizer does not, or in another order.
fn scores_of_merges(tokens: &Tokens, merges: &[(&str, &str)]) -> Result<Vec<f32>, String> {
    let ids: HashMap<&str, usize> = tokens.normal().map(|(id, text)| (text, id)).collect();
    let mut scores = vec![-(merges.len() as f32); tokens.texts.len()];
    let (mut seen, mut last) = (HashSet::new(), String::new());
    for (rank, (left, right)) in merges.iter().enumerate() {
        let made = format!("{left}{right}");
        let &id =
            ids.get(&*made).ok_or_else(|| format!("the merge of {left:?} and {right:?} makes no token"))?;
        if made != last {
            if !seen.insert(id) {
                return Err(format!("llama.cpp has one rank for the token {made:?}, whose merges lie apart"));
            }
            scores[id] = -(rank as f32);
            last = made;
        }
    }
    let known: HashSet<(&str, &str)> = merges.iter().copied().collect();
    for token in ids.keys() {
        let mut cuts = token.char_indices().skip(1).map(|(at, _)| token.split_at(at));
        let unmerged = |(left, right): &(&str, &str)| {
            ids.contains_key(left) && ids.contains_key(right) && !known.contains(&(*left, *right))
        };
        if let Some((left, right)) = cuts.find(unmerged) {
            return Err(format!(
                "llama.cpp would merge {left:?} and {right:?}, which this tokenizer does not"
            ));
        }
        let is_single = token.chars().nth(1).is_none();
        if let Some(letter) =
            token.chars().find(|letter| !is_single && !ids.contains_key(&*letter.to_string()))
        {
            return Err(format!(
                "llama.cpp would merge {letter:?} to {token:?}, but it is no token by itself"
            ));
        }
    }
    Ok(scores)
}

/// Writes a unigram model.
fn unigram(json: &Value, rows: usize, out: &mut Pairs) -> Result<(), String> {
    let marks = Marks::of(json).ok_or(NO_MARKS)?;
    let model = &json["model"];
    let pieces = model["vocab"].as_array().ok_or("the tokenizer has no list of pieces")?;
    let own = pieces.iter().zip(0..).filter_map(|(piece, id)| Some((piece[0].as_str()?, id)));
    let mut tokens = Tokens::new(own, json, rows)?;
    let mut scores = vec![0.0; rows];
    for (piece, score) in pieces.iter().zip(&mut scores) {
        *score = piece[1].as_f64().unwrap_or_default() as f32;
    }
    if let Some(unknown) = model["unk_id"].as_u64() {
        if let Some(kind) = tokens.kinds.get_mut(unknown as usize) {
            *kind = UNKNOWN;
        }
        out.number("tokenizer.ggml.unknown_token_id", unknown);
    }
    if model["byte_fallback"] == true {
        tokens.spell_ascii();
        note(
            "model.gguf: llama.cpp reads a character beyond ASCII that has no piece as the unknown token, where this tokenizer has its bytes",
        );
    }
    out.text("tokenizer.ggml.model", "t5");
    tokens.write(out);
    out.floats("tokenizer.ggml.scores", &scores);
    marks.write(&tokens, out)
}

/// A text ends at each of these. GGUF has a key for one token of each kind.
const ENDS: [&str; 3] = ["eos", "eot", "eom"];

/// Says which of the tokens that end a text have no place in the file.
pub(super) fn further_ends(ends: &[u32]) -> Option<String> {
    let further = ends.get(ENDS.len()..).filter(|further| !further.is_empty())?;
    Some(format!(
        "model.gguf: has a place for {} tokens that end a text; llama.cpp goes on after tokens {further:?}, unless it knows their names",
        ENDS.len()
    ))
}

/// Writes the ids of special tokens.
fn special_ids(config: &Value, bounds: &TextBounds, out: &mut Pairs) {
    for (key, id) in ENDS.into_iter().zip(&bounds.ends) {
        out.number(&format!("tokenizer.ggml.{key}_token_id"), u64::from(*id));
    }
    if let Some(what) = further_ends(&bounds.ends) {
        note(&what);
    }
    let first = match bounds.first[..] {
        [first] => Some(first),
        _ => None,
    };
    // Without the field, llama.cpp begins at another token, whatever that is in this vocabulary.
    let begin = first.or(bounds.ends.first().copied()).map(u64::from).or(config["bos_token_id"].as_u64());
    for (key, id) in [("bos", begin), ("padding", config["pad_token_id"].as_u64())] {
        if let Some(id) = id {
            out.number(&format!("tokenizer.ggml.{key}_token_id"), id);
        }
    }
    out.flag("tokenizer.ggml.add_bos_token", first.is_some());
    out.flag("tokenizer.ggml.add_eos_token", false);
}
