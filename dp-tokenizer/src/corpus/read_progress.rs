//! How much of a corpus has been read, for a progress display.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Files;

/// Counts the bytes read from files on disk; for compressed files, the compressed bytes. Clones share the count. It reveals
/// nothing about the text except its size.
#[derive(Clone, Debug, Default)]
pub struct ReadProgress(Arc<AtomicU64>);

impl ReadProgress {
    /// Bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Progress does not distinguish two lists of files.
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

struct TrackedRead<R> {
    input: R,
    progress: ReadProgress,
}

impl<R: Read> Read for TrackedRead<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(out)?;
        self.progress.add(count as u64);
        Ok(count)
    }
}
