//! The page about a finished run that is printed and signed: one sheet of A4 for people outside of the field, and the charges behind it on a
//! second one. Like the report, it has no scripts and needs no network.

use std::fmt::{self, Write};

use accountant::{Bounds, DpEvent, tradeoff};
use plan::{Plan, statement};

use super::page::{Text, begin};
use training::RunError;
use training::model_card::base_model;
use training::store::certificate::Certificate;
use training::store::files;
use training::verify::VerifiedRun;

/// Significant digits of figures.
const DIGITS: i32 = 4;
/// False alarms of the attacker who looks for a unit.
const FALSE_ALARMS: f64 = 0.01;
/// Both ends of the scale of ε, and its marks.
const SCALE: [f64; 2] = [0.1, 30.0];
const MARKS: [(f64, &str); 3] = [(1.0, "1: strong"), (8.0, "8: usual"), (10.0, "")];

const STYLE: &str = "
@page { size: A4; margin: 10mm 15mm; }
:root { color-scheme: light dark; --ink: light-dark(#171b24, #e8eaf0); --paper: light-dark(#ffffff, #14171e);
  --soft: light-dark(#555d6b, #a7afbd); --line: light-dark(#b9bfca, #3c4453); --good: light-dark(#0a6b3d, #6fd3a0);
  --bad: light-dark(#a3180f, #ff9d94); }
* { box-sizing: border-box; }
body { font: 10pt/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; max-width: 180mm;
  padding: 6mm 4mm; }
h1 { font-size: 17pt; margin: 0 0 1mm; } h2 { font-size: 11pt; margin: 4mm 0 1mm; } p { margin: 1mm 0; }
.soft { color: var(--soft); } .bad { color: var(--bad); }
.figure { font-size: 15pt; font-weight: 600; color: var(--good); margin: 2mm 0 1mm; } .figure.bad { color: var(--bad); }
svg { width: 100%; height: 12mm; display: block; } svg text { font-size: 9px; fill: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .6mm 3mm .6mm 0; border-bottom: .2mm solid var(--line); }
th { font-weight: 500; color: var(--soft); width: 38mm; }
code { font: 7.5pt/1.3 ui-monospace, monospace; overflow-wrap: anywhere; }
.lines { display: grid; grid-template-columns: 2fr 1fr; gap: 8mm 8mm; margin-top: 8mm; }
.lines div { border-top: .3mm solid var(--ink); padding-top: .5mm; color: var(--soft); font-size: 8.5pt; }
.blank { display: inline-block; min-height: 5mm; } tr:has(.blank) td { border-bottom: .3mm solid var(--ink); }
tr:has(.blank) th { vertical-align: bottom; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; } .appendix { margin-top: 8mm; }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; } .appendix { break-before: page; margin: 0; }
  h2, tr, .lines { break-inside: avoid; } }
";

/// What the signer says, which no program knows. A line is left for what is not given.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    /// Who trained the model.
    pub author: Option<String>,
    /// The organisation for which they did.
    pub organisation: Option<String>,
    /// Whose text it was.
    pub text: Option<String>,
}

/// Writes the page of a verified run.
///
/// # Errors
/// [`RunError::Failed`] if the accountant has no certified answer.
pub(super) fn render(run: &VerifiedRun, signed: &Signed) -> Result<String, RunError> {
    let c = &run.certificate;
    let odds = match c.guarantee.epsilon.filter(|_| c.private) {
        Some(epsilon) => Some(odds(&run.event(), c, epsilon)?),
        None => None,
    };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, run, signed, odds.as_deref());
    Ok(out)
}

