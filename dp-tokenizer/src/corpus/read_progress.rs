//! Counts how much of a corpus has been read, for a progress display.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Files;

/// Counts the bytes read from files on disk; for compressed files, the compressed bytes. Clones share the count. It reveals
/// nothing about the text except its size.
#[derive(Clone, Debug, Default)]
pub struct ReadProgress {
    bytes: Arc<AtomicU64>,
    stop: Option<&'static AtomicBool>,
}

impl ReadProgress {
    /// Returns the number of bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the progress of a corpus whose reading ends with [`super::CorpusError::Stopped`] once `stop` is true.
    #[must_use]
    pub fn stopped_by(stop: &'static AtomicBool) -> Self {
        Self { bytes: Arc::default(), stop: Some(stop) }
    }

    /// Returns a count of its own, which stops with this one.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn fresh(&self) -> Self {
        Self { bytes: Arc::default(), stop: self.stop }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Whether reading failed because it was to stop.
    pub(super) fn has_stopped(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
    }

    pub(super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// All counts are equal, so that the progress does not distinguish two lists of files.
impl PartialEq for ReadProgress {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ReadProgress {}

impl Files {
    pub(super) fn tracked(&self, input: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        Box::new(TrackedRead { input, progress: self.progress.clone() })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("reading was stopped")]
struct Stopped;

struct TrackedRead<R> {
    input: R,
    progress: ReadProgress,
}

impl<R: Read> Read for TrackedRead<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.progress.is_stopped() {
            return Err(io::Error::other(Stopped));
        }
        let count = self.input.read(out)?;
        self.progress.add(count as u64);
        Ok(count)
    }
}
