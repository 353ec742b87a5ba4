//! Measures queries A to F and a calibration, beside other accountants in the Python environment of `PEERS_PYTHON`.
//!
//! Prints medians of one run on one machine. A ratio above 1 says how many times longer the other accountant takes.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::error::Error;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::calibrate::EpsilonTarget;
use accountant::{Bounds, Delta, DpEvent, epsilon};
use serde_json::{Value, json};

struct Query {
    name: &'static str,
    q: f64,
    sigma: f64,
    steps: u64,
    delta: f64,
}

const fn query(name: &'static str, q: f64, sigma: f64, steps: u64, delta: f64) -> Query {
    Query { name, q, sigma, steps, delta }
}

const QUERIES: [Query; 6] = [
    query("A", 1e-2, 1.0, 1_000, 1e-5),
    query("B", 256.0 / 60_000.0, 1.1, 14_062, 1e-5),
    query("C", 1e-3, 0.6, 100_000, 1e-8),
    query("D", 1e-4, 1.0, 1_000_000, 1e-8),
    query("E", 8192.0 / 5_240_387_307.0, 0.3, 100_000, 1.9e-10),
    query("F", 0.23, 3.0, 109, 1e-8),
];

fn run_of(sampling_probability: f64, noise_multiplier: f64, count: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
    DpEvent::SelfComposed { event: Box::new(step), count }
}

/// Returns the answer, and the median time in milliseconds of `rounds` runs.
fn timed<T>(rounds: usize, answer: impl Fn() -> T) -> (T, f64) {
    let mut value = answer();
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        value = answer();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (value, times[rounds / 2])
}

/// A result of this accountant, and its median time.
struct Found {
    name: &'static str,
    value: f64,
    ms: f64,
}

/// The calibration that is timed: noise for ε = 1 over 109 steps.
const CALIBRATION: &str = "noise";

fn ours() -> Result<Vec<Found>, Box<dyn Error>> {
    println!("query  lower        upper        gap      ms");
    let (mut found, mut lines) = (Vec::new(), String::new());
    for query in &QUERIES {
        let (event, delta) = (run_of(query.q, query.sigma, query.steps), Delta::new(query.delta)?);
        let (bounds, ms) = timed(9, || epsilon(&event, delta, AddOrRemoveOne));
        let Bounds { lower, upper } = bounds?;
        let gap = (upper - lower) / upper;
        println!("{:5}  {lower:<11.9}  {upper:<11.9}  {gap:.1e}  {ms:.3}", query.name);
        let line = json!({ "name": query.name, "lower": lower, "upper": upper, "ms": ms });
        lines.push_str(&format!("{line}\n"));
        found.push(Found { name: query.name, value: upper, ms });
    }
    // The WASM benchmark reads this.
    if let Some(path) = std::env::var_os("NATIVE_TIMES") {
        std::fs::write(path, lines)?;
    }
    let delta = Delta::new(1e-8)?;
    let target = EpsilonTarget { epsilon: 1.0, delta, relation: AddOrRemoveOne };
    let (noise, ms) = timed(5, || target.noise_multiplier(|noise| run_of(0.23, noise, 109)));
    let noise = noise?;
    println!("noise for epsilon 1, q 0.23, 109 steps, delta 1e-8: {noise:.6} in {ms:.3} ms");
    found.push(Found { name: CALIBRATION, value: noise, ms });
    Ok(found)
}

/// Returns the other accountants' results, one JSON object each.
fn peers(python: &std::ffi::OsStr) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut child = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        for Query { name, q, sigma, steps, delta } in &QUERIES {
            let line = json!({ "name": name, "q": q, "sigma": sigma, "steps": steps, "delta": delta });
            writeln!(input, "{line}")?;
        }
        let line = json!({ "name": CALIBRATION, "q": 0.23, "steps": 109, "delta": 1e-8, "target": 1.0 });
        writeln!(input, "{line}")?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(
            format!("the peers' Python ended with {}; give a venv that has them", output.status).into()
        );
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| serde_json::from_str(line).map_err(Into::into)).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let found = ours()?;
    let Some(python) = std::env::var_os("PEERS_PYTHON") else {
        println!("no peers: cargo xtask bench accountant --venv PATH times them too");
        return Ok(());
    };
    println!("\nquery  peer               value        against our upper  ms         times ours");
    for answer in peers(&python)? {
        let own = found.iter().find(|own| answer["query"] == own.name);
        let tool = answer["tool"].as_str().unwrap_or_default();
        let (Some(own), Some(value), Some(ms)) = (own, answer["value"].as_f64(), answer["ms"].as_f64())
        else {
            let reason = answer["failed"].as_str().or(answer["missing"].as_str()).unwrap_or("no answer");
            println!("{:5}  {tool:17}  {reason}", answer["query"].as_str().unwrap_or("all"));
            continue;
        };
        let off = 100.0 * (value / own.value - 1.0);
        println!("{:5}  {tool:17}  {value:<11.6}  {off:+.3} %  {ms:.1}  {:.0}", own.name, ms / own.ms);
    }
    Ok(())
}
