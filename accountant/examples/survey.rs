//! Measures the width of the certified bounds and their time at random settings of Poisson sampling.
//!
//! `cargo run --release -p accountant --example survey -- COUNT SEED` draws log-uniformly q 1e-9…1, σ 0.1…100,
//! T 1…1e7 and δ 1e-15…1e-3. Every result is checked against Rényi orders and printed at once, with quantiles after every 500, so
//! that an interrupted run is of use too. The widest and the slowest settings are listed at the end.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::time::Instant;

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::rdp::{self, Conversion};
use accountant::{AccountantError, Delta, DpEvent, epsilon};

/// SplitMix64 (Steele, Lea & Flood 2014): enough for drawing settings.
struct Draws(u64);

impl Draws {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        low + (high - low) * (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

struct Seen {
    text: String,
    upper: f64,
    gap: f64,
    ms: f64,
}

fn ask(draws: &mut Draws) -> Result<Seen, AccountantError> {
    let power = |value: f64| 10_f64.powf(value);
    let sampling_probability = power(draws.between(-9.0, 0.0));
    let noise_multiplier = power(draws.between(-1.0, 2.0));
    let count = power(draws.between(0.0, 7.0)) as u64;
    let delta = power(draws.between(-15.0, -3.0));
    let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
    let event = DpEvent::SelfComposed { event: Box::new(step), count };
    let text = format!("q={sampling_probability:?} sigma={noise_multiplier:?} T={count} delta={delta:?}");
    let start = Instant::now();
    let bounds = match epsilon(&event, Delta::new(delta)?, AddOrRemoveOne) {
        Ok(bounds) => bounds,
        Err(error) => {
            println!("REFUSED {text}: {error}");
            return Err(error);
        }
    };
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let renyi = rdp::epsilon(&event, Delta::new(delta)?, AddOrRemoveOne, Conversion::Improved)?;
    if bounds.lower > renyi.max(0.0) * (1.0 + 1e-9) {
        println!("ABOVE RENYI {text}: {bounds:?} against {renyi}");
    }
    let gap = if bounds.upper > 0.0 { (bounds.upper - bounds.lower) / bounds.upper } else { 0.0 };
    println!("{gap:.2e} {ms:.2} ms {text}: {:?} {:?}", bounds.lower, bounds.upper);
    Ok(Seen { text: format!("{text}: {bounds:?}"), upper: bounds.upper, gap, ms })
}

fn quantiles(what: &str, seen: &[&Seen], value: impl Fn(&Seen) -> f64) {
    let mut values: Vec<f64> = seen.iter().map(|seen| value(seen)).collect();
    values.sort_by(f64::total_cmp);
    let at =
        |share: f64| values.get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1)));
    let text: Vec<String> = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0]
        .iter()
        .filter_map(|&share| at(share).map(|value| format!("{share}: {value:.2e}")))
        .collect();
    println!("{what} ({} settings): {}", values.len(), text.join("  "));
}

/// Prints the quantiles of all measurements so far.
fn summarize(seen: &[Seen]) {
    let all: Vec<&Seen> = seen.iter().collect();
    quantiles("milliseconds", &all, |seen| seen.ms);
    for (what, low, high) in [
        ("gap, ε of 0", -1.0, 0.0),
        ("gap, ε to 1e-6", 0.0, 1e-6),
        ("gap, ε 1e-6 to 1e-3", 1e-6, 1e-3),
        ("gap, ε 1e-3 to 0.1", 1e-3, 0.1),
        ("gap, ε above 0.1", 0.1, f64::INFINITY),
    ] {
        let some: Vec<&Seen> = seen.iter().filter(|seen| seen.upper > low && seen.upper <= high).collect();
        quantiles(what, &some, |seen| seen.gap);
        println!("    wider than 1e-3: {}", some.iter().filter(|seen| seen.gap > 1e-3).count());
    }
}

fn main() {
    let mut args = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap_or(1));
    let (count, seed) = (args.next().unwrap_or(1000), args.next().unwrap_or(1));
    let mut draws = Draws(seed);
    let mut seen = Vec::new();
    for index in 1..=count {
        seen.extend(ask(&mut draws).ok());
        if index % 500 == 0 || index == count {
            summarize(&seen);
        }
    }
    seen.sort_by(|one, other| other.gap.total_cmp(&one.gap));
    for seen in seen.iter().filter(|seen| seen.gap > 1e-3).take(40) {
        println!("WIDE {:.2e} {:.1} ms {}", seen.gap, seen.ms, seen.text);
    }
    seen.sort_by(|one, other| other.ms.total_cmp(&one.ms));
    for seen in seen.iter().take(15) {
        println!("SLOW {:.1} ms {:.2e} {}", seen.ms, seen.gap, seen.text);
    }
}
