//! Canaries: which there are, and which of them were planted.

use std::path::Path;

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde::{Deserialize, Serialize};

use crate::data::Cut;
use crate::{RunError, durable};

/// Name of the canaries' file in a run folder.
const FILE_NAME: &str = "canaries.json";

/// The canaries of a run. They are public; only who guesses must not have read the coins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canaries {
    /// How many.
    pub count: u32,
    /// What tokens and coins follow from.
    pub seed: u64,
}

impl Canaries {
    /// The canaries of a run folder that `wanted` so many: those it began with, or new ones where `fresh` says that no
    /// step was taken yet.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the run was begun with others or with none.
    pub fn obtain(
        folder: &Path,
        wanted: Option<u32>,
        fresh: bool,
        rng: &impl PrivacyRng,
    ) -> Result<Option<Self>, RunError> {
        let refused = |begun: String| {
            Err(RunError::Refused(format!(
                "{} was begun {begun}; give the same again, or choose another folder with --out",
                folder.display()
            )))
        };
        match (Self::read(folder)?, wanted) {
            (None, None) => Ok(None),
            (None, Some(_)) if !fresh => refused("without canaries".to_owned()),
            (None, Some(count)) => {
                // 53 bits, so that every JSON reader keeps it.
                let seed = rng.stream(Purpose::Audit, 0, 0).below(1 << 53);
                let canaries = Self { count, seed };
                let text =
                    serde_json::to_string(&canaries).map_err(|error| RunError::Failed(error.to_string()))?;
                durable::write_atomic(&folder.join(FILE_NAME), text.as_bytes())?;
                Ok(Some(canaries))
            }
            (Some(found), wanted) if wanted == Some(found.count) => Ok(Some(found)),
            (Some(found), _) => refused(format!("as an audit with {} canaries", found.count)),
        }
    }

    /// The canaries that a run folder holds.
    ///
    /// # Errors
    /// [`RunError::Refused`] if their file is not one.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        let path = folder.join(FILE_NAME);
        if !path.exists() {
            return Ok(None);
        }
        serde_json::from_slice(&durable::read(&path)?)
            .map(Some)
            .map_err(|error| RunError::Refused(format!("{}: {error}", path.display())))
    }

    /// One window of uniformly drawn tokens for each canary, as long as a window of the run may be.
    #[must_use]
    pub fn windows(&self, vocab_size: usize, cut: Cut) -> Vec<Vec<u32>> {
        let rng = TestRng::from_seed(self.seed);
        let length = cut.length + usize::from(cut.carries_over);
        let window = |index| {
            let mut tokens = rng.stream(Purpose::Audit, u64::from(index), 1);
            (0..length).map(|_| tokens.below(vocab_size as u64) as u32).collect()
        };
        (0..self.count).map(window).collect()
    }

    /// Whether each canary was planted: a fair coin each.
    #[must_use]
    pub fn planted(&self) -> Vec<bool> {
        let mut coins = TestRng::from_seed(self.seed).stream(Purpose::Audit, 0, 2);
        (0..self.count).map(|_| coins.below(2) == 1).collect()
    }

    /// The windows that were planted.
    #[must_use]
    pub fn planted_windows(&self, vocab_size: usize, cut: Cut) -> Vec<Vec<u32>> {
        let windows = self.windows(vocab_size, cut).into_iter().zip(self.planted());
        windows.filter_map(|(window, planted)| planted.then_some(window)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_canaries_and_takes_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let (path, rng) = (folder.path(), TestRng::from_seed(1));
        assert_eq!(Canaries::obtain(path, None, true, &rng).unwrap(), None);
        assert!(Canaries::obtain(path, Some(10), false, &rng).is_err(), "begun without");
        let first = Canaries::obtain(path, Some(10), true, &rng).unwrap();
        let again = Canaries::obtain(path, Some(10), false, &TestRng::from_seed(2)).unwrap();
        assert!(first.is_some() && first == again, "a resumed run plants the same canaries");
        for other in [None, Some(11)] {
            assert!(Canaries::obtain(path, other, false, &rng).is_err());
        }
    }

    /// Binomial(2000, ½) is outside 1000 ± 110 with a probability below 1e-6.
    #[test]
    fn about_half_are_planted_and_each_is_another_window() {
        let canaries = Canaries { count: 2000, seed: 9 };
        let planted = canaries.planted().into_iter().filter(|planted| *planted).count();
        assert!(planted.abs_diff(1000) < 110, "{planted}");
        let cut = Cut { eos: 0, length: 8, carries_over: true };
        let mut windows = canaries.windows(50, cut);
        assert!(windows.iter().all(|window| window.len() == 9 && window.iter().all(|&token| token < 50)));
        assert_eq!(canaries.planted_windows(50, cut).len(), planted);
        windows.sort();
        windows.dedup();
        assert_eq!(windows.len(), 2000);
    }
}
