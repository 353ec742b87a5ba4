//! The answers, as text or JSON.

use std::io::Read;
use std::path::Path;

use accountant::rdp::{self, Conversion};
use accountant::{Bounds, Delta, DpEvent, METHOD, NeighboringRelation, VERSION, tradeoff};
use clap::CommandFactory;
use serde_json::{Value, json};

use crate::flags::{Accountant, AtDelta, Flags, Question};
use crate::search;

/// A line of text, or a JSON object where the flags ask for one.
pub(crate) fn answer(flags: &Flags) -> Result<String, String> {
    let (text, json) = match &flags.question {
        Question::Epsilon(at) => epsilon(at)?,
        Question::Delta { run, noise_multiplier, steps, epsilon } => {
            let event = run.scheme()?.event(*noise_multiplier, *steps);
            let bounds =
                accountant::delta(&event, *epsilon, run.relation.into()).map_err(|e| e.to_string())?;
            let text = format!("δ between {:e} and {:e} at ε = {epsilon}", bounds.lower, bounds.upper);
            (text, json!({ "delta": bounds, "epsilon": epsilon, "method": METHOD, "version": VERSION }))
        }
        Question::Noise { .. } | Question::Steps { .. } | Question::Batch { .. } | Question::Ratio { .. } => {
            search::answer(&flags.question)?
        }
        Question::Split { .. } => search::split(&flags.question)?,
        Question::Tradeoff(at) => rates(at)?,
        Question::Statement(at) => {
            let text = accountant::statement(&event(at)?, delta(at)?, at.run.relation.into(), &at.unit)
                .map_err(|e| e.to_string())?;
            (text.clone(), json!({ "statement": text, "version": VERSION }))
        }
        Question::Events { file, delta, relation } => events(file, *delta, (*relation).into())?,
        Question::Completions { shell } => completions(*shell),
    };
    Ok(if flags.json { json.to_string() } else { text })
}

fn completions(shell: clap_complete::Shell) -> (String, Value) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Flags::command(), "accountant", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    (script.clone(), json!({ "shell": shell.to_string(), "script": script, "version": VERSION }))
}

fn event(at: &AtDelta) -> Result<DpEvent, String> {
    Ok(at.run.scheme()?.event(at.noise_multiplier, at.steps))
}

fn delta(at: &AtDelta) -> Result<Delta, String> {
    Delta::new(at.delta).map_err(|error| error.to_string())
}

fn epsilon(at: &AtDelta) -> Result<(String, Value), String> {
    let relation = at.run.relation.into();
    if at.accountant == Accountant::Rdp {
        let upper = rdp::epsilon(&event(at)?, delta(at)?, relation, Conversion::Improved)
            .map_err(|e| e.to_string())?;
        let text = format!("ε ≤ {upper:.6} at δ = {:e} (Rényi orders)", at.delta);
        let bounds = json!({ "lower": 0.0, "upper": upper });
        return Ok((
            text,
            json!({ "epsilon": bounds, "delta": at.delta, "method": "rdp", "version": VERSION }),
        ));
    }
    let bounds =
        accountant::group_epsilon(&event(at)?, at.group, delta(at)?, relation).map_err(|e| e.to_string())?;
    let (mut text, mut json) = certified(bounds, at.delta);
    if at.group == 1 {
        if let Ok(mu) = accountant::gaussian_equivalent(&event(at)?, delta(at)?, relation) {
            text.push_str(&format!("; as a Gaussian mechanism with μ up to {:.6}", mu.upper));
            json["gaussian_equivalent_mu"] = json!(mu);
        }
        // Only plain Gaussian mechanisms have one.
        if let Ok(rho) = accountant::zcdp(&event(at)?, relation) {
            text.push_str(&format!("; {rho:.6}-zCDP"));
            json["zcdp_rho"] = json!(rho);
        }
    }
    Ok((text, json))
}

fn certified(bounds: Bounds, delta: f64) -> (String, Value) {
    let text = format!("ε between {:.6} and {:.6} at δ = {delta:e}", bounds.lower, bounds.upper);
    (text, json!({ "epsilon": bounds, "delta": delta, "method": METHOD, "version": VERSION }))
}

fn rates(at: &AtDelta) -> Result<(String, Value), String> {
    let (event, relation) = (event(at)?, at.run.relation.into());
    let odds = tradeoff::odds(&event, relation).map_err(|e| e.to_string())?;
    let mut lines =
        vec![format!("right at most {:.2} times out of 100 from fifty to fifty", odds.upper * 100.0)];
    let mut points = Vec::new();
    for false_positive_rate in [1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.25] {
        let rate =
            tradeoff::true_positive_rate(&event, false_positive_rate, relation).map_err(|e| e.to_string())?;
        lines.push(format!("FPR {false_positive_rate}: TPR at most {:.6}", rate.upper));
        points.push(json!({ "false_positive_rate": false_positive_rate, "true_positive_rate": rate }));
    }
    Ok((lines.join("\n"), json!({ "odds": odds, "curve": points, "version": VERSION })))
}

/// The largest file of events that is read: a ledger of millions of steps is a few hundred bytes when counted.
const LARGEST: u64 = 16 << 20;

fn events(file: &Path, delta: f64, relation: NeighboringRelation) -> Result<(String, Value), String> {
    let mut text = String::new();
    let read = |reader: &mut dyn Read, text: &mut String| reader.take(LARGEST + 1).read_to_string(text);
    let size = if file == Path::new("-") {
        read(&mut std::io::stdin(), &mut text)
    } else {
        let mut open = std::fs::File::open(file)
            .map_err(|e| format!("{}: {e}; give a readable file or -", file.display()))?;
        read(&mut open, &mut text)
    }
    .map_err(|error| format!("{}: {error}; events are UTF-8 JSON", file.display()))?;
    if size as u64 > LARGEST {
        return Err(format!(
            "{}: more than {LARGEST} bytes; count repeated events with self_composed",
            file.display()
        ));
    }
    let known = "one event such as {\"type\": \"gaussian\", \"noise_multiplier\": 1.0}, or a list of events";
    let event = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).map(|events| DpEvent::Composed { events })
    } else {
        serde_json::from_str(&text)
    }
    .map_err(|error| format!("{}: {error}; allowed: {known}", file.display()))?;
    let delta = Delta::new(delta).map_err(|error| error.to_string())?;
    let bounds = accountant::epsilon(&event, delta, relation).map_err(|error| error.to_string())?;
    Ok(certified(bounds, delta.get()))
}
