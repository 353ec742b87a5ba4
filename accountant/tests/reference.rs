//! Every row of the reference tables, by the rule: lower ≤ exact·(1+1e-9), upper ≥ exact·(1−1e-9), gap ≤ 1e-3.

use std::time::Instant;

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::{Delta, DpEvent, epsilon};

fn table(name: &str) -> Option<serde_json::Value> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(_) => {
            println!(
                "SKIPPED: {} is not there; only the figures kept in the crate were tested",
                path.display()
            );
            None
        }
    }
}

fn sampled(q: f64, sigma: f64, steps: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier: sigma };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

/// None where the row has no exact figure; otherwise what is wrong with our bounds, empty if nothing.
fn judge(event: &DpEvent, delta: f64, exact: f64, name: &str) -> Result<f64, String> {
    let start = Instant::now();
    let bounds =
        epsilon(event, Delta::new(delta).unwrap(), AddOrRemoveOne).map_err(|e| format!("{name}: {e}"))?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    let gap = (bounds.upper - bounds.lower) / bounds.upper;
    if bounds.lower <= exact * (1.0 + 1e-9)
        && bounds.upper >= exact * (1.0 - 1e-9)
        && (gap <= 1e-3 || bounds.upper == 0.0)
    {
        return Ok(took);
    }
    Err(format!("{name}: [{}, {}] against {exact}, gap {gap:.2e}, {took:.1} ms", bounds.lower, bounds.upper))
}

#[test]
fn the_grid_of_exact_figures_lies_inside_the_bounds() {
    let Some(table) = table("b_pld_grid.json") else { return };
    let (mut wrong, mut slowest, mut total, mut count) = (Vec::new(), 0.0_f64, 0.0, 0);
    for row in table["rows"].as_array().unwrap() {
        let Some(exact) = row["exact_remove"].as_f64() else { continue };
        let get = |key: &str| row[key].as_f64().unwrap();
        let add = row["exact_add"].as_f64().unwrap_or(0.0).max(row["pld_add"].as_f64().unwrap_or(0.0));
        if add > exact {
            continue;
        }
        let name = format!("q={} sigma={} T={} delta={}", get("q"), get("sigma"), get("T"), get("delta"));
        match judge(&sampled(get("q"), get("sigma"), get("T") as u64), get("delta"), exact, &name) {
            Ok(took) => {
                slowest = slowest.max(took);
                total += took;
            }
            Err(problem) => wrong.push(problem),
        }
        count += 1;
    }
    println!("{count} rows, {total:.0} ms, slowest {slowest:.1} ms");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
}
