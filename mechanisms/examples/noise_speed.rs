//! How long the noise of a ten-million-parameter step takes: `cargo run --release -p mechanisms --example noise_speed`.

use std::time::Instant;

use mechanisms::{
    DiscreteGaussian, PrivacyRng, Purpose, ShuffledGaussian, TestRng, fixed_size_sample, poisson_sample,
};

#[allow(clippy::print_stdout, reason = "a measurement for a person to read")]
fn main() {
    let rng = TestRng::from_seed(1);
    let mut out = vec![0.0_f32; 10_000_000];
    let start = Instant::now();
    rng.stream(Purpose::GradientNoise, 0, 0).fill_gaussian_f32(&mut out, 1.0);
    println!("10 M Gaussians: {:.3} s ({})", start.elapsed().as_secs_f64(), out[9_999_999]);

    let start = Instant::now();
    let lot =
        poisson_sample(8192.0 / 5_240_387_307.0, 5_240_387_307, &mut rng.stream(Purpose::Sampling, 0, 0));
    println!("Poisson sample of {}: {:.4} s", lot.len(), start.elapsed().as_secs_f64());

    let start = Instant::now();
    let lot = fixed_size_sample(8192, 5_240_387_307, &mut rng.stream(Purpose::Sampling, 0, 0));
    println!("Fixed-size sample of {}: {:.4} s", lot.len(), start.elapsed().as_secs_f64());

    if let Ok(mechanism) = ShuffledGaussian::new(5_240_387_307, 639_696, 1.0) {
        let start = Instant::now();
        let lot = mechanism.pass(0, &rng).batch(300_000);
        println!("Batch of {} of a shuffled pass: {:.4} s", lot.len(), start.elapsed().as_secs_f64());
    }

    let mut stream = rng.stream(Purpose::HistogramNoise, 0, 0);
    let noise = DiscreteGaussian::new(1 << 24);
    let start = Instant::now();
    let sum: i64 =
        noise.iter().flat_map(|n| (0..1_000_000).map(|_| n.sample(&mut stream)).collect::<Vec<_>>()).sum();
    println!("1 M discrete Gaussians: {:.3} s ({sum})", start.elapsed().as_secs_f64());
}
