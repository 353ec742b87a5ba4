//! Writes the report: the plan, its figures and its charts as one self-contained HTML file. The page can open it again.

use chart::{Chart, Scene};
use plan::PlanFile;

use crate::numbers::rounded_up;
use crate::protocol::{AttackerFigures, Certified};
use crate::statement::{Signed, figures, odds, sections, terms};

/// Markup before the plan in a report.
const PLAN_BEGINS: &str = "<script type=\"application/json\" id=\"plan\">";
const PLAN_ENDS: &str = "</script>";

/// Writes the report of a certified plan.
pub(crate) fn html(
    plan: &PlanFile,
    certified: &Certified,
    attacker: Option<AttackerFigures>,
    charts: &[Chart],
    signed: &Signed,
) -> String {
    let text = plan.text();
    let mut body = format!("<h1>Privacy statement: plan {}</h1><table>", escaped(&plan.name));
    for (name, value) in signed.parts() {
        body += &row(name, value);
    }
    body += "</table>";
    for section in sections(plan, certified) {
        body += &format!("<h2>{}</h2><p>{}</p>", section.heading, escaped(&section.text));
    }
    if let Some(attacker) = attacker {
        body += &format!(
            "<p>{} The protection equals that of one Gaussian mechanism with μ ≤ {} at this δ.</p>",
            escaped(&odds(&attacker)),
            rounded_up(attacker.mu.upper, 4)
        );
    }
    body += "<h2>Terms</h2><table>";
    for (name, value) in terms(plan) {
        body += &row(name, &value);
    }
    body += "</table><h2>Figures</h2><table>";
    for (name, value) in figures(plan, certified) {
        body += &row(name, &value);
    }
    body += &format!(
        "</table><p>SHA-256 of the canonical plan: <code>{}</code>; accountant {}.</p>",
        escaped(&certified.hash),
        accountant::VERSION,
    );
    for chart in charts {
        if let Some(scene) = Scene::new(chart) {
            body += &format!("<figure>{}</figure>", scene.svg(chart));
        }
    }
    body += &format!(
        "<h2>Run this plan</h2><pre>{COMMANDS}</pre><h2>plan.json</h2><pre>{}</pre>",
        escaped(&text)
    );
    // A string in the JSON may contain “</script>”. JSON has another spelling for “<”.
    let data = text.replace('<', "\\u003c");
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light\">\
         <title>{} – privacy plan</title><style>body{{font:16px/1.5 sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}}\
         th{{text-align:left;vertical-align:top;font-weight:400;padding-right:2rem}}code{{overflow-wrap:anywhere}}pre{{overflow:auto;background:#f6f7f9;padding:1rem}}\
         figure{{margin:1rem 0}}svg{{max-width:100%;height:auto}}</style>{PLAN_BEGINS}{data}{PLAN_ENDS}</head>\
         <body>{body}</body></html>\n",
        escaped(&plan.name)
    )
}

fn row(name: &str, value: &str) -> String {
    format!("<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value))
}

/// Commands that run a saved plan and then recompute its figures.
pub(crate) const COMMANDS: &str = "cargo run --release -p trainer-native -- --plan plan.json\n\
                            cargo run --release -p trainer-native -- verify plan.json";

/// Returns the plan in the text of a report, or the whole text if it is not a report.
pub(crate) fn plan_in(file: &str) -> &str {
    let inside = file.split_once(PLAN_BEGINS).and_then(|(_, rest)| rest.split_once(PLAN_ENDS));
    inside.map_or(file, |(plan, _)| plan)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::certify;
    use crate::presets::PRESETS;

    #[test]
    fn a_report_states_the_certified_epsilon_and_contains_its_plan() {
        for preset in PRESETS {
            let (plan, certified) = (preset.plan().unwrap(), certify(preset.text).unwrap());
            let signed = Signed { author: "A & B".to_owned(), ..Signed::default() };
            let text = html(&plan, &certified, None, &[], &signed);
            let explained = terms(&plan).iter().all(|(name, sentence)| text.contains(&row(name, sentence)));
            assert!(explained && text.contains("A &amp; B"));
            assert!(
                text.contains(&format!("ε = {}", rounded_up(certified.epsilon.upper, 4))),
                "{}",
                preset.name
            );
            assert!(text.contains(&certified.hash));
            assert_eq!(PlanFile::parse(plan_in(&text)), Ok(plan));
        }
        assert_eq!(plan_in("{}"), "{}");
    }

    #[test]
    fn text_of_the_plan_cannot_inject_markup() {
        let (mut plan, certified) = (PRESETS[0].plan().unwrap(), certify(PRESETS[0].text).unwrap());
        plan.data.source = plan::Source::Path("</script><b>".to_owned());
        let text = html(&plan, &certified, None, &[], &Signed::default());
        assert!(!text.contains("<b>") && text.matches("</script>").count() == 1);
        assert_eq!(PlanFile::parse(plan_in(&text)), Ok(plan));
    }
}
