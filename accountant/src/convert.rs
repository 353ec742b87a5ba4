//! Guarantees stated in other terms (μ, attack success rates), converted to ε.

use crate::{AccountantError, Delta, DpEvent, NeighboringRelation, epsilon};

/// Returns the ε of one Gaussian mechanism of this μ at `delta`, rounded down: a target of this ε is at least as strict
/// as μ at this δ.
///
/// ```
/// use accountant::{Delta, convert};
/// // δ(ε) of the Gaussian with μ = 1 crosses 1e-5 at 4.377178 (analytic Gaussian mechanism).
/// let epsilon = convert::epsilon_of_mu(1.0, Delta::new(1e-5)?)?;
/// assert!((epsilon - 4.377_178).abs() < 1e-5);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// [`AccountantError::OutOfRange`] for a μ that is not a finite number above 0.
pub fn epsilon_of_mu(mu: f64, delta: Delta) -> Result<f64, AccountantError> {
    if !(mu > 0.0 && mu < f64::INFINITY) {
        return Err(AccountantError::out_of_range("mu", mu, "a finite number above 0"));
    }
    let event = DpEvent::Gaussian { noise_multiplier: 1.0 / mu };
    Ok(epsilon(&event, delta, NeighboringRelation::AddOrRemoveOne)?.lower)
}

/// Returns the largest ε at which no (ε, `delta`)-DP mechanism allows a membership test with false positive rate
/// `false_positive_rate` a true positive rate above `true_positive_rate`. Rounded down.
///
/// Such a mechanism has TPR ≤ e^ε·FPR + δ and 1 − TPR ≥ e^−ε·(1 − δ − FPR) (Kairouz, Oh & Viswanath 2015, Theorem 2.1,
/// <https://arxiv.org/abs/1311.0776>); either inequality is enough.
///
/// ```
/// use accountant::{Delta, convert};
/// // ln((0.1 − 1e-6)/0.01) = 2.302575.
/// let epsilon = convert::epsilon_of_rates(0.01, 0.1, Delta::new(1e-6)?)?;
/// assert!((epsilon - 2.302_575_092_988_546).abs() < 1e-9);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// [`AccountantError::OutOfRange`] unless 0 < `false_positive_rate`, and `false_positive_rate` + δ <
/// `true_positive_rate` < 1.
pub fn epsilon_of_rates(
    false_positive_rate: f64,
    true_positive_rate: f64,
    delta: Delta,
) -> Result<f64, AccountantError> {
    if !(false_positive_rate > 0.0 && false_positive_rate < 1.0) {
        let name = "false positive rate";
        return Err(AccountantError::out_of_range(name, false_positive_rate, "strictly between 0 and 1"));
    }
    if !(true_positive_rate > false_positive_rate + delta.get() && true_positive_rate < 1.0) {
        let allowed = "above the false positive rate plus delta, and below 1";
        return Err(AccountantError::out_of_range("true positive rate", true_positive_rate, allowed));
    }
    let by_hits = libm::log((true_positive_rate - delta.get()) / false_positive_rate);
    let by_misses = libm::log((1.0 - delta.get() - false_positive_rate) / (1.0 - true_positive_rate));
    // The result is rounded down by more than the rounding of the logarithms.
    Ok(by_hits.max(by_misses) * (1.0 - 1e-13))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epsilon_found_keeps_the_rate_and_a_larger_one_does_not() {
        let delta = Delta::new(1e-6).expect("a probability");
        for (alpha, rate) in [(1e-3, 0.01), (0.01, 0.5), (0.1, 0.11), (0.3, 0.99)] {
            let found = epsilon_of_rates(alpha, rate, delta).expect("in range");
            let most = |epsilon: f64| {
                let hits = libm::exp(epsilon) * alpha + delta.get();
                hits.min(1.0 - libm::exp(-epsilon) * (1.0 - delta.get() - alpha))
            };
            assert!(most(found) <= rate * (1.0 + 1e-12), "{alpha} {rate}: {}", most(found));
            assert!(most(1.001 * found) > rate, "{alpha} {rate}");
        }
    }

    #[test]
    fn rates_that_determine_no_epsilon_are_refused() {
        let delta = Delta::new(1e-6).expect("a probability");
        for (alpha, rate) in
            [(0.0, 0.5), (0.1, 0.1), (0.1, 0.05), (0.1, 1.0), (f64::NAN, 0.5), (0.1, f64::NAN)]
        {
            assert!(epsilon_of_rates(alpha, rate, delta).is_err(), "{alpha} {rate}");
        }
        assert!(epsilon_of_mu(0.0, delta).is_err() && epsilon_of_mu(f64::NAN, delta).is_err());
    }
}
