//! Tests what the low bits of a released gradient reveal about the sum (Mironov 2012,
//! <https://doi.org/10.1145/2382196.2382264>).
//!
//! The attacker knows every example but one, and therefore two candidates for the sum.
//! Floating-point noise cannot turn every sum into every output, so some outputs refute a candidate
//! with certainty.

use super::*;

const LENGTH: usize = 1 << 16;

/// Two sums that differ by one example of norm 1, and the noise's grid for σ = 1.
struct Candidates {
    sums: [Vec<f32>; 2],
    grid: Grid,
}

impl Candidates {
    fn new() -> Self {
        let mut stream = TestRng::from_seed(21).stream(Purpose::Data, 0, 0);
        let mut draw = |std: f64| {
            let mut values = vec![0.0_f32; LENGTH];
            stream.fill_gaussian_f32(&mut values, std);
            values
        };
        // 16 examples of norm 1, and one more.
        let others = draw(4.0 / (LENGTH as f64).sqrt());
        let with_one =
            draw(1.0 / (LENGTH as f64).sqrt()).iter().zip(&others).map(|(one, sum)| sum + one).collect();
        Self { sums: [others, with_one], grid: Grid::new(1.0, 0.5).unwrap() }
    }

    /// Noise as the trainer drew it until November 2026: rounded to f32, and added in f32.
    fn release_in_floating_point(&self) -> Vec<f32> {
        let mut noise = vec![0.0_f32; LENGTH];
        TestRng::from_seed(22).stream(Purpose::GradientNoise, 0, 0).fill_gaussian_f32(&mut noise, 1.0);
        self.sums[0].iter().zip(noise).map(|(sum, noise)| sum + noise).collect()
    }

    fn release_on_grid(&self) -> Vec<f32> {
        let sum = ClippedSum {
            parts: vec![self.integers(0)],
            pieces: None,
            grid_step: self.grid.unit(),
            l2_clip_norm: 1.0,
            unclipped_halves: 0,
        };
        let release = NoisyAverage { noise: GaussianMechanism::new(1.0).unwrap(), step: 0, divisor: 1.0 };
        let gradient: PrivateGradient<Flex> = release
            .of(&mut Carried::default(), sum.bounded().unwrap(), &TestRng::from_seed(22), &DEVICE)
            .unwrap();
        network::tensor::to_host(gradient.into_parts().remove(0))
    }

    fn integers(&self, candidate: usize) -> Vec<i64> {
        self.sums[candidate].iter().map(|&sum| (f64::from(sum) / self.grid.unit()).round() as i64).collect()
    }

    /// Returns the share of elements that no 32-bit noise can produce from each candidate.
    fn refuted(&self, released: &[f32]) -> [f64; 2] {
        [0, 1].map(|candidate| {
            let pairs = released.iter().zip(&self.sums[candidate]);
            pairs.filter(|&(&out, &sum)| !explains(sum, out)).count() as f64 / LENGTH as f64
        })
    }
}

/// Whether some noise of 32 bits gives `out` when it is added to `sum` in f32.
fn explains(sum: f32, out: f32) -> bool {
    let noise = (f64::from(out) - f64::from(sum)) as f32;
    [noise.next_down(), noise, noise.next_up()].into_iter().any(|noise| sum + noise == out)
}

#[test]
fn low_bits_refute_a_false_candidate_under_the_old_noise_and_none_under_the_new() {
    let candidates = Candidates::new();
    let [of_true, of_false] = candidates.refuted(&candidates.release_in_floating_point());
    println!(
        "floating point: refutes the true candidate at {of_true}, the false one at {of_false} of elements"
    );
    assert!(of_true == 0.0 && of_false > 0.02, "{of_true} {of_false}");

    let [of_true, of_false] = candidates.refuted(&candidates.release_on_grid());
    println!("on the grid: {of_true} and {of_false}");
    let tolerance = 4.9 * (2.0 * of_true.max(1e-4) / LENGTH as f64).sqrt();
    assert!((of_true - of_false).abs() < tolerance, "{of_true} {of_false}");
}

/// If the release is a whole number of units in 24 bits, every bit of output − candidate is a bit
/// of the noise. χ² of the lowest 6 bits has 63 degrees of freedom; it exceeds 140 with a
/// probability below 1e-6.
#[test]
fn the_lowest_bits_of_the_noise_are_uniform_under_both_candidates() {
    let candidates = Candidates::new();
    let released = candidates.release_on_grid();
    for candidate in [0, 1] {
        let mut counts = [0.0_f64; 64];
        for (&out, sum) in released.iter().zip(candidates.integers(candidate)) {
            let units = f64::from(out) / candidates.grid.unit();
            if units.abs() < f64::from(1 << 24) {
                counts[(units as i64 - sum).rem_euclid(64) as usize] += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / 64.0;
        assert!(mean > 40.0, "{mean}");
        let statistic: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
        assert!(statistic < 140.0, "{candidate}: {statistic}");
    }
}
