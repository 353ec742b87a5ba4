//! A run: prepare → train → finish.

mod best;
mod finish;
mod monitor;
mod prepare;
mod rehearse;
mod request;

use mechanisms::{OsRng, PrivacyRng, TestRng};

pub use crate::summary::Summary;
pub use rehearse::{Rehearsal, rehearse};
pub use request::Request;
pub(crate) use request::{Trial, shell_word};

use self::monitor::Monitor;
use self::prepare::{Inputs, Prepared};
use self::request::Job;
use crate::device::{OnDevice, on_device};
use crate::infer::Evaluation;
use crate::nn::Kernels;
use crate::store::RunStore;
use crate::{RunError, data, stop, vocabulary};

/// What a source of text says when the user asks to stop while it is read.
const READING_STOPPED: &str = "reading was stopped";

/// Carries out the plan of a request, or resumes it.
///
/// # Errors
/// [`RunError`]. The plan and the training text are refused before anything is written.
pub fn run(request: &Request) -> Result<Summary, RunError> {
    carry_out(&request.check()?)
}

/// Carries out a trial of a sweep, or resumes it.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_trial(trial: Trial) -> Result<Summary, RunError> {
    carry_out(&trial.into_job()?)
}

/// Releases the vocabulary that the trials of a sweep share, in a run folder that takes no step.
///
/// # Errors
/// As [`run`].
pub(crate) fn release_vocabulary(trial: Trial) -> Result<(), RunError> {
    let job = trial.into_job()?;
    stop::listen()?;
    let units = data::read_units(job.plan.plan(), &job.base)?;
    let mut store = RunStore::open(&job.open_run(&units))?;
    match job.test_key {
        Some(key) => vocabulary::obtain(&job.plan, &job.base, &mut store, None, &TestRng::from_seed(key)),
        None => vocabulary::obtain(&job.plan, &job.base, &mut store, None, &os_rng()?),
    }?;
    job.check_interrupt()
}

fn os_rng() -> Result<OsRng, RunError> {
    OsRng::new().map_err(|error| RunError::Failed(error.to_string()))
}

fn carry_out(job: &Job) -> Result<Summary, RunError> {
    stop::listen()?;
    let outcome =
        on_device(job.device, JobOnDevice(job)).map_err(|error| RunError::Refused(error.to_string()))?;
    match outcome {
        Err(RunError::Refused(reason)) if stop::requested() && reason.ends_with(READING_STOPPED) => {
            Err(job.interrupted())
        }
        outcome => outcome,
    }
}

/// The whole run: prepare, train, finish.
fn run_on<B: Kernels>(job: &Job, device: B::Device, rng: &impl PrivacyRng) -> Result<Summary, RunError> {
    let inputs = Inputs::read::<B>(job, &device)?;
    let mut store = RunStore::open(&job.open_run(&inputs.units))?;
    if store.ledger().completed().is_some() {
        store.certify()?;
        return finish::verified(&mut store);
    }
    job.announce(store.ledger(), store.steps_done())?;
    let mut prepared = Prepared::<B>::new(job, inputs, &mut store, device, rng)?;
    let evaluation = train(job, &mut prepared, &mut store, rng)?;
    finish::finish(job, &mut prepared, evaluation, &mut store)
}

/// Takes the steps that are left, each charged on the disk before its units are sampled. Returns the last step's
/// evaluation, if a step was left.
fn train<B: Kernels>(
    job: &Job,
    prepared: &mut Prepared<B>,
    store: &mut RunStore<'_>,
    rng: &impl PrivacyRng,
) -> Result<Option<Evaluation>, RunError> {
    let (plan, end) = (&job.plan, prepared.end);
    store.begin_metrics()?;
    let mut monitor = Monitor::start(plan, store, end)?;
    let steps = store.steps_done()..if monitor.stops() { store.steps_done() } else { end };
    for step in steps {
        store.reserve_step(step)?;
        let lot = prepared.data.sample_lot(plan, step, rng)?;
        prepared.trainer.step(plan, step, store.is_protected(), &lot, rng)?;
        monitor.after_step(step + 1, prepared, store)?;
        let is_last = step + 1 == end || monitor.stops();
        if !is_last && job.snapshots_at(step + 1) {
            store.write_snapshot(step + 1, &finish::model(job, prepared, store.ledger())?)?;
        }
        let interrupted = stop::requested() && !is_last;
        if interrupted || is_last || job.checkpoints_at(step + 1) {
            store.write_checkpoint(step + 1, prepared.trainer.state())?;
        }
        if interrupted || is_last {
            break;
        }
    }
    let stops = monitor.stops();
    let evaluation = monitor.finish();
    if stops {
        store.charge_steps_left_out()?;
    } else if store.steps_done() < end {
        return Err(job.interrupted());
    }
    Ok(evaluation)
}

struct JobOnDevice<'a>(&'a Job);

impl OnDevice for JobOnDevice<'_> {
    type Output = Result<Summary, RunError>;

    fn run<B: Kernels>(self, device: B::Device) -> Self::Output {
        match self.0.test_key {
            Some(key) => run_on::<B>(self.0, device, &TestRng::from_seed(key)),
            None => run_on::<B>(self.0, device, &os_rng()?),
        }
    }
}
