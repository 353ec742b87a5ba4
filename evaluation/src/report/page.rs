//! Writes the report as an HTML page: one file without scripts and network access, for light and dark screens and for
//! print.

use std::fmt::{self, Display, Write};

use chart::{Bars, Chart, Scene};

use super::finding_charts::FindingCharts;
use super::findings::{Findings, Table};
use training::infer::Evaluation;
use training::store::certificate::{Certificate, EarlierStage};

const STYLE: &str = "
:root { color-scheme: light dark; --ink: light-dark(#171b24, #e8eaf0); --paper: light-dark(#ffffff, #14171e);
  --soft: light-dark(#5a6270, #a7afbd); --line: light-dark(#d9dde5, #333a47); --good: light-dark(#0a6b3d, #6fd3a0);
  --bad: light-dark(#a3180f, #ff9d94); }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.verdict { font-size: 1.25rem; font-weight: 600; border-left: .35rem solid; padding-left: .8rem; }
.private { color: var(--good); } .exposed { color: var(--bad); }
.statement { max-width: 46rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 500; color: var(--soft); width: 18rem; }
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; border: 1px solid var(--line); border-radius: .4rem; }
details { margin: .3rem 0; } summary { cursor: pointer; color: var(--soft); }
li { margin: .35rem 0; } .wide { overflow-x: auto; } .wide th { width: auto; }
@media (max-width: 40rem) { th, td { display: block; width: auto; border: 0; padding: 0; }
  tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  figure svg { font-size: 16px; } figure svg text[font-size] { font-size: 18px; } }
@media print { body { max-width: none; padding: 0; } figure, tr { break-inside: avoid; } details { display: none; } }
";

pub(super) fn render(
    certificate: &Certificate,
    evaluation: Option<&Evaluation>,
    charts: &[Chart],
    findings: &[Findings],
) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, certificate, evaluation, charts, findings);
    out
}

fn write_all(
    out: &mut String,
    c: &Certificate,
    evaluation: Option<&Evaluation>,
    charts: &[Chart],
    findings: &[Findings],
) -> fmt::Result {
    let name = Text(&c.name);
    begin(out, &format!("{name}: privacy report"), STYLE)?;
    writeln!(out, "<h1>{name}</h1>")?;
    verdict(out, c)?;
    if findings.iter().any(|section| section.warning.is_some()) {
        writeln!(out, "<p class=\"verdict exposed\">This page holds figures that may not be published.</p>")?;
    }
    rows(out, "Guarantee", &guarantee(c, evaluation))?;
    if !charts.is_empty() {
        writeln!(out, "<h2>Training</h2>\n<div class=\"charts\">")?;
        for chart in charts {
            figure(out, chart)?;
        }
        writeln!(out, "</div>")?;
    }
    let found_charts = FindingCharts::of(findings);
    if !found_charts.is_empty() {
        writeln!(out, "<h2>Findings</h2>\n<div class=\"charts\">")?;
        found_charts.bars.iter().try_for_each(|chart| bars(out, chart))?;
        found_charts.curves.iter().try_for_each(|chart| figure(out, chart))?;
        writeln!(out, "</div>")?;
    }
    findings.iter().try_for_each(|section| found(out, section))?;
    rows(out, "Mechanisms", &mechanisms(c))?;
    if !c.earlier_stages.is_empty() {
        rows(out, "Earlier stages", &earlier_stages(c))?;
    }
    ledger(out, c)?;
    list(out, "Conditions", &c.assumptions)?;
    list(out, "Not protected", &c.not_protected)?;
    rows(out, "Digests (SHA-256)", &digests(c))?;
    writeln!(
        out,
        "<p>ε by accountant {} ({}). Check everything with <code>trainer-native verify</code> on the run folder.</p>\n\
         </main>\n</body>\n</html>",
        Text(&c.accountant.version),
        Text(&c.accountant.method)
    )
}

/// Writes the beginning of a page with a title in HTML.
pub(super) fn begin(out: &mut String, title: &str, style: &str) -> fmt::Result {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>"
    )
}

