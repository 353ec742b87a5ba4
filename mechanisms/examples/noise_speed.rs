//! Measures how long the noise of a ten-million-parameter step takes:
//! `cargo run --release -p mechanisms --example noise_speed`.

use std::time::Instant;

use mechanisms::{
    DiscreteGaussian, FixedSizeSampledGaussian, MechanismError, PoissonSampledGaussian, PrivacyRng, Purpose,
    RoundedGaussian, ShuffledGaussian, TestRng, TrainingMechanism,
};

#[allow(clippy::print_stdout, reason = "a measurement for a person to read")]
fn main() -> Result<(), MechanismError> {
    let rng = TestRng::from_seed(1);
    let mut out = vec![0.0_f32; 10_000_000];
    let start = Instant::now();
    rng.stream(Purpose::GradientNoise, 0, 0).fill_gaussian_f32(&mut out, 1.0);
    println!("10 M Gaussians: {:.3} s ({})", start.elapsed().as_secs_f64(), out[9_999_999]);

    let mut integers = vec![0_i64; 10_000_000];
    let exact = RoundedGaussian::new(3 << 27)?;
    for (name, run) in [("first", 1), ("again", 2), ("again", 3)] {
        let start = Instant::now();
        rng.stream(Purpose::GradientNoise, 0, run).fill_gaussian_f32(&mut out, 1.0);
        let rounded = start.elapsed().as_secs_f64();
        let start = Instant::now();
        exact.add_to(&mut rng.stream(Purpose::GradientNoise, 0, run), 0, &mut integers);
        let time = start.elapsed().as_secs_f64();
        println!(
            "10 M exact rounded Gaussians, {name}: {time:.3} s, {:.2} × the time in floating point",
            time / rounded
        );
    }

    let population = 5_240_387_307;
    let time = |name: &str, mechanism: &dyn TrainingMechanism| {
        let start = Instant::now();
        let batch = mechanism.sample(0, population, &rng)?.batch(0);
        println!("{name} batch of {}: {:.4} s", batch.len(), start.elapsed().as_secs_f64());
        Ok::<(), MechanismError>(())
    };
    time("Poisson", &PoissonSampledGaussian::new(8192.0 / population as f64, 1.0)?)?;
    time("fixed-size", &FixedSizeSampledGaussian::new(8192, population, 1.0)?)?;
    time("shuffled", &ShuffledGaussian::new(639_696, 1.0)?)?;

    let mut stream = rng.stream(Purpose::HistogramNoise, 0, 0);
    let noise = DiscreteGaussian::new(1 << 24);
    let start = Instant::now();
    let sum: i64 =
        noise.iter().flat_map(|n| (0..1_000_000).map(|_| n.sample(&mut stream)).collect::<Vec<_>>()).sum();
    println!("1 M discrete Gaussians: {:.3} s ({sum})", start.elapsed().as_secs_f64());
    Ok(())
}
