//! Draws texts from released counts of words and of pairs of words, and makes examples of them for an objective.

use std::collections::HashMap;

use mechanisms::Stream;
use network::Example;
use tokenizer::{BLANK, Tokenizer};

use crate::data::{Answer, LabelledRecord};
use crate::objective::{Objective, Task};
use crate::token_frequencies::{MOST_WORDS, Shares, WordCounts, each_window, stream_of};
use crate::words_by_label::{LabelWords, label_words};

/// An endless supply of examples for an objective. Their texts are drawn from released counts: words follow each other
/// as in the released pairs. The same counts always give the same examples.
pub(crate) struct DrawnExamples<'a> {
    texts: Texts<'a>,
    objective: &'a Objective,
    /// Number of texts drawn so far.
    drawn: u64,
    /// Examples of the last text that were not handed on yet.
    left: Vec<Example>,
}

/// The kind of text that is drawn.
enum Texts<'a> {
    /// Windows of running text.
    Running(Chain),
    /// Records of a label and a text, of which the model reads one and predicts the other.
    Labelled(LabelledTexts<'a>),
}

impl<'a> DrawnExamples<'a> {
    /// Draws examples from released counts: labelled records if the objective has a task, else windows.
    pub fn new(
        counts: &'a WordCounts<'_>,
        tokenizer: &'a Tokenizer,
        objective: &'a Objective,
        labels: &[String],
    ) -> Self {
        let texts = match objective.task() {
            Some(task) => Texts::Labelled(LabelledTexts::new(counts, tokenizer, task, labels)),
            None => Texts::Running(Chain::new(counts.words.tokens(tokenizer), counts, None)),
        };
        Self { texts, objective, drawn: 0, left: Vec::new() }
    }

    /// Returns the next `count` examples.
    pub fn take(&mut self, count: usize) -> Vec<Example> {
        let Self { texts, objective, drawn, left } = self;
        while left.len() < count {
            let mut stream = stream_of(*drawn);
            *drawn += 1;
            match texts {
                Texts::Running(chain) => {
                    let tokens = chain.text(objective, &mut stream);
                    each_window(&tokens, objective, |window| {
                        left.push(objective.example(window, &mut stream))
                    });
                }
                Texts::Labelled(texts) => left.push(texts.example(&mut stream)),
            }
        }
        left.drain(..count).collect()
    }
}

/// Draws texts whose words suit a label.
struct LabelledTexts<'a> {
    task: &'a Task,
    tokenizer: &'a Tokenizer,
    /// The spelling of each word.
    words: Vec<String>,
    labels: Shares,
    chains: Vec<(String, Chain)>,
}

impl<'a> LabelledTexts<'a> {
    fn new(counts: &WordCounts<'_>, tokenizer: &'a Tokenizer, task: &'a Task, labels: &[String]) -> Self {
        let words: Vec<String> = counts.words.words.iter().map(|word| word.0.replace(BLANK, " ")).collect();
        let found = label_words(counts.words, labels);
        let shares = Shares::new(found.iter().map(|of| of.share));
        // A text is put together from words before it is encoded. Unseen words are left out, because their spelling is
        // random.
        let counted = || counts.words.words.iter().map(|word| (Vec::new(), word.1)).collect();
        let chain = |of: LabelWords| {
            let chain = Chain::new(counted(), counts, Some(&of.factors));
            (of.label, chain)
        };
        let chains = found.into_iter().map(chain).collect();
        Self { task, tokenizer, words, labels: shares, chains }
    }

    fn example(&self, stream: &mut Stream) -> Example {
        let place = self.labels.draw(stream);
        let Some((label, chain)) = self.chains.get(place) else {
            return Example::default();
        };
        let words = chain.draw(stream);
        let text: String =
            words.into_iter().filter_map(|word| self.words.get(word)).map(String::as_str).collect();
        let (text, answer) = match self.task.predicts_labels() {
            true => (text, Answer::Labels(vec![place as u32])),
            false => (label.clone(), Answer::Text(text)),
        };
        let record = LabelledRecord { unit: 0, text, words: Vec::new(), second: None, answer };
        self.task.example(&record, self.tokenizer)
    }
}

/// A Markov chain of words. Its last state is no word: it stands for the beginning and the end of a text.
struct Chain {
    /// The tokens of each word.
    words: Vec<Vec<u32>>,
    /// The words that follow each word which begins a released pair.
    next: HashMap<usize, Followers>,
    /// What follows a word if no pair says so: each word, with the part of its count that no pair explains.
    rest: Shares,
}

/// The words that follow a word in released pairs.
struct Followers {
    /// Share of the word's count that its pairs explain.
    known: f64,
    words: Vec<usize>,
    shares: Shares,
}

impl Chain {
    /// Least share of a word's count that no pair explains. It makes up for the noise of the counts.
    const LEAST_REST: f64 = 0.05;

