//! Lower bounds on ε from the guesses of an audit, and bounds on the rates of its errors.

use crate::numeric::{binomial, normal};
use crate::{AccountantError, Delta, convert};

/// Returns the ε that an audit refutes: with probability at least `confidence` over the audit, an
/// (ε, `delta`)-DP mechanism has at least the returned ε.
///
/// Each of `canaries` records was included in the training text by its own fair coin. From the released model the auditor
/// guessed `guesses` of the coins, `correct` of them rightly. The result is 0 if the guesses were no better than chance.
///
/// # Guarantee
/// An (ε, δ)-DP mechanism has P\[correct ≥ v\] ≤ f(v) + 2mδ·max_i (f(v−i) − f(v))/i with f the upper tail of
/// Binomial(guesses, e^ε/(1+e^ε)). The difference quotient is a mean of the binomial's masses, so at most its largest
/// mass; that mass and f grow with ε ≥ 0, so the bisection's lower end is refuted and so is every smaller ε.
///
/// # Errors
/// [`AccountantError::OutOfRange`] unless `correct` ≤ `guesses` ≤ `canaries` ≤ 10⁹, `guesses` ≥ 1 and 0 < `confidence` < 1.
///
/// # References
/// Steinke, Nasr, Jagielski 2023, "Privacy Auditing with One (1) Training Run", its theorem on approximate DP,
/// <https://arxiv.org/abs/2305.08846>
///
/// # Example
/// ```
/// # use accountant::{Delta, audit};
/// // 100 right guesses of 100 refute ε = 3.49 at 95 %; 55 of 100 refute nothing.
/// let delta = Delta::new(1e-9).unwrap();
/// let all = audit::epsilon_lower_bound(1000, 100, 100, delta, 0.95).unwrap();
/// assert!((all - 3.493).abs() < 1e-3);
/// assert_eq!(audit::epsilon_lower_bound(1000, 100, 55, delta, 0.95).unwrap(), 0.0);
/// ```
pub fn epsilon_lower_bound(
    canaries: u64,
    guesses: u64,
    correct: u64,
    delta: Delta,
    confidence: f64,
) -> Result<f64, AccountantError> {
    Guesses { canaries, guesses, correct }.check(confidence)?;
    let refuted = |epsilon| chance(canaries, guesses, correct, delta, epsilon) <= 1.0 - confidence;
    Ok(largest_refuted(64.0, refuted))
}

/// Returns the largest refuted value up to `limit`, or 0 if none is. Every value below a refuted
/// one must be refuted.
fn largest_refuted(limit: f64, refuted: impl Fn(f64) -> bool) -> f64 {
    let (mut below, mut above) = (0.0, limit);
    if !refuted(below) {
        return 0.0;
    }
    if refuted(above) {
        return above;
    }
    while above - below > 1e-9 {
        let middle = 0.5 * (below + above);
        if refuted(middle) { below = middle } else { above = middle }
    }
    below
}

/// The guesses of an audit in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guesses {
    /// The number of records that were included by a fair coin each.
    pub canaries: u64,
    /// The number of coins that were guessed. It is chosen before the run.
    pub guesses: u64,
    /// The number of coins that were guessed rightly.
    pub correct: u64,
}

impl Guesses {
    fn check(self, confidence: f64) -> Result<(), AccountantError> {
        let out_of_range = |name, value, allowed| Err(AccountantError::out_of_range(name, value, allowed));
        let Self { canaries, guesses, correct } = self;
        if !(1..=1_000_000_000).contains(&canaries) {
            return out_of_range("canaries", canaries as f64, "1 to 1e9");
        }
        if !(1..=canaries).contains(&guesses) {
            return out_of_range("guesses", guesses as f64, "1 to the number of canaries");
        }
        if correct > guesses {
            return out_of_range("correct", correct as f64, "at most the number of guesses");
        }
        if !(confidence > 0.0 && confidence < 1.0) {
            return out_of_range("confidence", confidence, "above 0 and below 1");
        }
        Ok(())
    }

