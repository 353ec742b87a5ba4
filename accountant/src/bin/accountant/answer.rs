//! The answers, as text or JSON.

use std::path::Path;

use accountant::rdp::{self, Conversion};
use accountant::{Bounds, Delta, DpEvent, METHOD, NeighboringRelation, Source, VERSION, pld, tradeoff};
use clap::CommandFactory;
use cli::Documentation;
use serde_json::{Value, json};

use crate::cli::{Accountant, Cli, Command, Run, Setting};
use crate::input::json_text;
use crate::rounding::{rounded_down, rounded_up};
use crate::{compare, correlated, search};

/// Returns a line of text, or a JSON object with `--json`.
pub(crate) fn answer(cli: &Cli) -> Result<String, String> {
    let (text, json) = match &cli.command {
        Command::Epsilon { run, delta, accountant, group } => table(run, delta, *accountant, *group)?,
        Command::Delta { run, epsilon, group } => {
            let (event, relation) = (run.event()?, run.sampling.relation.into());
            let bounds =
                accountant::group_delta(&event, *group, *epsilon, relation).map_err(|e| e.to_string())?;
            let text = format!("δ between {:e} and {:e} at ε = {epsilon}", bounds.lower, bounds.upper);
            (text, json!({ "delta": bounds, "epsilon": epsilon, "method": METHOD, "version": VERSION }))
        }
        Command::Noise { .. } | Command::Steps { .. } | Command::Batch { .. } | Command::Ratio { .. } => {
            search::answer(&cli.command)?
        }
        Command::Split { .. } => search::split(&cli.command)?,
        Command::Correlated { .. } => correlated::answer(&cli.command)?,
        Command::Tradeoff { run, group } => rates(run, *group)?,
        Command::Statement { run, delta, unit, group } => statement(run, *delta, unit, *group)?,
        Command::Compare { file, delta, relation } => compare::answer(file, *delta, (*relation).into())?,
        Command::Events { file, delta, relation } => events(file, *delta, (*relation).into())?,
        Command::Documentation(Documentation::Completions { shell }) => completions(*shell),
        Command::Documentation(Documentation::Man { folder }) => manual(folder)?,
    };
    Ok(if cli.json { json.to_string() } else { text })
}

fn completions(shell: cli::Shell) -> (String, Value) {
    let script = cli::completions(Cli::command(), shell);
    (script.clone(), json!({ "shell": shell.to_string(), "script": script, "version": VERSION }))
}

fn manual(folder: &Path) -> Result<(String, Value), String> {
    let failed =
        |error: std::io::Error| format!("cannot write {}: {error}; name another folder", folder.display());
    cli::write_manual(Cli::command(), folder).map_err(failed)?;
    let text = folder.display().to_string();
    Ok((text.clone(), json!({ "folder": text, "version": VERSION })))
}

/// Returns the guarantee in words, with the settings that it rests on and, if it is asked for, that of a group.
fn statement(run: &Run, delta: f64, unit: &str, group: u32) -> Result<(String, Value), String> {
    let (delta, relation) = (run.sampling.delta(delta)?, run.sampling.relation.into());
    let Setting { noise_multiplier, steps, event } = run.setting()?;
    let words = accountant::statement(&event, delta, relation, unit).map_err(|e| e.to_string())?;
    let mut settings = run.sampling.named(unit)?;
    settings.push(("Noise multiplier, σ".to_owned(), noise_multiplier.to_string()));
    settings.push(("Steps".to_owned(), steps.to_string()));
    let mut json = json!({ "statement": words, "delta": delta, "version": VERSION });
    if group != 1 {
        let bounds = accountant::group_epsilon(&event, group, delta, relation).map_err(|e| e.to_string())?;
        let text = format!("ε ≤ {} at δ = {:e}", rounded_up(bounds.upper, 4), delta.get());
        settings.push((format!("Guarantee for {group} {unit}s together"), text));
        json["group"] = json!({ "size": group, "epsilon": bounds });
    }
    let lines: Vec<String> = settings.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    json["settings"] = settings.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    Ok((format!("{words}\n\n{}", lines.join("\n")), json))
}

/// Returns the ε of every setting at every δ: one line, or a table.
fn table(run: &Run, deltas: &[f64], accountant: Accountant, group: u32) -> Result<(String, Value), String> {
    let relation = run.sampling.relation.into();
    let mut rows = Vec::new();
    for Setting { noise_multiplier, steps, event } in run.settings()? {
        for delta in deltas {
            let (text, json) = epsilon(&event, run.sampling.delta(*delta)?, relation, accountant, group)?;
            rows.push((noise_multiplier, steps, text, json));
        }
    }
    if let [(_, _, text, json)] = rows.as_slice() {
        return Ok((text.clone(), json.clone()));
    }
    let (mut lines, mut table) = (Vec::new(), Vec::new());
    for (noise_multiplier, steps, text, mut json) in rows {
        lines.push(format!("noise multiplier {noise_multiplier}, {steps} steps: {text}"));
        json["noise_multiplier"] = json!(noise_multiplier);
        json["steps"] = json!(steps);
        table.push(json);
    }
    Ok((lines.join("\n"), json!({ "rows": table, "version": VERSION })))
}

