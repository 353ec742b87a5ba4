//! Writes the certificate of a sweep for readers.

use std::fmt::Write;

use super::all::in_words;
use super::certificate::{BestTrial, RunFindings, SweepCertificate, SweepFindings, score_in_words};
use crate::store::certificate::markdown::text_of;

pub(super) fn render(certificate: &SweepCertificate) -> String {
    text_of(|out| write_all(out, certificate))
}

fn write_all(out: &mut String, c: &SweepCertificate) -> std::fmt::Result {
    writeln!(out, "# Privacy certificate of a sweep: {}\n", c.name)?;
    if !c.private {
        writeln!(
            out,
            "> **NOT PRIVATE.** The noise was made from a known key (--test-key): anyone can subtract it.\n"
        )?;
    }
    writeln!(out, "{}\n\n{}\n", c.statement, c.search)?;
    writeln!(out, "| | |\n|---|---|")?;
    writeln!(out, "| ε of the whole sweep | between {} and **{}** |", c.epsilon.lower, c.epsilon.upper)?;
    writeln!(out, "| ε allowed by the sweep | {} |", c.epsilon_limit)?;
    writeln!(out, "| δ | {} |", c.delta)?;
    if let Some(noise) = c.noise_multipliers.tokenizer {
        writeln!(out, "| noise multiplier of the vocabulary, released once | {noise} |")?;
    }
    writeln!(out, "| noise multiplier of every trial, σ | {} |\n", c.noise_multipliers.training)?;
    match &c.findings {
        SweepFindings::All(settings) => {
            writeln!(out, "## Runs\n\nPerplexity per token on the public evaluation text.\n")?;
            writeln!(out, "| setting | mean ± standard deviation | runs |\n|---|---|---|")?;
            for setting in settings {
                let runs: Vec<String> = setting.runs.iter().map(run).collect();
                let (values, score) = (in_words(&setting.values), score_in_words(setting));
                writeln!(out, "| {values} | {score} | {} |", runs.join("; "))?;
            }
        }
        SweepFindings::Best { candidates, best } => {
            writeln!(out, "## Best trial\n")?;
            match best {
                Some(BestTrial { values, run: found }) => {
                    writeln!(out, "{}: perplexity per token or label {}.\n", in_words(values), run(found))?;
                }
                None => writeln!(out, "None: the drawn number of trials was 0, so nothing is released.\n")?,
            }
            writeln!(out, "A trial could have these settings:\n")?;
            for candidate in candidates {
                writeln!(out, "- {}", in_words(candidate))?;
            }
        }
    }
    let event = serde_json::to_string(&c.event).map_err(|_| std::fmt::Error)?;
    writeln!(out, "\n## Charge\n\nWritten before the first trial began: `{event}`\n")?;
    writeln!(out, "## Digests (SHA-256)\n\n| what | digest |\n|---|---|")?;
    writeln!(out, "| sweep.json | `{}` |", c.sweep_sha256)?;
    writeln!(out, "| plan.json | `{}` |", c.plan_sha256)?;
    writeln!(out, "| charge.json | `{}` |", c.charge_sha256)?;
    if let Some(sha256) = &c.vocabulary_sha256 {
        writeln!(out, "| vocabulary/tokenizer.json | `{sha256}` |")?;
    }
    writeln!(
        out,
        "\nThe certificate of each published run has the conditions of the guarantee and what it does not protect. ε by \
         accountant {} ({}). Check everything with `trainer-native verify` on this folder.",
        c.accountant_version, c.accountant_method
    )
}

fn run(run: &RunFindings) -> String {
    let score = run.perplexity.map_or("none".to_owned(), |perplexity| format!("{perplexity:.2}"));
    format!("{score} in `{}`", run.folder)
}
