//! Measures how close generated tokens come to the tokens that followed in the text.

use serde::{Deserialize, Serialize};
use strsim::generic_levenshtein;

/// Figures of the continuations of one split.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Number of continuations.
    pub examples: usize,
    /// Share of continuations generated exactly (EM).
    pub exact_match: f64,
    /// Share of tokens generated at their own place, averaged over continuations (TA).
    pub token_accuracy: f64,
    /// Median edit distance of the generated tokens to the target: insertions, deletions and
    /// replacements (MED).
    pub median_edit_distance: f64,
}

impl Figures {
    /// Computes the figures of generated tokens and their targets, none of which is empty; [`None`] without any.
    pub fn of(generated: &[Vec<u32>], targets: &[Vec<u32>]) -> Option<Self> {
        let pairs = || generated.iter().zip(targets);
        let mut distances: Vec<usize> =
            pairs().map(|(ours, target)| generic_levenshtein(ours, target)).collect();
        distances.sort_unstable();
        let examples = distances.len();
        let middle = |at: usize| distances.get(at).map(|&distance| distance as f64);
        let median = (middle(examples.checked_sub(1)? / 2)? + middle(examples / 2)?) / 2.0;
        let exact = distances.iter().filter(|&&distance| distance == 0).count();
        let accuracy = |(ours, target): (&Vec<u32>, &Vec<u32>)| {
            let hits = ours.iter().zip(target).filter(|(token, wanted)| token == wanted).count();
            hits as f64 / target.len() as f64
        };
        Some(Self {
            examples,
            exact_match: exact as f64 / examples as f64,
            token_accuracy: pairs().map(accuracy).sum::<f64>() / examples as f64,
            median_edit_distance: median,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: by hand. A continuation that is cut off has no token at the remaining places.
    #[test]
    fn figures_are_shares_and_a_median() {
        let targets = [vec![1, 2, 3, 4], vec![1, 2, 3, 4], vec![5, 6], vec![7, 8]];
        let generated = [vec![1, 2, 3, 4], vec![1, 2], vec![6, 5], vec![7, 8]];
        let figures = Figures::of(&generated, &targets).unwrap();
        assert_eq!((figures.examples, figures.exact_match), (4, 0.5));
        assert_eq!((figures.token_accuracy, figures.median_edit_distance), (0.625, 1.0));
        assert_eq!(Figures::of(&generated[1..3], &targets[1..3]).unwrap().median_edit_distance, 2.0);
        assert_eq!(Figures::of(&[], &[]), None);
    }
}