    /// Returns the [`epsilon_lower_bound`] of these guesses.
    ///
    /// ```
    /// use accountant::{Delta, audit::Guesses};
    /// let found = Guesses { canaries: 1000, guesses: 100, correct: 100 };
    /// assert!((found.epsilon_lower_bound(Delta::new(1e-9)?, 0.95)? - 3.493).abs() < 1e-3);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// As [`epsilon_lower_bound`].
    pub fn epsilon_lower_bound(self, delta: Delta, confidence: f64) -> Result<f64, AccountantError> {
        epsilon_lower_bound(self.canaries, self.guesses, self.correct, delta, confidence)
    }

    /// Whether the guesses refute a mechanism with this δ(ε): such a mechanism allows the observed number of right
    /// guesses only with a probability of less than 1 − `confidence`. `curve` has pairs of ε and δ, each of which the
    /// mechanism is said to have; more of them refute more.
    ///
    /// ```
    /// use accountant::audit::Guesses;
    /// let found = Guesses { canaries: 1000, guesses: 1000, correct: 800 };
    /// // Guesses about a mechanism with ε = 1 are right with a probability of at most 0.73.
    /// assert!(found.refutes(&[(1.0, 0.0)], 0.95)?);
    /// assert!(!found.refutes(&[(1.5, 0.0)], 0.95)?);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// [`AccountantError::OutOfRange`] as [`epsilon_lower_bound`].
    ///
    /// # References
    /// Mahloujifar, Melis & Chaudhuri 2024, "Auditing f-Differential Privacy in One Run", <https://arxiv.org/abs/2410.22235>.
    pub fn refutes(self, curve: &[(f64, f64)], confidence: f64) -> Result<bool, AccountantError> {
        self.check(confidence)?;
        // TPR ≤ e^ε·FPR + δ, and 1 − FPR ≤ e^ε·(1 − TPR) + δ.
        let false_positives = |rate: f64| {
            let least = |&(epsilon, delta): &(f64, f64)| {
                let odds = libm::exp(epsilon);
                ((rate - delta) / odds).max(1.0 - delta - odds * (1.0 - rate))
            };
            curve.iter().map(least).fold(0.0, f64::max)
        };
        Ok(self.refuted_by(confidence, false_positives))
    }

    /// Returns the ε at `delta` of the Gaussian mechanism with the largest μ that is refuted; 0 if none is. It is a
    /// lower bound for mechanisms whose trade-off is that of a Gaussian one, and an estimate for others.
    ///
    /// ```
    /// use accountant::{Delta, audit::{Guesses, epsilon_lower_bound}};
    /// let (found, delta) = (Guesses { canaries: 1000, guesses: 100, correct: 90 }, Delta::new(1e-5)?);
    /// assert!(found.gaussian_epsilon(delta, 0.95)? > epsilon_lower_bound(1000, 100, 90, delta, 0.95)?);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Guesses::refutes`].
    pub fn gaussian_epsilon(self, delta: Delta, confidence: f64) -> Result<f64, AccountantError> {
        self.check(confidence)?;
        let refuted = |mu: f64| {
            self.refuted_by(confidence, |rate| match rate > 0.0 && rate < 1.0 {
                true => normal::cdf(-normal::isf(rate) - mu),
                false => rate.clamp(0.0, 1.0),
            })
        };
        match largest_refuted(20.0, refuted) {
            mu if mu > 0.0 => convert::epsilon_of_mu(mu, delta),
            _ => Ok(0.0),
        }
    }

