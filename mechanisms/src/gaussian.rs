//! Gaussian numbers in floating point by the Box–Muller transform, addressed by element.
//!
//! Elements `2p` and `2p+1` of a fill are computed from words `4p..4p+4` of the stream, in double
//! precision and without rejection. An element's value therefore depends only on its position. Only
//! +, −, ×, ÷ and √ are used. IEEE 754 specifies them exactly, so native code and WASM agree to the
//! last bit, and the loops vectorise.
//!
//! # Precision
//! The radius uses 52 uniform bits, so |z| ≤ 8.58 (mass beyond: 1e-17); the f32 fill rounds the f64
//! values. These numbers are not exactly Gaussian, and their low bits show it. Noise that protects
//! private values is a [`crate::RoundedGaussian`].

use crate::Stream;
use crate::rng::open_unit;

/// The number of pairs that are transformed at once: few enough for the first-level cache.
const PAIRS: usize = 1024;

impl Stream {
    /// Fills `out` with independent N(0, `std`²) numbers, rounded to f32.
    ///
    /// A `std` that is not a positive finite number fills with NaN, so that a mistake shows.
    /// Fills of chunks of even lengths give the same numbers as one fill.
    ///
    /// ```
    /// use mechanisms::{PrivacyRng, Purpose, TestRng};
    /// let mut noise = [0.0_f32; 4];
    /// TestRng::from_seed(1).stream(Purpose::GradientNoise, 0, 0).fill_gaussian_f32(&mut noise, 2.0);
    /// assert!(noise.iter().all(|z| z.abs() < 2.0 * 8.6));
    /// ```
    pub fn fill_gaussian_f32(&mut self, out: &mut [f32], std: f64) {
        let std = if std > 0.0 && std.is_finite() { std } else { f64::NAN };
        let mut bits = [0_u64; 2 * PAIRS];
        let mut normals = [0.0_f64; 2 * PAIRS];
        for chunk in out.chunks_mut(2 * PAIRS) {
            let used = chunk.len().next_multiple_of(2);
            self.fill_u64(&mut bits[..used]);
            vectorized(|| box_muller(&bits[..used], &mut normals[..used]));
            for (slot, &normal) in chunk.iter_mut().zip(&normals) {
                *slot = (normal * std) as f32;
            }
        }
    }
}

/// Runs `work` with the widest vector instructions of the processor. Operations, order and bits stay the same.
#[cfg(target_arch = "x86_64")]
fn vectorized(work: impl FnOnce()) {
    pulp::Arch::new().dispatch(work);
}

#[cfg(not(target_arch = "x86_64"))]
fn vectorized(work: impl FnOnce()) {
    work();
}

/// Turns pairs of uniform words into pairs of standard normals.
#[inline(always)]
fn box_muller(bits: &[u64], normals: &mut [f64]) {
    for (words, out) in bits.chunks_exact(2).zip(normals.chunks_exact_mut(2)) {
        let radius = (-2.0 * ln_unit(open_unit(words[0]))).sqrt();
        let (sin, cos) = sin_cos_turn(words[1]);
        out[0] = radius * cos;
        out[1] = radius * sin;
    }
}

/// Returns the natural logarithm of a normal number in (0, 1], to 2 ulp of max(1, |ln|).
#[inline(always)]
fn ln_unit(value: f64) -> f64 {
    const SQRT_HALF_BITS: u64 = 0x3FE6_A09E_667F_3BCD;
    const MAGIC: f64 = 4_503_599_627_370_496.0; // 2⁵²: an integer added to it sits in the low mantissa bits
    // value = 2^exponent · mantissa with mantissa in [√½, √2)
    let shifted = value.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let biased = (shifted.wrapping_add(1023 << 52)) >> 52;
    let exponent = f64::from_bits(biased | 0x4330_0000_0000_0000) - MAGIC - 1023.0;
    let mantissa = f64::from_bits((shifted & ((1 << 52) - 1)) + SQRT_HALF_BITS);
    // ln m = 2·artanh((m−1)/(m+1)); |s| ≤ 0.1716, so the first term left out is below 1e-18
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let w = s * s;
    let mut series = 1.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        series = series * w + 1.0 / odd;
    }
    2.0 * s + 2.0 * s * w * series + exponent * core::f64::consts::LN_2
}

/// Coefficients of sin(x)/x and cos(x) as polynomials of x², the highest power first. The first term left out is below
/// 1e-17 for |x| ≤ π/4.
const SIN: [f64; 9] = [
    1.0 / 355_687_428_096_000.0, // 1/17!
    -1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5_040.0,
    1.0 / 120.0,
    -1.0 / 6.0,
    1.0,
];
const COS: [f64; 9] = [
    1.0 / 20_922_789_888_000.0, // 1/16!
    -1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    -1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    -1.0 / 720.0,
    1.0 / 24.0,
    -0.5,
    1.0,
];

