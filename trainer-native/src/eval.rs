//! How well the model predicts public text, beside what any unigram model could reach on it.

use std::collections::HashMap;

use crate::RunError;
use crate::engine::{Engine, Example};
use crate::layer::Kernels;

/// Mean negative log-likelihood of the target tokens of public examples, in nats.
///
/// # Errors
/// [`RunError::Failed`] if the engine refuses an example, [`RunError::Refused`] if there is no target.
pub fn mean_nll<B: Kernels>(engine: &Engine<B>, examples: &[Example]) -> Result<f64, RunError> {
    let (nats, targets) = engine.nll(examples).map_err(|error| RunError::Failed(error.to_string()))?;
    if targets > 0 {
        Ok(nats / targets as f64)
    } else {
        Err(RunError::Refused("the evaluation text has no token to predict; give more text".to_owned()))
    }
}

/// Mean negative log-likelihood of the best unigram model of these very examples: the entropy of their target tokens.
///
/// It is fitted on the public evaluation text itself, so it uses no private data, and no unigram model, whatever it
/// is fitted on, does better: a perplexity below its own is below every unigram model's.
#[must_use]
pub fn best_unigram_nll(examples: &[Example]) -> f64 {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for &token in examples.iter().flat_map(|example| &example.targets) {
        *counts.entry(token).or_default() += 1;
    }
    // Summed in a fixed order, so that the figure is the same every time.
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable();
    let total = counts.iter().sum::<u64>() as f64;
    counts.iter().map(|&count| count as f64 / total * (total / count as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the entropy of a uniform distribution over k tokens is ln k.
    #[test]
    fn best_unigram_of_uniform_targets_is_the_logarithm_of_their_number() {
        let windows = [[9, 1, 2, 3, 4], [9, 4, 3, 2, 1]].map(|window| Example::causal(&window));
        assert!((best_unigram_nll(&windows) - 4.0_f64.ln()).abs() < 1e-12);
    }

    /// Gibbs' inequality: any other unigram model of the same tokens does worse.
    #[test]
    fn no_other_unigram_model_does_better() {
        let windows = [Example::causal(&[0, 1, 1, 1, 2, 2, 3])];
        let best = best_unigram_nll(&windows);
        for other in [[0.4, 0.4, 0.2], [0.6, 0.3, 0.1], [0.5, 0.34, 0.16]] {
            let nll = -(3.0 * f64::ln(other[0]) + 2.0 * f64::ln(other[1]) + f64::ln(other[2])) / 6.0;
            assert!(nll > best);
        }
    }
}
