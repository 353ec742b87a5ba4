//! What a release may spend and how.

use accountant::DpEvent;
use mechanisms::MechanismError;

use super::contribution::Contribution;
use super::degree::{self, Outlook};
use super::histogram::noise;
use super::method::Method;
use super::threshold::{Rule, Threshold};
use crate::unit::UnitError;

/// Most items of one unit that count in a round, unless told otherwise.
const MAX_ITEMS: u32 = 4096;

/// The counts' share of μ², unless told otherwise.
pub const COUNT_SHARE: f64 = 0.25;

/// Why a release is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A parameter outside its domain.
    #[error("{name} = {value} is out of range; allowed: {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The noise cannot be drawn.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// The units cannot be read.
    #[error(transparent)]
    Units(#[from] UnitError),
    /// More units than a method's arithmetic is proven for.
    #[error(
        "more than {most} units; methods policy and mad2r are proven for at most so many, take pooled or sips"
    )]
    TooManyUnits {
        /// How many are allowed.
        most: u64,
    },
    /// Units that come out of order, as they may when they do not fit the memory.
    #[error(
        "method policy takes units one after the other in the order of the corpus; allow more memory, or take pooled or sips"
    )]
    NotInOrder,
}

impl ReleaseError {
    pub(super) fn too_many_units() -> Self {
        Self::TooManyUnits { most: super::MOST_UNITS }
    }
}

/// A checked release. Its event follows from it; nobody writes the event a second time.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseConfig {
    noise_multiplier: f64,
    threshold_delta: f64,
    round_shares: Vec<f64>,
    count_share: f64,
    max_items_per_unit: u32,
    method: Method,
    contribution: Contribution,
    /// The threshold of a published formula, in σ above the largest weight; else `threshold_delta` decides.
    published_sigmas: Option<f64>,
}

/// Which of a paper's formulas decides the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The exact normal tail.
    Corrected,
    /// The formula as printed, with erf⁻¹ where the normal quantile √2·erf⁻¹ belongs. Its threshold is too low;
    /// [`ReleaseConfig::event`] states what it really gives.
    AsPublished,
}

impl ReleaseConfig {
    /// A DP-SIPS release with the default rounds: 1/16, 3/16 and 1/2 of μ², and a quarter for counts.
    ///
    /// `noise_multiplier` is that of the whole release seen as one Gaussian mechanism; `threshold_delta` is the
    /// probability that any item of a single unit alone is released.
    ///
    /// # Errors
    /// As [`Self::with_shares`].
    pub fn new(noise_multiplier: f64, threshold_delta: f64) -> Result<Self, ReleaseError> {
        Self::with_shares(noise_multiplier, threshold_delta, Method::Sips.round_shares(), COUNT_SHARE)
    }

    /// A release whose rounds get these shares of μ², and whose counts get the last.
    ///
    /// # Errors
    /// [`ReleaseError::OutOfRange`] unless 0 < `noise_multiplier` < 2²⁰, 0 < `threshold_delta` < 1, every round's share
    /// is above 0, `count_share` ≥ 0, and all of them sum to at most 1 (+ 1e-9).
    pub fn with_shares(
        noise_multiplier: f64,
        threshold_delta: f64,
        round_shares: &[f64],
        count_share: f64,
    ) -> Result<Self, ReleaseError> {
        let out_of_range = |name, value, allowed| Err(ReleaseError::OutOfRange { name, value, allowed });
        let finest = round_shares.iter().copied().chain((count_share > 0.0).then_some(count_share));
        let smallest = finest.fold(1.0, f64::min);
        let total: f64 = round_shares.iter().sum::<f64>() + count_share;
        if !(noise_multiplier > 0.0 && noise_multiplier < 1_048_576.0) {
            return out_of_range("noise multiplier of the release", noise_multiplier, "0 < value < 2^20");
        }
        if !(threshold_delta > 0.0 && threshold_delta < 1.0) {
            return out_of_range("threshold delta", threshold_delta, "0 < value < 1");
        }
        if round_shares.is_empty() || smallest.is_nan() || smallest <= 1e-6 {
            return out_of_range("share of a round", smallest, "at least one round, each share > 1e-6");
        }
        if !(count_share >= 0.0 && total <= 1.0 + 1e-9) {
            return out_of_range("sum of the shares", total, "count share >= 0, sum <= 1");
        }
        Ok(Self {
            noise_multiplier,
            threshold_delta,
            round_shares: round_shares.to_vec(),
            count_share,
            max_items_per_unit: MAX_ITEMS,
            method: Method::Sips,
            contribution: Contribution::Even,
            published_sigmas: None,
        })
    }

