//! Shows progress on stderr, and writes the same lines to the log file.
//!
//! Speed and remaining time depend on the duration of steps, and therefore on the drawn batches,
//! which are private. They are shown only on a terminal, with a remark that they are for the owner,
//! and are never written to a file. All other lines hold public figures.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use accountant::Bounds;
use cli::FOR_THE_OWNER;
use dp_tokenizer::corpus::Source;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::RunError;
use crate::disclosure::Released;

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Whether nothing is shown.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Whether the user asked for errors and results only.
static QUIET: AtomicBool = AtomicBool::new(false);

/// The file that gets the same lines as the screen.
static LOG: Mutex<Option<File>> = Mutex::new(None);

/// Receives public figures after a step.
type Listener = Box<dyn Fn(Progressed) + Send>;

/// Who else gets the figures.
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

/// Public figures after a step: what the screen shows, without speed and remaining time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progressed {
    /// Logical steps done.
    pub steps_done: u64,
    /// Logical steps of the plan.
    pub steps_planned: u64,
    /// Upper bound on ε spent so far; `None` in a run without noise.
    pub epsilon: Option<f64>,
}

/// Also gives the figures that progress shows, every few seconds and after evaluations, to a function of the program that
/// calls this library, until the returned value is dropped.
#[must_use]
pub fn listen(listener: impl Fn(Progressed) + Send + 'static) -> Listening {
    set_listener(Some(Box::new(listener)));
    Listening(())
}

/// Ends [`listen`] when it is dropped.
pub struct Listening(());

impl Drop for Listening {
    fn drop(&mut self) {
        set_listener(None);
    }
}

fn set_listener(listener: Option<Listener>) {
    if let Ok(mut set) = LISTENER.lock() {
        *set = listener;
    }
}

/// Sets whether progress is shown, and the file to which it is also written.
///
/// # Errors
/// [`RunError::Storage`] for a file that cannot be written.
pub fn configure(quiet: bool, log_file: Option<&Path>) -> Result<(), RunError> {
    QUIET.store(quiet, Ordering::SeqCst);
    let open = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
    let opened = log_file.map(|path| open(path).map_err(|error| RunError::storage("write", path, &error)));
    if let Ok(mut log) = LOG.lock() {
        *log = opened.transpose()?;
    }
    Ok(())
}

/// Suppresses progress and notes until it is dropped. The number and the scores of a search's
/// trials are secret.
pub struct Silence(());

impl Silence {
    /// Begins to suppress progress and notes.
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

/// A bar on a terminal, or a line every few seconds elsewhere, without speed. It has no colour, so
/// NO_COLOR has no effect.
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
    /// ε spent so far; `None` in a run without noise.
    pub expected_tokens: Released<u64>,
    /// ε spent so far; `None` in a run without noise.
    pub epsilon: Released<Option<Bounds>>,
}

impl Progress {
    /// Starts at step `first` of `end`.
    pub fn start(first: u64, end: u64) -> Self {
        let bar = (stderr().is_terminal() && !is_silent() && !is_quiet()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(end), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(first);
            bar
        });
        Self { bar, started: Instant::now(), first, end, last_line: None }
    }

    /// Returns whether it is time for new figures. Most steps show none, because computing ε takes a moment.
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
        if let Ok(Some(listener)) = LISTENER.lock().as_deref() {
            let epsilon = status.epsilon.get().map(|bounds| bounds.upper);
            listener(Progressed { steps_done: status.steps_done, steps_planned: self.end, epsilon });
        }
        let done = status.steps_done.saturating_sub(self.first).max(1) as f64;
        let each = self.started.elapsed().as_secs_f64() / done;
        let left = two_figures(each * self.end.saturating_sub(status.steps_done) as f64);
        let left = Duration::from_secs_f64(left);
        let epsilon = match status.epsilon.get() {
            Some(bounds) => format!("ε ≤ {}", cli::rounded_up(bounds.upper, DIGITS)),
            None => "NOT PRIVATE".to_owned(),
        };
        let line = format!("step {}/{}: {epsilon}", status.steps_done, self.end);
        let Some(bar) = &self.bar else { return note(&line) };
        // The rate follows from the tokens of a step on average, rounded, because the drawn batch sizes are private.
        let rate = two_figures(*status.expected_tokens.get() as f64 / each);
        bar.set_position(status.steps_done);
        bar.set_message(format!(
            "{epsilon}; {rate:.0} tokens/s, {} left ({FOR_THE_OWNER})",
            duration_text(left)
        ));
        log(&line);
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

/// Rounds a value to two significant figures. The duration of a step depends slightly on the drawn
/// batch, which is private.
fn two_figures(value: f64) -> f64 {
    let scale = 10_f64.powf(value.log10().floor() - 1.0);
    if scale.is_normal() { (value / scale).round() * scale } else { 0.0 }
}

/// Number of digits of ε on the screen. JSON has them all.
pub const DIGITS: i32 = 4;

/// Writes a line to stderr. A closed stderr does not stop a run.
pub fn note(text: &str) {
    if is_silent() {
        return;
    }
    log(text);
    if !is_quiet() {
        let _ = writeln!(stderr(), "{text}");
    }
}

/// Writes a figure of private text to stderr for its owner, and never to the log.
pub fn note_for_owner(text: &str) {
    if !is_silent() && !is_quiet() {
        let _ = writeln!(stderr(), "NOT PRIVATE, for the owner of the text alone: {text}");
    }
}

/// Shows how much of the training text has been read, until dropped.
pub(crate) fn reading(what: &str, source: &Source, ranks: u64) -> Option<cli::Reading> {
    let Source::Files(files) = source else { return None };
    let progress = files.progress.clone();
    let show = || cli::Reading::start(what.to_owned(), &files.paths, move || ranks * progress.bytes());
    (!is_silent() && !is_quiet()).then(show)
}

/// Writes an error to stderr, even if notes are not shown.
pub fn error(text: &str) {
    let text = cli::as_line(text);
    log(&text);
    let _ = writeln!(stderr(), "{text}");
}

/// Appends a line to the log file, if there is one. A full disk there does not stop a run.
fn log(text: &str) {
    if let Ok(Some(file)) = LOG.lock().as_deref_mut() {
        let _ = writeln!(file, "{text}");
    }
}

/// Returns whether notes are not shown on the screen.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::SeqCst)
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

    /// Two lots of nearly equal size show the same figures.
    #[test]
    fn figures_of_time_are_coarse() {
        assert_eq!(
            [26_886.0, 27_049.0, 0.0123, 0.0, f64::NAN].map(two_figures),
            [27_000.0, 27_000.0, 0.012, 0.0, 0.0]
        );
    }

    #[test]
    fn durations_have_two_units() {
        let written = |seconds| duration_text(Duration::from_secs(seconds));
        assert_eq!([written(7), written(61), written(3_720)], ["7 s", "1 min 01 s", "1 h 02 min"]);
    }
}