fn verdict(out: &mut String, c: &Certificate) -> fmt::Result {
    match (c.private, c.guarantee.epsilon) {
        (true, Some(epsilon)) => writeln!(
            out,
            "<p class=\"verdict private\">ε ≤ {} at δ = {:e}</p>",
            Digits(epsilon.upper),
            c.guarantee.delta
        )?,
        _ => {
            writeln!(
                out,
                "<p class=\"verdict exposed\">NOT PRIVATE: this run has no privacy guarantee</p>\n<ul>"
            )?;
            for reason in &c.not_private_because {
                writeln!(out, "<li>{}</li>", Text(reason))?;
            }
            writeln!(out, "</ul>")?;
        }
    }
    if let Some(summary) = &c.summary {
        writeln!(out, "<p class=\"statement\">{}</p>", Text(summary))?;
    }
    writeln!(out, "<p class=\"statement\">{}</p>", Text(&c.guarantee.statement))
}

fn earlier_stages(c: &Certificate) -> Vec<(String, String)> {
    let row = |stage: &EarlierStage| {
        let text =
            format!("{}; ε alone {}; unit {}", stage.made_from.name(), stage.epsilon_in_words(), stage.unit);
        (stage.name.clone(), text)
    };
    c.earlier_stages.iter().map(row).collect()
}

fn guarantee(c: &Certificate, evaluation: Option<&Evaluation>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut bounds = |what: &str, bounds: Option<accountant::Bounds>| {
        if let Some(bounds) = bounds {
            rows.push((what.to_owned(), format!("between {} and {}", bounds.lower, bounds.upper)));
        }
    };
    bounds("ε spent", c.guarantee.epsilon);
    bounds("ε allowed by the plan", c.guarantee.planned_epsilon);
    rows.push(("δ".to_owned(), c.guarantee.delta.to_string()));
    rows.push(("Unit".to_owned(), c.unit_in_words()));
    rows.push(("Neighbouring texts".to_owned(), c.relation_in_words().to_owned()));
    if let Some(evaluation) = evaluation {
        rows.push(("Held-out public text".to_owned(), evaluation.to_string().replace('\n', "; ")));
        if let Some(warning) = evaluation.warning() {
            rows.push(("Warning".to_owned(), warning.to_owned()));
        }
    }
    rows
}

fn mechanisms(c: &Certificate) -> Vec<(String, String)> {
    let m = &c.mechanisms;
    let mut rows = vec![
        ("Sampling".to_owned(), format!("{:?}", m.sampling)),
        ("Units declared, N".to_owned(), m.declared_units.to_string()),
        ("Clip norm, C".to_owned(), m.l2_clip_norm.to_string()),
    ];
    if let Some(views) = m.views_per_unit {
        rows.push(("Views of a unit, averaged before the clip".to_owned(), format!("up to {views}")));
    }
    for (index, phase) in m.phases.iter().enumerate() {
        let what = format!("Phase {}", index + 1);
        let text = format!(
            "{} steps, q = {}, σ = {}, divided by {}",
            phase.steps, phase.sampling_probability, phase.noise_multiplier, phase.divisor
        );
        rows.push((what, text));
    }
    rows
}

fn ledger(out: &mut String, c: &Certificate) -> fmt::Result {
    let l = &c.ledger;
    let steps = format!("{} of {}", l.steps_done, l.steps_planned);
    let reserved = format!("{}, {} of them burned by crashes", l.reservations, l.burned);
    let mut all = vec![
        ("Steps done".to_owned(), steps),
        ("Steps reserved and charged".to_owned(), reserved),
        ("Resumed".to_owned(), format!("{} times", l.resumes)),
    ];
    for charge in l.charges.iter() {
        let event = serde_json::to_string(&charge.event).map_err(|_| fmt::Error)?;
        all.push((format!("{} times", charge.count), event));
    }
    rows(out, "Ledger", &all)
}

fn digests(c: &Certificate) -> Vec<(String, String)> {
    let fixed = [
        ("Plan, canonical", &c.hashes.plan),
        ("Plan file", &c.hashes.plan_file),
        ("Ledger, last line", &c.ledger.sha256),
    ];
    let own = |(what, digest): (&str, &String)| (what.to_owned(), digest.clone());
    let files = c.hashes.files.iter().map(|file| (file.name.clone(), file.sha256.clone()));
    fixed.into_iter().map(own).chain(files).collect()
}

