//! Writes the certificate for readers.

use std::fmt::{self, Write};

use accountant::DpEvent;

use super::Certificate;
use crate::store::ledger::Randomness;

pub(super) fn render(certificate: &Certificate) -> String {
    text_of(|out| write_all(out, certificate))
}

/// Returns the text that `write` writes.
pub(crate) fn text_of(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text);
    text
}

fn write_all(out: &mut String, c: &Certificate) -> fmt::Result {
    writeln!(out, "# Privacy certificate: {}\n", c.name)?;
    if !c.private {
        writeln!(out, "> **NOT PRIVATE.** This run protects nobody:\n>")?;
        for reason in &c.not_private_because {
            writeln!(out, "> - {reason}")?;
        }
        writeln!(out)?;
    }
    match &c.summary {
        Some(summary) => writeln!(out, "{summary}\n\nIn full: {}\n", c.guarantee.statement)?,
        None => writeln!(out, "{}\n", c.guarantee.statement)?,
    }
    guarantee(out, c)?;
    mechanisms(out, c)?;
    earlier_stages(out, c)?;
    ledger(out, c)?;
    list(out, "Conditions", "What the guarantee rests on.", &c.assumptions)?;
    list(out, "Not protected", "What the guarantee does not cover.", &c.not_protected)?;
    writeln!(out, "## Digests (SHA-256)\n\n| what | digest |\n|---|---|")?;
    writeln!(out, "| plan, canonical | `{}` |", c.hashes.plan)?;
    writeln!(out, "| plan file | `{}` |", c.hashes.plan_file)?;
    writeln!(out, "| ledger, last line | `{}` |", c.ledger.sha256)?;
    for file in &c.hashes.files {
        writeln!(out, "| {} | `{}` |", file.name, file.sha256)?;
    }
    writeln!(
        out,
        "\nε by accountant {} ({}). Check everything with `trainer-native verify` on this folder.",
        c.accountant.version, c.accountant.method
    )
}

fn guarantee(out: &mut String, c: &Certificate) -> fmt::Result {
    let g = &c.guarantee;
    writeln!(out, "| | |\n|---|---|")?;
    match g.epsilon {
        Some(epsilon) => writeln!(out, "| ε spent | between {} and **{}** |", epsilon.lower, epsilon.upper)?,
        None if c.public_data => writeln!(out, "| ε spent | none: nothing private was used |")?,
        None => writeln!(out, "| ε spent | no bound: no noise was added |")?,
    }
    if let Some(search) = &c.search {
        writeln!(out, "| ε covers | all trials of sweep `{}` |", search.sweep_sha256)?;
    }
    // A search is charged as a whole before it begins, so the ε that it may spend equals the ε that
    // it spent.
    if let Some(planned) = g.planned_epsilon.filter(|_| c.search.is_none()) {
        writeln!(out, "| ε allowed by the plan | between {} and {} |", planned.lower, planned.upper)?;
    }
    writeln!(out, "| δ | {} |", g.delta)?;
    writeln!(out, "| unit | {} |", c.unit_in_words())?;
    writeln!(out, "| id of the run | `{}` |", c.id)?;
    writeln!(out, "| neighbouring texts | {} |\n", c.relation_in_words())
}

