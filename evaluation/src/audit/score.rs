//! Scores canaries by how much more likely each is to the released model than shuffled copies of
//! it. A canary of one token that no text contains is scored by its own likelihood.

use std::path::Path;

use mechanisms::{PrivacyRng, Purpose, TestRng};
use plan::Device;

use crate::membership::Membership;
use network::nn::Kernels;
use training::RunError;
use training::data::Canaries;
use training::infer::{ModelTask, RunModel, with_model};
use training::store::read_canaries;

/// Number of shuffled copies that each canary is compared with.
const COPIES: u64 = 4;

/// A canary's score and whether it was planted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scored {
    /// Log-likelihood ratio of the canary to its shuffled copies, in nats. The copies have the same
    /// tokens, so the probabilities of single tokens cancel. A canary of one token has no copies.
    pub score: f64,
    /// Whether it was planted.
    pub planted: bool,
}

/// Scores the canaries of a finished run with its released model.
pub(super) fn score(run: &Path, device: Device) -> Result<Vec<Scored>, RunError> {
    let canaries = read_canaries(run)?
        .ok_or_else(|| RunError::Refused(format!("{} was run without canaries", run.display())))?;
    with_model(run, device, Score(canaries))
}

struct Score(Canaries);

impl ModelTask for Score {
    type Output = Vec<Scored>;

    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<Vec<Scored>, RunError> {
        let RunModel { model, tokenizer, objective, .. } = run;
        let windows = self.0.windows(tokenizer.vocab_size(), objective.window_spec());
        let mut score = vec![0.0; windows.len()];
        let copies = if self.0.planting.added_tokens() > 0 { 0 } else { COPIES };
        for copy in 0..=copies {
            let read: Vec<Vec<u32>> =
                windows.iter().enumerate().map(|(index, window)| shuffled(window, index, copy)).collect();
            let nll = model
                .nll_each(&objective.public_examples(&read))
                .map_err(|error| RunError::Failed(error.to_string()))?;
            for (score, nll) in score.iter_mut().zip(nll) {
                *score += if copy == 0 { -nll } else { nll / copies as f64 };
            }
        }
        let scored = |(score, planted)| Scored { score, planted };
        Ok(score.into_iter().zip(self.0.planted()).map(scored).collect())
    }
}

/// Returns copy `copy` of the window: copy 0 is the window itself, and the others are permutations
/// of it.
fn shuffled(window: &[u32], index: usize, copy: u64) -> Vec<u32> {
    let mut tokens = window.to_vec();
    if copy > 0 {
        let mut stream = TestRng::from_seed(copy).stream(Purpose::Audit, index as u64, 3);
        for place in (1..tokens.len()).rev() {
            tokens.swap(place, stream.below(place as u64 + 1) as usize);
        }
    }
    tokens
}

/// Returns the number of correct guesses among `guesses`. Half of them are "planted", for the
/// highest scores, and half "not planted", for the lowest.
pub(super) fn correct_guesses(scored: &[Scored], guesses: usize) -> usize {
    let mut order: Vec<&Scored> = scored.iter().collect();
    order.sort_by(|one, other| other.score.total_cmp(&one.score));
    let high = guesses.div_ceil(2);
    let planted = order[..high].iter().filter(|canary| canary.planted).count();
    let left_out = order[order.len() - (guesses - high)..].iter().filter(|canary| !canary.planted).count();
    planted + left_out
}

/// Measures how well the score tells planted canaries from the others.
pub(super) fn membership(scored: &[Scored]) -> Option<Membership> {
    let of = |planted: bool| scored.iter().filter(move |c| c.planted == planted).map(|c| c.score);
    Membership::of(&of(true).collect::<Vec<f64>>(), of(false).collect())
}

/// Returns the mean and the largest exposure of the planted canaries: log₂(n + 1) − log₂(rank among
/// the n left out).
pub fn exposure(scored: &[Scored]) -> (f64, f64) {
    let left_out: Vec<f64> = scored.iter().filter(|c| !c.planted).map(|c| c.score).collect();
    let all = (left_out.len() as f64 + 1.0).log2();
    let of = |canary: &Scored| {
        let rank = 1 + left_out.iter().filter(|score| **score >= canary.score).count();
        all - (rank as f64).log2()
    };
    let exposures: Vec<f64> = scored.iter().filter(|canary| canary.planted).map(of).collect();
    let mean = exposures.iter().sum::<f64>() / exposures.len().max(1) as f64;
    (mean, exposures.into_iter().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(scores: &[(f64, bool)]) -> Vec<Scored> {
        scores.iter().map(|&(score, planted)| Scored { score, planted }).collect()
    }

    #[test]
    fn the_clearest_canaries_are_guessed_from_both_ends() {
        let canaries = scored(&[(5.0, true), (4.0, false), (0.0, true), (-4.0, true), (-5.0, false)]);
        assert_eq!(correct_guesses(&canaries, 2), 2);
        assert_eq!(correct_guesses(&canaries, 4), 2);
        assert_eq!(correct_guesses(&canaries, 5), 3);
    }

    /// Oracle: ranks by hand. Three are left out; the first planted one is above all, the second below one.
    #[test]
    fn exposure_is_the_logarithm_of_the_rank_that_chance_would_beat() {
        let canaries = scored(&[(9.0, true), (2.0, true), (3.0, false), (1.0, false), (0.0, false)]);
        let (mean, largest) = exposure(&canaries);
        assert!((largest - 2.0).abs() < 1e-12 && (mean - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_shuffled_copy_has_the_same_tokens_in_another_order() {
        let window: Vec<u32> = (0..64).collect();
        assert_eq!(shuffled(&window, 3, 0), window);
        let mut copy = shuffled(&window, 3, 1);
        assert_ne!(copy, window);
        copy.sort_unstable();
        assert_eq!(copy, window);
    }
}
