//! The run folder: one process at a time, a plan's copy, the ledger, and the checkpoint to go on from.

use std::fs;
use std::path::{Path, PathBuf};

use plan::CertifiedPlan;

use crate::charging::Charging;
use crate::checkpoint::{Checkpoint, MODEL_FILE_NAME};
use crate::durable::{self, FolderLock, sha256_hex};
use crate::ledger::{self, Entry, Header, Ledger, Randomness};
use crate::{RunError, certificate};

/// Name of the plan's copy in a run folder.
pub(crate) const PLAN_FILE_NAME: &str = "plan.json";

/// A run folder in use by this process.
pub(crate) struct RunFolder {
    /// Where it is.
    pub path: PathBuf,
    /// What has been spent.
    pub ledger: Ledger,
    /// Where to go on, if steps were done before.
    pub checkpoint: Option<Checkpoint>,
    charging: Charging,
    _lock: FolderLock,
}

/// Refuses a folder that no run wrote, saying what to give instead.
///
/// # Errors
/// [`RunError::Refused`].
pub(crate) fn require_run(path: &Path) -> Result<(), RunError> {
    if path.join(ledger::FILE_NAME).exists() {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "{} is not a run folder: it has no {}; give the folder that `trainer-native --plan PLAN.json` wrote, runs/<plan \
         name> by default",
        path.display(),
        ledger::FILE_NAME
    )))
}

/// Refuses a folder without a finished model, saying how to get one.
///
/// # Errors
/// [`RunError::Refused`].
pub(crate) fn require_finished(path: &Path) -> Result<(), RunError> {
    require_run(path)?;
    if path.join(MODEL_FILE_NAME).exists() {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "the run in {0} is not over, so it has no model yet; go on with `trainer-native --plan PLAN.json --out {0} --resume`",
        path.display()
    )))
}

/// What a run is to be, as far as its ledger's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Where its random figures come from.
    pub randomness: Randomness,
    /// Whether steps clip and add noise.
    pub protected: bool,
}

impl RunFolder {
    /// Begins a run in `path`, or takes up the one that is there if `resume`.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the folder holds a run and `resume` is false, or a run of another plan or kind.
    pub fn open(
        path: &Path,
        plan: &CertifiedPlan,
        plan_bytes: &[u8],
        kind: Kind,
        resume: bool,
    ) -> Result<Self, RunError> {
        let begun = path.join(ledger::FILE_NAME).exists();
        if begun && !resume {
            return Err(RunError::Refused(format!(
                "{} already holds a run; continue it with --resume, or choose another folder with --out",
                path.display()
            )));
        }
        if !begun {
            refuse_foreign_files(path)?;
        }
        fs::create_dir_all(path).map_err(|error| RunError::storage("create", path, &error))?;
        let lock = FolderLock::take(path)?;
        let (ledger, checkpoint) =
            if begun { take_up(path, plan, kind)? } else { (begin(path, plan, plan_bytes, kind)?, None) };
        let charging = Charging::after(plan, ledger.record());
        Ok(Self { path: path.to_owned(), ledger, checkpoint, charging, _lock: lock })
    }

    /// Reserves an attempt of a step: on the ledger, and on the disk, when this returns.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be made durable, [`RunError::Failed`] past the plan's last step.
    pub fn reserve(&mut self, plan: &CertifiedPlan, step: u64) -> Result<(), RunError> {
        let attempt = self.ledger.record().attempts_of(step) + 1;
        if !self.ledger.record().header().protected {
            return self.ledger.append(Entry::UnprotectedStep { step, attempt });
        }
        let event = self.charging.due(plan, step);
        let event = event.ok_or_else(|| RunError::Failed(format!("the plan has no step {step}")))?;
        self.ledger.append(Entry::Step { step, attempt, event })?;
        self.charging.note_step(plan, step);
        Ok(())
    }

    /// Logical steps whose result is in the checkpoint.
    pub fn steps_done(&self) -> u64 {
        self.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.steps_done)
    }
}

