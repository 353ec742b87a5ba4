//! Estimates from released words how often a model will have to predict each token.
//!
//! The counts of the words give the tokens of text. Ends of texts, sentinels and the like depend on the objective, so
//! they are counted in its examples of random texts. All of this is post-processing of released counts.

use std::collections::HashMap;

use dp_tokenizer::count::{is_boundary, word_of_label, words_of_pair};
use dp_tokenizer::train::unseen_words;
use mechanisms::{PrivacyRng, Purpose, Stream, TestRng, Words};
use tokenizer::{BLANK, Tokenizer};

use crate::objective::Objective;

/// The words that a release found, with their noisy counts, which are above 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReleasedWords {
    pub words: Vec<(String, f64)>,
    /// Estimated words, of the kind that the release does not find.
    unseen: Vec<(String, f64)>,
    /// Pairs of words that follow each other, as places in `words`, with their counts. The place after the last word
    /// stands for the beginning and the end of a text.
    pub pairs: Vec<(usize, usize, f64)>,
    /// Words with a label: the label, the word's place in `words`, and how often texts with this label contain the
    /// word. The place after the last word counts the texts themselves.
    pub by_label: Vec<(String, usize, f64)>,
}

impl ReleasedWords {
    /// Sorts what a release found into words, pairs of words and words with a label. Items that contain a word which
    /// was not found are left out.
    pub fn of(found: Vec<(String, f64)>, kind: Words) -> Self {
        if !kind.has_pairs() {
            return Self::new(found, Vec::new());
        }
        let (mut words, mut pairs, mut by_label) = (Vec::new(), Vec::new(), Vec::new());
        for (item, count) in found {
            if let Some((label, word)) = word_of_label(&item).filter(|_| kind == Words::PairsByLabel) {
                by_label.push((label.replace(BLANK, " "), word.to_owned(), count));
            } else if let Some(pair) = words_of_pair(&item) {
                pairs.push((pair, count));
            } else {
                words.push((item, count));
            }
        }
        let places: HashMap<&str, usize> = (0..).zip(&words).map(|(at, (word, _))| (&**word, at)).collect();
        let place =
            |word: &str| if is_boundary(word) { Some(words.len()) } else { places.get(word).copied() };
        let placed =
            pairs.iter().filter_map(|([first, second], count)| Some((place(first)?, place(second)?, *count)));
        let pairs = placed.collect();
        let by_label = by_label.into_iter();
        let by_label =
            by_label.filter_map(|(label, word, count)| Some((label, place(&word)?, count))).collect();
        Self { by_label, ..Self::new(words, pairs) }
    }

    /// Creates words with their counts, and pairs of words by their places.
    pub fn new(words: Vec<(String, f64)>, pairs: Vec<(usize, usize, f64)>) -> Self {
        Self { unseen: unseen_words(&words), words, pairs, by_label: Vec::new() }
    }

    /// Returns the words with their counts, then the unseen words with theirs.
    fn all(&self) -> impl Iterator<Item = &(String, f64)> {
        self.words.iter().chain(&self.unseen)
    }

    /// Returns whether the words are enough to estimate unseen words.
    pub fn are_many(&self) -> bool {
        !self.unseen.is_empty()
    }

    /// Returns the tokens of each word of [`Self::all`], with its count.
    pub fn tokens(&self, tokenizer: &Tokenizer) -> Vec<(Vec<u32>, f64)> {
        self.all().map(|(word, count)| (tokens_of(word, tokenizer), *count)).collect()
    }

