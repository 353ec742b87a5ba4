//! Adds words to an existing vocabulary, which is better than most that a release at a small ε can give.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::pairs::learn;
use super::{TrainError, Trained};
use tokenizer::{BLANK, Tokenizer};

/// The score that a unigram model gains for each token that a new one saves. It is large against the rounding of
/// scores, and too small to move a cut where the old pieces differ.
const GAIN: f64 = 1e-3;

/// The models to which tokens can be added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ModelType {
    Unigram,
    WordPiece,
    Bpe,
}

/// A word of which the public vocabulary makes several tokens.
struct Cut {
    /// The word as the vocabulary would write it.
    token: String,
    text: String,
    ids: Vec<u32>,
    count: f64,
}

impl Cut {
    /// Returns the number of tokens that a token for this word would save.
    fn saves(&self) -> f64 {
        self.count * (self.ids.len() - 1) as f64
    }
}

/// Returns a public tokenizer with up to `most` more tokens: those of the released words that save most. A word starts
/// with `▁` if a blank precedes it.
///
/// Tokens of the public vocabulary keep their ids; new ones follow the last id. Unigram: text is cut as before, and the pieces of
/// a new token become that token wherever they stand together. BPE: the new merges come after the old ones. WordPiece: the longest
/// token still comes first, so a word that begins with a new token may be cut in another way. Words that the
/// vocabulary cannot write are left out.
///
/// ```
/// use dp_tokenizer::train::{BpeConfig, bpe, extend};
/// let public = bpe(&[("▁pain".to_owned(), 9.0)], &BpeConfig::default())?.tokenizer;
/// let extended = extend(&public, &[("▁fever".to_owned(), 5.0)], 10)?.tokenizer;
/// assert_eq!(extended.encode(" pain fever"), [public.id("Ġpain").unwrap_or(0), extended.vocab_size() as u32 - 1]);
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
///
/// # Errors
/// [`TrainError::BadCount`], and [`TrainError::NotExtensible`] for a model of another kind.
pub fn extend(public: &Tokenizer, words: &[(String, f64)], most: usize) -> Result<Trained, TrainError> {
    if let Some(index) = words.iter().position(|word| !(word.1.is_finite() && word.1 > 0.0)) {
        return Err(TrainError::BadCount { index, count: words[index].1 });
    }
    let json = public.to_json();
    let file: Value = serde_json::from_str(&json).map_err(|error| refused(&error))?;
    let model_type = match file["model"]["type"].as_str() {
        Some("Unigram") => ModelType::Unigram,
        Some("WordPiece") => ModelType::WordPiece,
        Some("BPE") => ModelType::Bpe,
        other => return Err(refused(&format!("its model is {other:?}; allowed: Unigram, BPE, WordPiece"))),
    };
    // This is a `.model` as the file will have it.
    let public = Tokenizer::from_json(&json).map_err(|error| refused(&error))?;
    let mut cuts = cuts(&public, model_type, words);
    let mut extended = build(file.clone(), &public, model_type, &cuts, most)?;
    if model_type == ModelType::Bpe {
        // Where text is divided within a word, no merge joins its parts, and tokens for it would be wasted.
        let before = cuts.len();
        cuts.retain(|cut| extended.encode(&cut.text).len() < cut.ids.len());
        if cuts.len() < before {
            extended = build(file, &public, model_type, &cuts, most)?;
        }
    }
    Ok(Trained { tokenizer: extended, requested: public.vocab_size() })
}

/// Returns a warning if no released word became a token of the `extended` tokenizer.
#[must_use]
pub fn nothing_added(public: &Tokenizer, extended: &Tokenizer) -> Option<String> {
    (extended.vocab_size() == public.vocab_size()).then(|| {
        "no released word saves a token, so the vocabulary is the public one; a larger ε or more text \
         releases rarer words"
            .to_owned()
    })
}

fn refused(reason: &dyn std::fmt::Display) -> TrainError {
    TrainError::NotExtensible { reason: reason.to_string() }
}

fn build(
    mut file: Value,
    public: &Tokenizer,
    model_type: ModelType,
    cuts: &[Cut],
    most: usize,
) -> Result<Tokenizer, TrainError> {
    let model = &mut file["model"];
    match model_type {
        ModelType::Unigram => extend_unigram(model, public, &chosen(cuts, most)),
        ModelType::WordPiece => extend_wordpiece(model, public, &chosen(cuts, most)),
        ModelType::Bpe => extend_bpe(model, public, cuts, most)?,
    }
    Tokenizer::from_json(&file.to_string()).map_err(|error| refused(&error))
}

