//! The run folder, as all ranks see it.

use dp_tokenizer::identity::Sketch;

use super::inputs::Inputs;
use super::request::Job;
use crate::RunError;
use crate::data::Units;
use crate::ranks::Ranks;
use crate::store::{OpenRun, RunStore};

/// The run folder. Only the first rank holds it, and all ranks share its failures.
pub(super) struct Folder<'a> {
    store: Option<RunStore<'a>>,
    ranks: Ranks,
}

impl<'a> Folder<'a> {
    /// Begins the run in its folder, or resumes it.
    ///
    /// # Errors
    /// As [`RunStore::open`], on all ranks.
    pub fn open(job: &'a Job, inputs: &Inputs) -> Result<Self, RunError> {
        let own = job.ranks.is_first().then(|| store(job, &inputs.units, inputs.public_text.as_ref()));
        Ok(Self { store: job.ranks.outcome_of_first(own.transpose())?, ranks: job.ranks.clone() })
    }

    /// Does work on the folder; returns `None` on other ranks.
    pub(crate) fn on_first<T>(
        &mut self,
        work: impl FnOnce(&mut RunStore<'a>) -> Result<T, RunError>,
    ) -> Result<Option<T>, RunError> {
        self.on_first_helped(work, || ())
    }

    /// Does work on the folder, to which the other ranks contribute by what `help` does.
    pub(crate) fn on_first_helped<T>(
        &mut self,
        work: impl FnOnce(&mut RunStore<'a>) -> Result<T, RunError>,
        help: impl FnOnce(),
    ) -> Result<Option<T>, RunError> {
        if self.store.is_none() {
            help();
        }
        let own = self.store.as_mut().map(work).transpose();
        self.ranks.outcome_of_first(own)
    }
}

/// Opens the run folder of a single process. `public_text` is a sketch of the training text, if it is public.
///
/// # Errors
/// As [`RunStore::open`].
pub(super) fn store<'job>(
    job: &'job Job,
    units: &Units,
    public_text: Option<&Sketch>,
) -> Result<RunStore<'job>, RunError> {
    RunStore::open(&OpenRun {
        folder: &job.folder,
        plan: &job.plan,
        plan_file: &job.plan_file,
        lineage: &job.lineage,
        mode: job.mode,
        units,
        public_text,
        canaries: job.canaries.as_ref(),
        search: job.search.as_ref(),
        resume: job.resume,
        state: job.state.as_deref(),
    })
}
