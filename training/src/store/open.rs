//! Begins a run in a folder, or resumes the run that the folder holds.

use std::path::Path;

use dp_tokenizer::identity::Sketch;
use mechanisms::{OsRng, TestRng, random_id};
use plan::CertifiedPlan;

use super::charging::ChargeSchedule;
use super::checkpoint::Checkpoint;
use super::corpus::Recorded;
use super::ledger::{
    Computation, Entry, Header, Ledger, LedgerPosition, LedgerState, NoiseDraw, PublicStage, Randomness,
    Search,
};
use super::lineage::Lineage;
use super::mirror::{BegunRuns, Mirror};
use super::torn_line::charge_torn_line;
use super::{RunStore, accounting, corpus, files};
use crate::RunError;
use crate::data::{Planting, Units};
use crate::ranks::Placement;
use durable::{FolderLock, sha256_hex};

/// The facts about a run that the ledger's header states beside its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunMode {
    pub randomness: Randomness,
    /// Whether steps clip and add noise, unless the plan declares the training text public.
    pub protected: bool,
    pub device: plan::Device,
    /// The arithmetic of the sums of clipped gradients.
    pub arithmetic: plan::Arithmetic,
    /// The ranks and machines of the process, if there are several ranks.
    pub placement: Option<Placement>,
}

/// The run that a folder is opened for.
pub(crate) struct OpenRun<'plan, 'a> {
    pub folder: &'a Path,
    pub plan: &'plan CertifiedPlan,
    /// The plan file, byte for byte.
    pub plan_file: &'a [u8],
    /// The stages that the plan builds on.
    pub lineage: &'a Lineage,
    pub mode: RunMode,
    /// The training text.
    pub units: &'a Units,
    /// A sketch of the training text, if it is public.
    pub public_text: Option<&'a Sketch>,
    /// Canaries to be planted in the text, if the run is an audit.
    pub canaries: Option<&'a Planting>,
    /// The search that the run is a trial of, if it is one.
    pub search: Option<&'a Search>,
    /// Whether to resume the run that the folder holds, or to begin one.
    pub resume: Option<Resume>,
    /// The folder, outside of all runs, in which this computer records the positions of their
    /// ledgers, if there is one.
    pub state: Option<&'a Path>,
}

/// The folders in which a run may be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// The folder where the run began.
    Original,
    /// The folder where the run began, or a copy of it.
    Copy,
}

impl<'plan> RunStore<'plan> {
    /// Begins a run, or resumes it.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the folder holds a run that is not to be resumed, none to resume, or a run of another plan, mode
    /// or text.
    pub fn open(run: &OpenRun<'plan, '_>) -> Result<Self, RunError> {
        let folder = run.folder;
        let begun = folder.join(files::LEDGER).exists();
        match (begun, run.resume) {
            (true, None) => {
                return Err(RunError::Refused(format!(
                    "{} already holds a run; continue it with --resume, or choose another folder with --out",
                    folder.display()
                )));
            }
            (false, Some(_)) => {
                return Err(RunError::Refused(format!(
                    "--resume: {} holds no run (it has no {}); name the folder of the run with --out, or leave out --resume to \
                     begin a new one",
                    folder.display(),
                    files::LEDGER
                )));
            }
            (false, None) => {
                files::require_empty(folder, "run", &[files::PLAN, files::PARENTS, files::CORPUS_DIGEST])?
            }
            (true, Some(_)) => {}
        }
        durable::create_folder(folder)?;
        let lock = FolderLock::take(folder)?;
        let (ledger, checkpoint) = match run.resume {
            Some(from) => resume(run, from)?,
            None => (begin(run)?, None),
        };
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
            unsaved_tokenizer: None,
            _lock: lock,
        })
    }
}

fn begin(run: &OpenRun<'_, '_>) -> Result<Ledger, RunError> {
    durable::write_atomic(&run.folder.join(files::PLAN), run.plan_file)?;
    run.lineage.write(run.folder)?;
    let mut runs = run.begun_in_sweep();
    runs.as_ref().map_or(Ok(()), |runs| runs.check_new(run.folder))?;
    let key = corpus::draw_key()?;
    let mut ledger = Ledger::create(
        run.folder,
        Header {
            format: 1,
            id: id_of_run(run.mode.randomness)?,
            plan_sha256: run.plan.hash().to_owned(),
            plan_file_sha256: sha256_hex(run.plan_file),
            accountant_version: accountant::VERSION.to_owned(),
            accountant_method: accountant::METHOD.to_owned(),
            relation: run.plan.plan().privacy().relation,
            randomness: run.mode.randomness,
            protected: run.is_protected(),
            public_data: run.plan.plan().is_public(),
            canaries: run.canaries.cloned(),
            computation: Computation {
                device: run.mode.device,
                precision: run.plan.plan().performance().precision,
                arithmetic: run.is_protected().then_some(run.mode.arithmetic),
                noise: run.is_protected().then_some(NoiseDraw::ExactOnGrid),
                placement: run.mode.placement,
            },
            search: run.search.cloned(),
            public_stages: run.public_stages(),
        },
        run.lineage.parents(),
        |identity| corpus::record(run.folder, key.clone(), run.units, identity),
    )?;
    runs.as_mut().map_or(Ok(()), |runs| runs.note(run.folder))?;
    ledger.mirror_to(Mirror::open(run.state, &key, &ledger.state().position(), |_| true)?);
    Ok(ledger)
}

