//! Progress on stderr: public figures only.
//!
//! Speed is computed from the plan's expected batch size, never from the sampled one.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use accountant::Bounds;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::disclosure::Released;

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Whether nothing is shown.
static SILENT: AtomicBool = AtomicBool::new(false);

/// While it lives, no progress and no note is shown: in the trials of a search, their number and scores are secret.
pub(crate) struct Silence(());

impl Silence {
    /// Begins the silence.
    pub fn begin() -> Self {
        SILENT.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        SILENT.store(false, Ordering::SeqCst);
    }
}

fn is_silent() -> bool {
    SILENT.load(Ordering::SeqCst)
}

/// A bar on a terminal, elsewhere a line every few seconds. It has no colour, so NO_COLOR has no effect.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    first: u64,
    end: u64,
    last_line: Option<Instant>,
}

/// Figures after a step.
pub(crate) struct Status {
    /// Logical steps done.
    pub steps_done: u64,
    /// Tokens that a step processes on average.
    pub expected_tokens: Released<u64>,
    /// ε spent so far; `None` in a run without noise.
    pub epsilon: Released<Option<Bounds>>,
}

impl Progress {
    /// Starts at step `first` of `end`.
    pub fn start(first: u64, end: u64) -> Self {
        let bar = (stderr().is_terminal() && !is_silent()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(end), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} steps  {msg}  {elapsed} elapsed");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(first);
            bar
        });
        Self { bar, started: Instant::now(), first, end, last_line: None }
    }

    /// Whether it is time for new figures. Most steps have none, since computing ε takes a moment.
    pub fn is_due(&self) -> bool {
        self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY)
    }

    /// Moves the bar without new figures.
    pub fn advance(&self, steps_done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(steps_done);
        }
    }

    /// Shows new figures.
    pub fn show(&mut self, status: &Status) {
        self.last_line = Some(Instant::now());
        let done = status.steps_done.saturating_sub(self.first).max(1) as f64;
        let each = self.started.elapsed().as_secs_f64() / done;
        let left = Duration::from_secs_f64(each * self.end.saturating_sub(status.steps_done) as f64);
        let epsilon = match status.epsilon.get() {
            Some(bounds) => format!("ε ≤ {:.4} spent", bounds.upper),
            None => "NOT PRIVATE".to_owned(),
        };
        let rate = *status.expected_tokens.get() as f64 / each;
        let figures = format!("{epsilon}, {rate:.0} tokens/s expected, {} left", duration_text(left));
        match &self.bar {
            Some(bar) => {
                bar.set_position(status.steps_done);
                bar.set_message(figures);
            }
            None => note(&format!("step {}/{}: {figures}", status.steps_done, self.end)),
        }
    }

    /// Writes a line above the bar.
    pub fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Writes a line to stderr. A closed stderr does not stop a run.
pub(crate) fn note(text: &str) {
    if !is_silent() {
        let _ = writeln!(stderr(), "{text}");
    }
}

fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let written = |seconds| duration_text(Duration::from_secs(seconds));
        assert_eq!([written(7), written(61), written(3_720)], ["7 s", "1 min 01 s", "1 h 02 min"]);
    }
}