    /// Estimates the number of words of a text, if `units` texts have these counts. If each text's counts were `scaled`
    /// to an L2 norm of 1, a text of n distinct items added √n. The share of words among a text's items is taken to be
    /// that among all counts.
    pub fn words_a_text(&self, units: u64, scaled: bool) -> usize {
        let words: f64 = self.all().map(|word| word.1).sum();
        let pairs: f64 = self.pairs.iter().map(|pair| pair.2).sum();
        let all = words + pairs + self.by_label.iter().map(|word| word.2).sum::<f64>();
        let a_text = all / units.max(1) as f64;
        let items = if scaled { a_text * a_text } else { a_text };
        let share = if all > 0.0 { words / all } else { 1.0 };
        (items * share).clamp(1.0, MOST_WORDS) as usize
    }
}

/// Released words with their counts, and the length of the texts that they come from.
pub(crate) struct WordCounts<'a> {
    pub words: &'a ReleasedWords,
    /// Approximate number of words of a text.
    pub words_a_text: usize,
}

/// Number of words that are drawn to see which other tokens an objective predicts.
const DRAWN: usize = 100_000;
pub(crate) const MOST_WORDS: f64 = 1000.0;

impl WordCounts<'_> {
    /// Returns the log-probability of each token as a target of the objective, in nats. A token that is in no word is
    /// as rare as the rarest token.
    ///
    /// # Shapes
    /// - output: `[vocab_size]`
    pub fn log_probabilities(&self, tokenizer: &Tokenizer, objective: &Objective) -> Vec<f32> {
        let words = self.words.tokens(tokenizer);
        let mut counts = vec![0.0; tokenizer.vocab_size()];
        for (tokens, count) in &words {
            tokens.iter().for_each(|token| counts[*token as usize] += count);
        }
        let (mut targets, mut special) = (0_u64, vec![0_u64; counts.len()]);
        self.each_target(&words, objective, |target| {
            targets += 1;
            special[target as usize] += u64::from(counts[target as usize] == 0.0);
        });
        let total: f64 = counts.iter().sum();
        let share = |count: u64| count as f64 / targets.max(1) as f64;
        let of_words = 1.0 - share(special.iter().sum());
        let shares =
            || counts.iter().zip(&special).map(|(count, special)| count / total * of_words + share(*special));
        let rarest = shares().filter(|share| *share > 0.0).fold(1.0, f64::min);
        shares().map(|share| share.max(rarest).ln() as f32).collect()
    }

    /// Passes the targets of the objective in texts of independent words to `take`.
    fn each_target(&self, words: &[(Vec<u32>, f64)], objective: &Objective, mut take: impl FnMut(u32)) {
        let draw = Draw::new(words);
        for text in 0..(DRAWN / self.words_a_text) as u64 {
            let mut stream = stream_of(text);
            let tokens = draw.text(self.words_a_text, objective, &mut stream);
            if objective.task().is_some() {
                tokens.into_iter().skip(1).for_each(&mut take);
                continue;
            }
            each_window(&tokens, objective, |window| {
                objective.example(window, &mut stream).targets.into_iter().for_each(&mut take);
            });
        }
    }
}

/// Returns the random stream of a text. It is public, and the same in every run.
pub(crate) fn stream_of(text: u64) -> Stream {
    TestRng::from_seed(0).stream(Purpose::Data, text, 0)
}

/// Passes the windows of a text to `take`, as training reads them.
pub(crate) fn each_window(tokens: &[u32], objective: &Objective, mut take: impl FnMut(&[u32])) {
    let spec = objective.window_spec();
    let mut begin = 0;
    while begin + usize::from(spec.overlaps) < tokens.len() {
        let end = (begin + spec.length + usize::from(spec.overlaps)).min(tokens.len());
        take(&tokens[begin..end]);
        begin += spec.length;
    }
}

/// Draws words in proportion to their counts.
struct Draw<'a> {
    words: &'a [(Vec<u32>, f64)],
    shares: Shares,
}

/// Cumulative shares of some outcomes, in proportion to their counts.
pub(crate) struct Shares(Vec<f64>);

impl Shares {
    pub fn new(counts: impl Iterator<Item = f64> + Clone) -> Self {
        let total: f64 = counts.clone().sum();
        let mut sum = 0.0;
        let sums = counts.map(|count| {
            sum += count / total;
            sum
        });
        Self(sums.collect())
    }

