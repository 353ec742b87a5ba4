//! Measures the width of the certified bounds and their time at random settings.
//!
//! `cargo run --release -p accountant --example survey -- COUNT SEED` draws log-uniformly q 1e-9…1, σ 0.1…100,
//! T 1…1e7 and δ 1e-15…1e-3 for Poisson sampling. With `zero-out` or `replace-one` as a third argument, batches have a fixed size under that
//! relation, and it draws N 1e3…1e8, q 1e-5…0.1, σ 0.5…8, T 10…1e5 and δ 1e-10…1e-4; the gap of the law that dominates each step by itself is
//! listed beside. Every result is checked against Rényi orders and printed at once, with quantiles after every 500, so that an interrupted
//! run is of use too. The widest and the slowest settings are listed at the end.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::time::Instant;

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::rdp::{self, Conversion};
use accountant::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, epsilon, pld};

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
    /// The gap of the law that dominates each step, where it is another one.
    of_one_law: Option<f64>,
    ms: f64,
}

/// A random run, its δ, and its text.
fn setting(draws: &mut Draws, relation: NeighboringRelation) -> (DpEvent, f64, String) {
    let mut power = |low: f64, high: f64| 10_f64.powf(draws.between(low, high));
    if relation == AddOrRemoveOne {
        let (sampling_probability, noise_multiplier) = (power(-9.0, 0.0), power(-1.0, 2.0));
        let (count, delta) = (power(0.0, 7.0) as u64, power(-15.0, -3.0));
        let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
        let text = format!("q={sampling_probability:?} sigma={noise_multiplier:?} T={count} delta={delta:?}");
        return (DpEvent::SelfComposed { event: Box::new(step), count }, delta, text);
    }
    let population = power(3.0, 8.0);
    let sample_size = (power(-5.0, -1.0) * population).max(1.0) as u64;
    let (population, noise_multiplier) = (population as u64, power(-0.301, 0.903));
    let (count, delta) = (power(1.0, 5.0) as u64, power(-10.0, -4.0));
    let step = DpEvent::FixedSizeSampledGaussian { sample_size, population, noise_multiplier };
    let text = format!("B={sample_size} N={population} sigma={noise_multiplier:?} T={count} delta={delta:?}");
    (DpEvent::SelfComposed { event: Box::new(step), count }, delta, text)
}

fn ask(draws: &mut Draws, relation: NeighboringRelation) -> Result<Seen, AccountantError> {
    let (event, delta, text) = setting(draws, relation);
    let start = Instant::now();
    let bounds = match epsilon(&event, Delta::new(delta)?, relation) {
        Ok(bounds) => bounds,
        Err(error) => {
            println!("REFUSED {text}: {error}");
            return Err(error);
        }
    };
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let renyi = rdp::epsilon(&event, Delta::new(delta)?, relation, Conversion::Improved)?;
    if bounds.lower > renyi.max(0.0) * (1.0 + 1e-9) {
        println!("ABOVE RENYI {text}: {bounds:?} against {renyi}");
    }
    let width =
        |bounds: Bounds| if bounds.upper > 0.0 { (bounds.upper - bounds.lower) / bounds.upper } else { 0.0 };
    let gap = width(bounds);
    let of_one_law = match relation {
        AddOrRemoveOne => None,
        _ => pld::epsilon(&event, Delta::new(delta)?, relation).ok().map(width),
    };
    println!("{gap:.2e} {ms:.2} ms {text}: {:?} {:?}", bounds.lower, bounds.upper);
    Ok(Seen { text: format!("{text}: {bounds:?}"), upper: bounds.upper, gap, of_one_law, ms })
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
        let known: Vec<&Seen> = some.iter().copied().filter(|seen| seen.of_one_law.is_some()).collect();
        if !known.is_empty() {
            quantiles("    by one law a step", &known, |seen| seen.of_one_law.unwrap_or(f64::NAN));
        }
        println!("    wider than 1e-3: {}", some.iter().filter(|seen| seen.gap > 1e-3).count());
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |otherwise: u64| args.next().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (count, seed) = (number(1000), number(1));
    let relation = match args.next().as_deref() {
        Some("zero-out") => ZeroOut,
        Some("replace-one") => ReplaceOne,
        _ => AddOrRemoveOne,
    };
    let mut draws = Draws(seed);
    let mut seen = Vec::new();
    for index in 1..=count {
        seen.extend(ask(&mut draws, relation).ok());
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