fn epsilon(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
    accountant: Accountant,
    group: u32,
) -> Result<(String, Value), String> {
    if accountant != Accountant::Exact && group != 1 {
        return Err(format!(
            "--group {group} needs --accountant exact; the other methods support single units only"
        ));
    }
    match accountant {
        Accountant::Exact => {}
        Accountant::Pld => {
            let bounds = pld::epsilon(event, delta, relation).map_err(|e| e.to_string())?;
            return Ok(certified(bounds, delta, pld::METHOD));
        }
        Accountant::Rdp => {
            let upper =
                rdp::epsilon(event, delta, relation, Conversion::Improved).map_err(|e| e.to_string())?;
            let text = format!("ε ≤ {} at δ = {:e} (Rényi orders)", rounded_up(upper, 6), delta.get());
            // This cost is known from above only.
            let (_, json) = certified(Bounds { lower: 0.0, upper }, delta, "rdp");
            return Ok((text, json));
        }
    }
    if group != 1 {
        let bounds = accountant::group_epsilon(event, group, delta, relation).map_err(|e| e.to_string())?;
        return Ok(certified(bounds, delta, METHOD));
    }
    inverted(event, delta, relation)
}

/// Returns the ε of one unit in all currencies, with the figure to nine digits where inversion gives one.
fn inverted(event: &DpEvent, delta: Delta, relation: NeighboringRelation) -> Result<(String, Value), String> {
    let found = accountant::exact_epsilon(event, delta, relation).map_err(|e| e.to_string())?;
    let (mut text, mut json) = certified(found.bounds, delta, METHOD);
    let by_inversion = found.source == Source::Inversion;
    if by_inversion {
        text.push_str(&format!(" ({:.9} by inversion, not certified)", found.point));
    }
    let source = if by_inversion { "inversion" } else { "certified" };
    json["point"] = json!({ "epsilon": found.point, "source": source });
    if let Ok(mu) = accountant::gaussian_equivalent(event, delta, relation) {
        text.push_str(&format!("; as a Gaussian mechanism with μ up to {}", rounded_up(mu.upper, 6)));
        json["gaussian_equivalent_mu"] = json!(mu);
    }
    // Only plain Gaussian mechanisms, and those that are known by it, have a ρ.
    if let Ok(rho) = accountant::zcdp(event, relation) {
        text.push_str(&format!("; {}-zCDP", rounded_up(rho, 6)));
        json["zcdp_rho"] = json!(rho);
    }
    Ok((text, json))
}

fn certified(bounds: Bounds, delta: Delta, method: &str) -> (String, Value) {
    let text = format!(
        "ε between {} and {} at δ = {:e}",
        rounded_down(bounds.lower, 6),
        rounded_up(bounds.upper, 6),
        delta.get()
    );
    (text, json!({ "epsilon": bounds, "delta": delta, "method": method, "version": VERSION }))
}

fn rates(run: &Run, group: u32) -> Result<(String, Value), String> {
    let (event, relation) = (run.event()?, run.sampling.relation.into());
    let odds = tradeoff::group_odds(&event, group, relation).map_err(|e| e.to_string())?;
    let mut lines = vec![format!(
        "an attacker who starts from even odds is right at most {} times out of 100",
        rounded_up(odds.upper * 100.0, 2)
    )];
    let mut points = Vec::new();
    for false_positive_rate in [1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.25] {
        let rate = tradeoff::group_true_positive_rate(&event, group, false_positive_rate, relation)
            .map_err(|e| e.to_string())?;
        lines.push(format!(
            "false positive rate {false_positive_rate}: true positive rate at most {}",
            rounded_up(rate.upper, 6)
        ));
        points.push(json!({ "false_positive_rate": false_positive_rate, "true_positive_rate": rate }));
    }
    Ok((lines.join("\n"), json!({ "odds": odds, "curve": points, "version": VERSION })))
}

fn events(file: &Path, delta: f64, relation: NeighboringRelation) -> Result<(String, Value), String> {
    let text = json_text(file)?;
    let known = "one event such as {\"type\": \"gaussian\", \"noise_multiplier\": 1.0}, or a list of events";
    let refused = |error: &dyn core::fmt::Display| format!("{}: {error}; allowed: {known}", file.display());
    let read: Value = serde_json::from_str(&text).map_err(|error| refused(&error))?;
    let event = match &read {
        // A history of Opacus, alone or in its state.
        Value::Array(parts) if parts.first().is_some_and(Value::is_array) => compare::event(&read)?,
        Value::Object(fields) if fields.contains_key("history") => compare::event(&read)?,
        Value::Array(_) => serde_json::from_value(read)
            .map(|events| DpEvent::Composed { events })
            .map_err(|error| refused(&error))?,
        // From the text, for the place of an error in it.
        _ => serde_json::from_str(&text).map_err(|error| refused(&error))?,
    };
    let delta = Delta::new(delta).map_err(|error| error.to_string())?;
    let bounds = accountant::epsilon(&event, delta, relation).map_err(|error| error.to_string())?;
    Ok(certified(bounds, delta, METHOD))
}
