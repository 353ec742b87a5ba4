//! Writes the report as Markdown: the certificate, with its figures on public text and the findings after it.

use std::fmt::{self, Write};

use super::findings::Findings;
use training::infer::Evaluation;
use training::store::certificate::Certificate;

pub(super) fn render(
    certificate: &Certificate,
    evaluation: Option<&Evaluation>,
    findings: &[Findings],
) -> String {
    let mut out = certificate.to_markdown();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, evaluation, findings);
    out
}

fn write_all(out: &mut String, evaluation: Option<&Evaluation>, findings: &[Findings]) -> fmt::Result {
    if let Some(evaluation) = evaluation {
        writeln!(out, "\n## Scores on held-out public text\n")?;
        evaluation.to_string().lines().try_for_each(|line| writeln!(out, "- {line}"))?;
        if let Some(warning) = evaluation.warning() {
            writeln!(out, "\n**Warning: {}.**", cell(warning))?;
        }
    }
    for section in findings {
        writeln!(out, "\n## {}", section.title)?;
        if let Some(warning) = &section.warning {
            writeln!(out, "\n**{}**", cell(warning))?;
        }
        if !section.rows.is_empty() {
            writeln!(out, "\n| | |\n|---|---|")?;
            let mut rows = section.rows.iter();
            rows.try_for_each(|(name, value)| writeln!(out, "| {} | {} |", cell(name), cell(value)))?;
        }
        for table in &section.tables {
            writeln!(out, "\n{}\n|{}", row(&table.columns), "---|".repeat(table.columns.len()))?;
            table.rows.iter().try_for_each(|values| writeln!(out, "{}", row(values)))?;
        }
    }
    Ok(())
}

fn row(values: &[String]) -> String {
    let cells: Vec<String> = values.iter().map(|value| cell(value)).collect();
    format!("| {} |", cells.join(" | "))
}

/// Returns a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('|', "\\|").replace('<', "&lt;")
}