    /// Whether the observed number of right guesses has a probability of less than 1 − `confidence` if a test with a
    /// true positive rate x has at least the false positive rate `false_positives(x)`.
    ///
    /// Let p_c be the probability of c right guesses. The paper bounds the mass of wrong guesses from that of right ones,
    /// downward from the observed number, as if it had exactly the probability of the level. If both sum to more than the share
    /// of guesses, it has less.
    fn refuted_by(self, confidence: f64, false_positives: impl Fn(f64) -> f64) -> bool {
        let Self { canaries, guesses, correct } = self;
        let level = (1.0 - confidence) / canaries as f64;
        let mut right = level * correct as f64;
        let mut wrong = level * (guesses - correct) as f64;
        for count in (0..correct).rev() {
            let more = wrong.max(false_positives(right));
            right += count as f64 / (guesses - count) as f64 * (more - wrong);
            wrong = more;
        }
        // The margin is larger than the rounding of all these sums.
        right + wrong > guesses as f64 / canaries as f64 * (1.0 + 1e-9)
    }
}

/// Returns an upper bound on the probability of this many right guesses against an (ε, δ)-DP mechanism.
fn chance(canaries: u64, guesses: u64, correct: u64, delta: Delta, epsilon: f64) -> f64 {
    let (n, p) = (guesses as f64, 1.0 / (1.0 + libm::exp(-epsilon)));
    let mode = f64::floor((n + 1.0) * p).min(n);
    let exact = binomial::at_least(correct as f64, n, p)
        + 2.0 * canaries as f64 * delta.get() * binomial::mass(mode, n, p);
    exact * (1.0 + 2.0 * binomial::RELATIVE)
}

/// The trials of a membership test on independent runs, and those in which it said "member".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positives {
    /// The number of positive trials.
    pub positives: u64,
    /// The number of trials.
    pub trials: u64,
}