fn rows(out: &mut String, title: &str, rows: &[(String, String)]) -> fmt::Result {
    writeln!(out, "<h2>{}</h2>\n<table>", Text(title))?;
    for (what, value) in rows {
        let long = value.len() > 40 && !value.contains(' ');
        let value = Text(value);
        write!(out, "<tr><th scope=\"row\">{}</th><td>", Text(what))?;
        if long {
            write!(out, "<code>{value}</code>")?
        } else {
            write!(out, "{value}")?
        }
        writeln!(out, "</td></tr>")?;
    }
    writeln!(out, "</table>")
}

fn found(out: &mut String, section: &Findings) -> fmt::Result {
    rows(out, &section.title, &section.rows)?;
    if let Some(warning) = &section.warning {
        writeln!(out, "<p class=\"exposed\">{}</p>", Text(warning))?;
    }
    section.tables.iter().try_for_each(|found| table(out, found))
}

fn table(out: &mut String, table: &Table) -> fmt::Result {
    let row = |out: &mut String, tag: &str, values: &[String]| {
        write!(out, "<tr>")?;
        values.iter().try_for_each(|value| write!(out, "<{tag}>{}</{tag}>", Text(value)))?;
        writeln!(out, "</tr>")
    };
    writeln!(out, "<div class=\"wide\"><table>")?;
    row(out, "th", &table.columns)?;
    table.rows.iter().try_for_each(|values| row(out, "td", values))?;
    writeln!(out, "</table></div>")
}

fn list(out: &mut String, title: &str, items: &[String]) -> fmt::Result {
    writeln!(out, "<h2>{}</h2>\n<ul>", Text(title))?;
    for item in items {
        writeln!(out, "<li>{}</li>", Text(item))?;
    }
    writeln!(out, "</ul>")
}

/// Writes a chart, with its values as a table for screen readers.
fn figure(out: &mut String, chart: &Chart) -> fmt::Result {
    let Some(scene) = Scene::new(chart) else { return Ok(()) };
    writeln!(out, "<figure>{}<details><summary>Values</summary><table>", scene.svg(chart))?;
    write!(out, "<tr><th scope=\"col\">{}</th>", Text(&chart.x_label))?;
    for series in &chart.series {
        write!(out, "<th scope=\"col\">{}</th>", Text(&series.name))?;
    }
    writeln!(out, "</tr>")?;
    for (x, values) in chart.rows() {
        write!(out, "<tr><td>{x}</td>")?;
        for value in values {
            let value = value.map(|value| value.to_string()).unwrap_or_default();
            write!(out, "<td>{value}</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table></details></figure>")
}

/// Writes a bar chart, with its values as a table for screen readers.
fn bars(out: &mut String, chart: &Bars) -> fmt::Result {
    let Some(svg) = chart.svg() else { return Ok(()) };
    writeln!(out, "<figure>{svg}<details><summary>Values</summary><table>")?;
    for group in &chart.groups {
        for bar in &group.bars {
            let (group, name, value, unit) =
                (Text(&group.name), Text(&bar.name), bar.value, Text(&chart.unit));
            writeln!(out, "<tr><th scope=\"row\">{group}: {name}</th><td>{value}{unit}</td></tr>")?;
        }
    }
    writeln!(out, "</table></details></figure>")
}

/// An upper bound in four decimals, rounded up.
struct Digits(f64);

impl Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4}", (self.0 * 1e4).ceil() / 1e4)
    }
}

/// Text with HTML's special characters escaped.
pub(super) struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                _ => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plans_name_cannot_become_markup() {
        assert_eq!(Text("<b>\"&").to_string(), "&lt;b&gt;&quot;&amp;");
    }

    #[test]
    fn the_headline_never_understates() {
        assert_eq!(Digits(1.00001).to_string(), "1.0001");
        assert_eq!(Digits(8.0).to_string(), "8.0000");
    }
}