/// A run begins in a folder of its own: a stray `tokenizer.json` must never be taken for the run's.
fn refuse_foreign_files(path: &Path) -> Result<(), RunError> {
    let Ok(listing) = fs::read_dir(path) else { return Ok(()) };
    for entry in listing.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // What a process leaves that was killed before its ledger began.
        let own =
            name == PLAN_FILE_NAME || (name.starts_with('.') && (name == ".lock" || name.ends_with(".tmp")));
        if !own {
            return Err(RunError::Refused(format!(
                "{} holds {name}, which is not of a run; give a new or empty folder with --out",
                path.display()
            )));
        }
    }
    Ok(())
}

fn begin(path: &Path, plan: &CertifiedPlan, plan_bytes: &[u8], kind: Kind) -> Result<Ledger, RunError> {
    durable::write_atomic(&path.join(PLAN_FILE_NAME), plan_bytes)?;
    Ledger::create(
        path,
        Header {
            format: 1,
            plan_sha256: plan.hash().to_owned(),
            plan_file_sha256: sha256_hex(plan_bytes),
            accountant_version: accountant::VERSION.to_owned(),
            accountant_method: accountant::METHOD.to_owned(),
            relation: plan.plan().privacy().relation,
            randomness: kind.randomness,
            protected: kind.protected && !plan.plan().is_public(),
            public_data: plan.plan().is_public(),
        },
    )
}

fn take_up(path: &Path, plan: &CertifiedPlan, kind: Kind) -> Result<(Ledger, Option<Checkpoint>), RunError> {
    let (mut ledger, torn) = Ledger::reopen(path)?;
    let header = ledger.record().header();
    let refused = |what: &str| {
        RunError::Refused(format!(
            "{} was begun {what}; give the same again, or choose another folder with --out",
            path.display()
        ))
    };
    if header.plan_sha256 != plan.hash() {
        return Err(refused("with another plan"));
    }
    if header.randomness != kind.randomness {
        return Err(match header.randomness {
            Randomness::TestKey { key } => refused(&format!("with --test-key {key}")),
            Randomness::OperatingSystem => refused("without --test-key"),
        });
    }
    if header.protected != (kind.protected && !plan.plan().is_public()) {
        return Err(refused(if header.protected { "without --non-private" } else { "with --non-private" }));
    }
    certificate::check_same_plan(plan, ledger.record())?;
    let checkpoint = Checkpoint::read(path)?;
    if let Some(checkpoint) = &checkpoint
        && !ledger.record().continues(&checkpoint.ledger)
    {
        return Err(RunError::Verification(format!(
            "{} is not the ledger that the checkpoint was taken with: lines are missing or exchanged",
            path.join(ledger::FILE_NAME).display()
        )));
    }
    if ledger.record().completed().is_none() {
        let steps_done = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.steps_done);
        ledger.append(Entry::Resume { steps_done, torn_bytes: torn })?;
        if torn > 0 {
            charge_torn_line(&mut ledger, plan)?;
        }
    }
    Ok((ledger, checkpoint))
}

/// Charges the step that an unfinished line would have reserved; see the ledger's text for why.
fn charge_torn_line(ledger: &mut Ledger, plan: &CertifiedPlan) -> Result<(), RunError> {
    let record = ledger.record();
    if record.tokenizer().is_none() {
        if plan.tokenizer_release().is_some() && record.release().is_none() {
            return Err(release_lost());
        }
        return Ok(());
    }
    let step = record.steps_reserved().min(plan.total_steps() - 1);
    let attempt = record.attempts_of(step) + 1;
    if !record.header().protected {
        return ledger.append(Entry::UnprotectedStep { step, attempt });
    }
    let Some(event) = Charging::after(plan, record).due(plan, step) else { return Ok(()) };
    let mut charges = record.charges();
    ledger::charge(&mut charges, &event, 1);
    // A step is never reserved beyond what the plan pays for; so where one more does not fit, the torn line was the
    // completion's.
    if certificate::epsilon_of(plan, &charges)?.upper <= plan.epsilon().upper {
        ledger.append(Entry::Step { step, attempt, event })
    } else {
        Ok(())
    }
}

/// The refusal where a vocabulary release was charged and its result is lost.
pub(crate) fn release_lost() -> RunError {
    RunError::Refused(
        "the vocabulary's release was interrupted: its privacy is spent and its result is lost, and the plan pays for \
         one release only; begin again in another folder with --out (the two runs' ε then add up)"
            .to_owned(),
    )
}
