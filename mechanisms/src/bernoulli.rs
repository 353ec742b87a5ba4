//! Exact coin tosses from integers alone.

use crate::Stream;

/// Draws a number that is uniform on `0..n`, exactly, by masking and rejection (`n ≥ 1`).
fn below(n: u128, stream: &mut Stream) -> u128 {
    let bits = u128::BITS - (n - 1).leading_zeros();
    loop {
        let draw = if bits <= 64 {
            u128::from(stream.next_u64() & low_mask(bits))
        } else {
            (u128::from(stream.next_u64() & low_mask(bits - 64)) << 64) | u128::from(stream.next_u64())
        };
        if draw < n {
            return draw;
        }
    }
}

fn low_mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits) }
}

/// Returns true with probability exactly `probability`, a float below 1: uniform bits are compared with its binary
/// digits.
pub(crate) fn bernoulli(probability: f64, stream: &mut Stream) -> bool {
    /// The number 2⁶⁴. Multiplication by it is exact.
    const WORD: f64 = 18_446_744_073_709_551_616.0;
    let mut rest = probability;
    loop {
        let scaled = rest * WORD;
        let digits = f64::floor(scaled);
        let (drawn, wanted) = (stream.next_u64(), digits as u64);
        if drawn != wanted {
            return drawn < wanted;
        }
        rest = scaled - digits;
    }
}

/// Returns true with probability exactly exp(−`numerator`/`denominator`).
///
/// # References
/// Canonne, Kamath, Steinke 2020, Algorithm 1, <https://arxiv.org/abs/2004.00010>
pub(crate) fn bernoulli_exp(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    let mut rest = numerator;
    while rest > denominator {
        if !bernoulli_exp_unit(1, 1, stream) {
            return false;
        }
        rest -= denominator;
    }
    bernoulli_exp_unit(rest, denominator, stream)
}

/// Draws as [`bernoulli_exp`] does, for exponents in [0, 1]: the parity of the first failure of
/// coins γ/1, γ/2, γ/3, …
fn bernoulli_exp_unit(numerator: u128, denominator: u128, stream: &mut Stream) -> bool {
    let mut k = 1_u128;
    while below(denominator * k, stream) < numerator {
        k += 1;
    }
    k % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    fn rate(numerator: u128, denominator: u128, trials: u32) -> f64 {
        let mut stream = TestRng::from_seed(11).stream(Purpose::HistogramNoise, 0, 0);
        let hits = (0..trials).filter(|_| bernoulli_exp(numerator, denominator, &mut stream)).count();
        hits as f64 / f64::from(trials)
    }

    #[test]
    fn coin_lands_with_exp_probability_below_and_above_exponent_one() {
        for (n, d) in [(0, 1), (1, 3), (1, 1), (7, 3), (1 << 90, 3 << 89)] {
            let want = (-(n as f64) / d as f64).exp();
            let tolerance = 4.9 * (want * (1.0 - want) / 200_000.0).sqrt(); // α = 1e-6, two-sided
            let got = rate(n, d, 200_000);
            assert!((got - want).abs() <= tolerance, "exp(-{n}/{d}) = {want}, got {got}");
        }
    }

    #[test]
    fn below_covers_its_range_and_no_more() {
        let mut stream = TestRng::from_seed(2).stream(Purpose::Data, 0, 0);
        let mut seen = [false; 5];
        for _ in 0..1000 {
            seen[below(5, &mut stream) as usize] = true;
        }
        assert!(seen.iter().all(|&s| s));
        assert_eq!(below(1, &mut stream), 0);
        let n = (1_u128 << 64) + 1;
        assert!((0..1000).all(|_| below(n, &mut stream) < n));
    }
}
