//! Constraints on the tokens of a generated text.

/// Limits on generated tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraints {
    /// Largest number of generated tokens. An end may come earlier.
    pub most: usize,
    /// Smallest number of generated tokens. No end occurs before.
    pub least: usize,
    /// Length of the runs of tokens that may not occur twice in a text, its prompt included; 0 for
    /// no such limit.
    pub no_repeat_ngram: usize,
    /// The tokens that end a text.
    pub ends: Vec<u32>,
    /// Number of known tokens. Later ids have no token, because a checkpoint's vocabulary may be
    /// longer than its tokenizer's.
    pub known: usize,
}

impl Constraints {
    /// Excludes tokens that may not follow `written`, of which `generated` tokens were generated. Values are logits or
    /// log-probabilities.
    pub fn exclude(&self, written: &[u32], generated: usize, values: &mut [f32]) {
        let known = self.known.min(values.len());
        values[known..].fill(f32::NEG_INFINITY);
        if generated < self.least {
            self.ends.iter().for_each(|end| values[*end as usize] = f32::NEG_INFINITY);
        }
        for token in repeating(written, self.no_repeat_ngram) {
            values[token as usize] = f32::NEG_INFINITY;
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

    #[test]
    fn the_end_and_unknown_tokens_are_excluded_while_they_may_not_come() {
        let limits = Constraints { most: 9, least: 2, no_repeat_ngram: 0, ends: vec![1], known: 3 };
        let finite = |generated| {
            let mut values = [0.5_f32; 4];
            limits.exclude(&[0], generated, &mut values);
            values.map(f32::is_finite)
        };
        assert_eq!(finite(1), [true, false, true, false]);
        assert_eq!(finite(2), [true, true, true, false]);
    }
}
