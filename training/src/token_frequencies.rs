//! How often a model will have to predict each token, by the words that a release has paid for.
//!
//! The counts of the words give the tokens of text. Ends of texts, sentinels and the like follow from the objective: it is given
//! texts of independent words. All of this is post-processing of released counts.

use std::collections::HashMap;

use dp_tokenizer::count::words_of_pair;
use dp_tokenizer::train::unseen_words;
use mechanisms::{PrivacyRng, Purpose, Stream, TestRng, Words};
use network::Example;
use tokenizer::{BLANK, Tokenizer};

use crate::objective::Objective;

/// What a release found, with noisy counts above 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReleasedWords {
    pub words: Vec<(String, f64)>,
    /// Words such as the release does not find.
    unseen: Vec<(String, f64)>,
    /// Words that follow each other, as their places in `words`.
    pub pairs: Vec<(usize, usize, f64)>,
}

impl ReleasedWords {
    /// Tells words from pairs of them. A pair of which a word was not found is left out.
    pub fn of(found: Vec<(String, f64)>, words: Words) -> Self {
        if words != Words::Pairs {
            return Self::new(found, Vec::new());
        }
        let (mut words, mut pairs) = (Vec::new(), Vec::new());
        for (item, count) in found {
            match words_of_pair(&item) {
                Some(pair) => pairs.push((pair, count)),
                None => words.push((item, count)),
            }
        }
        let places: HashMap<&str, usize> = (0..).zip(&words).map(|(at, (word, _))| (&**word, at)).collect();
        let placed = pairs.iter().filter_map(|([first, second], count)| {
            Some((*places.get(&**first)?, *places.get(&**second)?, *count))
        });
        let pairs = placed.collect();
        Self::new(words, pairs)
    }

    /// Words, and pairs of them by their places.
    pub fn new(words: Vec<(String, f64)>, pairs: Vec<(usize, usize, f64)>) -> Self {
        Self { unseen: unseen_words(&words), words, pairs }
    }

    /// Whether they are enough to tell how many words a text has beside them.
    pub fn are_many(&self) -> bool {
        !self.unseen.is_empty()
    }

    /// The tokens of each word, with its count: those of unseen words after those of the others.
    fn tokens(&self, tokenizer: &Tokenizer) -> Vec<(Vec<u32>, f64)> {
        let all = self.words.iter().chain(&self.unseen);
        all.map(|(word, count)| (tokens_of(word, tokenizer), *count)).collect()
    }

    /// Words of a text, about, if `units` texts have these counts. Where each text's counts are `scaled` to an L2 norm of 1, a text of
    /// n distinct items adds √n. A text of n words has n − 1 pairs.
    pub fn words_a_text(&self, units: u64, scaled: bool) -> usize {
        let words = self.words.iter().chain(&self.unseen).map(|word| word.1);
        let counts = words.chain(self.pairs.iter().map(|pair| pair.2));
        let a_text = counts.sum::<f64>() / units.max(1) as f64;
        let items = if scaled { a_text * a_text } else { a_text };
        let words = if self.pairs.is_empty() { items } else { f64::midpoint(items, 1.0) };
        words.clamp(1.0, MOST_WORDS) as usize
    }
}

/// Released words with their counts, and what the counts are.
pub(crate) struct WordCounts<'a> {
    pub words: &'a ReleasedWords,
    /// Words of a text, about.
    pub words_a_text: usize,
}

/// Words drawn to see what an objective predicts beside them.
const DRAWN: usize = 100_000;
const MOST_WORDS: f64 = 1000.0;

impl WordCounts<'_> {
    /// Returns the log-probability of each token as a target of the objective, in nats. A token that no word has is as rare as the
    /// rarest.
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

    /// Hands on the targets of the objective in texts of independent words.
    fn each_target(&self, words: &[(Vec<u32>, f64)], objective: &Objective, mut take: impl FnMut(u32)) {
        let draw = Draw::new(words, &[]);
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

/// Examples of an objective in texts of words that follow each other as in released pairs, without end. All that draws on the same
/// counts draws the same.
pub(crate) struct DrawnExamples<'a> {
    words: Vec<(Vec<u32>, f64)>,
    pairs: &'a [(usize, usize, f64)],
    words_a_text: usize,
    objective: &'a Objective,
    texts: u64,
    /// Examples of the last text that are not handed on.
    left: Vec<Example>,
}

impl<'a> DrawnExamples<'a> {
    pub fn new(counts: &WordCounts<'a>, tokenizer: &Tokenizer, objective: &'a Objective) -> Self {
        let WordCounts { words, words_a_text } = *counts;
        Self {
            words: words.tokens(tokenizer),
            pairs: &words.pairs,
            words_a_text,
            objective,
            texts: 0,
            left: Vec::new(),
        }
    }

    /// The next examples, so many.
    pub fn take(&mut self, count: usize) -> Vec<Example> {
        let draw = Draw::new(&self.words, self.pairs);
        while self.left.len() < count {
            let mut stream = stream_of(self.texts);
            self.texts += 1;
            // Texts of random lengths, so that where a text is tells little of its end.
            let ends = 1.0 / self.words_a_text as f64;
            let length = (stream.uniform().ln() / (-ends).ln_1p()).clamp(0.0, MOST_WORDS) as usize + 1;
            let tokens = draw.text(length, self.objective, &mut stream);
            each_window(&tokens, self.objective, |window| {
                self.left.push(self.objective.example(window, &mut stream));
            });
        }
        self.left.drain(..count).collect()
    }
}

