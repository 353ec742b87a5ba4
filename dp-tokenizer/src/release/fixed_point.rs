//! Fixed-point weights: integer arithmetic in which the sensitivity holds exactly.

use mechanisms::DiscreteGaussian;

use super::error::ReleaseError;

/// A unit's whole contribution, an L2 norm of 1, as an integer.
pub(super) const ONE: u64 = 1 << 24;

/// The number of units up to which the rounding errors of the policy and MAD2R methods are proven harmless.
pub(super) const MAX_UNITS: u64 = 1 << 24;

/// Returns the weight of each of `k` items: the largest integer w with k·w² ≤ ONE².
pub(super) fn even_weight(k: usize) -> u64 {
    let k = k.max(1) as u128;
    let square = u128::from(ONE) * u128::from(ONE);
    let mut weight = (ONE as f64 / (k as f64).sqrt()) as u64 + 1;
    while u128::from(weight) * u128::from(weight) * k > square {
        weight -= 1;
    }
    weight
}

/// Scales counts to an L2 norm of at most ONE and rounds down.
pub(super) fn scale_to_unit_norm(counts: &mut Vec<(u64, u64)>) {
    let square: u128 = counts.iter().map(|c| u128::from(c.1) * u128::from(c.1)).sum();
    // The factor outweighs the rounding of root and quotient (relative 2⁻⁵² each).
    let scale = ONE as f64 / (square as f64).sqrt() * (1.0 - 1e-12);
    for (_, count) in counts.iter_mut() {
        *count = (*count as f64 * scale) as u64;
    }
    counts.retain(|c| c.1 > 0);
}

/// Returns the noise for a sensitivity of ONE, with σ rounded up.
pub(super) fn noise(noise_multiplier: f64) -> Result<DiscreteGaussian, ReleaseError> {
    Ok(DiscreteGaussian::new((noise_multiplier * ONE as f64).ceil() as u64)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn even_weights_have_norm_at_most_one_and_nearly_reach_it() {
        for k in (1..5000).chain([1 << 20, 1 << 30]) {
            let norm2 = (even_weight(k) as f64).powi(2) * k as f64 / (ONE as f64).powi(2);
            assert!(norm2 <= 1.0 && norm2 > 1.0 - 1e-2, "{k}: {norm2}");
        }
    }

    proptest! {
        #[test]
        fn scaled_counts_have_norm_at_most_one(counts in prop::collection::vec(1_u64..100_000, 1..200)) {
            let mut scaled = counts.into_iter().enumerate().map(|(i, c)| (i as u64, c)).collect();
            scale_to_unit_norm(&mut scaled);
            let square: u128 = scaled.iter().map(|c| u128::from(c.1) * u128::from(c.1)).sum();
            prop_assert!(square <= u128::from(ONE) * u128::from(ONE));
        }
    }
}
