//! Progress of reading: one line that is redrawn on a terminal, or a new line every few seconds elsewhere.
//!
//! It shows only bytes of the files on disk, which reveal nothing about the text.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shows how much of some files has been read, until dropped.
#[derive(Debug)]
pub struct Reading {
    stop: Option<Sender<()>>,
    shown: Option<JoinHandle<()>>,
}

impl Reading {
    /// Shows `bytes()`, the bytes read so far, of the size of the files, after the words `what`. Elsewhere than on a terminal,
    /// `line` writes each line.
    #[must_use]
    pub fn start(
        what: String,
        paths: &[PathBuf],
        bytes: impl Fn() -> u64 + Send + 'static,
        line: fn(&str),
    ) -> Self {
        // Standard input has no size.
        let size = |path: &PathBuf| path.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        let sizes: Option<Vec<u64>> = paths.iter().map(size).collect();
        let total = sizes.map(|sizes| sizes.iter().sum());
        let is_terminal = io::stderr().is_terminal();
        let pause = Duration::from_millis(if is_terminal { 200 } else { 5000 });
        Self::every(pause, is_terminal, what, total, bytes, line)
    }

    fn every(
        pause: Duration,
        is_terminal: bool,
        what: String,
        total: Option<u64>,
        bytes: impl Fn() -> u64 + Send + 'static,
        line: fn(&str),
    ) -> Self {
        let (stop, stopped) = channel();
        let shown = std::thread::spawn(move || {
            let (start, mut was_shown) = (Instant::now(), false);
            let show = || {
                let text = describe(&what, bytes(), total, start.elapsed().as_secs_f64());
                if !is_terminal {
                    return line(&text);
                }
                let mut out = io::stderr().lock();
                // A closed stderr must not stop the work.
                let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
            };
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                show();
                was_shown = true;
            }
            if was_shown {
                show();
                if is_terminal {
                    let _ = writeln!(io::stderr());
                }
            }
        });
        Self { stop: Some(stop), shown: Some(shown) }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(shown) = self.shown.take() {
            // The thread only prints.
            let _ = shown.join();
        }
    }
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
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn lines_follow_the_bytes_until_the_end() {
        static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let line = |text: &str| LINES.lock().unwrap().push(text.to_owned());
        let lines = || LINES.lock().unwrap().len();
        let short = Duration::from_millis(1);
        let reading =
            Reading::every(short, false, "reading".to_owned(), Some(4_000_000), move || 1_000_000, line);
        while lines() == 0 {
            std::thread::yield_now();
        }
        drop(reading);
        let shown = lines();
        let all = LINES.lock().unwrap().clone();
        assert!(
            all.len() >= 2 && all.iter().all(|line| line.starts_with("reading: 1.0 of 4.0 MB (25 %)")),
            "{all:?}"
        );
        std::thread::sleep(10 * short);
        assert_eq!(lines(), shown, "a line after the end");
    }

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
