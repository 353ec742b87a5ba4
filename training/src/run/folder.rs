//! The run folder, as all ranks see it.

use crate::RunError;
use crate::ranks::Ranks;
use crate::store::RunStore;

/// The run folder. Only the first rank has it, and its failures are those of all ranks.
pub(super) struct Folder<'a> {
    store: Option<RunStore<'a>>,
    ranks: Ranks,
}

impl<'a> Folder<'a> {
    /// Opens the folder on the first rank.
    pub fn open(
        ranks: &Ranks,
        open: impl FnOnce() -> Result<RunStore<'a>, RunError>,
    ) -> Result<Self, RunError> {
        let own = if ranks.is_first() { open().map(Some) } else { Ok(None) };
        Ok(Self { store: ranks.outcome_of_first(own)?, ranks: ranks.clone() })
    }

    /// Work on the folder; `None` on other ranks.
    pub(crate) fn on_first<T>(
        &mut self,
        work: impl FnOnce(&mut RunStore<'a>) -> Result<T, RunError>,
    ) -> Result<Option<T>, RunError> {
        let own = self.store.as_mut().map(work).transpose();
        self.ranks.outcome_of_first(own)
    }
}
