//! Tests every row of the reference tables by the rule: lower ≤ exact·(1+1e-9), upper ≥
//! exact·(1−1e-9), gap ≤ 1e-3.
//!
//! The tables lie beside the repository. Without them, `vectors.rs` still tests the figures kept in
//! the crate.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skipped"
)]

use std::path::Path;

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::calibrate::EpsilonTarget;
use accountant::rdp::{self, Conversion};
use accountant::{Delta, DpEvent, delta, epsilon, group_epsilon, normal, pld};
use serde_json::Value;

fn rows(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str::<Value>(&text).unwrap()["rows"].as_array().unwrap().clone(),
        Err(_) => {
            println!(
                "SKIPPED: {} is not there; only the figures kept in the crate are tested",
                path.display()
            );
            Vec::new()
        }
    }
}

fn sampled(q: f64, sigma: f64, steps: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier: sigma };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

/// Returns the steps of a row with `q`, `sigma` and `T`.
fn sampled_by(row: &Value) -> DpEvent {
    sampled(number(row, "q"), number(row, "sigma"), number(row, "T") as u64)
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

/// Describes the fault of the bounds for `event`, if there is one; `tolerance` is the table's own.
fn problem(event: &DpEvent, at: f64, exact: f64, tolerance: f64) -> Option<String> {
    let bounds = match epsilon(event, Delta::new(at).unwrap(), AddOrRemoveOne) {
        Ok(bounds) => bounds,
        Err(error) => return Some(error.to_string()),
    };
    let gap = bounds.upper - bounds.lower;
    let holds = bounds.lower <= exact * (1.0 + tolerance) && bounds.upper >= exact * (1.0 - tolerance);
    (!(holds && gap <= 1e-3 * bounds.upper)).then(|| format!("{bounds:?} against {exact}, gap {gap:.2e}"))
}

/// The faults of a table's rows.
#[derive(Default)]
struct Verdict {
    wrong: Vec<String>,
    count: usize,
}

impl Verdict {
    /// The verdict on the rows of a table.
    fn of(table: &str, check: impl Fn(&Value, &mut Self)) -> Self {
        let mut verdict = Self::default();
        rows(table).iter().for_each(|row| check(row, &mut verdict));
        verdict
    }

    /// Counts one figure of a row.
    fn count(&mut self, row: &Value, problem: Option<String>) {
        self.count += 1;
        self.wrong.extend(problem.map(|problem| format!("{row}: {problem}")));
    }

    fn assert_none_wrong(self) {
        let Self { wrong, count } = self;
        println!("{count} rows");
        assert!(wrong.is_empty(), "{} of {count} rows:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// Returns a description of the finding as a problem, unless the result is good.
fn unless(good: bool, found: impl std::fmt::Debug) -> Option<String> {
    (!good).then(|| format!("{found:?}"))
}

#[test]
fn exact_figures_of_the_grid_lie_inside_narrow_bounds() {
    // Oracle: contour inversion on two contours. Rows where "add" is the worse direction carry no exact figure for
    // it and are held to the PLD's sanity tolerance below.
    let verdict = Verdict::of("b_pld_grid.json", |row, verdict| {
        let Some(exact) = row["exact_remove"].as_f64() else { return };
        if number(row, "pld_add") <= exact {
            verdict.count(row, problem(&sampled_by(row), number(row, "delta"), exact, 1e-9));
        }
    });
    verdict.assert_none_wrong();
}

#[test]
fn every_row_of_the_grid_has_a_narrow_gap_and_agrees_with_pld_where_pld_is_sound() {
    // Oracle: dp_accounting's PLD at grid 1e-4, trusted to 2 % where a step's loss exceeds the grid and δ is
    // large enough for its round-off (see ACCOUNTANT.md). Every 12th row unless ACCOUNTANT_FULL is set.
    let stride = if std::env::var_os("ACCOUNTANT_FULL").is_some() { 1 } else { 12 };
    let mut verdict = Verdict::default();
    for row in rows("b_pld_grid.json").iter().step_by(stride) {
        let (q, sigma, steps, at) =
            (number(row, "q"), number(row, "sigma"), number(row, "T"), number(row, "delta"));
        let pld = number(row, "pld_max");
        let bounds = epsilon(&sampled_by(row), Delta::new(at).unwrap(), AddOrRemoveOne).unwrap();
        let narrow = bounds.upper - bounds.lower <= 1e-3 * bounds.upper;
        let step_loss = q * (1.0 / (sigma * sigma)).exp_m1().sqrt();
        let sound = at >= 1e-8 && step_loss > 1e-3 && q * steps >= 1.0 && pld > 0.05;
        let agrees = !sound || bounds.lower <= pld * 1.02 && bounds.upper >= pld * 0.98;
        verdict.count(row, unless(narrow && agrees, bounds));
    }
    verdict.assert_none_wrong();
}

#[test]
fn exact_figures_of_schedules_and_papers_lie_inside_narrow_bounds() {
    // Oracle: contour inversion, two contours.
    let schedules = Verdict::of("e_schedules.json", |row, verdict| {
        let Some(exact) = row["eps_exact_remove"].as_f64() else { return };
        let events = row["phases"].as_array().unwrap().iter().map(|phase| {
            let part = |index: usize| phase[index].as_f64().unwrap();
            sampled(part(0), part(1), part(2) as u64)
        });
        let event = DpEvent::Composed { events: events.collect() };
        verdict.count(row, problem(&event, number(row, "delta"), exact, 1e-8));
    });
    schedules.assert_none_wrong();
    let papers = Verdict::of("i_seeds.json", |row, verdict| {
        let Some(exact) = row["exact_remove"].as_f64() else { return };
        let q = row["q"].as_f64().unwrap_or_else(|| number(row, "B") / number(row, "N"));
        let event = sampled(q, number(row, "sigma"), number(row, "T") as u64);
        verdict.count(row, problem(&event, number(row, "delta"), exact, 1e-8));
    });
    papers.assert_none_wrong();
}

#[test]
fn calibrated_noise_is_the_exact_one_from_above() {
    // Oracle: bisection on contour inversion, 1e-6 relative; the result here may be above by the bounds' gap, never
    // below.
    let verdict = Verdict::of("d_calibration.json", |row, verdict| {
        let Some(exact) = row["sigma_exact_poisson"].as_f64() else { return };
        let (q, steps) = (number(row, "q"), number(row, "T") as u64);
        let delta = Delta::new(number(row, "delta")).unwrap();
        let target = EpsilonTarget { epsilon: number(row, "target_eps"), delta, relation: AddOrRemoveOne };
        let noise = target.noise_multiplier(|noise| sampled(q, noise, steps)).unwrap();
        verdict.count(row, unless(noise >= exact * (1.0 - 1e-6) && noise <= exact * (1.0 + 1e-3), noise));
    });
    verdict.assert_none_wrong();
}

#[test]
fn renyi_divergences_agree_with_fifty_digits() {
    // Oracle: mpmath. dp_accounting's own figures are loose at fractional orders and lose digits near 0.
    let verdict = Verdict::of("a_rdp_sgm.json", |row, verdict| {
        let of_dp_accounting = row["rdp"].as_f64().filter(|rdp| *rdp > 1e-7);
        let (truth, tolerance) = match (row["rdp_mpmath"].as_f64(), of_dp_accounting) {
            (Some(truth), _) => (truth, 1e-9),
            (None, Some(rdp)) if number(row, "alpha").fract() == 0.0 => (rdp, 1e-6),
            _ => return,
        };
        let event = sampled(number(row, "q"), number(row, "sigma"), 1);
        let ours = rdp::divergence(&event, number(row, "alpha"), AddOrRemoveOne).unwrap();
        verdict.count(row, unless((ours / truth - 1.0).abs() <= tolerance, ours));
    });
    verdict.assert_none_wrong();
}

#[test]
fn renyi_conversions_are_never_above_and_close_to_dp_accounting() {
    // Oracle for the improved conversion: Opacus, 1e-6. For the classic one only dp_accounting, whose curve is loose at
    // fractional orders.
    let verdict = Verdict::of("a_rdp_eps.json", |row, verdict| {
        let at = Delta::new(number(row, "delta")).unwrap();
        let ways = [("eps_classic", Conversion::Classic, 5e-3), ("eps_opacus", Conversion::Improved, 1e-6)];
        for (key, conversion, below) in ways {
            let ours = rdp::epsilon(&sampled_by(row), at, AddOrRemoveOne, conversion).unwrap();
            let theirs = number(row, key);
            let close = ours <= theirs * (1.0 + 1e-6) && ours >= theirs * (1.0 - below);
            verdict.count(row, unless(close, (key, ours)));
        }
    });
    verdict.assert_none_wrong();
}

#[test]
fn the_gaussian_mechanism_is_exact_to_twelve_digits() {
    // Oracle: mpmath, 50 digits.
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().parse::<f64>().unwrap();
    let verdict = Verdict::of("c_gaussian.json", |row, verdict| {
        let good = match row["kind"].as_str().unwrap() {
            "eps_for_delta" => {
                let event = DpEvent::Gaussian { noise_multiplier: 1.0 / text(row, "mu") };
                let exact = text(row, "eps");
                let bounds =
                    epsilon(&event, Delta::new(text(row, "delta")).unwrap(), AddOrRemoveOne).unwrap();
                bounds.lower <= exact * (1.0 + 1e-12)
                    && bounds.upper >= exact * (1.0 - 1e-12)
                    && bounds.upper - bounds.lower <= 1e-11 * bounds.upper.max(1e-3)
            }
            "delta_for_eps" => {
                let event = DpEvent::Gaussian { noise_multiplier: 1.0 / text(row, "mu") };
                let exact = text(row, "delta");
                let bounds = delta(&event, text(row, "eps"), AddOrRemoveOne).unwrap();
                exact < 1e-300 && bounds.upper < 1e-299
                    || bounds.lower <= exact * (1.0 + 1e-10)
                        && bounds.upper >= exact * (1.0 - 1e-10)
                        && bounds.upper <= exact * (1.0 + 1e-9)
            }
            _ => {
                let at = Delta::new(text(row, "delta")).unwrap();
                let event_for = |noise_multiplier| DpEvent::Gaussian { noise_multiplier };
                let epsilon = text(row, "eps");
                let target = EpsilonTarget { epsilon, delta: at, relation: AddOrRemoveOne };
                let noise = target.noise_multiplier(event_for).unwrap();
                let exact = text(row, "sigma");
                noise >= exact * (1.0 - 1e-11) && noise <= exact * (1.0 + 1e-6)
            }
        };
        verdict.count(row, unless(good, "out of tolerance"));
    });
    verdict.assert_none_wrong();
}

#[test]
fn groups_cost_what_contour_inversion_says() {
    // Oracle: contour inversion of the binomial mixture, 1e-7.
    let verdict = Verdict::of("g_group.json", |row, verdict| {
        for index in 0..3 {
            let side = |key: &str| row[key][index].as_f64();
            let (Some(remove), Some(add)) = (side("eps_exact_rem"), side("eps_exact_add")) else { continue };
            let at = Delta::new(row["delta"][index].as_f64().unwrap()).unwrap();
            let group = number(row, "k") as u32;
            let bounds = group_epsilon(&sampled_by(row), group, at, AddOrRemoveOne).unwrap();
            let exact = remove.max(add);
            let holds = bounds.lower <= exact * (1.0 + 1e-7) && bounds.upper >= exact * (1.0 - 1e-7);
            let narrow = bounds.upper - bounds.lower <= 1e-3 * bounds.upper;
            verdict.count(row, unless(holds && narrow, (index, bounds)));
        }
    });
    verdict.assert_none_wrong();
}

#[test]
fn vocabulary_and_training_together_cost_less_than_their_sum() {
    // Oracle: dp_accounting's PLD of histogram × training at δ − δ_threshold. Its grid of 1e-4 adds 1e-8/6 to each
    // step's variance: 0.15 % of ε in the first row, whose steps are smallest.
    let verdict = Verdict::of("h_hist_joint.json", |row, verdict| {
        let histogram = DpEvent::ThresholdedHistogram {
            noise_multiplier: 1.0 / number(row, "mu_hist"),
            threshold_delta: number(row, "delta_threshold"),
        };
        let events = vec![histogram, sampled_by(row)];
        let at = Delta::new(number(row, "delta_total")).unwrap();
        let bounds = epsilon(&DpEvent::Composed { events }, at, AddOrRemoveOne).unwrap();
        let joint = number(row, "eps_joint_pld");
        let close =
            bounds.lower <= joint * 1.001 && bounds.upper >= joint * 0.998 && bounds.upper <= joint * 1.001;
        verdict.count(row, unless(close && bounds.upper < number(row, "eps_naive_sum"), bounds));
    });
    verdict.assert_none_wrong();
}

#[test]
fn the_histogram_threshold_is_the_exact_normal_tail() {
    // Hoory et al. 2021 miss a √2: their C has a union tail of 1.18e-4 instead of 1e-9 (reference row "vocab threshold").
    for row in rows("i_seeds.json").iter().filter(|row| row["C_correct"].is_number()) {
        let tail = number(row, "tail_per_word");
        assert!((normal::sf((number(row, "C_paper") - 1.0) / 200.0) / tail - 1.0).abs() < 0.05, "{row}");
        let right = number(row, "C_correct");
        assert!((1.0 + 200.0 * normal::isf(1e-9 / 256.0) - right).abs() < 1.0, "{row}");
    }
}

/// Losses of 1e-9 whose masses cancel to all but nine digits: an engine that takes δ as a difference of two large sums
/// gives bounds that contradict the others'.
///
/// Oracle: the normal law with Edgeworth's corrections by skewness and kurtosis in 30 digits, off by less than 1e-5 of ε.
#[test]
fn tiny_losses_are_not_told_by_differences_of_large_sums() {
    let delta = Delta::new(5.935_685_668_974_408e-10).unwrap();
    for (q, exact) in [(2.7e-9, 7.650_043_2e-12), (2.722_547_578_639_558_6e-9, 1.769_636_8e-11)] {
        let event = sampled(q, 65.140_371_704_974_61, 1305);
        for bounds in [epsilon(&event, delta, AddOrRemoveOne), pld::epsilon(&event, delta, AddOrRemoveOne)] {
            let bounds = bounds.unwrap();
            assert!(
                bounds.lower <= exact * (1.0 + 1e-5) && exact * (1.0 - 1e-5) <= bounds.upper,
                "{q}: {bounds:?}"
            );
        }
    }
}

#[test]
fn sixty_different_phases_cost_what_the_inversion_integral_gives() {
    // Oracle: the integral of the module `engine::inversion`, Re t = 3 and 8, by numpy with 1,500 frequencies and 3,000 nodes a phase:
    // 1.1860563383462 under removal and 0.8347527353972 under addition.
    let phase = |index: u32| {
        let step = DpEvent::PoissonSampledGaussian {
            sampling_probability: 0.004 * (1.0 + f64::from(index) / 60.0),
            noise_multiplier: 0.8 + f64::from(index) / 80.0,
        };
        DpEvent::SelfComposed { event: Box::new(step), count: 20 }
    };
    let run = DpEvent::Composed { events: (0..60).map(phase).collect() };
    let bounds = epsilon(&run, Delta::new(1e-6).unwrap(), AddOrRemoveOne).unwrap();
    assert!(bounds.lower <= 1.186_056_338_347 && bounds.upper >= 1.186_056_338_345, "{bounds:?}");
    assert!(bounds.upper - bounds.lower <= 1e-4 * bounds.upper, "{bounds:?}");
}
