//! How often a model will have to predict each token, by the words that a release has paid for.
//!
//! The counts of the words give the tokens of text. Ends of texts, sentinels and the like follow from the objective: it is given
//! texts of independent words. All of this is post-processing of released counts.

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};
use tokenizer::{BLANK, Tokenizer};

use crate::objective::Objective;

/// Released words with their counts, and what the counts are.
pub(crate) struct WordCounts<'a> {
    pub words: &'a [(String, f64)],
    /// Words of a text, about.
    pub words_a_text: usize,
}

/// Words drawn to see what an objective predicts beside them.
const DRAWN: usize = 100_000;
const MOST_WORDS: f64 = 1000.0;

impl<'a> WordCounts<'a> {
    /// Counts of words in `units` texts. Where each text's counts are `scaled` to an L2 norm of 1, a text of n distinct words adds √n.
    pub fn new(words: &'a [(String, f64)], units: u64, scaled: bool) -> Self {
        let a_text = words.iter().map(|word| word.1).sum::<f64>() / units.max(1) as f64;
        let a_text = if scaled { a_text * a_text } else { a_text };
        Self { words, words_a_text: a_text.clamp(1.0, MOST_WORDS) as usize }
    }

    /// Returns the log-probability of each token as a target of the objective, in nats. A token that no word has is as rare as the
    /// rarest.
    ///
    /// # Shapes
    /// - output: `[vocab_size]`
    pub fn log_probabilities(&self, tokenizer: &Tokenizer, objective: &Objective) -> Vec<f32> {
        let words: Vec<(Vec<u32>, f64)> =
            self.words.iter().map(|(word, count)| (tokens_of(word, tokenizer), *count)).collect();
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
        let spec = objective.window_spec();
        // What is drawn is public, and the same in every run.
        let rng = TestRng::from_seed(0);
        let draw = Draw::new(words);
        for text in 0..(DRAWN / self.words_a_text) as u64 {
            let mut stream = rng.stream(Purpose::Data, text, 0);
            let mut tokens = Vec::new();
            if spec.overlaps {
                tokens.push(spec.eos);
            }
            (0..self.words_a_text).for_each(|_| tokens.extend(draw.word(&mut stream)));
            tokens.push(spec.eos);
            if objective.task().is_some() {
                tokens.into_iter().skip(1).for_each(&mut take);
                continue;
            }
            let mut begin = 0;
            while begin + usize::from(spec.overlaps) < tokens.len() {
                let end = (begin + spec.length + usize::from(spec.overlaps)).min(tokens.len());
                objective.example(&tokens[begin..end], &mut stream).targets.into_iter().for_each(&mut take);
                begin += spec.length;
            }
        }
    }
}

/// Draws words in proportion to their counts.
struct Draw<'a> {
    words: &'a [(Vec<u32>, f64)],
    /// Sums of the counts up to each word, relative to all.
    sums: Vec<f64>,
}

impl<'a> Draw<'a> {
    fn new(words: &'a [(Vec<u32>, f64)]) -> Self {
        let total: f64 = words.iter().map(|word| word.1).sum();
        let mut sum = 0.0;
        let sums = words.iter().map(|word| {
            sum += word.1 / total;
            sum
        });
        Self { words, sums: sums.collect() }
    }

    fn word(&self, stream: &mut Stream) -> &'a [u32] {
        let drawn = stream.uniform();
        let at = self.sums.partition_point(|sum| *sum <= drawn).min(self.words.len().saturating_sub(1));
        self.words.get(at).map_or(&[], |word| &word.0)
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
        let counts = WordCounts::new(&words, units, false);
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
        let words = [("▁a".to_owned(), 500.0)];
        assert_eq!(WordCounts::new(&words, 50, false).words_a_text, 10);
        assert_eq!(WordCounts::new(&words, 100, true).words_a_text, 25);
        assert_eq!(WordCounts::new(&words, 0, true).words_a_text, 1000);
        assert_eq!(WordCounts::new(&words, u64::MAX, true).words_a_text, 1);
    }
}