/// Says in a sentence what an attacker learns at most.
fn odds(event: &DpEvent, c: &Certificate, epsilon: Bounds) -> Result<String, RunError> {
    let failed = |error: accountant::AccountantError| RunError::Failed(format!("accountant: {error}"));
    let relation = c.guarantee.relation;
    let chance = tradeoff::odds(event, relation).map_err(failed)?.upper;
    let found = tradeoff::true_positive_rate(event, FALSE_ALARMS, relation).map_err(failed)?.upper;
    let percent = |share: f64| cli::rounded_up(100.0 * share, DIGITS);
    let certainty = tradeoff::confidence(epsilon.upper);
    Ok(statement::odds(&percent(chance), &percent(certainty), &percent(found)))
}

fn write_all(out: &mut String, run: &VerifiedRun, signed: &Signed, odds: Option<&str>) -> fmt::Result {
    let (c, plan) = (&run.certificate, run.plan.plan());
    let name = Text(&c.name);
    begin(out, &format!("{name}: privacy statement"), STYLE)?;
    writeln!(
        out,
        "<h1>Privacy statement</h1>\n<p class=\"soft\">on the language model <strong>{name}</strong>, run <code>{}</code></p>\n<table>",
        Text(&c.id)
    )?;
    who(out, c, plan, signed)?;
    writeln!(out, "</table>")?;
    guarantee(out, c, plan)?;
    if let Some(odds) = odds {
        writeln!(out, "<h2>What an attacker learns</h2>\n<p>{}</p>", Text(&unbroken(odds)))?;
    }
    writeln!(out, "<h2>How it works</h2>\n<p>{}</p>", Text(&unbroken(&mechanism(c, plan))))?;
    stages(out, c)?;
    writeln!(out, "<h2>What is not protected</h2>\n<p>{}</p>", Text(&not_protected(c, plan)))?;
    writeln!(
        out,
        "<div class=\"lines\"><div>Name and signature</div><div>Place and date</div><div>Name and signature</div><div>Place and \
         date</div></div>\n<h2>Digests (SHA-256)</h2>\n<table>"
    )?;
    for (what, digest) in digests(c) {
        row(out, what, &format!("<code>{}</code>", Text(digest)))?;
    }
    writeln!(
        out,
        "</table>\n<p class=\"soft\">Accountant {}. <code>trainer-native verify</code> on the run folder checks every figure.</p>",
        Text(&c.accountant.version)
    )?;
    appendix(out, c, plan)?;
    writeln!(out, "</main>\n</body>\n</html>")
}

fn row(out: &mut String, what: &str, html: &str) -> fmt::Result {
    writeln!(out, "<tr><th scope=\"row\">{}</th><td>{html}</td></tr>", Text(what))
}

/// Writes who trained what on whose data.
fn who(out: &mut String, c: &Certificate, plan: &Plan, signed: &Signed) -> fmt::Result {
    let line = |text: &Option<String>| match text {
        Some(text) => Text(text).to_string(),
        None => "<span class=\"blank\"></span>".to_owned(),
    };
    row(out, "Trained by", &line(&signed.author))?;
    row(out, "Organisation", &line(&signed.organisation))?;
    let model = plan.model();
    let base = base_model(plan).map(|name| format!(", from the weights of {name}")).unwrap_or_default();
    let text = format!("{}{base}", model.shape_in_words());
    row(out, "Model", &Text(&text).to_string())?;
    row(out, "Text of", &line(&signed.text))?;
    let text = format!("{}; the plan declares {} such units", c.unit_in_words(), plan.data().units);
    row(out, "Protected unit", &Text(&text).to_string())?;
    row(out, "Compared texts", &Text(c.relation_in_words()).to_string())
}

