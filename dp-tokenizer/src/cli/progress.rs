//! Progress of reading: one line that is redrawn on a terminal, or a new line every few seconds elsewhere.
//!
//! It shows only bytes of the files on disk, which reveal nothing about the text.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dp_tokenizer::corpus::{ReadProgress, Source};

/// Displayed until dropped.
pub(super) struct Progress {
    stop: Option<Sender<()>>,
    shown: Option<JoinHandle<()>>,
}

impl Progress {
    /// Displays how much of a source has been read. Invented notes have no progress.
    pub(super) fn of(what: &'static str, source: &Source) -> Self {
        let Source::Files(files) = source else { return Self { stop: None, shown: None } };
        // Standard input has no size.
        let sizes: Option<Vec<u64>> = files
            .paths
            .iter()
            .map(|path| path.metadata().ok().filter(|m| m.is_file()).map(|m| m.len()))
            .collect();
        let total = sizes.map(|sizes| sizes.iter().sum());
        let (stop, stopped) = channel();
        let progress = files.progress.clone();
        let is_terminal = io::stderr().is_terminal();
        let pause = if is_terminal { Duration::from_millis(200) } else { Duration::from_secs(5) };
        let shown = std::thread::spawn(move || {
            let mut was_shown = false;
            let start = Instant::now();
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                show(is_terminal, &line(what, &progress, total, start.elapsed()));
                was_shown = true;
            }
            if was_shown {
                show(is_terminal, &line(what, &progress, total, start.elapsed()));
                // Ends the line on the terminal.
                show(false, "");
            }
        });
        Self { stop: Some(stop), shown: Some(shown) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(shown) = self.shown.take() {
            // The thread only prints.
            let _ = shown.join();
        }
    }
}

fn show(is_terminal: bool, line: &str) {
    let mut out = io::stderr().lock();
    // A closed stderr must not stop the work.
    let _ = match (is_terminal, line) {
        (true, line) => write!(out, "\r\x1b[Kdp-tokenizer: {line}"),
        (false, "") if io::stderr().is_terminal() => writeln!(out),
        (false, "") => Ok(()),
        (false, line) => writeln!(out, "dp-tokenizer: {line}"),
    };
    let _ = out.flush();
}

fn line(what: &str, progress: &ReadProgress, total: Option<u64>, elapsed: Duration) -> String {
    describe(what, progress.bytes(), total, elapsed.as_secs_f64())
}

fn describe(what: &str, bytes: u64, total: Option<u64>, seconds: f64) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let speed = megabytes(bytes) / seconds.max(1e-3);
    let Some(total) = total.filter(|&total| total > 0) else {
        return format!("{what}: {:.1} MB, {speed:.1} MB/s", megabytes(bytes));
    };
    let bytes = bytes.min(total);
    let left = (megabytes(total) - megabytes(bytes)) / speed.max(1e-9);
    let percent = bytes as f64 / total as f64 * 100.0;
    let left = if bytes == 0 { "unknown time left".to_owned() } else { format!("{left:.0} s left") };
    format!(
        "{what}: {:.1} of {:.1} MB ({percent:.0} %), {speed:.1} MB/s, {left}",
        megabytes(bytes),
        megabytes(total)
    )
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn speed_and_time_left_follow_from_bytes_and_seconds() {
        let half = describe("counting", 50_000_000, Some(100_000_000), 2.0);
        assert_eq!(half, "counting: 50.0 of 100.0 MB (50 %), 25.0 MB/s, 2 s left");
        assert_eq!(
            describe("counting", 0, Some(1), 2.0),
            "counting: 0.0 of 0.0 MB (0 %), 0.0 MB/s, unknown time left"
        );
        assert_eq!(describe("encoding", 3_000_000, None, 2.0), "encoding: 3.0 MB, 1.5 MB/s");
        assert!(describe("encoding", 9, Some(0), 0.0).starts_with("encoding: 0.0 MB"));
    }
}