    /// A release by any method, with its own rounds and a quarter of μ² for counts.
    ///
    /// # Errors
    /// As [`Self::with_shares`].
    pub fn of_method(
        method: Method,
        noise_multiplier: f64,
        threshold_delta: f64,
    ) -> Result<Self, ReleaseError> {
        Ok(Self::with_shares(noise_multiplier, threshold_delta, method.round_shares(), COUNT_SHARE)?
            .by(method))
    }

    /// The same budget spent by another method.
    #[must_use]
    pub fn by(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The word histogram of Hoory et al. 2021: each unit counts 1 for each of its at most `words` items.
    ///
    /// `noise_multiplier` is σ/√`words`. Corrected, `delta` is the threshold's; as published, it is the δ of the paper's
    /// corollary 1, C = 1 + σ·erf⁻¹(1 − δ/`words`), and the event holds the true one.
    ///
    /// ```
    /// use dp_tokenizer::release::{Formula, ReleaseConfig};
    /// // The paper's σ = 200 and N = 256: a threshold δ of 1.18e-4 instead of the 1e-9 aimed at.
    /// let published = ReleaseConfig::hoory_2021(200.0 / 16.0, 1e-9, 256, Formula::AsPublished)?;
    /// let accountant::DpEvent::Composed { events } = published.event() else { unreachable!() };
    /// let accountant::DpEvent::ThresholdedHistogram { threshold_delta, .. } = events[0] else { unreachable!() };
    /// assert!((threshold_delta - 1.18e-4).abs() < 1e-6);
    /// assert!((published.threshold()? - 982.5).abs() < 0.05);
    /// let corrected = ReleaseConfig::hoory_2021(200.0 / 16.0, 1e-9, 256, Formula::Corrected)?;
    /// assert!((corrected.threshold()? - 1369.39).abs() < 0.05);
    /// # Ok::<(), dp_tokenizer::release::ReleaseError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::with_shares`]; `words` must be at least 1.
    ///
    /// # References
    /// Hoory et al. 2021, "Learning and Evaluating a Differentially Private Pre-trained Language Model", §3.2
    pub fn hoory_2021(
        noise_multiplier: f64,
        delta: f64,
        words: u32,
        formula: Formula,
    ) -> Result<Self, ReleaseError> {
        let tail = delta / f64::from(words.max(1));
        Self::of_paper(noise_multiplier, delta, words, Contribution::Presence, (formula, tail))
    }

    /// The word histogram of Ponomareva et al. 2022: each unit counts its words as often as they occur, at most `words`
    /// in all.
    ///
    /// `noise_multiplier` is σ/`words`. Corrected, `delta` is the threshold's; as published, it is that of
    /// C = m + σ·erf⁻¹(1 − δ/2N) with m = N = `words`, and the event holds the true one.
    ///
    /// # Errors
    /// As [`Self::with_shares`]; `words` must be at least 1.
    ///
    /// # References
    /// Ponomareva, Bastings, Vassilvitskii 2022, "Training Text-to-Text Transformers with Privacy Guarantees", §4.1
    pub fn ponomareva_2022(
        noise_multiplier: f64,
        delta: f64,
        words: u32,
        formula: Formula,
    ) -> Result<Self, ReleaseError> {
        let tail = delta / (2.0 * f64::from(words.max(1)));
        Self::of_paper(noise_multiplier, delta, words, Contribution::Counts, (formula, tail))
    }

    /// One round, no count share. As published, the threshold lies erf⁻¹(1 − tail) σ above the largest weight.
    fn of_paper(
        noise_multiplier: f64,
        delta: f64,
        words: u32,
        contribution: Contribution,
        (formula, tail): (Formula, f64),
    ) -> Result<Self, ReleaseError> {
        if !(1..=MAX_ITEMS).contains(&words) {
            return Err(ReleaseError::OutOfRange {
                name: "words of a unit",
                value: f64::from(words),
                allowed: "1 to 4096, by unit words:N",
            });
        }
        let mut config = Self::with_shares(noise_multiplier, delta, &[1.0], 0.0)?;
        config.max_items_per_unit = words;
        config.contribution = contribution;
        if formula == Formula::AsPublished {
            // erf⁻¹(1 − x) = Φ⁻¹(1 − x/2)/√2
            let sigmas = accountant::normal::isf(0.5 * tail) / std::f64::consts::SQRT_2;
            config.published_sigmas = Some(sigmas);
            config.threshold_delta = config.round_threshold(0).delta()?;
        }
        Ok(config)
    }

    /// The least noisy count that is released, in the counts of the method (for DP-SIPS that of the first round, in
    /// contributions of norm 1).
    ///
    /// # Errors
    /// [`ReleaseError::Mechanism`] if the noise is beyond what can be drawn.
    pub fn threshold(&self) -> Result<f64, ReleaseError> {
        if self.method == Method::Pooled {
            return super::pooled::first_threshold(self);
        }
        let fixed = self.round_threshold(0).fixed_point()? as f64 / super::histogram::ONE as f64;
        Ok(fixed * self.norm())
    }

    /// Lets at most this many items of a unit count in each round; beyond that a random choice counts. A public figure:
    /// a smaller one lowers the threshold a little. 0 is taken as 1. The papers' methods keep their own cap.
    #[must_use]
    pub fn max_items_per_unit(mut self, cap: u32) -> Self {
        if self.contribution == Contribution::Even {
            self.max_items_per_unit = cap.max(1);
        }
        self
    }

    /// What the release costs.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        accountant::vocabulary_release_event(
            self.noise_multiplier,
            self.threshold_delta,
            &self.round_shares,
            self.count_share,
        )
    }

    pub(super) fn rounds(&self) -> usize {
        self.round_shares.len()
    }

    pub(super) fn round_noise_multiplier(&self, round: usize) -> f64 {
        self.noise_multiplier / self.round_shares[round].sqrt()
    }

    pub(super) fn count_noise_multiplier(&self) -> Option<f64> {
        (self.count_share > 0.0).then(|| self.noise_multiplier / self.count_share.sqrt())
    }

    pub(super) fn cap(&self) -> u32 {
        self.max_items_per_unit
    }

    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// The part of the threshold's δ that a pooled round may use.
    pub(super) fn delta_of_round(&self, round: usize) -> f64 {
        self.threshold_delta * super::pooled::delta_share(round, self.rounds())
    }

    /// What the noisy weights of MAD2R's `round` say of the next, if there is one.
    pub(super) fn outlook(&self, round: usize) -> Result<Option<Outlook>, ReleaseError> {
        if self.method != Method::Mad2r || round + 1 == self.rounds() {
            return Ok(None);
        }
        let sigma = noise(self.round_noise_multiplier(round))?.sigma();
        Ok(Some(Outlook::new(sigma, self.round_threshold(round + 1).fixed_point()?)))
    }

    pub(super) fn contribution(&self) -> Contribution {
        self.contribution
    }

    /// What one in the histogram stands for, in the counts of the method.
    pub(super) fn norm(&self) -> f64 {
        self.contribution.norm(self.max_items_per_unit)
    }

    pub(super) fn round_threshold(&self, round: usize) -> Threshold {
        let rounds = self.round_shares.len() as f64;
        Threshold {
            noise_multiplier: self.round_noise_multiplier(round),
            cap: self.max_items_per_unit,
            contribution: self.contribution,
            raised: if self.method == Method::Mad2r && round > 0 { degree::MOST } else { 1.0 },
            rule: self.published_sigmas.map_or(Rule::Tail(self.threshold_delta / rounds), Rule::Sigmas),
        }
    }
}