fn mechanisms(out: &mut String, c: &Certificate) -> fmt::Result {
    let m = &c.mechanisms;
    writeln!(out, "## Mechanisms\n\n| | |\n|---|---|")?;
    let sampling = serde_json::to_string(&m.sampling).map_err(|_| std::fmt::Error)?;
    writeln!(out, "| sampling | `{sampling}` |")?;
    writeln!(out, "| units declared, N | {} |", m.declared_units)?;
    writeln!(out, "| clip norm, C | {} |", m.l2_clip_norm)?;
    let clipping = serde_json::to_string(&m.clipping).map_err(|_| std::fmt::Error)?;
    writeln!(out, "| clipping | `{clipping}` |")?;
    if let Some(views) = m.views_per_unit {
        writeln!(out, "| views of a unit in a step | up to {views}; C is for the mean of their gradients |")?;
    }
    writeln!(out, "| spare steps | {} |", m.spare_steps)?;
    if let Some(DpEvent::Gaussian { noise_multiplier }) = m.label_histogram {
        writeln!(out, "| label counts in `labels.json` | Gaussian noise, σ = {noise_multiplier} units |")?;
    }
    let randomness = match m.randomness {
        Randomness::OperatingSystem => {
            "secret key of the operating system, a new one each process".to_owned()
        }
        Randomness::TestKey { key } => format!("test key {key}: NOT PRIVATE"),
    };
    writeln!(out, "| randomness | {randomness} |")?;
    let name = |value| serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned));
    let devices: Vec<String> = m.devices.iter().filter_map(name).collect();
    writeln!(out, "| device | {} |", devices.join(", then "))?;
    if !m.placements.is_empty() {
        let places: Vec<String> = m.placements.iter().map(|at| super::statements::ranks(*at)).collect();
        writeln!(out, "| ranks | {} |", places.join(", then "))?;
    }
    if let Some(noise) = m.computation.noise {
        writeln!(out, "| gradient noise | {} |", super::statements::noise(c.wording, noise))?;
    }
    if let Some(arithmetic) = m.computation.arithmetic {
        writeln!(out, "| sums of clipped gradients | {} |", super::statements::sums(c.wording, arithmetic))?;
    }
    writeln!(out)?;
    writeln!(out, "| steps, T | probability, q | noise multiplier, σ | divisor |\n|---|---|---|---|")?;
    for phase in &m.phases {
        let (q, sigma) = (phase.sampling_probability, phase.noise_multiplier);
        writeln!(out, "| {} | {q} | {sigma} | {} |", phase.steps, phase.divisor)?;
    }
    for phase in m.phases.iter().filter(|phase| !phase.correlation.is_empty()) {
        writeln!(out, "\n{}", super::statements::correlation(phase))?;
    }
    writeln!(out)
}

fn earlier_stages(out: &mut String, c: &Certificate) -> fmt::Result {
    if c.earlier_stages.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "## Earlier stages\n\nThe run builds on these. `parents/` has their plans, ledgers and certificates.\n"
    )?;
    writeln!(out, "| stage | text | ε alone, at this δ | unit | id | digest |\n|---|---|---|---|---|---|")?;
    for stage in &c.earlier_stages {
        let epsilon = stage.epsilon_in_words();
        let text = stage.made_from.name();
        let id = stage.id.as_deref().unwrap_or("none");
        writeln!(
            out,
            "| {} | `{text}` | {epsilon} | {} | `{id}` | `{}` |",
            stage.name, stage.unit, stage.sha256
        )?;
    }
    writeln!(out)
}

fn ledger(out: &mut String, c: &Certificate) -> fmt::Result {
    let l = &c.ledger;
    writeln!(out, "## Ledger\n")?;
    let lost =
        if l.may_stop_early { "left out by an early stop or burned by crashes" } else { "burned by crashes" };
    writeln!(
        out,
        "{} of {} steps done, {} reserved and charged, {} of them {lost}; resumed {} times; {} lines.",
        l.steps_done, l.steps_planned, l.reservations, l.burned, l.resumes, l.lines
    )?;
    if l.steps_done < l.steps_planned {
        let why = if l.may_stop_early { c.wording.stopped_early } else { c.wording.out_of_spare_steps };
        writeln!(out, "The run ended early: {why}")?;
    }
    writeln!(out, "\n| times | event |\n|---|---|")?;
    for charge in l.charges.iter() {
        let event = serde_json::to_string(&charge.event).map_err(|_| std::fmt::Error)?;
        writeln!(out, "| {} | `{event}` |", charge.count)?;
    }
    writeln!(out)
}

fn list(out: &mut String, title: &str, intro: &str, items: &[String]) -> fmt::Result {
    writeln!(out, "## {title}\n\n{intro}\n")?;
    for item in items {
        writeln!(out, "- {item}")?;
    }
    writeln!(out)
}
