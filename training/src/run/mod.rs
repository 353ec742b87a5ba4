//! A run: prepare → train → finish.

mod best;
mod dry_run;
mod finish;
mod folder;
mod monitor;
mod peft;
mod prepare;
mod request;
mod sentence_transformers;
mod start;

use mechanisms::{OsRng, PrivacyRng, TestRng};

pub use crate::summary::Summary;
pub use dry_run::dry_run;
pub use request::Request;
pub(crate) use request::Trial;
pub use request::shell_word;

use self::folder::Folder;
use self::monitor::Monitor;
use self::prepare::{Inputs, Prepared, Progressed};
use self::request::Job;
use crate::infer::Evaluation;
use crate::ranks::Ranks;
use crate::store::RunStore;
use crate::{RunError, data, stop, vocabulary};
use network::device::{self, DeviceError, OnDevice, on_device};
use network::nn::Kernels;

/// The error of a source of text if the user asks to stop while it is read.
const READING_STOPPED: &str = "reading was stopped";

/// Carries out the plan of a request, or resumes it.
///
/// # Errors
/// [`RunError`]. The plan and the training text are refused before anything is written.
pub fn run(request: &Request) -> Result<Summary, RunError> {
    of_first(run_on_ranks(request, &Ranks::alone())?)
}

/// Carries out the plan of a request, or resumes it, on several ranks. Ranks other than the first
/// return nothing.
///
/// # Errors
/// As [`run`], on all ranks together; the error of the first says what failed.
pub fn run_on_ranks(request: &Request, ranks: &Ranks) -> Result<Option<Summary>, RunError> {
    carry_out(&ranks.agree(request.check(ranks))?)
}

/// What a single process got, which is its own first rank.
fn of_first(summary: Option<Summary>) -> Result<Summary, RunError> {
    summary.ok_or_else(|| RunError::Failed("a single process is its own first rank".to_owned()))
}

/// Carries out a trial of a sweep, or resumes it.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_trial(trial: Trial) -> Result<Summary, RunError> {
    of_first(carry_out(&trial.into_job()?)?)
}

/// Releases the vocabulary that the trials of a sweep share, in a run folder that takes no step.
///
/// # Errors
/// As [`run`].
pub(crate) fn release_vocabulary(trial: Trial) -> Result<(), RunError> {
    let job = trial.into_job()?;
    stop::listen()?;
    let units = data::read_units(job.plan.plan(), &job.base, false, &job.ranks)?;
    let mut store = RunStore::open(&job.open_run(&units, None))?;
    match job.test_key {
        Some(key) => vocabulary::obtain(&job.plan, &job.base, &mut store, None, &TestRng::from_seed(key)),
        None => vocabulary::obtain(&job.plan, &job.base, &mut store, None, &os_rng(&job.ranks)?),
    }?;
    job.check_interrupt()
}

/// Draws a new key from the operating system, the same on all ranks.
fn os_rng(ranks: &Ranks) -> Result<OsRng, RunError> {
    OsRng::shared(|key| ranks.broadcast_in_place(key)).map_err(|error| RunError::Failed(error.to_string()))
}

fn carry_out(job: &Job) -> Result<Option<Summary>, RunError> {
    stop::listen()?;
    let refused = |error: DeviceError| RunError::Refused(error.to_string());
    // All ranks have the device before one of them begins.
    job.ranks.agree(device::require(job.device).map_err(refused))?;
    match on_device(job.device, JobOnDevice(job)).map_err(refused)? {
        Err(RunError::Refused(reason)) if stop::requested() && reason.ends_with(READING_STOPPED) => {
            Err(job.interrupted())
        }
        outcome => outcome,
    }
}

/// Carries out the whole run: prepare, train, finish. Ranks other than the first return nothing.
fn run_on<B: Kernels>(
    job: &Job,
    device: B::Device,
    rng: &impl PrivacyRng,
) -> Result<Option<Summary>, RunError> {
    let inputs = Inputs::read::<B>(job, &device)?;
    let mut folder = Folder::open(&job.ranks, || {
        RunStore::open(&job.open_run(&inputs.units, inputs.public_text.as_ref()))
    })?;
    let finished = folder.on_first(|store| Ok(store.ledger().completed().is_some()))?;
    if job.ranks.of_first(finished.unwrap_or_default())? {
        return folder.on_first(|store| {
            store.write_certificate()?;
            finish::verified(store)
        });
    }
    folder.on_first(|store| job.announce(store.ledger(), store.steps_done()))?;
    let mut prepared = Prepared::<B>::new(job, inputs, &mut folder, device, rng)?;
    let evaluation = train(job, &mut prepared, &mut folder, rng)?;
    folder.on_first(|store| finish::finish(job, &mut prepared, evaluation, store))
}

