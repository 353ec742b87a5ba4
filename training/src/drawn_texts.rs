//! Texts drawn from released words and pairs of them, as examples of an objective.

use std::collections::HashMap;

use mechanisms::Stream;
use network::Example;
use tokenizer::Tokenizer;

use crate::objective::Objective;
use crate::token_frequencies::{MOST_WORDS, Shares, WordCounts, each_window, stream_of};

/// Examples of an objective in texts of words that follow each other as in released pairs, without end. All that draws on the same
/// counts draws the same.
pub(crate) struct DrawnExamples<'a> {
    chain: Chain,
    objective: &'a Objective,
    texts: u64,
    /// Examples of the last text that are not handed on.
    left: Vec<Example>,
}

impl<'a> DrawnExamples<'a> {
    pub fn new(counts: &WordCounts<'_>, tokenizer: &Tokenizer, objective: &'a Objective) -> Self {
        let words = counts.words.tokens(tokenizer);
        let chain = Chain::new(words, &counts.words.pairs, counts.words.words.len(), counts.words_a_text);
        Self { chain, objective, texts: 0, left: Vec::new() }
    }

    /// The next examples, so many.
    pub fn take(&mut self, count: usize) -> Vec<Example> {
        while self.left.len() < count {
            let mut stream = stream_of(self.texts);
            self.texts += 1;
            let tokens = self.chain.text(self.objective, &mut stream);
            each_window(&tokens, self.objective, |window| {
                self.left.push(self.objective.example(window, &mut stream));
            });
        }
        self.left.drain(..count).collect()
    }
}

/// A Markov chain of words. The boundary of texts, their beginning and end, is a word of it, the last one.
struct Chain {
    /// The tokens of each word.
    words: Vec<Vec<u32>>,
    /// Of each word that begins a pair: the words that follow it.
    next: HashMap<usize, Followers>,
    /// What follows a word where no pair tells: words by the counts that no pair explains.
    rest: Shares,
}

/// The words that follow a word, of those that pairs name.
struct Followers {
    /// Share of the word's count.
    known: f64,
    words: Vec<usize>,
    shares: Shares,
}

impl Chain {
    /// Least share of a word's count that no pair explains: counts are noisy.
    const LEAST_REST: f64 = 0.05;

    /// A chain of words with their counts. `boundary` is the place of the boundary in `pairs`.
    fn new(
        words: Vec<(Vec<u32>, f64)>,
        pairs: &[(usize, usize, f64)],
        boundary: usize,
        words_a_text: usize,
    ) -> Self {
        let last = words.len();
        let texts = words.iter().map(|word| word.1).sum::<f64>() / words_a_text as f64;
        let counts: Vec<f64> = words.iter().map(|word| word.1).chain([texts]).collect();
        let place = |of: usize| if of == boundary { last } else { of };
        let (mut next, mut rest): (HashMap<usize, Vec<(usize, f64)>>, _) = (HashMap::new(), counts.clone());
        for &(first, second, count) in pairs {
            let (first, second) = (place(first), place(second));
            next.entry(first).or_default().push((second, count));
            rest[second] -= count;
        }
        let rest = rest.iter().zip(&counts).map(|(rest, count)| rest.max(Self::LEAST_REST * count));
        let followers = |(first, next): (usize, Vec<(usize, f64)>)| {
            let known = next.iter().map(|next| next.1).sum::<f64>() / counts[first];
            let shares = Shares::new(next.iter().map(|next| next.1));
            (first, Followers { known, words: next.iter().map(|next| next.0).collect(), shares })
        };
        Self {
            rest: Shares::new(rest),
            next: next.into_iter().map(followers).collect(),
            words: words.into_iter().map(|word| word.0).collect(),
        }
    }

    /// The tokens of a text, with its end.
    fn text(&self, objective: &Objective, stream: &mut Stream) -> Vec<u32> {
        let spec = objective.window_spec();
        let mut tokens: Vec<u32> = spec.overlaps.then_some(spec.bos).into_iter().collect();
        let mut last = self.words.len();
        for _ in 0..MOST_WORDS as usize {
            let word = self.after(last, stream);
            match self.words.get(word) {
                Some(word) => tokens.extend(word),
                // No text is empty.
                None if last == self.words.len() => {}
                None => break,
            }
            last = word;
        }
        tokens.push(spec.eos);
        tokens
    }

    /// The word after another.
    fn after(&self, word: usize, stream: &mut Stream) -> usize {
        match self.next.get(&word) {
            Some(next) if stream.uniform() < next.known => next.words[next.shares.draw(stream)],
            _ => self.rest.draw(stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(counts: &[f64], pairs: &[(usize, usize, f64)], words_a_text: usize) -> Chain {
        let words = (0..).zip(counts).map(|(word, count)| (vec![word], *count)).collect();
        Chain::new(words, pairs, counts.len(), words_a_text)
    }

    /// Words drawn after another, with their shares.
    fn after(chain: &Chain, word: usize) -> Vec<f64> {
        const DRAWS: usize = 20_000;
        let mut stream = stream_of(0);
        let mut shares = vec![0.0; chain.words.len() + 1];
        (0..DRAWS).for_each(|_| shares[chain.after(word, &mut stream)] += 1.0 / DRAWS as f64);
        shares
    }

    fn assert_near(shares: &[f64], expected: &[f64]) {
        // Five standard deviations of 20,000 draws.
        assert!(shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.018), "{shares:?} {expected:?}");
    }

    /// By hand: 100 texts begin with the first word, and end with the third or where no pair tells.
    #[test]
    fn words_follow_their_pairs_and_else_what_no_pair_explains() {
        let pairs = [(3, 0, 100.0), (0, 1, 100.0), (1, 2, 150.0), (2, 3, 60.0)];
        let chain = chain(&[100.0, 200.0, 200.0], &pairs, 5);
        assert_near(&after(&chain, 3), &[1.0, 0.0, 0.0, 0.0]);
        assert_near(&after(&chain, 0), &[0.0, 1.0, 0.0, 0.0]);
        // Of 100, 200 and 200 counts and 100 texts, pairs leave 5 (the least), 100, 50 and 40.
        let rest = [5.0, 100.0, 50.0, 40.0].map(|count| count / 195.0);
        let second = [0, 1, 2, 3].map(|word| 0.25 * rest[word] + if word == 2 { 0.75 } else { 0.0 });
        assert_near(&after(&chain, 1), &second);
        let third = [0, 1, 2, 3].map(|word| 0.7 * rest[word] + if word == 3 { 0.3 } else { 0.0 });
        assert_near(&after(&chain, 2), &third);
    }

    /// By hand: 1,000 words in 200 texts end after one of 6 words or ends.
    #[test]
    fn without_pairs_words_have_their_counts_and_texts_their_length() {
        let chain = chain(&[400.0, 600.0], &[], 5);
        for word in 0..3 {
            assert_near(&after(&chain, word), &[400.0 / 1200.0, 600.0 / 1200.0, 200.0 / 1200.0]);
        }
    }
}
