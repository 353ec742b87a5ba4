//! The unigram trainer: expectation–maximization over all segmentations. Each round drops the pieces that save the fewest tokens.
//!
//! It is deterministic: sums have a fixed order, and ties are broken by the text of the piece.
//!
//! # References
//! Kudo 2018, "Subword regularization", <https://arxiv.org/abs/1804.10959>; SentencePiece's trainer for seeds and EM steps (digamma in
//! the M-step). Which pieces go, and when, is our own.

use std::collections::{BTreeMap, BTreeSet};

use super::joined::join;
use super::merge::{merge, scale};
use super::model::Model;
use super::prior;
use super::unigram_config::UnigramConfig;
use super::unseen::{Completed, complete};
use super::{TrainError, check_roles};
use crate::count::Words;
use tokenizer::{BLANK, Tokenizer, UnigramPipeline, byte_token};

/// A trained tokenizer.
pub struct Trained {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The requested number of tokens.
    pub requested: usize,
}

impl Trained {
    /// Returns a warning if there are fewer tokens than requested.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let reached = self.tokenizer.vocab_size();
        (reached < self.requested).then(|| {
            format!(
                "the words have only {reached} pieces, fewer than vocab_size = {}; the vocabulary has that size",
                self.requested
            )
        })
    }
}

/// Trains a unigram tokenizer on words with their counts. A word starts with `▁` if a blank precedes it.
///
/// The vocabulary depends on these words, the printable ASCII characters and the bytes alone.
///
/// # Errors
/// [`TrainError`] without words, with a count that is not finite and positive, with a symbol that is empty, listed twice
/// or some other token's name, or with too small a `vocab_size`.
pub fn unigram(words: &[(String, f64)], config: &UnigramConfig) -> Result<Trained, TrainError> {
    let mut words = merge(words, config)?;
    let mut invented = Vec::new();
    if let Some(kind) = config.released {
        let weight = if config.prior.is_empty() { 0.0 } else { prior::weight(words.len()) };
        let mut completed = complete(&words);
        let counts = completed.words.iter_mut().zip(&completed.invented);
        counts.filter(|word| *word.1).for_each(|word| word.0.1 *= 1.0 - weight);
        if kind == Words::ByClass {
            completed = join(&completed);
        }
        if !config.prior.is_empty() {
            completed = prior::complete(&completed, &config.prior, weight);
        }
        Completed { words, invented } = completed;
    }
    scale(&mut words);
    let sentinels: Vec<String> = (0..config.sentinels).rev().map(|n| format!("<extra_id_{n}>")).collect();
    let symbols = checked_symbols(config, &sentinels)?;
    let mut required = required_characters(&words, config);
    required.retain(|c| !symbols.contains(c.to_string().as_str()));
    let fixed = config.roles.names().count() + symbols.len() + if config.byte_fallback { 256 } else { 0 };
    let needed = fixed + required.len();
    if config.vocab_size < needed {
        return Err(TrainError::TooSmall { given: config.vocab_size, needed });
    }
    let room = config.vocab_size - needed;
    let mut model = Model::new(&words, &invented, config.seed_size.max(room), config.max_piece_length);
    let wanted = room + model.characters();
    // The first two steps may drop all pieces that words hardly use.
    model.em_step(0);
    model.em_step(0);
    while model.len() > wanted {
        // Invented words give many pieces, and the order in which the worst half is dropped matters little.
        let share =
            if config.released.is_some() && model.len() > 2 * wanted { 0.5 } else { config.shrinking_factor };
        let next = (model.len() as f64 * share) as usize;
        model.prune(next.clamp(wanted, model.len() - 1));
        model.em_step(wanted);
    }
    model.em_step(wanted);
    let pieces = finish(&model, &required, room, config, &sentinels);
    let leading = config.roles.names().map(str::to_owned).chain(config.symbols.iter().cloned());
    let last = (pieces.len() - sentinels.len()) as u32;
    let special = (0..).zip(leading).chain((last..).zip(sentinels)).collect();
    let pipeline = UnigramPipeline {
        normalizer: config.normalizer.clone(),
        split_by_whitespace: config.split_by_whitespace,
        byte_fallback: config.byte_fallback,
        roles: config.roles.clone(),
    };
    let tokenizer = Tokenizer::unigram(pieces, special, &pipeline)?;
    Ok(Trained { tokenizer, requested: config.vocab_size })
}

/// Checks that user-defined symbols and sentinels are distinct and not the names of other tokens.
fn checked_symbols<'a>(
    config: &'a UnigramConfig,
    sentinels: &'a [String],
) -> Result<BTreeSet<&'a str>, TrainError> {
    check_roles(&config.roles)?;
    let mut known = BTreeSet::new();
    for symbol in config.symbols.iter().chain(sentinels) {
        let taken =
            config.roles.names().any(|name| name == symbol) || (0..=255).any(|b| byte_token(b) == *symbol);
        if symbol.is_empty() || taken || !known.insert(symbol.as_str()) {
            return Err(TrainError::SpecialToken { token: symbol.clone() });
        }
    }
    Ok(known)
}

