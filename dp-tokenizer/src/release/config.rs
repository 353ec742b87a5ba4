//! The settings of a release, which determine what it costs.

use accountant::DpEvent;
use mechanisms::{MAX_ITEMS_PER_UNIT, PrivacyUnit, ReleaseMethod};
use serde::{Deserialize, Serialize};

use super::contribution::Contribution;
use super::error::ReleaseError;
use super::fixed_point::ONE;
use super::paper::{Paper, PaperHistogram};
use super::threshold::{Rule, Threshold};

/// A way to release words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A method that a plan can name.
    Planned(ReleaseMethod),
    /// The word histogram of a paper, for comparison.
    Paper(PaperHistogram),
}

impl From<ReleaseMethod> for Method {
    fn from(method: ReleaseMethod) -> Self {
        Self::Planned(method)
    }
}

impl From<PaperHistogram> for Method {
    fn from(histogram: PaperHistogram) -> Self {
        Self::Paper(histogram)
    }
}

/// The shares of the rounds. A paper's histogram spends all of μ² in one round and counts nothing afterwards.
const PAPER_SHARES: [f64; 1] = [1.0];

impl Method {
    /// Returns the event of a whole release with this noise multiplier, seen as one Gaussian mechanism.
    #[must_use]
    pub fn event(self, noise_multiplier: f64, threshold_delta: f64) -> DpEvent {
        match self {
            Self::Planned(method) => method.event(noise_multiplier, threshold_delta),
            Self::Paper(_) => {
                accountant::vocabulary_release_event(noise_multiplier, threshold_delta, &PAPER_SHARES, 0.0)
            }
        }
    }
}

/// The checked settings of a release. Its event follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseConfig {
    noise_multiplier: f64,
    threshold_delta: f64,
    round_shares: Vec<f64>,
    count_share: f64,
    max_items_per_unit: u32,
    method: Method,
    /// The threshold of a published formula, in σ above the largest weight. Without one, `threshold_delta` decides.
    published_sigmas: Option<f64>,
}

impl ReleaseConfig {
    /// Returns a release by any method, with the method's own shares of μ².
    ///
    /// `noise_multiplier` is that of the whole release seen as one Gaussian mechanism. `threshold_delta` is the
    /// probability that any item which only one unit holds is released.
    ///
    /// ```
    /// use dp_tokenizer::release::{Paper, PaperHistogram, ReleaseConfig, first_threshold};
    /// let hoory = PaperHistogram { paper: Paper::Hoory2021, words: 256 };
    /// // σ = 200; the paper prints a threshold of 982.5, which is too low for a δ of 1e-9.
    /// let config = ReleaseConfig::new(hoory, 200.0 / 16.0, 1e-9)?;
    /// assert!((first_threshold(&config)? - 1369.39).abs() < 0.05);
    /// # Ok::<(), dp_tokenizer::release::ReleaseError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::with_shares`]; the number of words of a paper's histogram must be from 1 to 4096.
    pub fn new(
        method: impl Into<Method>,
        noise_multiplier: f64,
        threshold_delta: f64,
    ) -> Result<Self, ReleaseError> {
        match method.into() {
            Method::Planned(method) if method.is_of_paper() => Err(words_out_of_range(0)),
            Method::Planned(method) => {
                let (rounds, counts) = (method.round_shares(), method.count_share());
                Ok(Self::with_shares(noise_multiplier, threshold_delta, rounds, counts)?.by(method))
            }
            Method::Paper(histogram) => Self::of_paper(histogram, noise_multiplier, threshold_delta),
        }
    }

    /// Returns the release that a plan names, on units of this kind: the histogram of a paper counts the words of units
    /// of N words.
    ///
    /// # Errors
    /// As [`Self::new`]; the histogram of a paper needs units of N words.
    pub fn planned(
        method: ReleaseMethod,
        unit: PrivacyUnit,
        noise_multiplier: f64,
        threshold_delta: f64,
    ) -> Result<Self, ReleaseError> {
        match (Paper::of(method), unit) {
            (Some(paper), PrivacyUnit::Words(words)) => {
                Self::of_paper(PaperHistogram { paper, words }, noise_multiplier, threshold_delta)
            }
            _ => Self::new(method, noise_multiplier, threshold_delta),
        }
    }

