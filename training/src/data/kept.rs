//! Checks that a text still fits into memory while it is read.

use crate::{RunError, limits};

/// Counts the records kept in memory while a text is read. Without this check, an archive of a few
/// kilobytes could exhaust the memory of the machine.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    records: usize,
    unseen: usize,
}

impl Kept {
    /// Number of bytes after which free memory is measured again.
    const LOOK: usize = 16 << 20;
    /// Bytes of free memory that a text leaves to everything else.
    const SPARE: u64 = 256 << 20;

    /// Counts a record of `bytes` bytes in a list whose items have `item` bytes. A growing list
    /// doubles its memory.
    ///
    /// # Errors
    /// [`RunError::Refused`] if this process is about to have no memory left. `field` names the text.
    pub fn add(&mut self, bytes: usize, item: usize, field: &str) -> Result<(), RunError> {
        self.records += 1;
        self.unseen += bytes + item;
        if self.unseen < Self::LOOK {
            return Ok(());
        }
        self.unseen = 0;
        let needed = (3 * self.records * item) as u64 + Self::SPARE;
        if limits::free().is_none_or(|free| free >= needed) {
            return Ok(());
        }
        Err(RunError::Refused(format!(
            "{field}: the text does not fit into the memory that this machine has free for this process; give less text, leave it \
             uncompressed, raise the limit of the container or of `ulimit -v`, or use a machine with more memory"
        )))
    }
}