/// Returns the characters that must be tokens: printable ASCII and `▁`, which are public, and the characters of the
/// words.
fn required_characters(words: &[(String, f64)], config: &UnigramConfig) -> Vec<char> {
    let mut all: BTreeSet<char> = ('!'..='~').collect();
    all.insert(BLANK);
    all.extend(config.required_characters.chars().filter(|c| !c.is_whitespace()));
    all.extend(words.iter().flat_map(|w| w.0.chars()));
    all.into_iter().collect()
}

/// Returns the final list: special tokens, symbols, bytes, then pieces by score, then sentinels.
fn finish(
    model: &Model<'_>,
    required: &[char],
    room: usize,
    config: &UnigramConfig,
    sentinels: &[String],
) -> Vec<(String, f64)> {
    let mut letters = model.pieces();
    let lowest = letters.iter().map(|piece| piece.1).fold(f64::INFINITY, f64::min);
    let mut longer = letters.split_off(model.characters());
    let known: BTreeMap<&str, f64> = letters.into_iter().collect();
    let mut chosen: Vec<(String, f64)> = required
        .iter()
        .map(|c| c.to_string())
        .map(|c| (c.clone(), known.get(c.as_str()).copied().unwrap_or(lowest)))
        .collect();
    // A piece with the name of a symbol is already in the vocabulary.
    longer.retain(|(piece, _)| config.symbols.iter().chain(sentinels).all(|symbol| symbol != piece));
    longer.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    chosen.extend(longer.into_iter().take(room).map(|(piece, score)| (piece.to_owned(), score)));
    chosen.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));

    let mut out: Vec<(String, f64)> = config.roles.names().map(|t| (t.to_owned(), 0.0)).collect();
    // The model never finds symbols: texts are split at them before.
    out.extend(config.symbols.iter().map(|symbol| (symbol.clone(), symbol_score(symbol, lowest))));
    if config.byte_fallback {
        // The score lies below that of the six characters of the byte's name, so that the text "<0x41>" is never
        // encoded as the byte.
        let score = 6.0 * lowest - 1.0;
        out.extend((0..=255).map(|b| (byte_token(b), score)));
    }
    out.extend(chosen);
    out.extend(sentinels.iter().map(|symbol| (symbol.clone(), symbol_score(symbol, lowest))));
    // Scores have few decimals, so that every JSON parser reads the same float.
    out.iter_mut().for_each(|piece| piece.1 = libm::round(piece.1 * 1e6) / 1e6);
    out
}

