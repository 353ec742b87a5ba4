//! Lower bounds on ε from the guesses of an audit.

use crate::numeric::binomial;
use crate::{AccountantError, Delta};

/// The ε that an audit refutes: with probability at least `confidence` over the audit, an (ε, `delta`)-DP mechanism has at
/// least the returned ε.
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
    let out_of_range = |name, value, allowed| Err(AccountantError::out_of_range(name, value, allowed));
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
    let refuted = |epsilon| chance(canaries, guesses, correct, delta, epsilon) <= 1.0 - confidence;
    if !refuted(0.0) {
        return Ok(0.0);
    }
    let (mut below, mut above) = (0.0, 64.0);
    if refuted(above) {
        return Ok(above);
    }
    while above - below > 1e-9 {
        let middle = 0.5 * (below + above);
        if refuted(middle) { below = middle } else { above = middle }
    }
    Ok(below)
}

/// Upper bound on the probability of so many right guesses against an (ε, δ)-DP mechanism.
fn chance(canaries: u64, guesses: u64, correct: u64, delta: Delta, epsilon: f64) -> f64 {
    let (n, p) = (guesses as f64, 1.0 / (1.0 + libm::exp(-epsilon)));
    let mode = libm::floor((n + 1.0) * p).min(n);
    let exact = binomial::at_least(correct as f64, n, p)
        + 2.0 * canaries as f64 * delta.get() * binomial::mass(mode, n, p);
    exact * (1.0 + 2.0 * binomial::RELATIVE)
}

#[cfg(test)]
mod tests {
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
