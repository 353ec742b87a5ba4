//! A run: prepare → train → finish.
//!
//! | files in reading order | content |
//! |---|---|
//! | `request` | what the user asks for, and the certified plan |
//! | `inputs`, `start` | what the plan names, read and checked before anything is written |
//! | `folder` | the run folder, as all ranks see it |
//! | `prepare` | tokenizer, examples and model |
//! | `train`, `monitor`, `best` | steps, and the public figures between them |
//! | `finish`, `peft`, `sentence_transformers` | model files and certificate |

mod best;
mod dry_run;
mod finish;
mod folder;
mod inputs;
mod monitor;
mod peft;
mod prepare;
mod request;
mod sentence_transformers;
mod start;
mod train;

use mechanisms::{OsRng, PrivacyRng, TestRng};

pub use crate::summary::Summary;
pub use dry_run::dry_run;
pub(crate) use request::Trial;
pub use request::shell_word;
pub use request::{Job, Request};

use self::folder::Folder;
use self::inputs::Inputs;
use self::prepare::Prepared;
use crate::ranks::Ranks;
use crate::{RunError, data, stop, vocabulary};
use network::device::{self, DeviceError, OnDevice, on_device};
use network::nn::Kernels;

/// The error of a source of text if the user asks to stop while it is read.
const READING_STOPPED: &str = "reading was stopped";

/// Carries out the plan of a request in this process, or resumes it.
///
/// # Errors
/// [`RunError`]. The plan and the training text are refused before anything is written.
pub fn run(request: &Request) -> Result<Summary, RunError> {
    of_first(carry_out(&request.check(&Ranks::alone())?)?)
}

/// Carries out a certified plan on its ranks, or resumes it. Ranks other than the first return nothing.
///
/// # Errors
/// As [`run`], on all ranks together; the error of the first says what failed.
pub fn carry_out(job: &Job) -> Result<Option<Summary>, RunError> {
    stop::listen()?;
    let refused = |error: DeviceError| RunError::Refused(error.to_string());
    // All ranks have the device before one of them begins.
    job.ranks.agree(device::require(job.device).map_err(refused))?;
    let outcome = match job.test_key {
        Some(key) => on_device(job.device, Run { job, rng: &TestRng::from_seed(key) }),
        None => on_device(job.device, Run { job, rng: &os_rng(&job.ranks)? }),
    };
    match outcome.map_err(refused)? {
        Err(RunError::Refused(reason)) if stop::requested() && reason.ends_with(READING_STOPPED) => {
            Err(job.interrupted())
        }
        outcome => outcome,
    }
}

struct Run<'a> {
    job: &'a Job,
    rng: &'a dyn PrivacyRng,
}

impl OnDevice for Run<'_> {
    type Output = Result<Option<Summary>, RunError>;

    /// Carries out the whole run: prepare, train, finish.
    fn run<B: Kernels>(self, device: B::Device) -> Self::Output {
        let Self { job, rng } = self;
        let inputs = Inputs::read::<B>(job, &device)?;
        let mut folder = Folder::open(job, &inputs)?;
        let finished = folder.on_first(|store| Ok(store.ledger().completed().is_some()))?;
        if job.ranks.of_first(finished.unwrap_or_default())? {
            return folder.on_first(finish::certify_again);
        }
        folder.on_first(|store| job.announce(store.ledger(), store.steps_done()))?;
        let mut prepared = Prepared::<B>::new(job, inputs, &mut folder, device, rng)?;
        let evaluation = train::train(job, &mut prepared, &mut folder, rng)?;
        folder.on_first(|store| finish::finish(job, &mut prepared, evaluation, store))
    }
}

/// Draws a new key from the operating system, the same on all ranks.
fn os_rng(ranks: &Ranks) -> Result<OsRng, RunError> {
    OsRng::shared(|key| ranks.broadcast_in_place(key)).map_err(|error| RunError::Failed(error.to_string()))
}

/// Returns the result of a single process, which is its own first rank.
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
    let in_files = data::is_large(job.plan.plan(), &job.base);
    let units = data::read_units(job.plan.plan(), &job.base, in_files, &job.ranks)?;
    let mut store = folder::store(&job, &units, None)?;
    match job.test_key {
        Some(key) => {
            vocabulary::obtain(&job.plan, &job.base, &mut store, None, &TestRng::from_seed(key), None)
        }
        None => vocabulary::obtain(&job.plan, &job.base, &mut store, None, &os_rng(&job.ranks)?, None),
    }?;
    job.check_interrupt()
}

#[cfg(test)]
mod tests {
    use mechanisms::Purpose;

    use super::*;
    use crate::ranks::threads::on_ranks;

    /// With two keys, the ranks would draw different lots and add noise at different places.
    #[test]
    fn all_ranks_have_the_first_ones_key_and_another_run_has_another() {
        let word = |ranks: &Ranks| os_rng(ranks).unwrap().stream(Purpose::GradientNoise, 0, 0).next_u64();
        let [one, other] = [on_ranks(3, word), on_ranks(3, word)];
        assert!(one == [one[0]; 3] && other == [other[0]; 3]);
        assert_ne!(one[0], other[0]);
    }
}