    pub fn draw(&self, stream: &mut Stream) -> usize {
        let drawn = stream.uniform();
        self.0.partition_point(|sum| *sum <= drawn).min(self.0.len().saturating_sub(1))
    }
}

impl<'a> Draw<'a> {
    fn new(words: &'a [(Vec<u32>, f64)]) -> Self {
        Self { words, shares: Shares::new(words.iter().map(|word| word.1)) }
    }

    /// Draws a text of so many words and returns its tokens, with the end-of-text token.
    fn text(&self, words: usize, objective: &Objective, stream: &mut Stream) -> Vec<u32> {
        let spec = objective.window_spec();
        let mut tokens: Vec<u32> = spec.overlaps.then_some(spec.bos).into_iter().collect();
        for _ in 0..words {
            let word = self.shares.draw(stream);
            tokens.extend(self.words.get(word).map_or(&[][..], |word| &word.0));
        }
        tokens.push(spec.eos);
        tokens
    }
}

/// Returns the tokens of a word in the middle of a text.
fn tokens_of(word: &str, tokenizer: &Tokenizer) -> Vec<u32> {
    let text = word.replace(BLANK, " ");
    // A character that words of this kind never follow without a break.
    let before = if text.starts_with(char::is_alphanumeric) { "." } else { "a" };
    let (alone, both) = (tokenizer.encode(before), tokenizer.encode(&format!("{before}{text}")));
    match both.strip_prefix(alone.as_slice()) {
        Some(tokens) => tokens.to_vec(),
        None => tokenizer.encode(&text),
    }
}

#[cfg(test)]
mod tests {
    use dp_tokenizer::train::{UnigramConfig, unigram};
    use plan::{Plan, PlanFile};
    use serde_json::{Value, json};

    use super::*;
    use crate::objective::special_tokens;

    /// Returns a plan of this objective, and a vocabulary with its special tokens in which each of four words is a
    /// token.
    fn setting(objective: &str, family: &str) -> (Objective, Tokenizer, Vec<(String, f64)>) {
        let text = include_str!("../../plan/presets/quickstart.json");
        let mut plan: Value = serde_json::from_str(text).unwrap();
        plan["training"]["objective"] = json!(objective);
        plan["model"]["family"] = json!(family);
        let plan = PlanFile::parse(&plan.to_string()).and_then(Plan::try_from).unwrap();
        let words: Vec<(String, f64)> = [("▁aaa", 400.0), ("▁bbb", 300.0), ("▁ccc", 200.0), ("▁ddd", 100.0)]
            .map(|(word, count)| (word.to_owned(), count))
            .to_vec();
        let trained =
            unigram(&words, &UnigramConfig { vocab_size: 400, ..UnigramConfig::default() }).unwrap();
        let special = special_tokens(plan.training().objective, plan.model().context as usize);
        let tokenizer = trained.tokenizer.with_special_tokens(&special);
        (Objective::new(&plan, &tokenizer, None).unwrap(), tokenizer, words)
    }

    fn shares(objective: &str, family: &str, units: u64) -> (Tokenizer, Vec<f64>) {
        let (objective, tokenizer, words) = setting(objective, family);
        let words = ReleasedWords::new(words, Vec::new());
        let counts = WordCounts { words_a_text: words.words_a_text(units, false), words: &words };
        let shares = counts.log_probabilities(&tokenizer, &objective);
        assert_eq!(shares.len(), tokenizer.vocab_size());
        (tokenizer, shares.into_iter().map(|share| f64::from(share).exp()).collect())
    }

