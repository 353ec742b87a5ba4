//! The ε of another library's run beside the certified bounds.

mod settings;
mod theirs;

use std::path::Path;

use accountant::{Bounds, Delta, METHOD, NeighboringRelation, VERSION};
use serde_json::{Value, json};

use self::settings::{Settings, Theirs};
use self::theirs::Figure;
use crate::input::json_text;
use crate::rounding::{rounded_down, rounded_up};

/// Reads a run of another library, and compares its ε with ours.
pub(crate) fn answer(
    file: &Path,
    delta: Option<f64>,
    relation: NeighboringRelation,
) -> Result<(String, Value), String> {
    let read: Value =
        serde_json::from_str(&json_text(file)?).map_err(|error| format!("{}: {error}", file.display()))?;
    let settings = Settings::of(&read).map_err(|refused| format!("{}: {refused}", file.display()))?;
    let delta =
        delta.or(settings.delta).ok_or("--delta is missing, and the file states none; give --delta")?;
    let delta = Delta::new(delta).map_err(|error| error.to_string())?;
    if let Some(units) = settings.units.filter(|units| delta.get() * units >= 1.0) {
        return Err(format!(
            "--delta is {:e} for {units} units; allowed: below {:e}, since publishing one unit at random would satisfy any larger one",
            delta.get(),
            1.0 / units
        ));
    }
    let event = settings.event();
    let ours = accountant::epsilon(&event, delta, relation).map_err(|error| error.to_string())?;
    let theirs = settings.figure(delta, relation)?;
    let verdict = verdict(&settings, theirs.as_ref(), ours);
    let shown = match &theirs {
        Some(Figure { epsilon, how }) => format!("ε = {epsilon:.6} ({how})"),
        None => {
            format!("ε by numerical convolution ({}), which is not repeated here", settings.accountant.name())
        }
    };
    let width = settings.tool.len().max("certified".len());
    let mut lines = vec![
        format!("{:width$}  {shown}", settings.tool),
        format!(
            "{:width$}  {} ≤ ε ≤ {} at δ = {:e}",
            "certified",
            rounded_down(ours.lower, 6),
            rounded_up(ours.upper, 6),
            delta.get()
        ),
        verdict.clone(),
    ];
    if !settings.ignored.is_empty() {
        lines.push(format!("without effect on ε, or not read: {}", settings.ignored.join(", ")));
    }
    let answer = json!({
        "tool": settings.tool, "accountant": settings.accountant.name(), "tool_epsilon": theirs.map(|figure| figure.epsilon),
        "epsilon": ours, "delta": delta, "verdict": verdict, "ignored": settings.ignored, "event": event, "method": METHOD,
        "version": VERSION,
    });
    Ok((lines.join("\n"), answer))
}

/// Returns the event of another library's run.
pub(crate) fn event(read: &Value) -> Result<accountant::DpEvent, String> {
    Settings::of(read).map(|settings| settings.event())
}

/// Says in a sentence which figure is a bound.
fn verdict(settings: &Settings, theirs: Option<&Figure>, ours: Bounds) -> String {
    let tool = settings.tool;
    let Some(Figure { epsilon, .. }) = theirs else {
        return format!(
            "The certified figure is an upper bound. {tool}'s has an error of its own; give it as \"epsilon\" in the file to compare it."
        );
    };
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    if *epsilon < ours.lower {
        format!(
            "The figure of {tool} is not a bound: the true ε is at least {}, {:.1} % above it.",
            rounded_down(ours.lower, 6),
            percent(ours.lower / epsilon)
        )
    } else if settings.shuffles() {
        format!(
            "The figure of {tool} is no proven bound: it counts Poisson samples, but this run shuffles its batches. The certified upper \
             figure is one."
        )
    } else if *epsilon <= ours.upper {
        "Both agree to the certified digits; the certified upper figure is the bound.".to_owned()
    } else if settings.accountant == Theirs::Gdp {
        format!(
            "The figure of {tool} is {:.1} % above the certified bound here, but its approximation is below the true ε for other runs.",
            percent(epsilon / ours.upper)
        )
    } else {
        format!(
            "Both are upper bounds, and {tool}'s is {:.1} % above the certified one.",
            percent(epsilon / ours.upper)
        )
    }
}
