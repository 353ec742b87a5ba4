//! Constraints on the tokens of a generated text.

use std::collections::BTreeSet;

/// Limits on generated tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constraints {
    /// Largest number of generated tokens. An end may come earlier.
    pub most: usize,
    /// Smallest number of generated tokens. No end occurs before.
    pub least: usize,
    /// Length of the runs of tokens that may not occur twice in a text, its prompt included; 0 for
    /// no such limit.
    pub no_repeat_ngram: usize,
    /// Divides the positive values of tokens that a text already has, its prompt included, and multiplies the others
    /// (Keskar et al. 2019, <https://arxiv.org/abs/1909.05858>); 1 for no such penalty.
    pub repetition_penalty: f32,
    /// The only token that may be the last one of `most`, if any.
    pub last_token: Option<u32>,
    /// The tokens that end a text.
    pub ends: Vec<u32>,
    /// Number of known tokens. Later ids have no token, because a checkpoint's vocabulary may be
    /// longer than its tokenizer's.
    pub known: usize,
}

impl Constraints {
    /// Changes the values of the tokens that may follow `written`, of which `generated` tokens were generated: penalizes
    /// repeated ones, and excludes those that may not follow. Values are logits or log-probabilities.
    pub fn apply(&self, written: &[u32], generated: usize, values: &mut [f32]) {
        let known = self.known.min(values.len());
        values[known..].fill(f32::NEG_INFINITY);
        if self.repetition_penalty != 1.0 {
            for token in BTreeSet::from_iter(written) {
                let value = &mut values[*token as usize];
                *value = match *value < 0.0 {
                    true => *value * self.repetition_penalty,
                    false => *value / self.repetition_penalty,
                };
            }
        }
        if generated < self.least {
            self.ends.iter().for_each(|end| values[*end as usize] = f32::NEG_INFINITY);
        }
        for token in repeating(written, self.no_repeat_ngram) {
            values[token as usize] = f32::NEG_INFINITY;
        }
        let is_last = generated + 1 == self.most;
        if let Some(last) = self.last_token.map(|last| last as usize).filter(|last| is_last && *last < known)
        {
            values.fill(f32::NEG_INFINITY);
            values[last] = 0.0;
        }
    }
}

/// Returns the tokens that would complete a run of `n` tokens which `written` already contains.
fn repeating(written: &[u32], n: usize) -> impl Iterator<Item = u32> {
    let last = written.len().checked_sub(n.saturating_sub(1)).filter(|_| n > 0).map(|from| &written[from..]);
    let completing = move |run: &[u32]| {
        let (&token, before) = run.split_last()?;
        (last == Some(before)).then_some(token)
    };
    written.windows(n.max(1)).filter_map(completing)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Constraints {
        /// At most nine of nine tokens, whatever they are.
        pub fn none() -> Self {
            Self {
                most: 9,
                least: 0,
                no_repeat_ngram: 0,
                repetition_penalty: 1.0,
                last_token: None,
                ends: Vec::new(),
                known: 9,
            }
        }
    }

    /// Oracle: by hand.
    #[test]
    fn a_run_is_not_completed_twice() {
        let banned = |written: &[u32], n| repeating(written, n).collect::<Vec<_>>();
        assert_eq!(banned(&[1, 2, 3, 1, 2], 3), [3]);
        assert_eq!(banned(&[1, 2, 3, 1, 2, 4, 1, 2], 3), [3, 4]);
        assert_eq!(banned(&[5, 6], 1), [5, 6]);
        assert_eq!(banned(&[1, 2, 3, 1, 2], 0), [0; 0]);
        assert_eq!(banned(&[1], 4), [0; 0]);
    }

    /// Oracle: by hand.
    #[test]
    fn each_repeated_token_is_penalized_once() {
        let limits = Constraints { known: 5, repetition_penalty: 2.0, ..Constraints::none() };
        let mut values = [3.0_f32, -3.0, 1.0, 0.0, 9.0];
        limits.apply(&[0, 1, 1, 3], 1, &mut values);
        assert_eq!(values, [1.5, -6.0, 1.0, 0.0, 9.0]);
    }

    #[test]
    fn the_last_token_of_the_longest_text_is_the_stated_one() {
        let limits = Constraints { most: 3, last_token: Some(1), ..Constraints::none() };
        let values = |generated| {
            let mut values = [0.5_f32, -2.0, 4.0];
            limits.apply(&[0], generated, &mut values);
            values
        };
        assert_eq!(values(1), [0.5, -2.0, 4.0]);
        assert_eq!(values(2), [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY]);
    }

    #[test]
    fn the_end_and_unknown_tokens_are_excluded_while_they_may_not_come() {
        let limits = Constraints { least: 2, ends: vec![1], known: 3, ..Constraints::none() };
        let finite = |generated| {
            let mut values = [0.5_f32; 4];
            limits.apply(&[0], generated, &mut values);
            values.map(f32::is_finite)
        };
        assert_eq!(finite(1), [true, false, true, false]);
        assert_eq!(finite(2), [true, true, true, false]);
    }
}