/// Returns the words that the public vocabulary cuts and can write. Counts of equal ones are added up.
fn cuts(public: &Tokenizer, model_type: ModelType, words: &[(String, f64)]) -> Vec<Cut> {
    let mut encoder = public.encoder();
    let mut found: BTreeMap<String, Cut> = BTreeMap::new();
    let mut ordered: Vec<&(String, f64)> = words.iter().collect();
    ordered.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    for (word, count) in ordered {
        let text = word.replace(BLANK, " ");
        let ids = encoder.encode(&text);
        let tokens: Vec<&str> = ids.iter().filter_map(|id| public.token(*id)).collect();
        if ids.len() < 2 || tokens.len() < ids.len() {
            continue;
        }
        let token = match model_type {
            ModelType::WordPiece => join_wordpieces(public, &tokens),
            ModelType::Unigram | ModelType::Bpe => {
                // Tokens for unknown characters, and for bytes, do not have the text of their names.
                let is_written = public.decode(&ids).trim_start() == text.trim_start();
                let is_plain = !tokens.iter().any(|token| is_byte_by_name(token));
                let is_one_word = !tokens[1..].iter().any(|token| token.starts_with([BLANK, 'Ġ']));
                (is_written && is_plain && is_one_word).then(|| tokens.concat())
            }
        };
        if let Some(token) = token.filter(|token| public.id(token).is_none()) {
            found.entry(token.clone()).or_insert(Cut { token, text, ids, count: 0.0 }).count += count;
        }
    }
    found.into_values().collect()
}

fn is_byte_by_name(token: &str) -> bool {
    token.len() == 6 && token.starts_with("<0x") && token.ends_with('>')
}

/// Joins the tokens of one word to one; `None` if they are of several words or unknown.
fn join_wordpieces(public: &Tokenizer, tokens: &[&str]) -> Option<String> {
    let unknown = public.unk_id().and_then(|id| public.token(id));
    if tokens.iter().any(|token| Some(*token) == unknown) {
        return None;
    }
    let inner: Option<String> = tokens[1..].iter().map(|token| token.strip_prefix("##")).collect();
    inner.map(|inner| format!("{}{inner}", tokens[0]))
}

/// Returns the words that save most; of equals, the first in order of the text.
fn chosen(cuts: &[Cut], most: usize) -> Vec<&Cut> {
    let mut cuts: Vec<&Cut> = cuts.iter().collect();
    cuts.sort_by(|a, b| b.saves().total_cmp(&a.saves()));
    cuts.truncate(most);
    cuts
}

/// Returns the names of all ids: a model's own tokens, then those that only the file adds.
fn names(public: &Tokenizer) -> Vec<String> {
    (0..public.vocab_size() as u32)
        .map(|id| public.token(id).map_or_else(|| format!("<unused_{id}>"), str::to_owned))
        .collect()
}

fn extend_unigram(model: &mut Value, public: &Tokenizer, cuts: &[&Cut]) {
    let Some(pieces) = model["vocab"].as_array_mut() else { return };
    let scores: Vec<f64> = pieces.iter().map(|piece| piece[1].as_f64().unwrap_or(0.0)).collect();
    let lowest = scores.iter().copied().fold(0.0, f64::min);
    for name in &names(public)[pieces.len()..] {
        // The score lies below that of any way to cut the token's name.
        pieces.push(json!([name, (name.chars().count() + 1) as f64 * lowest - 1.0]));
    }
    for cut in cuts {
        let parts: f64 = cut.ids.iter().filter_map(|id| scores.get(*id as usize)).sum();
        pieces.push(json!([cut.token, parts + GAIN * (cut.ids.len() - 1) as f64]));
    }
}

fn extend_wordpiece(model: &mut Value, public: &Tokenizer, cuts: &[&Cut]) {
    let Some(vocab) = model["vocab"].as_object_mut() else { return };
    let all = names(public).into_iter().chain(cuts.iter().map(|cut| cut.token.clone()));
    for (id, token) in (0_u32..).zip(all) {
        vocab.entry(token).or_insert(id.into());
    }
}