impl Positives {
    /// Returns a lower bound on the probability of a positive trial, right with probability `confidence`. Rounded down.
    ///
    /// ```
    /// use accountant::audit::Positives;
    /// // All of 100: the rate p has p^100 ≥ 0.05.
    /// let rate = Positives { positives: 100, trials: 100 }.rate_at_least(0.95)?;
    /// assert!((rate - 0.05_f64.powf(0.01)).abs() < 1e-9);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// [`AccountantError::OutOfRange`] unless `positives` ≤ `trials` ≤ 10⁹, `trials` ≥ 1 and 0 < `confidence` < 1.
    ///
    /// # References
    /// Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404.
    pub fn rate_at_least(self, confidence: f64) -> Result<f64, AccountantError> {
        let out_of_range = |name, value, allowed| Err(AccountantError::out_of_range(name, value, allowed));
        let Self { positives, trials } = self;
        if !(1..=1_000_000_000).contains(&trials) {
            return out_of_range("trials", trials as f64, "1 to 1e9");
        }
        if positives > trials {
            return out_of_range("positives", positives as f64, "at most the number of trials");
        }
        if !(confidence > 0.0 && confidence < 1.0) {
            return out_of_range("confidence", confidence, "above 0 and below 1");
        }
        let chance =
            |rate| binomial::at_least(positives as f64, trials as f64, rate) * (1.0 + binomial::RELATIVE);
        let (mut below, mut above) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (below + above);
            if chance(middle) <= 1.0 - confidence { below = middle } else { above = middle }
        }
        Ok(below)
    }

    /// Returns an upper bound on the probability of a positive trial, right with probability `confidence`. Rounded up.
    ///
    /// ```
    /// use accountant::audit::Positives;
    /// let rate = Positives { positives: 0, trials: 100 }.rate_at_most(0.95)?;
    /// assert!((rate - (1.0 - 0.05_f64.powf(0.01))).abs() < 1e-9);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Positives::rate_at_least`].
    pub fn rate_at_most(self, confidence: f64) -> Result<f64, AccountantError> {
        let positives = self.trials.checked_sub(self.positives);
        // If there are more positives than trials, the other bound refuses them by their name.
        let negatives = positives.map_or(self, |positives| Self { positives, ..self });
        Ok(1.0 - negatives.rate_at_least(confidence)?)
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Beta, ContinuousCDF};

    use super::*;

    fn bound(canaries: u64, guesses: u64, correct: u64, delta: f64) -> f64 {
        epsilon_lower_bound(canaries, guesses, correct, Delta::new(delta).unwrap(), 0.95).unwrap()
    }

    /// Oracle: p^100 = 0.05 by hand, so ε = ln(p/(1−p)) with p = 0.05^(1/100).
    #[test]
    fn guesses_that_are_all_right_give_the_closed_form() {
        let p = 0.05_f64.powf(0.01);
        assert!((bound(100, 100, 100, 1e-15) - (p / (1.0 - p)).ln()).abs() < 1e-6);
    }

    /// Oracle: the upper tail at the answer, which is the level of the test.
    #[test]
    fn three_quarters_right_refute_a_small_epsilon_only() {
        let found = bound(100, 100, 75, 1e-15);
        assert!(
            (binomial::at_least(75.0, 100.0, 1.0 / (1.0 + (-found).exp())) - 0.05).abs() < 1e-6,
            "{found}"
        );
        assert!(found > 0.6 && found < 0.8, "{found}");
    }

    #[test]
    fn a_larger_delta_and_fewer_right_guesses_prove_less() {
        assert!(bound(1000, 200, 180, 1e-5) < bound(1000, 200, 180, 1e-9));
        assert!(bound(1000, 200, 150, 1e-5) < bound(1000, 200, 180, 1e-5));
        assert_eq!(bound(1000, 200, 200, 0.01), 0.0);
    }

    /// A mechanism whose guesses are right with exactly e^ε/(1+e^ε) is refuted in at most one audit of twenty.
    #[test]
    fn randomised_response_is_refuted_no_more_often_than_the_confidence_allows() {
        let (n, epsilon) = (200.0, 1.0);
        let p = 1.0 / (1.0 + f64::exp(-epsilon));
        let wrong: f64 = (0..=200)
            .filter(|&k| bound(200, 200, k, 1e-15) > epsilon)
            .map(|k| binomial::mass(k as f64, n, p))
            .sum();
        assert!(wrong <= 0.05 && wrong > 0.02, "{wrong}");
    }

    fn gaussian(canaries: u64, guesses: u64, correct: u64) -> f64 {
        Guesses { canaries, guesses, correct }.gaussian_epsilon(Delta::new(1e-5).unwrap(), 0.95).unwrap()
    }

    /// Oracle: independent mechanisms, each guessed in the best way, give Binomial(n, p) right guesses. Numbers that refute the
    /// true mechanism have a probability of at most the level.
    #[test]
    fn right_guesses_refute_the_true_curve_no_more_often_than_the_confidence_allows() {
        let n = 200;
        let refuting = |refutes: &dyn Fn(Guesses) -> bool, p: f64| -> f64 {
            let all = (0..=n).map(|correct| Guesses { canaries: n, guesses: n, correct });
            let refuting = all.filter(|&guesses| refutes(guesses));
            refuting.map(|guesses| binomial::mass(guesses.correct as f64, n as f64, p)).sum()
        };
        let epsilon = 1.0_f64;
        let of_response = refuting(
            &|guesses| guesses.refutes(&[(epsilon, 0.0)], 0.95).unwrap(),
            1.0 / (1.0 + (-epsilon).exp()),
        );
        assert!(of_response <= 0.05 && of_response > 0.005, "{of_response}");
        // The Gaussian mechanism with μ = 1, by its own curve and by pairs of ε and δ.
        let event = crate::DpEvent::Gaussian { noise_multiplier: 1.0 };
        let relation = crate::NeighboringRelation::AddOrRemoveOne;
        let curve: Vec<(f64, f64)> = (0..30)
            .map(|at| f64::from(at) / 10.0)
            .map(|epsilon| (epsilon, crate::delta(&event, epsilon, relation).unwrap().upper))
            .collect();
        let p = normal::cdf(0.5);
        let by_curve = refuting(&|guesses| guesses.refutes(&curve, 0.95).unwrap(), p);
        let true_epsilon = convert::epsilon_of_mu(1.0, Delta::new(1e-5).unwrap()).unwrap();
        let by_mu = refuting(&|guesses| gaussian(n, n, guesses.correct) > true_epsilon, p);
        assert!(by_curve <= 0.05 && by_mu <= 0.05, "{by_curve} {by_mu}");
        // The curve refutes what the same mechanism's ε at δ = 1e-5 does not.
        let many = Guesses { canaries: n, guesses: n, correct: 195 };
        let delta = Delta::new(1e-5).unwrap();
        assert!(many.refutes(&curve, 0.95).unwrap());
        assert!(epsilon_lower_bound(n, n, 195, delta, 0.95).unwrap() < true_epsilon);
    }

    /// Oracle: the paper's algorithm in Python, with `statistics.NormalDist`.
    #[test]
    fn gaussian_bounds_are_those_of_the_published_algorithm() {
        for (canaries, guesses, correct, expected) in [
            (1000, 100, 90, 2.456),
            (1000, 100, 100, 5.549),
            (1000, 1000, 700, 1.372),
            (200, 200, 150, 1.735),
        ] {
            let found = gaussian(canaries, guesses, correct);
            assert!((found - expected).abs() < 1e-3, "{canaries} {guesses} {correct}: {found}");
        }
    }

    #[test]
    fn the_gaussian_bound_grows_with_right_guesses_and_says_nothing_of_chance() {
        let bounds = [60, 80, 95, 100].map(|correct| gaussian(1000, 100, correct));
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{bounds:?}");
        assert_eq!(gaussian(1000, 100, 50), 0.0);
        assert!(gaussian(1000, 100, 95) < gaussian(100, 100, 95), "the clearest of many are easier to guess");
    }

    /// Oracle: statrs' beta distribution.
    #[test]
    fn bounds_on_rates_are_quantiles_of_the_beta_distribution() {
        for (positives, trials) in [(1, 10), (7, 10), (300, 400), (3, 1000), (999, 1000)] {
            let rate = Positives { positives, trials };
            let [k, n] = [positives, trials].map(|count| count as f64);
            for confidence in [0.5, 0.95, 0.9999] {
                let below = Beta::new(k, n - k + 1.0).unwrap().cdf(rate.rate_at_least(confidence).unwrap());
                let above = Beta::new(k + 1.0, n - k).unwrap().cdf(rate.rate_at_most(confidence).unwrap());
                assert!((below / (1.0 - confidence) - 1.0).abs() < 1e-6, "{rate:?} {confidence}: {below}");
                assert!(
                    ((1.0 - above) / (1.0 - confidence) - 1.0).abs() < 1e-6,
                    "{rate:?} {confidence}: {above}"
                );
            }
        }
        let none = Positives { positives: 0, trials: 100 };
        assert_eq!(none.rate_at_least(0.95).unwrap(), 0.0);
        assert!((none.rate_at_most(0.95).unwrap() - (1.0 - 0.05_f64.powf(0.01))).abs() < 1e-9);
        for (positives, trials, confidence) in [(2, 1, 0.95), (0, 0, 0.95), (1, 2, 1.0), (1, 2, f64::NAN)] {
            let bad = Positives { positives, trials };
            assert!(bad.rate_at_least(confidence).is_err() && bad.rate_at_most(confidence).is_err());
        }
    }

    #[test]
    fn figures_that_cannot_be_are_refused() {
        let delta = Delta::new(1e-6).unwrap();
        for (canaries, guesses, correct, confidence) in
            [(0, 0, 0, 0.95), (10, 0, 0, 0.95), (10, 11, 1, 0.95), (10, 5, 6, 0.95), (10, 5, 5, f64::NAN)]
        {
            assert!(epsilon_lower_bound(canaries, guesses, correct, delta, confidence).is_err());
        }
    }
}
