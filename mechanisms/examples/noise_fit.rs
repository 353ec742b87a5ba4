//! Measures how well the exact noise fits its distribution:
//! `cargo run --release -p mechanisms --example noise_fit [-- DRAWS]`.
//!
//! χ² against the probabilities of the integers at small standard deviations, and the
//! Kolmogorov–Smirnov distance at 65,535 edges at a standard deviation of 2²⁸ units.

use mechanisms::{MechanismError, PrivacyRng, Purpose, RoundedGaussian, TestRng};

const BLOCK: usize = 1 << 20;

#[allow(clippy::print_stdout, reason = "a measurement for a person to read")]
fn main() -> Result<(), MechanismError> {
    let draws = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000_000_u64);
    for (std, cells) in [(1, 4), (3, 12), (1000, 4000)] {
        let edge = |k: i64| k as f64 + 0.5;
        let counts = count(std, draws, 2 * cells + 2, |z| z.clamp(-cells - 1, cells) + cells + 1)?;
        let tail = |x: f64| 0.5 * libm::erfc(x / std as f64 / std::f64::consts::SQRT_2);
        let mass = |cell: i64| match cell - cells - 1 {
            low if low == -cells - 1 => tail(edge(cells)),
            high if high == cells => tail(edge(high - 1)),
            k => tail(edge(k - 1)) - tail(edge(k)),
        };
        let expected = |cell: usize| mass(cell as i64) * draws as f64;
        let statistic: f64 = counts
            .iter()
            .enumerate()
            .map(|(cell, &n)| (n as f64 - expected(cell)).powi(2) / expected(cell))
            .sum();
        let freedom = counts.len() as f64 - 1.0;
        println!(
            "std {std}: chi-square {statistic:.1} with {freedom} degrees of freedom, {:+.2} standard deviations",
            (statistic - freedom) / (2.0 * freedom).sqrt()
        );
    }
    let std = 1_u64 << 28;
    let counts = count(std, draws, 1 << 16, |z| ((z >> 15) + (1 << 15)).clamp(0, 0xFFFF))?;
    let (mut below, mut distance) = (0_u64, 0.0_f64);
    for (bin, n) in counts.iter().enumerate().take(0xFFFF) {
        below += n;
        let edge = ((bin as i64 + 1 - (1 << 15)) << 15) as f64 - 0.5;
        let cdf = 0.5 * libm::erfc(-edge / std as f64 / std::f64::consts::SQRT_2);
        distance = distance.max((below as f64 / draws as f64 - cdf).abs());
    }
    println!(
        "std 2^28: Kolmogorov-Smirnov distance times the root of {draws} draws: {:.3}",
        distance * (draws as f64).sqrt()
    );
    Ok(())
}

/// The number of draws in each cell.
fn count(std: u64, draws: u64, cells: i64, cell: impl Fn(i64) -> i64) -> Result<Vec<u64>, MechanismError> {
    let noise = RoundedGaussian::new(std)?;
    let mut counts = vec![0; cells as usize];
    let mut stream = TestRng::from_seed(std).stream(Purpose::GradientNoise, 0, 0);
    let mut values = vec![0; BLOCK];
    let mut first = 0;
    while first < draws {
        let length = (draws - first).min(BLOCK as u64) as usize;
        values[..length].fill(0);
        noise.add_to(&mut stream, first, &mut values[..length]);
        for &z in &values[..length] {
            counts[cell(z) as usize] += 1;
        }
        first += length as u64;
    }
    Ok(counts)
}
