//! Options of `report`.

use std::path::PathBuf;

use clap::Args;

use evaluation::report::{Signed, write, write_statement};
use training::RunError;

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The run folder
    run: PathBuf,
    /// Also show what memorization, audit, score, eval, predict or generate printed with --json
    #[arg(long, value_name = "FILE.json")]
    findings: Vec<PathBuf>,
    /// Write the page that is printed and signed in place of the report
    #[arg(long, conflicts_with = "findings")]
    statement: bool,
    /// Who trained the model, for --statement [default: a line to fill in]
    #[arg(long, value_name = "TEXT", requires = "statement")]
    author: Option<String>,
    /// The organisation for which they did, for --statement [default: a line to fill in]
    #[arg(long, value_name = "TEXT", requires = "statement")]
    organisation: Option<String>,
    /// Whose text it was, for --statement [default: a line to fill in]
    #[arg(long, value_name = "TEXT", requires = "statement")]
    text: Option<String>,
    /// The file, Markdown if the name of a report's ends in .md [default: report.html or statement.html in the run folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the report's file
    #[arg(long)]
    overwrite: bool,
}

impl ReportArgs {
    /// Writes the report or the statement, and returns its file.
    pub fn run(self) -> Result<PathBuf, RunError> {
        let out = self.out.as_deref();
        if self.statement {
            let signed = Signed { author: self.author, organisation: self.organisation, text: self.text };
            return write_statement(&self.run, &signed, out, self.overwrite);
        }
        write(&self.run, &self.findings, out, self.overwrite)
    }
}
