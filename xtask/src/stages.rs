//! Runs the stages of a check, times them, and prints a summary.

use std::time::Instant;

use anyhow::Result;

use crate::process::note;

/// The stages that have run: name, whether it passed, seconds.
#[derive(Default)]
pub struct Stages {
    done: Vec<(String, bool, u64)>,
}

impl Stages {
    /// Runs one stage. Later stages run even if it fails, so that one run reports every failure.
    pub fn run(&mut self, name: &str, stage: impl FnOnce() -> Result<bool>) {
        note(&format!("\n== {name}"));
        let start = Instant::now();
        let passed = stage().unwrap_or_else(|error| {
            note(&format!("{error:#}"));
            false
        });
        let seconds = start.elapsed().as_secs();
        note(&format!("== {name}: {} in {seconds} s", verdict(passed)));
        self.done.push((name.to_string(), passed, seconds));
    }

    /// Prints one line per stage and the totals. Returns true if all stages passed.
    pub fn close(self) -> bool {
        note("");
        for line in self.summary() {
            note(&line);
        }
        self.done.iter().all(|(_, passed, _)| *passed)
    }

    fn summary(&self) -> Vec<String> {
        let row = |(name, passed, seconds): &(String, bool, u64)| {
            format!("{:<6} {seconds:>5} s  {name}", verdict(*passed))
        };
        let mut lines: Vec<String> = self.done.iter().map(row).collect();
        let failed = self.done.iter().filter(|(_, passed, _)| !passed).count();
        lines.push(format!("{} passed, {failed} failed", self.done.len() - failed));
        lines
    }
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_stage_is_counted_and_does_not_stop_the_next() {
        let mut stages = Stages::default();
        stages.run("finds something", || Ok(false));
        stages.run("cannot run", || anyhow::bail!("no tool"));
        stages.run("is fine", || Ok(true));
        assert_eq!(stages.summary().last().map(String::as_str), Some("1 passed, 2 failed"));
        assert!(!stages.close());
    }
}