/// Learns further merges from the words as the public merges leave them.
fn extend_bpe(model: &mut Value, public: &Tokenizer, cuts: &[Cut], most: usize) -> Result<(), TrainError> {
    let names = names(public);
    let size = names.len();
    let spelt = cuts.iter().map(|cut| (cut.ids.clone(), cut.count)).collect();
    let learnt = learn(spelt, names, size + most, |left, right| Some(format!("{left}{right}")))?;
    if let Some(vocab) = model["vocab"].as_object_mut() {
        for (id, token) in (0_u32..).zip(&learnt.symbols) {
            vocab.entry(token.clone()).or_insert(id.into());
        }
    }
    if let Some(merges) = model["merges"].as_array_mut() {
        let name = |id: u32| &learnt.symbols[id as usize];
        merges.extend(learnt.merges.iter().map(|&(left, right)| json!([name(left), name(right)])));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{BpeConfig, UnigramConfig, WordPieceTraining, bpe, unigram, wordpiece};

    fn words(list: &[(&str, f64)]) -> Vec<(String, f64)> {
        list.iter().map(|&(word, count)| (word.to_owned(), count)).collect()
    }

    fn public() -> [Tokenizer; 3] {
        let list = words(&[("▁the", 90.0), ("▁fe", 30.0), ("ver", 20.0), ("▁care", 9.0), ("ish", 5.0)]);
        [
            unigram(&list, &UnigramConfig { vocab_size: 400, ..Default::default() }).unwrap().tokenizer,
            bpe(&list, &BpeConfig { vocab_size: 400, ..Default::default() }).unwrap().tokenizer,
            wordpiece(&list, &WordPieceTraining { vocab_size: 400, ..Default::default() }).unwrap().tokenizer,
        ]
    }

    #[test]
    fn added_words_are_one_token_and_other_text_keeps_its_tokens() {
        let released = words(&[("▁fever", 50.0), ("▁fevers", 20.0), ("▁the", 90.0)]);
        for public in public() {
            // Tokens of the file that its model lacks must keep their ids too.
            let public = public.with_special_tokens(&["[SPECIAL]"]);
            let size = public.vocab_size();
            let extended = extend(&public, &released, 20).unwrap().tokenizer;
            let new = |text: &str| extended.encode(text).iter().filter(|id| **id as usize >= size).count();
            for text in [" fever", " fevers"] {
                assert!(public.encode(text).len() > 1);
                assert_eq!((extended.encode(text).len(), new(text)), (1, 1), "{text}");
                assert_eq!(extended.decode(&extended.encode(text)), public.decode(&public.encode(text)));
            }
            for text in [" the care", " the[SPECIAL] zebra", " fe ver"] {
                assert_eq!(extended.encode(text), public.encode(text), "{text}");
            }
            assert!((0..size as u32).all(|id| extended.token(id) == public.token(id)));
            let saved = Tokenizer::from_json(&extended.to_json()).unwrap();
            assert_eq!(saved.encode(" the fevers"), extended.encode(" the fevers"));
        }
    }

    #[test]
    fn a_unigram_word_of_which_a_new_token_is_part_gets_no_more_tokens_than_before() {
        let public = &public()[0];
        let extended = extend(public, &words(&[("▁fever", 50.0)]), 1).unwrap().tokenizer;
        for text in [" feverish", " the fevers", "fever"] {
            let (before, after) = (public.encode(text), extended.encode(text));
            assert!(after.len() <= before.len(), "{text}");
            // The new token alone is cut as its word was.
            let cut =
                |id: u32| if id as usize >= public.vocab_size() { public.encode(" fever") } else { vec![id] };
            assert_eq!(after.into_iter().flat_map(cut).collect::<Vec<_>>(), before, "{text}");
        }
    }

    #[test]
    fn an_extension_that_adds_nothing_says_so() {
        let word = |text: &str| (text.to_owned(), 9.0);
        let public = bpe(&[word("▁pain")], &BpeConfig::default()).unwrap().tokenizer;
        let warning = |text: &str| {
            let extended = extend(&public, &[word(text)], 10).unwrap().tokenizer;
            nothing_added(&public, &extended)
        };
        assert_eq!(warning("▁fever"), None);
        assert!(warning("▁pain").unwrap().contains("no released word saves a token"));
    }

    #[test]
    fn no_more_tokens_are_added_than_asked_and_those_that_save_most_come_first() {
        let list = words(&[("▁fever", 5.0), ("▁thever", 9.0)]);
        for public in public() {
            let extended = extend(&public, &list, 1).unwrap().tokenizer;
            assert_eq!(extended.vocab_size(), public.vocab_size() + 1);
        }
        let extended = extend(&public()[0], &list, 1).unwrap().tokenizer;
        assert_eq!((extended.encode(" thever").len(), extended.id("▁fever")), (1, None));
        assert!(matches!(extend(&public()[0], &words(&[("▁a", -1.0)]), 1), Err(TrainError::BadCount { .. })));
    }
}