    /// By hand: 1,000 words in 100 texts of ten words and an end.
    #[test]
    fn words_have_their_shares_beside_the_ends_of_texts() {
        let (tokenizer, shares) = shares("causal_lm", "gpt2", 100);
        let share = |text: &str| match tokenizer.encode(&format!(" {text}"))[..] {
            [token] => shares[token as usize],
            ref others => panic!("{text}: {others:?}"),
        };
        for (word, words) in [("aaa", 4.0), ("bbb", 3.0), ("ccc", 2.0), ("ddd", 1.0)] {
            assert!((share(word) - words / 11.0).abs() < 0.02, "{word}: {}", share(word));
        }
        let end = shares[tokenizer.eos_id().unwrap() as usize];
        assert!((end - 1.0 / 11.0).abs() < 0.01, "{end}");
        // A token that is in no word is as rare as the rarest token.
        let rarest = shares.iter().copied().fold(1.0, f64::min);
        assert!(rarest > 0.05 && shares.iter().filter(|share| **share == rarest).count() > 200);
    }

    #[test]
    fn sentinels_are_predicted_as_often_as_the_objective_asks() {
        let (tokenizer, spans) = shares("span_corruption", "t5", 10);
        let first = spans[tokenizer.id("<extra_id_0>").unwrap() as usize];
        assert!(first > 0.02 && spans[tokenizer.eos_id().unwrap() as usize] > 0.02, "{first}");
        let (tokenizer, masked) = shares("masked_lm", "bert", 10);
        let end = masked[tokenizer.eos_id().unwrap() as usize];
        assert_eq!(end, masked.iter().copied().fold(1.0, f64::min), "no masked token is an end of a text");
    }

    /// A text of n distinct words whose counts are scaled to norm 1 adds √n.
    #[test]
    fn the_number_of_words_of_a_text_follows_from_the_counts() {
        let words = ReleasedWords::new(vec![("▁a".to_owned(), 500.0)], Vec::new());
        assert_eq!(words.words_a_text(50, false), 10);
        assert_eq!(words.words_a_text(100, true), 25);
        assert_eq!(words.words_a_text(0, true), 1000);
        assert_eq!(words.words_a_text(u64::MAX, true), 1);
        let with_pairs = ReleasedWords { pairs: vec![(0, 0, 400.0)], ..words };
        assert_eq!((with_pairs.words_a_text(100, false), with_pairs.words_a_text(100, true)), (5, 45));
    }

    #[test]
    fn pairs_are_told_from_words_and_boundaries_of_texts() {
        let found = [
            ("▁no", 90.0),
            ("▁fever", 90.0),
            (".", 90.0),
            ("▁no▁fever", 90.0),
            ("▁fever.", 90.0),
            ("▁no▁pain", 9.0),
            ("␃▁no", 80.0),
            (".␃", 70.0),
        ];
        let found = found.map(|(item, count)| (item.to_owned(), count)).to_vec();
        let words = ReleasedWords::of(found.clone(), Words::Pairs);
        let pairs = [(0, 1, 90.0), (1, 2, 90.0), (3, 0, 80.0), (2, 3, 70.0)];
        assert_eq!((words.words.len(), &*words.pairs), (3, &pairs[..]));
        assert_eq!(ReleasedWords::of(found, Words::AsWritten).words.len(), 8);
    }

    #[test]
    fn words_with_a_label_are_told_from_words_and_pairs() {
        let found = [
            ("▁glad", 90.0),
            ("▁glad.", 9.0),
            ("very▁good␟▁glad", 80.0),
            ("joy␟▁rare", 9.0),
            ("joy␟␃", 70.0),
        ];
        let found = found.map(|(item, count)| (item.to_owned(), count)).to_vec();
        let words = ReleasedWords::of(found.clone(), Words::PairsByLabel);
        assert_eq!((words.words.len(), words.pairs.len()), (1, 0));
        assert_eq!(words.by_label, [("very good".to_owned(), 0, 80.0), ("joy".to_owned(), 1, 70.0)]);
        assert!(ReleasedWords::of(found, Words::Pairs).by_label.is_empty());
    }
}