    /// Creates the chain of words with their counts. With `factors`, one for each counted word and one for the end of a
    /// text, each word follows another as often as counted, times its factor.
    fn new(words: Vec<(Vec<u32>, f64)>, counts: &WordCounts<'_>, factors: Option<&[f64]>) -> Self {
        let (last, boundary) = (words.len(), counts.words.words.len());
        let texts = words.iter().map(|word| word.1).sum::<f64>() / counts.words_a_text as f64;
        let all: Vec<f64> = words.iter().map(|word| word.1).chain([texts]).collect();
        let place = |of: usize| if of == boundary { last } else { of };
        let factor = |of: usize| match factors {
            Some(factors) if of == last => factors[boundary],
            Some(factors) if of < boundary => factors[of],
            _ => 1.0,
        };
        let (mut next, mut rest): (HashMap<usize, Vec<(usize, f64)>>, _) = (HashMap::new(), all.clone());
        for &(first, second, count) in &counts.words.pairs {
            let (first, second) = (place(first), place(second));
            next.entry(first).or_default().push((second, count));
            rest[second] -= count;
        }
        let rest: Vec<f64> =
            rest.iter().zip(&all).map(|(rest, count)| rest.max(Self::LEAST_REST * count)).collect();
        let suiting: Vec<f64> = (0..).zip(&rest).map(|(word, rest)| rest * factor(word)).collect();
        let rest_factor = suiting.iter().sum::<f64>() / rest.iter().sum::<f64>();
        let followers = |(first, next): (usize, Vec<(usize, f64)>)| {
            let mut known = next.iter().map(|next| next.1).sum::<f64>() / all[first];
            let suiting: Vec<f64> = next.iter().map(|(word, count)| count * factor(*word)).collect();
            if factors.is_some() {
                let of_pairs = suiting.iter().sum::<f64>() / all[first];
                known = of_pairs / (of_pairs + (1.0 - known).max(0.0) * rest_factor);
            }
            let shares = Shares::new(suiting.iter().copied());
            (first, Followers { known, words: next.iter().map(|next| next.0).collect(), shares })
        };
        Self {
            rest: Shares::new(suiting.iter().copied()),
            next: next.into_iter().map(followers).collect(),
            words: words.into_iter().map(|word| word.0).collect(),
        }
    }

    /// Draws a text and returns its tokens, with the end-of-text token.
    fn text(&self, objective: &Objective, stream: &mut Stream) -> Vec<u32> {
        let spec = objective.window_spec();
        let mut tokens: Vec<u32> = spec.overlaps.then_some(spec.bos).into_iter().collect();
        self.draw(stream).into_iter().for_each(|word| tokens.extend(&self.words[word]));
        tokens.push(spec.eos);
        tokens
    }

    /// Draws the words of a text.
    fn draw(&self, stream: &mut Stream) -> Vec<usize> {
        let (boundary, mut words) = (self.words.len(), Vec::new());
        let mut last = boundary;
        for _ in 0..MOST_WORDS as usize {
            let word = self.after(last, stream);
            if word != boundary {
                words.push(word);
            } else if last != boundary {
                break;
            }
            // A text has at least one word.
            last = word;
        }
        words
    }

    /// Draws the word after another.
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
    use crate::token_frequencies::ReleasedWords;

    fn chain(counts: &[f64], pairs: &[(usize, usize, f64)], words_a_text: usize) -> Chain {
        suited(counts, pairs, words_a_text, None)
    }

    fn suited(
        counts: &[f64],
        pairs: &[(usize, usize, f64)],
        words_a_text: usize,
        factors: Option<&[f64]>,
    ) -> Chain {
        let named = |(place, count): (usize, &f64)| (format!("{place}"), *count);
        let words = ReleasedWords::new((0..).zip(counts).map(named).collect(), pairs.to_vec());
        let words_of_chain = (0..).zip(counts).map(|(word, count)| (vec![word], *count)).collect();
        Chain::new(words_of_chain, &WordCounts { words: &words, words_a_text }, factors)
    }

    /// Returns the share of each word among those drawn after another.
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

    /// By hand: 100 texts begin with the first word. They end with the third, or after a word of which no pair tells.
    #[test]
    fn words_follow_their_pairs_and_else_what_no_pair_explains() {
        let pairs = [(3, 0, 100.0), (0, 1, 100.0), (1, 2, 150.0), (2, 3, 60.0)];
        let chain = chain(&[100.0, 200.0, 200.0], &pairs, 5);
        assert_near(&after(&chain, 3), &[1.0, 0.0, 0.0, 0.0]);
        assert_near(&after(&chain, 0), &[0.0, 1.0, 0.0, 0.0]);
        // The counts are 100, 200 and 200, in 100 texts. Pairs leave 5 of the first (the least), 100 and 50 of the
        // others, and 40 ends.
        let rest = [5.0, 100.0, 50.0, 40.0].map(|count| count / 195.0);
        let second = [0, 1, 2, 3].map(|word| 0.25 * rest[word] + if word == 2 { 0.75 } else { 0.0 });
        assert_near(&after(&chain, 1), &second);
        let third = [0, 1, 2, 3].map(|word| 0.7 * rest[word] + if word == 3 { 0.3 } else { 0.0 });
        assert_near(&after(&chain, 2), &third);
    }

    /// By hand: after the first word, the second follows with 0.5 × 3 against 0.5 × (0.4 × 3 + 0.4 × 0.5 + 0.2 × 1) of all others.
    #[test]
    fn what_follows_a_word_is_as_frequent_as_counted_times_its_factor() {
        let chain = suited(&[200.0, 300.0], &[(0, 1, 100.0)], 5, Some(&[0.5, 3.0, 1.0]));
        // Pairs leave 200 of each word, and 100 texts.
        let rest = [200.0 * 0.5, 200.0 * 3.0, 100.0];
        let unknown = [0, 1, 2].map(|word| 0.5 * rest[word] / 500.0);
        let after_first = [0, 1, 2].map(|word| unknown[word] + if word == 1 { 1.5 } else { 0.0 });
        let total: f64 = after_first.iter().sum();
        assert_near(&after(&chain, 0), &after_first.map(|share| share / total));
        assert_near(&after(&chain, 1), &rest.map(|share| share / 800.0));
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