/// Returns a score below that of any segmentation of the symbol into characters.
fn symbol_score(symbol: &str, lowest: f64) -> f64 {
    symbol.chars().count() as f64 * lowest - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizer::normalize::Normalizer;

    fn words(list: &[(&str, f64)]) -> Vec<(String, f64)> {
        list.iter().map(|&(w, c)| (w.to_owned(), c)).collect()
    }

    fn config(vocab_size: usize) -> UnigramConfig {
        UnigramConfig { vocab_size, ..UnigramConfig::default() }
    }

    #[test]
    fn frequent_words_become_tokens_and_rare_ones_are_cut() {
        let list = words(&[("▁patient", 500.0), ("▁the", 900.0), ("▁inpatient", 40.0), ("▁quixotry", 1.0)]);
        let trained = unigram(&list, &config(356)).unwrap();
        let tokenizer = trained.tokenizer;
        let token = |id: u32| tokenizer.token(id).unwrap().to_owned();
        let pieces = |text| tokenizer.encode(text).into_iter().map(token).collect::<Vec<_>>();
        assert_eq!(pieces(" the patient"), ["▁the", "▁patient"]);
        assert!(pieces(" quixotry").len() > 1);
        assert_eq!(tokenizer.vocab_size(), 356);
        assert_eq!((tokenizer.pad_id(), tokenizer.eos_id(), tokenizer.unk_id()), (Some(0), Some(1), Some(2)));
    }

    #[test]
    fn runs_of_words_become_tokens_across_blanks_in_every_format() {
        let list = [("▁of", 90.0), ("▁the", 90.0), ("▁of▁the", 80.0), ("▁cat", 900.0), ("the", 2.0)];
        let list = words(&list);
        let trained = |split_by_whitespace| {
            let config = UnigramConfig { split_by_whitespace, ..config(400) };
            unigram(&list, &config).unwrap().tokenizer
        };
        let across = trained(false);
        let id = across.id("▁of▁the").unwrap();
        let text = "the cat of the cat, of\tthe  of the";
        let ids = across.encode(text);
        assert_eq!(ids.iter().filter(|one| **one == id).count(), 2);
        assert_eq!(across.decode(&ids), text);
        assert_eq!(Tokenizer::from_json(&across.to_json()).unwrap().encode(text), ids);
        let model = across.to_sentencepiece().unwrap();
        assert_eq!(Tokenizer::from_sentencepiece(&model).unwrap().encode(text), ids);
        let within = trained(true);
        let across_blanks = |id: &u32| within.token(*id).unwrap().chars().skip(1).any(|c| c == BLANK);
        assert!(!within.encode(text).iter().any(across_blanks));
    }

    #[test]
    fn symbols_and_sentinels_are_one_token_each_and_stand_where_stated() {
        let list = words(&[("▁patient", 500.0), ("▁the", 900.0)]);
        let with = |symbols: &[&str]| UnigramConfig {
            symbols: symbols.iter().map(|s| (*s).to_owned()).collect(),
            sentinels: 2,
            ..config(400)
        };
        let tokenizer = unigram(&list, &with(&["<mask>", "the", "q"])).unwrap().tokenizer;
        assert_eq!(tokenizer.encode("q<mask>the<extra_id_0>")[..3], [5, 3, 4]);
        let size = tokenizer.vocab_size() as u32;
        assert_eq!(
            [tokenizer.id("<extra_id_0>"), tokenizer.id("<extra_id_1>")],
            [Some(size - 1), Some(size - 2)]
        );
        let loaded = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
        let in_sentencepiece = Tokenizer::from_sentencepiece(&tokenizer.to_sentencepiece().unwrap()).unwrap();
        for text in ["the <mask> patient <extra_id_1> q", "quit the<mask>"] {
            let ids = tokenizer.encode(text);
            assert_eq!((&loaded.encode(text), &in_sentencepiece.encode(text)), (&ids, &ids), "{text}");
            assert_eq!(tokenizer.decode(&ids), text);
        }
        for twice in [&["a", "a"][..], &["<unk>"], &["<0x41>"], &[""], &["<extra_id_1>"]] {
            assert!(
                matches!(unigram(&list, &with(twice)), Err(TrainError::SpecialToken { .. })),
                "{twice:?}"
            );
        }
    }

    #[test]
    fn rare_characters_are_cut_out_and_words_are_normalized_first() {
        let list = words(&[("▁ﬁne", 500.0), ("▁Zoë", 90.0), ("▁x日y", 1.0)]);
        let all = unigram(&list, &config(400)).unwrap().tokenizer;
        assert!(all.id("日").is_some() && all.id("ﬁ").is_some());
        let covering = |character_coverage| UnigramConfig { character_coverage, ..config(400) };
        let fewer = unigram(&list, &covering(0.9995)).unwrap().tokenizer;
        assert!(
            fewer.id("日").is_none() && fewer.id("ë").is_some() && fewer.decode(&fewer.encode("日")) == "日"
        );
        let normal = UnigramConfig { normalizer: Some(Normalizer::nfkc()), ..config(400) };
        let normal = unigram(&list, &normal).unwrap().tokenizer;
        assert!(normal.id("ﬁ").is_none() && normal.id("▁fine").is_some());
        assert_eq!(normal.encode(" ﬁne"), normal.encode(" fine"));
        assert_eq!(Tokenizer::from_json(&normal.to_json()).unwrap().encode(" ﬁne"), normal.encode(" fine"));
    }

    #[test]
    fn the_order_and_splitting_of_the_input_do_not_matter() {
        let a = words(&[("▁ab", 3.0), ("▁abc", 5.0), ("▁b", 2.0)]);
        let b = words(&[("▁b", 2.0), ("▁abc", 4.0), ("▁ab", 3.0), ("▁abc", 1.0)]);
        let json = |w: &[(String, f64)]| unigram(w, &config(358)).unwrap().tokenizer.to_json();
        assert_eq!(json(&a), json(&b));
    }

    #[test]
    fn a_vocabulary_beyond_what_exists_shrinks_with_a_warning() {
        let trained = unigram(&words(&[("▁ab", 3.0)]), &config(5000)).unwrap();
        assert!(trained.tokenizer.vocab_size() < 400);
        assert!(trained.warning().unwrap().contains("vocab_size = 5000"));
    }

    #[test]
    fn impossible_input_is_refused() {
        assert_eq!(unigram(&[], &config(500)).err(), Some(TrainError::NoWords));
        let bad = unigram(&words(&[("▁a", f64::NAN)]), &config(500)).err();
        assert!(matches!(bad, Some(TrainError::BadCount { index: 0, .. })), "{bad:?}");
        let small = unigram(&words(&[("▁a", 1.0)]), &config(300)).err();
        assert_eq!(small, Some(TrainError::TooSmall { given: 300, needed: 354 }));
    }

    #[test]
    fn the_name_of_a_byte_token_in_text_is_read_as_text() {
        let tokenizer = unigram(&words(&[("▁ab", 3.0)]), &config(400)).unwrap().tokenizer;
        let text = "see <0x41> and <0xFF>";
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
    }
}