/// Takes the remaining steps. Each is charged on the disk before its units are sampled. Returns the
/// last step's evaluation, if any step remained.
fn train<B: Kernels>(
    job: &Job,
    prepared: &mut Prepared<B>,
    folder: &mut Folder<'_>,
    rng: &impl PrivacyRng,
) -> Result<Option<Evaluation>, RunError> {
    let (plan, ranks, Progressed { steps_done, end, .. }) = (&job.plan, &job.ranks, prepared.progressed);
    let mut monitor = folder.on_first(|store| {
        store.begin_metrics()?;
        Monitor::start(plan, store, end)
    })?;
    let stops = |monitor: &Option<Monitor<'_>>| ranks.any(monitor.as_ref().is_some_and(Monitor::stops));
    let mut stopped = stops(&monitor);
    let (mut reached, mut evaluation) = (steps_done, None);
    while reached < end && !stopped {
        let step = reached;
        folder.on_first(|store| store.reserve_step(step))?;
        prepared.step(job, step, rng)?;
        reached = step + 1;
        evaluation =
            if monitor::evaluates(plan.plan(), reached, end) { prepared.evaluate(ranks)? } else { None };
        folder.on_first(|store| {
            let recorded = monitor
                .as_mut()
                .map(|monitor| monitor.after_step(reached, evaluation.as_ref(), prepared, store));
            recorded.unwrap_or(Ok(()))
        })?;
        stopped = stops(&monitor);
        let is_last = reached == end || stopped;
        if !is_last && job.snapshots_at(reached) {
            folder.on_first(|store| {
                store.write_snapshot(reached, &finish::model(job, prepared, store.ledger())?)
            })?;
        }
        let interrupted = ranks.any(stop::requested()) && !is_last;
        if interrupted || is_last || job.checkpoints_at(reached) {
            let state = prepared.trainer.state();
            folder.on_first(|store| store.write_checkpoint(reached, state))?;
        }
        if interrupted {
            break;
        }
    }
    monitor.iter().for_each(Monitor::finish);
    if stopped {
        folder.on_first(RunStore::charge_steps_left_out)?;
    } else if reached < end {
        return ranks.agree(Err(job.interrupted()));
    }
    Ok(evaluation)
}

struct JobOnDevice<'a>(&'a Job);

impl OnDevice for JobOnDevice<'_> {
    type Output = Result<Option<Summary>, RunError>;

    fn run<B: Kernels>(self, device: B::Device) -> Self::Output {
        match self.0.test_key {
            Some(key) => run_on::<B>(self.0, device, &TestRng::from_seed(key)),
            None => run_on::<B>(self.0, device, &os_rng(&self.0.ranks)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose};

    use super::*;
    use crate::ranks::threads::on_ranks;
    use network::tensor::{Flex, FlexDevice};

    /// With two keys, the ranks would draw different lots and add noise at different places.
    #[test]
    fn all_ranks_have_the_first_ones_key_and_another_run_has_another() {
        let word = |ranks: &Ranks| os_rng(ranks).unwrap().stream(Purpose::GradientNoise, 0, 0).next_u64();
        let [one, other] = [on_ranks(3, word), on_ranks(3, word)];
        assert!(one == [one[0]; 3] && other == [other[0]; 3]);
        assert_ne!(one[0], other[0]);
    }

    /// Otherwise the others would wait for its gradient without end.
    #[test]
    fn a_rank_that_can_no_longer_read_its_text_ends_all_ranks() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut plan: serde_json::Value =
            serde_json::from_str(include_str!("../../../plan/tests/fixtures/tiny.json")).unwrap();
        plan["data"]["source"] = serde_json::json!({ "path": "notes.txt" });
        let text: String = (0..300).map(|n| format!("note {n}\n")).collect();
        for folder in &folders {
            std::fs::write(folder.path().join("notes.txt"), &text).unwrap();
            std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
        }
        let rng = TestRng::from_seed(1);
        let found = on_ranks(2, |ranks| {
            let base = folders[ranks.rank()].path();
            let out = Some(base.join("run"));
            let request = Request { out, test_key: Some(1), ..Request::new(base.join("plan.json")) };
            let job = request.check(ranks).unwrap();
            let inputs = Inputs::read::<Flex>(&job, &FlexDevice).unwrap();
            let mut folder =
                Folder::open(ranks, || RunStore::open(&job.open_run(&inputs.units, None))).unwrap();
            let mut prepared = Prepared::<Flex>::new(&job, inputs, &mut folder, FlexDevice, &rng).unwrap();
            prepared.step(&job, 0, &rng).unwrap();
            if ranks.rank() == 1 {
                std::fs::write(base.join("notes.txt"), "").unwrap();
            }
            prepared.step(&job, 1, &rng).unwrap_err()
        });
        let shown = found[0].to_string();
        assert!(shown.contains("rank 1 of 2") && shown.contains("notes.txt"), "{shown}");
        assert!(matches!(found[1], RunError::Elsewhere { .. }), "{}", found[1]);
    }
}
