//! Times the queries A to F, DP-T5 and a calibration: the median of five.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]
use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, calibrate, epsilon};
use std::time::Instant;
fn main() -> Result<(), accountant::AccountantError> {
    let t5 = 8192.0 / 5_240_387_307.0;
    for (name, q, sigma, steps, delta) in [
        ("A", 1e-2, 1.0, 1_000, 1e-5),
        ("B", 256.0 / 60_000.0, 1.1, 14_062, 1e-5),
        ("C", 1e-3, 0.6, 100_000, 1e-8),
        ("D", 1e-4, 1.0, 1_000_000, 1e-8),
        ("E", t5, 0.3, 100_000, 1.9e-10),
        ("F", 0.23, 3.0, 109, 1e-8),
        ("T5 .4", t5, 0.4, 100_000, 1.0 / 5_240_387_307.0),
        ("T5 .2", t5, 0.2, 100_000, 1.0 / 5_240_387_307.0),
        ("T5 .1", t5, 0.1, 100_000, 1.0 / 5_240_387_307.0),
    ] {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier: sigma };
        let event = DpEvent::SelfComposed { event: Box::new(step), count: steps };
        let mut times = Vec::new();
        let mut bounds = epsilon(&event, Delta::new(delta)?, AddOrRemoveOne)?;
        for _ in 0..5 {
            let start = Instant::now();
            bounds = epsilon(&event, Delta::new(delta)?, AddOrRemoveOne)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let gap = (bounds.upper - bounds.lower) / bounds.upper;
        println!("{name:6} {:.9} {:.9} gap {gap:.1e} {:.2} ms", bounds.lower, bounds.upper, times[2]);
    }
    let start = Instant::now();
    let noise = calibrate::noise_multiplier(1.0, Delta::new(1e-8)?, AddOrRemoveOne, |noise_multiplier| {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.23, noise_multiplier };
        DpEvent::SelfComposed { event: Box::new(step), count: 109 }
    })?;
    println!("calibration {noise:.6} {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