/// What is drawn for a text is public, and the same in every run.
fn stream_of(text: u64) -> Stream {
    TestRng::from_seed(0).stream(Purpose::Data, text, 0)
}

/// Hands on the windows of a text, as training reads them.
fn each_window(tokens: &[u32], objective: &Objective, mut take: impl FnMut(&[u32])) {
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
    all: Shares,
    /// Of each word that begins a pair: the words that follow it.
    next: HashMap<usize, Followers>,
}

/// Sums of counts up to each of some outcomes, relative to all.
struct Shares(Vec<f64>);

/// The words that follow a word, of those that pairs name.
struct Followers {
    /// Share of the word's count.
    known: f64,
    words: Vec<usize>,
    shares: Shares,
}

impl Shares {
    fn new(counts: impl Iterator<Item = f64> + Clone) -> Self {
        let total: f64 = counts.clone().sum();
        let mut sum = 0.0;
        let sums = counts.map(|count| {
            sum += count / total;
            sum
        });
        Self(sums.collect())
    }

    fn draw(&self, stream: &mut Stream) -> usize {
        let drawn = stream.uniform();
        self.0.partition_point(|sum| *sum <= drawn).min(self.0.len().saturating_sub(1))
    }
}

impl<'a> Draw<'a> {
    fn new(words: &'a [(Vec<u32>, f64)], pairs: &[(usize, usize, f64)]) -> Self {
        let mut next: HashMap<usize, Vec<(usize, f64)>> = HashMap::new();
        for (first, second, count) in pairs {
            next.entry(*first).or_default().push((*second, *count));
        }
        let followers = |(first, next): (usize, Vec<(usize, f64)>)| {
            let count: f64 = next.iter().map(|next| next.1).sum();
            let of = words.get(first)?.1;
            let shares = Shares::new(next.iter().map(|next| next.1));
            let words = next.iter().map(|next| next.0).collect();
            Some((first, Followers { known: count / of, words, shares }))
        };
        let next = next.into_iter().filter_map(followers).collect();
        Self { words, all: Shares::new(words.iter().map(|word| word.1)), next }
    }

    /// The tokens of a text of so many words, with its end.
    fn text(&self, words: usize, objective: &Objective, stream: &mut Stream) -> Vec<u32> {
        let spec = objective.window_spec();
        let mut tokens: Vec<u32> = spec.overlaps.then_some(spec.bos).into_iter().collect();
        let mut last = None;
        for _ in 0..words {
            let word = self.word(last, stream);
            tokens.extend(self.words.get(word).map_or(&[][..], |word| &word.0));
            last = Some(word);
        }
        tokens.push(spec.eos);
        tokens
    }

    /// The place of a word after another. What no pair tells is drawn from all words.
    fn word(&self, last: Option<usize>, stream: &mut Stream) -> usize {
        match last.and_then(|last| self.next.get(&last)) {
            Some(next) if stream.uniform() < next.known => next.words[next.shares.draw(stream)],
            _ => self.all.draw(stream),
        }
    }
}

/// The tokens of a word in the middle of a text.
fn tokens_of(word: &str, tokenizer: &Tokenizer) -> Vec<u32> {
    let text = word.replace(BLANK, " ");
    // A character that no word of this kind goes on.
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

    /// A plan of this objective, and a vocabulary with its special tokens in which each of four words is a token.
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
        // What no word has is as rare as the rarest token.
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
        assert_eq!((with_pairs.words_a_text(100, false), with_pairs.words_a_text(100, true)), (5, 41));
    }

    #[test]
    fn pairs_are_told_from_words_and_drawn_texts_follow_them() {
        let found = [
            ("▁no", 90.0),
            ("▁fever", 90.0),
            (".", 90.0),
            ("▁no▁fever", 90.0),
            ("▁fever.", 90.0),
            ("▁no▁pain", 9.0),
        ];
        let found = found.map(|(item, count)| (item.to_owned(), count)).to_vec();
        let words = ReleasedWords::of(found.clone(), Words::Pairs);
        assert_eq!((words.words.len(), &*words.pairs), (3, &[(0, 1, 90.0), (1, 2, 90.0)][..]));
        assert_eq!(ReleasedWords::of(found, Words::AsWritten).words.len(), 6);
        let tokens: Vec<(Vec<u32>, f64)> = (0..3).map(|word| (vec![word], 90.0)).collect();
        let draw = Draw::new(&tokens, &words.pairs);
        let mut stream = stream_of(0);
        // Only what follows the full stop is drawn from all words.
        assert!(
            (0..50).all(|_| draw.word(Some(0), &mut stream) == 1 && draw.word(Some(1), &mut stream) == 2)
        );
        let after: Vec<usize> = (0..300).map(|_| draw.word(Some(2), &mut stream)).collect();
        assert!((0..3).all(|word| after.iter().filter(|drawn| **drawn == word).count() > 50), "{after:?}");
    }
}
