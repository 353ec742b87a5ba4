//! Shows the progress of reading: one line that is redrawn on a terminal.
//!
//! The size of a private text distinguishes neighbouring texts, so each line says whom it is for,
//! and no line is written to a file.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shows, until it is dropped, how much of some files has been read.
#[derive(Debug)]
pub struct Reading {
    stop: Option<Sender<()>>,
    shown: Option<JoinHandle<()>>,
}

impl Reading {
    /// Shows `bytes()`, the bytes read so far, of the size of the files, after the words `what`.
    /// The progress is shown only on a terminal, because sizes and speeds of private text must not
    /// get into a log.
    #[must_use]
    pub fn start(what: String, paths: &[PathBuf], bytes: impl Fn() -> u64 + Send + 'static) -> Self {
        if !io::stderr().is_terminal() {
            return Self { stop: None, shown: None };
        }
        // Standard input has no size.
        let size = |path: &PathBuf| path.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        let sizes: Option<Vec<u64>> = paths.iter().map(size).collect();
        let total = sizes.map(|sizes| sizes.iter().sum());
        Self::every(Duration::from_millis(200), what, total, bytes, io::stderr)
    }

    fn every<W: Write + 'static>(
        pause: Duration,
        what: String,
        total: Option<u64>,
        bytes: impl Fn() -> u64 + Send + 'static,
        screen: fn() -> W,
    ) -> Self {
        let (stop, stopped) = channel();
        let shown = std::thread::spawn(move || {
            let (start, mut was_shown) = (Instant::now(), false);
            let show = || {
                let text = describe(&what, bytes(), total, start.elapsed().as_secs_f64());
                let mut out = screen();
                // A closed stderr must not stop the work.
                let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
            };
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                show();
                was_shown = true;
            }
            if was_shown {
                show();
                let _ = writeln!(screen());
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

/// The remark after a private figure on a screen.
pub const FOR_THE_OWNER: &str = "private to the owner of this machine";

fn describe(what: &str, bytes: u64, total: Option<u64>, seconds: f64) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let speed = megabytes(bytes) / seconds.max(1e-3);
    let Some(total) = total.filter(|&total| total > 0) else {
        return format!("{what}: {:.1} MB, {speed:.1} MB/s ({FOR_THE_OWNER})", megabytes(bytes));
    };
    let bytes = bytes.min(total);
    let left = (megabytes(total) - megabytes(bytes)) / speed.max(1e-9);
    let percent = bytes as f64 / total as f64 * 100.0;
    let left = if bytes == 0 { "unknown time left".to_owned() } else { format!("{left:.0} s left") };
    format!(
        "{what}: {:.1} of {:.1} MB ({percent:.0} %), {speed:.1} MB/s, {left} ({FOR_THE_OWNER})",
        megabytes(bytes),
        megabytes(total)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static SCREEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    struct Screen;

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            SCREEN.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_follow_the_bytes_until_the_end_and_say_whom_they_are_for() {
        let shown = || SCREEN.lock().unwrap().len();
        let short = Duration::from_millis(1);
        let reading =
            Reading::every(short, "reading".to_owned(), Some(4_000_000), move || 1_000_000, || Screen);
        while shown() == 0 {
            std::thread::yield_now();
        }
        drop(reading);
        let (length, text) = (shown(), String::from_utf8(SCREEN.lock().unwrap().clone()).unwrap());
        let lines: Vec<&str> = text.trim_end().split("\r\x1b[K").skip(1).collect();
        assert!(
            lines.len() >= 2
                && lines.iter().all(|line| {
                    line.starts_with("reading: 1.0 of 4.0 MB (25 %)") && line.contains(FOR_THE_OWNER)
                }),
            "{lines:?}"
        );
        std::thread::sleep(10 * short);
        assert_eq!(shown(), length, "a line after the end");
    }

    #[test]
    fn speed_and_time_left_follow_from_bytes_and_seconds() {
        for (bytes, total, seconds, want) in [
            (50_000_000, Some(100_000_000), 2.0, "counting: 50.0 of 100.0 MB (50 %), 25.0 MB/s, 2 s left"),
            (0, Some(1), 2.0, "counting: 0.0 of 0.0 MB (0 %), 0.0 MB/s, unknown time left"),
            (3_000_000, None, 2.0, "counting: 3.0 MB, 1.5 MB/s"),
            (9, Some(0), 0.0, "counting: 0.0 MB, 0.0 MB/s"),
        ] {
            assert_eq!(describe("counting", bytes, total, seconds), format!("{want} ({FOR_THE_OWNER})"));
        }
    }
}