fn guarantee(out: &mut String, c: &Certificate, plan: &Plan) -> fmt::Result {
    writeln!(out, "<h2>What is guaranteed</h2>")?;
    match c.guarantee.epsilon {
        Some(epsilon) if c.private => {
            let (shown, delta) = (cli::rounded_up(epsilon.upper, DIGITS), format!("{:e}", c.guarantee.delta));
            writeln!(out, "<p class=\"figure\">ε ≤ {shown} at δ = {delta}</p>\n{}", scale(epsilon.upper))?;
            writeln!(out, "<p>{}</p>", Text(&unbroken(&statement::guarantee(plan.file(), &shown, &delta))))?;
            if c.search.is_some() {
                writeln!(out, "<p>ε is that of the whole search of which this run is a trial.</p>")?;
            }
            Ok(())
        }
        _ => {
            writeln!(out, "<p class=\"figure bad\">NOT PRIVATE: nobody in the text is protected</p>\n<ul>")?;
            c.not_private_because.iter().try_for_each(|reason| writeln!(out, "<li>{}</li>", Text(reason)))?;
            writeln!(out, "</ul>")
        }
    }
}

/// Draws a logarithmic scale with a mark at ε.
fn scale(epsilon: f64) -> String {
    const WIDTH: f64 = 640.0;
    let place = |value: f64| {
        let [least, most] = SCALE.map(f64::ln);
        WIDTH * ((value.clamp(SCALE[0], SCALE[1]).ln() - least) / (most - least))
    };
    let marks: String = MARKS
        .iter()
        .map(|(value, name)| {
            let x = place(*value);
            format!(
                "<path d=\"M{x:.1} 14v10\" stroke=\"var(--soft)\"/><text x=\"{x:.1}\" y=\"36\" text-anchor=\"middle\">{name}</text>"
            )
        })
        .collect();
    let x = place(epsilon);
    format!(
        "<svg viewBox=\"-4 0 {} 40\" role=\"img\" aria-label=\"ε on a scale from {} to {}\"><path d=\"M0 19H{WIDTH}\" \
         stroke=\"var(--line)\" stroke-width=\"3\"/>{marks}<text x=\"0\" y=\"36\">stronger</text><text x=\"{WIDTH}\" y=\"36\" \
         text-anchor=\"end\">beyond 10 little is promised</text><circle cx=\"{x:.1}\" cy=\"19\" r=\"6\" fill=\"var(--ink)\"/></svg>",
        WIDTH + 8.0,
        SCALE[0],
        SCALE[1]
    )
}

fn mechanism(c: &Certificate, plan: &Plan) -> String {
    if c.public_data {
        return "The plan declares the training text public, so no noise was added.".to_owned();
    }
    let ledger = &c.ledger;
    let noise = c.mechanisms.phases.iter().map(|phase| cli::rounded_down(phase.noise_multiplier, DIGITS));
    let mut noise: Vec<String> = noise.collect();
    noise.dedup();
    format!(
        "{} {} steps were taken, and {} charged; the noise has {} times the size of one unit's largest contribution.",
        statement::mechanism(plan.file()),
        ledger.steps_done,
        ledger.reservations,
        noise.join(", then ")
    )
}

/// Writes all stages on the same text, and others that the model builds on.
fn stages(out: &mut String, c: &Certificate) -> fmt::Result {
    if c.earlier_stages.is_empty() {
        return writeln!(
            out,
            "<p>This run builds on no earlier stage with private text. ε covers this run alone.</p>"
        );
    }
    writeln!(out, "<h2>Earlier stages</h2>\n<table>")?;
    for stage in &c.earlier_stages {
        let text = match stage.made_from {
            plan::MadeFrom::SameUnits => "the same units; part of ε above",
            plan::MadeFrom::DisjointUnits => "other units; not part of ε above",
            plan::MadeFrom::PublicText => "public text",
        };
        let alone =
            stage.epsilon.map(|epsilon| format!("; alone ε ≤ {}", cli::rounded_up(epsilon.upper, DIGITS)));
        row(out, &stage.name, &Text(&format!("{text}{}", alone.unwrap_or_default())).to_string())?;
    }
    writeln!(out, "</table>")
}

/// Keeps figures with their signs on one line.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%").replace(" = ", "\u{a0}=\u{a0}")
}

fn not_protected(c: &Certificate, plan: &Plan) -> String {
    if c.private {
        return statement::limits(plan.file());
    }
    c.not_protected.first().cloned().unwrap_or_default()
}

