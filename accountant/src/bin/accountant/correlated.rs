//! The comparison of independent with correlated noise.

use accountant::calibrate::EpsilonTarget;
use accountant::correlated::{Compared, TrainingRun, compare};
use accountant::{Delta, VERSION, budget};
use serde_json::{Value, json};

use crate::cli::Command;
use crate::rounding::rounded_up;

/// Relative width at which bounds on ε count as equal.
const MEETING: f64 = 2e-3;

/// Returns a table with the best mechanism of each family at each ε.
pub(crate) fn answer(command: &Command) -> Result<(String, Value), String> {
    let Command::Correlated { batch_size, dataset_size, steps, epsilon, delta, relation } = command else {
        return Err("not a comparison".to_owned());
    };
    let delta = Delta::new(*delta).map_err(|error| error.to_string())?;
    if !budget::is_meaningful(delta, *dataset_size) {
        return Err(format!(
            "--delta is {:e} for {dataset_size} units; allowed: below 1 / --dataset-size = {:e}, since publishing one unit at random \
             would satisfy any larger one",
            delta.get(),
            budget::delta_ceiling(*dataset_size)
        ));
    }
    let run = TrainingRun { units: *dataset_size, expected_batch_size: *batch_size, steps: *steps };
    let epochs = *steps as f64 * *batch_size as f64 / *dataset_size as f64;
    let mut lines = vec![
        format!("{steps} steps of {batch_size} out of {dataset_size} units, {epochs:.1} epochs, δ = {:e}", delta.get()),
        "Noise: the multiplier at which independent noise would have the same mean squared error in prefix sums.".to_owned(),
    ];
    let mut answers = Vec::new();
    for &most in epsilon {
        let target = EpsilonTarget { epsilon: most, delta, relation: (*relation).into() };
        let rows = compare(run, &target).map_err(|error| error.to_string())?;
        lines.extend(table(most, &rows));
        answers.push(json!({ "epsilon": most, "mechanisms": rows }));
    }
    let json =
        json!({ "setting": run, "epochs": epochs, "delta": delta, "targets": answers, "version": VERSION });
    Ok((lines.join("\n"), json))
}

fn table(most: f64, rows: &[Compared]) -> Vec<String> {
    let alone = rows.first().map_or(f64::NAN, |row| row.equivalent_noise_multiplier);
    let heading = format!(
        "ε ≤ {most}\n{:<10}{:<16}{:>6}{:>12}{:>10}{:>12}  ε",
        "mechanism", "batches", "bands", "multiplier", "noise", "to DP-SGD"
    );
    let line = |row: &Compared| {
        let known = row.epsilon.upper - row.epsilon.lower <= MEETING * row.epsilon.upper;
        format!(
            "{:<10}{:<16}{:>6}{:>12}{:>10}{:>11.1}%  {}",
            row.family.name(),
            row.family.batches(),
            row.bands,
            rounded_up(row.noise_multiplier, 4),
            format!("{:.4}", row.equivalent_noise_multiplier),
            (row.equivalent_noise_multiplier / alone - 1.0) * 100.0,
            if known { "both bounds" } else { "upper bound" },
        )
    };
    [heading].into_iter().chain(rows.iter().map(line)).collect()
}
