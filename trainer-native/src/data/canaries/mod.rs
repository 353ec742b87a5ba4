//! Canaries of an audit: random windows, each a privacy unit of its own, planted by a fair coin.

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde::{Deserialize, Serialize};

use super::WindowSpec;

/// The canaries of a run. They are public, but whoever guesses the coins must not have read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Canaries {
    /// Number of canaries.
    pub count: u32,
    /// Seed of tokens and coins.
    pub seed: u64,
}

impl Canaries {
    /// One window of uniformly drawn tokens for each canary, of the length of the run's longest windows.
    pub fn windows(&self, vocab_size: usize, spec: WindowSpec) -> Vec<Vec<u32>> {
        let rng = TestRng::from_seed(self.seed);
        let length = spec.length + usize::from(spec.overlaps);
        let window = |index| {
            let mut tokens = rng.stream(Purpose::Audit, u64::from(index), 1);
            (0..length).map(|_| tokens.below(vocab_size as u64) as u32).collect()
        };
        (0..self.count).map(window).collect()
    }

    /// Whether each canary was planted: a fair coin each.
    pub fn planted(&self) -> Vec<bool> {
        let mut coins = TestRng::from_seed(self.seed).stream(Purpose::Audit, 0, 2);
        (0..self.count).map(|_| coins.below(2) == 1).collect()
    }

    /// The windows that were planted.
    pub fn planted_windows(&self, vocab_size: usize, spec: WindowSpec) -> Vec<Vec<u32>> {
        let windows = self.windows(vocab_size, spec).into_iter().zip(self.planted());
        windows.filter_map(|(window, planted)| planted.then_some(window)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Binomial(2000, ½) is outside 1000 ± 110 with a probability below 1e-6.
    #[test]
    fn about_half_are_planted_and_each_is_another_window() {
        let canaries = Canaries { count: 2000, seed: 9 };
        let planted = canaries.planted().into_iter().filter(|planted| *planted).count();
        assert!(planted.abs_diff(1000) < 110, "{planted}");
        let spec = WindowSpec { eos: 0, length: 8, overlaps: true, marks_pieces: false };
        let mut windows = canaries.windows(50, spec);
        assert!(windows.iter().all(|window| window.len() == 9 && window.iter().all(|&token| token < 50)));
        assert_eq!(canaries.planted_windows(50, spec).len(), planted);
        windows.sort();
        windows.dedup();
        assert_eq!(windows.len(), 2000);
    }
}