/// Returns (sin, cos) of a uniform angle: two bits choose the quarter turn, the others the angle within it.
#[inline(always)]
fn sin_cos_turn(bits: u64) -> (f64, f64) {
    let x = (open_unit(bits << 2) - 0.5) * core::f64::consts::FRAC_PI_2; // |x| ≤ π/4
    let polynomial = |coefficients: [f64; 9]| {
        let [highest, lower @ ..] = coefficients;
        lower.into_iter().fold(highest, |sum, coefficient| sum * (x * x) + coefficient)
    };
    let (sin, cos) = (polynomial(SIN) * x, polynomial(COS));
    // One bit exchanges sine and cosine, the other turns by half. Together they give the four quarter turns, up to
    // reflections, which leave the uniform distribution as it is.
    let exchange = (bits >> 63) == 1;
    let sign = (bits << 1) & (1 << 63);
    let (a, b) = if exchange { (cos, sin) } else { (sin, cos) };
    (f64::from_bits(a.to_bits() ^ sign), f64::from_bits(b.to_bits() ^ sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    fn stream(index: u32) -> Stream {
        TestRng::from_seed(8).stream(Purpose::GradientNoise, 0, index)
    }

    #[test]
    fn logarithm_and_turns_agree_with_libm() {
        let mut source = stream(0);
        for _ in 0..200_000 {
            let u = source.uniform();
            let (got, want) = (ln_unit(u), libm::log(u));
            assert!(
                (got - want).abs() <= 4.0 * f64::EPSILON * want.abs().max(f64::EPSILON),
                "ln {u}: {got} {want}"
            );
            let bits = source.next_u64();
            let x = (open_unit(bits << 2) - 0.5) * core::f64::consts::FRAC_PI_2;
            let (sin, cos) = sin_cos_turn(bits & (u64::MAX >> 2));
            assert!((sin - libm::sin(x)).abs() < 2e-16 && (cos - libm::cos(x)).abs() < 2e-16, "{x}");
        }
        for edge in
            [f64::from_bits(1.0_f64.to_bits() - 1), 0.5, 2.0_f64.powi(-53), std::f64::consts::FRAC_1_SQRT_2]
        {
            assert!((ln_unit(edge) / libm::log(edge) - 1.0).abs() < 1e-15, "{edge}");
        }
    }

    #[test]
    fn the_four_quarter_turns_are_the_four_sectors() {
        let angle = |quarter: u64| {
            let (sin, cos) = sin_cos_turn((quarter << 62) | (1 << 61));
            libm::atan2(sin, cos).rem_euclid(std::f64::consts::TAU)
        };
        let mut angles: Vec<f64> = (0..4).map(angle).collect();
        angles.sort_by(f64::total_cmp);
        for pair in angles.windows(2) {
            assert!((pair[1] - pair[0] - std::f64::consts::FRAC_PI_2).abs() < 1e-9, "{angles:?}");
        }
    }

    /// Returns the Kolmogorov–Smirnov distance to N(0, σ²) times √n; above 2.69 with probability 1e-6
    /// (2·exp(−2·2.69²)).
    fn kolmogorov(sample: &mut [f64], sigma: f64) -> f64 {
        sample.sort_by(f64::total_cmp);
        let n = sample.len() as f64;
        let cdf = |x: f64| 0.5 * libm::erfc(-x / sigma / std::f64::consts::SQRT_2);
        let distance = sample
            .iter()
            .enumerate()
            .map(|(i, &x)| (cdf(x) - i as f64 / n).abs().max(((i + 1) as f64 / n - cdf(x)).abs()))
            .fold(0.0, f64::max);
        distance * n.sqrt()
    }

    fn drawn(index: u32, count: usize, std: f64) -> Vec<f64> {
        let mut sample = vec![0.0_f32; count];
        stream(index).fill_gaussian_f32(&mut sample, std);
        sample.into_iter().map(f64::from).collect()
    }

    #[test]
    fn fill_is_normal_and_a_wrong_sigma_is_rejected() {
        let mut sample = drawn(1, 500_000, 2.5);
        assert!(kolmogorov(&mut sample, 2.5) < 2.69);
        assert!(kolmogorov(&mut sample, 2.5 * 1.02) > 2.69, "σ wrong by 2 % must be rejected");
    }

    #[test]
    fn the_two_halves_of_a_pair_are_uncorrelated_also_in_their_squares() {
        let sample = drawn(2, 400_000, 1.0);
        let pairs = (sample.len() / 2) as f64;
        let product: f64 = sample.chunks(2).map(|p| p[0] * p[1]).sum::<f64>() / pairs.sqrt();
        let squares: f64 = sample.chunks(2).map(|p| (p[0] * p[0] - 1.0) * (p[1] * p[1] - 1.0)).sum::<f64>();
        assert!(product.abs() < 4.9, "{product}");
        assert!((squares / (4.0 * pairs).sqrt()).abs() < 4.9, "{squares}");
    }

    #[test]
    fn chunked_and_seeked_fills_equal_one_fill() {
        let mut whole = vec![0.0_f32; 1001];
        stream(3).fill_gaussian_f32(&mut whole, 1.0);
        let mut parts = vec![0.0_f32; 1001];
        let mut source = stream(3);
        for chunk in parts.chunks_mut(38) {
            source.fill_gaussian_f32(chunk, 1.0);
        }
        assert_eq!(whole, parts);
        let mut tail = [0.0_f32; 101];
        let mut source = stream(3);
        source.seek(4 * (900 / 2));
        source.fill_gaussian_f32(&mut tail, 1.0);
        assert_eq!(whole[900..], tail);
    }

    #[test]
    fn an_impossible_std_gives_nan_not_zero_noise() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut out = [1.0_f32; 3];
            stream(5).fill_gaussian_f32(&mut out, bad);
            assert!(out.iter().all(|x| x.is_nan()));
        }
    }
}