/// Returns the name of a run that begins.
pub(super) fn id_of_run(randomness: Randomness) -> Result<String, RunError> {
    match randomness {
        Randomness::TestKey { key } => Ok(random_id(&TestRng::from_seed(key))),
        Randomness::OperatingSystem => {
            OsRng::new().map(|rng| random_id(&rng)).map_err(|error| RunError::Failed(error.to_string()))
        }
    }
}

fn resume(run: &OpenRun<'_, '_>, from: Resume) -> Result<(Ledger, Option<Checkpoint>), RunError> {
    let (mut ledger, torn_bytes) = Ledger::reopen(run.folder)?;
    run.check_same_run(ledger.state())?;
    run.check_plan_file(ledger.state().header())?;
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
        let mut recorded = Recorded::read(run.folder)?;
        let copied = run.is_copy(&ledger, &recorded, from)?;
        recorded.check(run.units)?;
        run.begun_in_sweep().map_or(Ok(()), |mut runs| runs.note(run.folder))?;
        ledger.mirror_to(run.mirror(&ledger, &recorded, torn_bytes)?);
        let steps_done = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.steps_done);
        let RunMode { device, placement, .. } = run.mode;
        ledger.append(Entry::Resume { steps_done, torn_bytes, copied, device: Some(device), placement })?;
        if copied {
            recorded.ledger = ledger.identity();
            recorded.write(run.folder)?;
        }
        if torn_bytes > 0 {
            charge_torn_line(&mut ledger, run.plan)?;
        }
    }
    Ok((ledger, checkpoint))
}

impl OpenRun<'_, '_> {
    /// Returns the stages up to this one that called their text public.
    fn public_stages(&self) -> Vec<PublicStage> {
        let name = self.plan.plan().name().to_owned();
        let own = self.public_text.map(|text| PublicStage { name, text: text.clone(), behind_text: false });
        self.lineage.public_stages().iter().cloned().chain(own).collect()
    }

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
            return refused(
                "with another plan (to change performance.physical_batch alone, keep the plan and add --physical-batch N)",
            );
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
        if header.search.as_ref() != self.search {
            return refused(match (&header.search, self.search) {
                (Some(_), None) => "as a trial of a sweep, which `trainer-native sweep --resume` continues",
                (Some(_), Some(_)) => "as a trial of another sweep",
                (None, _) => "outside the sweep",
            });
        }
        if header.protected != self.is_protected() {
            return refused(if header.protected { "without --non-private" } else { "with --non-private" });
        }
        Ok(())
    }

    /// Refuses a run folder whose plan file was changed: its certificate could never be verified.
    fn check_plan_file(&self, header: &Header) -> Result<(), RunError> {
        let path = self.folder.join(files::PLAN);
        if sha256_hex(&durable::read(&path)?) == header.plan_file_sha256 {
            return Ok(());
        }
        Err(RunError::Verification(format!(
            "{} is not the file that the run wrote; put it back as it was",
            path.display()
        )))
    }

    /// Returns whether the ledger is a copy. A copy does not show whether the original, or another copy, was continued.
    fn is_copy(&self, ledger: &Ledger, recorded: &Recorded, from: Resume) -> Result<bool, RunError> {
        match from {
            _ if recorded.ledger == ledger.identity() => Ok(false),
            Resume::Copy => Ok(true),
            Resume::Original => Err(RunError::Refused(format!(
                "{} is a copy of the ledger that the run wrote: if the original or another copy went on, their charges are \
                 missing here; resume in the original folder, or, if it is lost and this is its latest state, add --copied, \
                 which the certificate will say",
                self.folder.join(files::LEDGER).display()
            ))),
        }
    }

    /// Returns the runs of the sweep that this run is a trial of. With a known key, a sweep gives
    /// the same results wherever it runs, so no runs are recorded.
    fn begun_in_sweep(&self) -> Option<BegunRuns> {
        let is_secret = self.mode.randomness == Randomness::OperatingSystem;
        let search = self.search.filter(|_| is_secret);
        search.map(|search| BegunRuns::of_sweep(self.state, &search.sweep_sha256))
    }

    /// Opens the mirror of the ledger, which must continue the recorded position. If a disk
    /// reported unfinished writes as done, a torn line may have been recorded; it is charged.
    fn mirror(
        &self,
        ledger: &Ledger,
        recorded: &Recorded,
        torn_bytes: u64,
    ) -> Result<Option<Mirror>, RunError> {
        let position = ledger.state().position();
        let continues = |noted: &LedgerPosition| {
            ledger.state().continues(noted) || (torn_bytes > 0 && noted.lines == position.lines + 1)
        };
        Mirror::open(self.state, &recorded.key, &position, continues)
    }
}