/// Returns the digests that name the run, its plan and its model.
fn digests(c: &Certificate) -> Vec<(&'static str, &str)> {
    let of_file = |name: &str| c.hashes.files.iter().find(|file| file.name == name);
    let mut all = vec![("Plan", c.hashes.plan.as_str()), ("Ledger", c.ledger.sha256.as_str())];
    all.extend(of_file(files::MODEL).map(|file| ("Weights", file.sha256.as_str())));
    all.extend(of_file(files::TOKENIZER).map(|file| ("Tokenizer", file.sha256.as_str())));
    all
}

/// Writes what the terms mean, and the charges in words and as the accountant reads them.
fn appendix(out: &mut String, c: &Certificate, plan: &Plan) -> fmt::Result {
    if c.ledger.charges.iter().next().is_none() {
        return Ok(());
    }
    writeln!(out, "<section class=\"appendix\">")?;
    if c.private {
        writeln!(out, "<h2>Appendix: what the terms mean</h2>\n<table>")?;
        let terms = statement::terms(plan.file());
        terms.iter().try_for_each(|(name, text)| row(out, name, &Text(text).to_string()))?;
        writeln!(out, "</table>")?;
    }
    writeln!(out, "<h2>Appendix: what was charged</h2>\n<table>")?;
    for charge in c.ledger.charges.iter() {
        let event = serde_json::to_string(&charge.event).map_err(|_| fmt::Error)?;
        let html = format!("{}<pre><code>{}</code></pre>", Text(&in_words(&charge.event)), Text(&event));
        row(out, &format!("{} ×", charge.count), &html)?;
    }
    writeln!(out, "</table></section>")
}

/// Returns a small probability rounded up, such as `3.334e-8`.
fn scientific_up(probability: f64) -> String {
    let exponent = probability.log10().floor();
    if !(-300.0..-3.0).contains(&exponent) {
        return cli::rounded_up(probability, DIGITS);
    }
    format!("{}e{exponent}", cli::rounded_up(probability / 10_f64.powf(exponent), DIGITS))
}

/// Describes an event to a reader of the statement.
fn in_words(event: &DpEvent) -> String {
    let figure = |value: f64| cli::rounded_up(value, DIGITS);
    // Less noise than there is, never more.
    let noise = |value: f64| cli::rounded_down(value, DIGITS);
    match event {
        DpEvent::Gaussian { noise_multiplier } => {
            format!("Gaussian noise of {} times the sensitivity", noise(*noise_multiplier))
        }
        DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier } => format!(
            "each unit drawn with probability {} %, and Gaussian noise of {} times what one unit contributes",
            figure(100.0 * sampling_probability),
            noise(*noise_multiplier)
        ),
        DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta } => format!(
            "counts with Gaussian noise of {} times the sensitivity, shown above a threshold that fails with probability at most {}",
            noise(*noise_multiplier),
            scientific_up(*threshold_delta)
        ),
        DpEvent::Composed { events } => {
            let mut parts: Vec<String> = events.iter().map(in_words).collect();
            parts.dedup();
            parts.join("; and ")
        }
        _ => "the event below".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The noise is never stated larger than it is, and probabilities never smaller.
    #[test]
    fn charges_in_words_flatter_nobody() {
        let gaussian =
            DpEvent::PoissonSampledGaussian { sampling_probability: 0.042_666_6, noise_multiplier: 0.567_86 };
        let said = in_words(&gaussian);
        assert!(said.contains("4.267 %") && said.contains("0.5678 times"), "{said}");
        let release =
            DpEvent::ThresholdedHistogram { noise_multiplier: 8.288_42, threshold_delta: 3.333_34e-8 };
        let said = in_words(&release);
        assert!(said.contains("8.288 times") && said.contains("at most 3.334e-8"), "{said}");
    }
}
