//! The tables of the papers: the published figures, those of RDP, and the certified ones.
//!
//! `cargo test --release -p tests --test papers -- --nocapture` prints the tables.

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::calibrate::EpsilonTarget;
use accountant::rdp::{self, Conversion};
use accountant::{Bounds, Delta, DpEvent};
use serde_json::Value;

/// The file states provenance and tolerances.
fn vectors(table: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../vectors/papers.json")).expect("vectors are JSON");
    file[table].as_array().expect("a table").clone()
}

fn figure(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} is not a number in {row}"))
}

fn delta(row: &Value) -> Delta {
    Delta::new(figure(row, "delta")).expect("a probability")
}

fn steps(sampling_probability: f64, noise_multiplier: f64, count: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier };
    DpEvent::SelfComposed { event: Box::new(step), count }
}

fn training(row: &Value, noise_multiplier: f64) -> DpEvent {
    steps(figure(row, "q"), noise_multiplier, row["steps"].as_u64().expect("a count"))
}

fn relative(given: f64, expected: f64) -> f64 {
    (given / expected - 1.0).abs()
}

/// The certified bounds contain the exact value, and each is within 0.1 % of it.
fn assert_brackets(bounds: Bounds, exact: f64, run: &Value) {
    assert!(bounds.lower <= exact * (1.0 + 1e-9), "{run}: {bounds:?} is above {exact}");
    assert!(bounds.upper >= exact * (1.0 - 1e-9), "{run}: {bounds:?} is below {exact}");
    assert!(bounds.upper <= exact * 1.001, "{run}: {bounds:?} is too wide for {exact}");
    assert!(bounds.lower >= exact * 0.999, "{run}: {bounds:?} is too wide for {exact}");
}

#[test]
fn rdp_reproduces_published_figures_and_certified_bounds_contain_the_exact_ones() {
    println!("{:<42} {:>12} {:>12} {:>12} {:>12}", "run", "published", "RDP", "lower", "upper");
    for row in vectors("runs") {
        let event = training(&row, figure(&row, "noise_multiplier"));
        let by_rdp = rdp::epsilon(&event, delta(&row), AddOrRemoveOne, Conversion::Improved).expect("RDP");
        let bounds = accountant::epsilon(&event, delta(&row), AddOrRemoveOne).expect("bounds");
        let (run, published) = (row["run"].as_str().unwrap_or_default(), figure(&row, "published"));
        println!("{run:<42} {published:>12.6} {by_rdp:>12.6} {:>12.6} {:>12.6}", bounds.lower, bounds.upper);
        if let Some(expected) = row["rdp"].as_f64() {
            // dp_accounting omits a sign at fractional orders, so its figure is slightly too large.
            assert!(relative(by_rdp, expected) < 1e-4, "{run}: RDP {by_rdp}, expected {expected}");
            assert!(by_rdp <= expected * (1.0 + 1e-8), "{run}: RDP {by_rdp} above {expected}");
        }
        if run.starts_with("DP-T5") {
            // Published with seven decimals, truncated.
            assert!((by_rdp - published).abs() < 1e-7, "{run}: RDP {by_rdp}, published {published}");
        }
        assert_brackets(bounds, figure(&row, "exact"), &row);
        assert!(bounds.upper <= by_rdp, "{run}: {bounds:?} is looser than RDP {by_rdp}");
    }
}

/// The published 107.30 and 9.75 are √10·√(ln 1e5)/σ: an asymptotic formula without its constant.
#[test]
fn the_formula_behind_kerrigans_figures_is_not_a_bound() {
    let row = vectors("runs")
        .into_iter()
        .find(|row| row["run"].as_str().is_some_and(|run| run.starts_with("Kerrigan")));
    let row = row.expect("Kerrigan's run");
    let formula = (10.0 * 1e5_f64.ln()).sqrt() / 1.1;
    assert!(relative(formula, figure(&row, "published")) < 5e-4, "{formula}");
    let bounds = accountant::epsilon(&training(&row, 1.1), delta(&row), AddOrRemoveOne).expect("bounds");
    assert!(bounds.lower > 2.0 * formula, "{bounds:?} against {formula}");
}

#[test]
fn schedules_compose_to_the_exact_figure() {
    println!("{:<42} {:>12} {:>12} {:>12}", "schedule", "exact", "lower", "upper");
    for row in vectors("schedules") {
        let phases = row["phases"].as_array().expect("phases");
        let number = |phase: &Value, at: usize| phase[at].as_f64().expect("a number");
        let events = phases
            .iter()
            .map(|phase| steps(number(phase, 0), number(phase, 1), phase[2].as_u64().expect("a count")))
            .collect();
        let bounds =
            accountant::epsilon(&DpEvent::Composed { events }, delta(&row), AddOrRemoveOne).expect("bounds");
        let (run, exact) = (row["run"].as_str().unwrap_or_default(), figure(&row, "exact"));
        println!("{run:<42} {exact:>12.6} {:>12.6} {:>12.6}", bounds.lower, bounds.upper);
        assert_brackets(bounds, exact, &row);
    }
}

#[test]
fn calibration_finds_the_exact_noise_which_is_below_that_of_rdp() {
    println!("{:<28} {:>8} {:>12} {:>12} {:>12}", "run", "ε", "σ by RDP", "σ exact", "σ here");
    for row in vectors("calibrations") {
        let (epsilon, exact, by_rdp) =
            (figure(&row, "epsilon"), figure(&row, "noise_multiplier"), figure(&row, "rdp"));
        let target = EpsilonTarget { epsilon, delta: delta(&row), relation: AddOrRemoveOne };
        let found = target.noise_multiplier(|noise| training(&row, noise)).expect("a noise multiplier");
        let run = row["run"].as_str().unwrap_or_default();
        println!("{run:<28} {epsilon:>8} {by_rdp:>12.6} {exact:>12.6} {found:>12.6}");
        // The search rounds up by at most 1e-6, and the bound that it uses is slightly above the exact value.
        assert!(found >= exact * (1.0 - 1e-6) && found < exact * (1.0 + 1e-5), "{run}: {found} for {exact}");
        assert!(found < by_rdp, "{run}: {found} is no less than RDP's {by_rdp}");
    }
}

#[test]
fn tokenizer_and_training_together_cost_less_than_their_sum() {
    println!("{:>12} {:>12} {:>12} {:>12}", "sum", "joint (PLD)", "lower", "upper");
    for row in vectors("joint") {
        let histogram = DpEvent::ThresholdedHistogram {
            noise_multiplier: figure(&row, "histogram_noise_multiplier"),
            threshold_delta: figure(&row, "threshold_delta"),
        };
        let events = vec![histogram, training(&row, figure(&row, "noise_multiplier"))];
        let bounds =
            accountant::epsilon(&DpEvent::Composed { events }, delta(&row), AddOrRemoveOne).expect("bounds");
        let (sum, joint) = (figure(&row, "sum"), figure(&row, "epsilon"));
        println!("{sum:>12.6} {joint:>12.6} {:>12.6} {:>12.6}", bounds.lower, bounds.upper);
        // The oracle is an upper bound, up to 0.2 % too large because of its grid.
        assert!(bounds.upper < joint * 1.001 && bounds.upper > joint * 0.998, "{bounds:?} against {joint}");
        assert!(bounds.upper < sum);
    }
}
