//! Draws the curves of `cargo xtask bench curves`: seconds of a step beside those of other libraries, one picture for each size that varies.
//! Prints the tables, with the exponents of growth.
//!
//! ```sh
//! cargo run --release -p trainer-native --example curves -- POINTS.jsonl FOLDER
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use chart::{Chart, Scale, Scene, Series};
use serde_json::Value;

/// The steps of this trainer, and the memory of their processes.
const STEPS: [&str; 3] = ["plain", "fast", "exact"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(points), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("give a file of points, and a folder for the pictures".into());
    };
    let text = std::fs::read_to_string(&points).map_err(|error| format!("{}: {error}", points.display()))?;
    let points = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let mut by_axis: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for point in &points {
        by_axis.entry(point["axis"].as_str().unwrap_or_default()).or_default().push(point);
    }
    std::fs::create_dir_all(&folder)?;
    for (axis, points) in by_axis {
        draw(axis, &points, &folder)?;
    }
    Ok(())
}

/// Draws the seconds of a step and prints the table of one axis.
fn draw(axis: &str, points: &[&Value], folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut curves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        let value = point["value"].as_f64().unwrap_or_default();
        let ours = STEPS.iter().map(|step| (format!("this trainer, {step}"), &point[*step]));
        let peers = point["peers"].as_object().into_iter().flatten();
        for (name, seconds) in ours.chain(peers.map(|(name, seconds)| (name.clone(), seconds))) {
            curves.entry(name).or_default().extend(seconds.as_f64().map(|seconds| (value, seconds)));
        }
    }
    let series: Vec<Series> = curves.into_iter().map(|(name, points)| Series { name, points }).collect();
    let label = match axis {
        "context" => "tokens of a text, 4,096 tokens a step",
        "lot" => "texts of a step",
        "width" => "width of the model",
        _ => "blocks of the model",
    };
    let chart = Chart {
        title: format!("Seconds of a step by {axis}"),
        x_label: label.to_owned(),
        y_label: "seconds".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series,
        highlight: None,
    };
    let scene = Scene::new(&chart).ok_or("no point can be drawn")?;
    std::fs::write(folder.join(format!("step-by-{axis}.svg")), scene.svg(&chart))?;
    Ok(print_table(axis, points, &chart.series, &mut stdout().lock())?)
}

fn print_table(
    axis: &str,
    points: &[&Value],
    series: &[Series],
    out: &mut impl Write,
) -> std::io::Result<()> {
    let head: Vec<String> = points.iter().map(|point| point["value"].to_string()).collect();
    writeln!(out, "\n| {axis} | {} | exponent |", head.join(" | "))?;
    writeln!(out, "|---|{}---|", "---|".repeat(head.len()))?;
    for Series { name, points: curve } in series {
        writeln!(out, "| {name}, s | {} | {} |", cells(curve, points, 3), exponent(curve))?;
    }
    for step in STEPS {
        let gib = |point: &&Value| Some((point["value"].as_f64()?, point[format!("{step} GiB")].as_f64()?));
        let curve: Vec<(f64, f64)> = points.iter().filter_map(gib).collect();
        writeln!(out, "| this trainer, {step}, GiB | {} | {} |", cells(&curve, points, 2), exponent(&curve))?;
    }
    Ok(())
}

/// Returns a row of figures; a point without one gets a dash.
fn cells(curve: &[(f64, f64)], points: &[&Value], digits: usize) -> String {
    let at = |point: &&Value| {
        let found = curve.iter().find(|(value, _)| Some(*value) == point["value"].as_f64());
        found.map_or_else(|| "–".to_owned(), |(_, figure)| format!("{figure:.digits$}"))
    };
    points.iter().map(at).collect::<Vec<String>>().join(" | ")
}

/// Returns the slope of the least-squares line through the logarithms of the last three points.
fn exponent(curve: &[(f64, f64)]) -> String {
    let last: Vec<(f64, f64)> = curve.iter().rev().take(3).map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = last.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| last.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = last.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = last.iter().map(|point| (point.0 - x).powi(2)).sum();
    if last.len() < 2 { "–".to_owned() } else { format!("{:.2}", along / square) }
}
