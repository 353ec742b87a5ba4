//! How far reading has come, for a display of progress.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Files;

/// Counts the bytes read of the files as they lie on disk, compressed ones before they are unpacked. Clones share the
/// count. It says nothing about the text beyond its size.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What has been read is no part of what is to be read.
impl PartialEq for Meter {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Meter {}

impl Files {
    pub(super) fn metered(&self, input: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        Box::new(Metered { input, meter: self.meter.clone() })
    }
}

struct Metered<R> {
    input: R,
    meter: Meter,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(out)?;
        self.meter.add(count as u64);
        Ok(count)
    }
}