    /// Returns a DP-SIPS release whose rounds get these shares of μ², and whose counts get the last.
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
            max_items_per_unit: MAX_ITEMS_PER_UNIT,
            method: Method::Planned(ReleaseMethod::Sips),
            published_sigmas: None,
        })
    }

    /// Returns a release with the same shares, spent by another method.
    #[must_use]
    pub fn by(mut self, method: ReleaseMethod) -> Self {
        self.method = Method::Planned(method);
        self
    }

    /// Returns a paper's histogram with the threshold as printed.
    ///
    /// The papers print erf⁻¹ where the normal quantile √2·erf⁻¹ belongs, so their thresholds are too low.
    /// [`ReleaseConfig::event`] states the δ that the printed threshold really gives.
    ///
    /// ```
    /// use dp_tokenizer::release::{Paper, PaperHistogram, ReleaseConfig, first_threshold};
    /// // The paper's σ = 200 and N = 256: a threshold δ of 1.18e-4 instead of the intended 1e-9.
    /// let hoory = PaperHistogram { paper: Paper::Hoory2021, words: 256 };
    /// let published = ReleaseConfig::as_published(hoory, 200.0 / 16.0, 1e-9)?;
    /// let accountant::DpEvent::Composed { events } = published.event() else { unreachable!() };
    /// let accountant::DpEvent::ThresholdedHistogram { threshold_delta, .. } = events[0] else { unreachable!() };
    /// assert!((threshold_delta - 1.18e-4).abs() < 1e-6);
    /// assert!((first_threshold(&published)? - 982.5).abs() < 0.05);
    /// # Ok::<(), dp_tokenizer::release::ReleaseError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn as_published(
        histogram: PaperHistogram,
        noise_multiplier: f64,
        delta: f64,
    ) -> Result<Self, ReleaseError> {
        let mut config = Self::of_paper(histogram, noise_multiplier, delta)?;
        // erf⁻¹(1 − x) = Φ⁻¹(1 − x/2)/√2
        let tail = histogram.paper.printed_tail(delta, histogram.words);
        config.published_sigmas = Some(accountant::normal::isf(0.5 * tail) / std::f64::consts::SQRT_2);
        config.threshold_delta = config.round_threshold(0).delta()?;
        Ok(config)
    }

    /// Returns a release of one round, without counts.
    fn of_paper(
        histogram: PaperHistogram,
        noise_multiplier: f64,
        threshold_delta: f64,
    ) -> Result<Self, ReleaseError> {
        if !(1..=MAX_ITEMS_PER_UNIT).contains(&histogram.words) {
            return Err(words_out_of_range(histogram.words));
        }
        let mut config = Self::with_shares(noise_multiplier, threshold_delta, &PAPER_SHARES, 0.0)?;
        config.max_items_per_unit = histogram.words;
        config.method = Method::Paper(histogram);
        Ok(config)
    }

    /// Lets at most this many items of a unit count in each round; where a unit has more, a random choice counts.
    ///
    /// The cap is public. A smaller one lowers the threshold a little. 0 counts as 1. A paper's histogram keeps its own.
    #[must_use]
    pub fn max_items_per_unit(mut self, cap: u32) -> Self {
        if let Method::Planned(_) = self.method {
            self.max_items_per_unit = cap.max(1);
        }
        self
    }

    /// Returns the event, which says what the release costs.
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

    /// Returns the noise multiplier of the counts; `None` where nothing is counted.
    pub(super) fn count_noise_multiplier(&self) -> Option<f64> {
        (self.count_share > 0.0).then(|| self.noise_multiplier / self.count_share.sqrt())
    }

    pub(super) fn cap(&self) -> u32 {
        self.max_items_per_unit
    }

    pub(super) fn method(&self) -> Method {
        self.method
    }

    pub(super) fn threshold_delta(&self) -> f64 {
        self.threshold_delta
    }

    pub(super) fn contribution(&self) -> Contribution {
        match self.method {
            Method::Planned(_) => Contribution::Even,
            Method::Paper(histogram) => histogram.paper.contribution(),
        }
    }

    /// Converts a weight of the histogram to the counts of the method.
    pub(super) fn in_counts(&self, weight: i64) -> f64 {
        weight as f64 / ONE as f64 * self.contribution().norm(self.max_items_per_unit)
    }

    /// Returns the threshold of a round whose weights no bias raises.
    pub(super) fn round_threshold(&self, round: usize) -> Threshold {
        let rounds = self.round_shares.len() as f64;
        Threshold {
            noise_multiplier: self.round_noise_multiplier(round),
            cap: self.max_items_per_unit,
            contribution: self.contribution(),
            max_bias: 1.0,
            rule: self.published_sigmas.map_or(Rule::Tail(self.threshold_delta / rounds), Rule::Sigmas),
        }
    }
}

fn words_out_of_range(words: u32) -> ReleaseError {
    ReleaseError::OutOfRange {
        name: "words of a unit",
        value: f64::from(words),
        allowed: "1 to 4096, by unit words:N",
    }
}
