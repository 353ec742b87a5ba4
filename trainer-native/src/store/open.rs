//! Beginning a run in a folder, or resuming the run that the folder holds.

use std::fs;
use std::path::Path;

use plan::CertifiedPlan;

use super::charging::ChargeSchedule;
use super::checkpoint::Checkpoint;
use super::ledger::{Entry, Header, Ledger, LedgerState, Randomness};
use super::lineage::Lineage;
use super::{RunStore, accounting, files};
use crate::RunError;
use crate::durable::{self, FolderLock, sha256_hex};

/// What the ledger's header says of a run beside its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunMode {
    pub randomness: Randomness,
    /// Whether steps clip and add noise, unless the plan declares the training text public.
    pub protected: bool,
}

/// The run that a folder is opened for.
pub(crate) struct OpenRun<'a> {
    pub folder: &'a Path,
    pub plan: &'a CertifiedPlan,
    /// The plan file, byte for byte.
    pub plan_file: &'a [u8],
    /// What the plan builds on.
    pub lineage: &'a Lineage,
    pub mode: RunMode,
    /// Whether to resume the run that the folder holds, if it holds one.
    pub resume: bool,
}

impl<'a> RunStore<'a> {
    /// Begins a run, or resumes it.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the folder holds a run and `resume` is false, or a run of another plan or mode.
    pub fn open(run: &OpenRun<'a>) -> Result<Self, RunError> {
        let folder = run.folder;
        let begun = folder.join(files::LEDGER).exists();
        if begun && !run.resume {
            return Err(RunError::Refused(format!(
                "{} already holds a run; continue it with --resume, or choose another folder with --out",
                folder.display()
            )));
        }
        if !begun {
            files::require_empty(folder)?;
        }
        fs::create_dir_all(folder).map_err(|error| RunError::storage("create", folder, &error))?;
        let lock = FolderLock::take(folder)?;
        let (ledger, checkpoint) = if begun { resume(run)? } else { (begin(run)?, None) };
        let (steps_done, saved_state) = match checkpoint {
            Some(Checkpoint { steps_done, state, .. }) => (steps_done, Some(state)),
            None => (0, None),
        };
        Ok(Self {
            plan: run.plan,
            path: folder.to_owned(),
            schedule: ChargeSchedule::after(run.plan, ledger.state()),
            ledger,
            steps_done,
            saved_state,
            metrics: None,
            _lock: lock,
        })
    }
}

fn begin(run: &OpenRun<'_>) -> Result<Ledger, RunError> {
    durable::write_atomic(&run.folder.join(files::PLAN), run.plan_file)?;
    run.lineage.write(run.folder)?;
    Ledger::create(
        run.folder,
        Header {
            format: 1,
            plan_sha256: run.plan.hash().to_owned(),
            plan_file_sha256: sha256_hex(run.plan_file),
            accountant_version: accountant::VERSION.to_owned(),
            accountant_method: accountant::METHOD.to_owned(),
            relation: run.plan.plan().privacy().relation,
            randomness: run.mode.randomness,
            protected: run.is_protected(),
            public_data: run.plan.plan().is_public(),
        },
        run.lineage.parents(),
    )
}

fn resume(run: &OpenRun<'_>) -> Result<(Ledger, Option<Checkpoint>), RunError> {
    let (mut ledger, torn_bytes) = Ledger::reopen(run.folder)?;
    run.check_same_run(ledger.state())?;
    accounting::check_same_plan(run.plan, ledger.state())?;
    let checkpoint = Checkpoint::read(run.folder)?;
    if let Some(checkpoint) = &checkpoint
        && !ledger.state().continues(&checkpoint.ledger)
    {
        return Err(RunError::Verification(format!(
            "{} is not the ledger of this checkpoint: lines are missing or replaced",
            run.folder.join(files::LEDGER).display()
        )));
    }
    if ledger.state().completed().is_none() {
        let steps_done = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.steps_done);
        ledger.append(Entry::Resume { steps_done, torn_bytes })?;
        if torn_bytes > 0 {
            charge_torn_line(&mut ledger, run.plan)?;
        }
    }
    Ok((ledger, checkpoint))
}

impl OpenRun<'_> {
    fn is_protected(&self) -> bool {
        self.mode.protected && !self.plan.plan().is_public()
    }

    fn check_same_run(&self, ledger: &LedgerState) -> Result<(), RunError> {
        let header = ledger.header();
        let refused = |what: &str| {
            Err(RunError::Refused(format!(
                "the run in {} began {what}; use the same again, or choose another folder with --out",
                self.folder.display()
            )))
        };
        if header.plan_sha256 != self.plan.hash() {
            return refused("with another plan");
        }
        if ledger.parents() != self.lineage.parents() {
            return refused("after other runs or vocabularies, or with another declaration of them");
        }
        if header.randomness != self.mode.randomness {
            return match header.randomness {
                Randomness::TestKey { key } => refused(&format!("with --test-key {key}")),
                Randomness::OperatingSystem => refused("without --test-key"),
            };
        }
        if header.protected != self.is_protected() {
            return refused(if header.protected { "without --non-private" } else { "with --non-private" });
        }
        Ok(())
    }
}

/// Charges the step that an unfinished line would have reserved. The documentation of [`super::ledger`] says why.
fn charge_torn_line(ledger: &mut Ledger, plan: &CertifiedPlan) -> Result<(), RunError> {
    let state = ledger.state();
    if state.tokenizer().is_none() {
        if plan.tokenizer_release().is_some() && state.release().is_none() {
            return Err(release_lost());
        }
        return Ok(());
    }
    let step = state.steps_reserved().min(plan.total_steps() - 1);
    let attempt = state.attempts_of(step) + 1;
    if !state.header().protected {
        return ledger.append(Entry::UnprotectedStep { step, attempt });
    }
    let Some(event) = ChargeSchedule::after(plan, state).due(plan, step) else { return Ok(()) };
    let mut charges = state.charges();
    charges.add(&event, 1);
    // A step is never reserved beyond what the plan pays for. Where one more does not fit, the torn line was the
    // completion's.
    if accounting::epsilon_of(plan, &charges)?.upper <= plan.epsilon().upper {
        ledger.append(Entry::Step { step, attempt, event })
    } else {
        Ok(())
    }
}

/// The refusal where a vocabulary release was charged and its result is lost.
pub(super) fn release_lost() -> RunError {
    RunError::Refused(
        "the vocabulary release was interrupted: its privacy is spent and its result is lost, and the plan pays for one \
         release only; begin a new run in another folder with --out (the ε of the two runs add up)"
            .to_owned(),
    )
}
