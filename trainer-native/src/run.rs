//! The main path: plan → certify → corpus → DP vocabulary → dataset → {reserve → sample → DP step} → certificate.

mod finish;
mod request;

use mechanisms::{OsRng, PrivacyRng, Purpose, TestRng};
use plan::CertifiedPlan;

pub use finish::Summary;
pub(crate) use finish::{read_evaluation_file, summary};
pub use request::{Request, read_plan};

use crate::audit::Canaries;
use crate::charging::Charging;
use crate::checkpoint::Checkpoint;
use crate::data::{self, Dataset, Sampler};
use crate::device::{OnDevice, check_precision, on_device};
use crate::engine::{DpStep, Engine, PlainStep};
use crate::eval::{Evaluation, HeldOut};
use crate::folder::RunFolder;
use crate::nn::Kernels;
use crate::objective::Objective;
use crate::optim::learning_rate;
use crate::pretrained::{self, Start};
use crate::progress::{Progress, Tick, note};
use crate::telemetry::{Metric, Metrics, Released};
use crate::{RunError, certificate, ledger, memory, stop, vocabulary};

/// Carries out the plan of a request, or goes on with it.
///
/// # Errors
/// [`RunError`]; refusals of the plan and the corpus come before anything is written.
pub fn run(request: &Request) -> Result<Summary, RunError> {
    let job = request.check()?;
    stop::listen()?;
    on_device(job.device, OnBackend(&job)).map_err(|error| RunError::Refused(error.to_string()))?
}

struct OnBackend<'a>(&'a request::Job);

impl OnDevice for OnBackend<'_> {
    type Output = Result<Summary, RunError>;
    fn run<B: Kernels>(self, device: B::Device) -> Self::Output {
        match self.0.test_key {
            Some(key) => carry_out::<B>(self.0, device, &TestRng::from_seed(key)),
            None => {
                carry_out::<B>(self.0, device, &OsRng::new().map_err(|e| RunError::Failed(e.to_string()))?)
            }
        }
    }
}

fn carry_out<B: Kernels>(
    job: &request::Job,
    device: B::Device,
    rng: &impl PrivacyRng,
) -> Result<Summary, RunError> {
    let plan = &job.plan;
    memory::check(plan, job.device)?;
    check_precision::<B>(plan.plan().performance().precision, &device)
        .map_err(|error| RunError::Refused(error.to_string()))?;
    let units = data::read_units(plan.plan(), &job.base)?;
    let evaluation = data::read_evaluation(plan.plan(), &job.base)?;
    heed(job)?;
    vocabulary::check_public(plan, &job.base)?;
    let start = pretrained::prepare(plan.plan(), &job.base)?;
    let mut folder = RunFolder::open(&job.out, plan, &job.plan_bytes, job.kind, job.resume)?;
    if folder.ledger.record().completed().is_some() {
        return finish::certify(plan, &folder);
    }
    job.announce(folder.ledger.record(), folder.steps_done());
    if let Some(start) = &start {
        record_start(start, &mut folder)?;
    }
    // A release that was charged is finished and saved first: what it learnt cannot be learnt again.
    let tokenizer = vocabulary::obtain(plan, &job.base, &units, &mut folder, rng)?;
    heed(job)?;
    let objective = Objective::new(plan.plan(), &tokenizer)?;
    let mut dataset = Dataset::new(units, &tokenizer, objective.cut())?;
    let fresh = folder.ledger.record().steps_reserved() == 0;
    if let Some(canaries) = Canaries::obtain(&folder.path, job.canaries, fresh, rng)? {
        dataset.plant(&canaries.planted_windows(tokenizer.vocab_size(), objective.cut()));
    }
    let evaluation =
        evaluation.map(|parts| HeldOut::new(&parts, &tokenizer, &objective)).transpose()?.flatten();
    let at_once = memory::windows_at_once(plan.plan(), job.device, B::workers());
    let seam = (tokenizer.vocab_size(), at_once);
    let engine = start_engine::<B>(plan, seam, start, &folder, device, rng)?;
    let end = affordable_end(plan, &folder)?;
    let sampler = Sampler::default();
    heed(job)?;
    let mut training = Training { job, folder, engine, objective, sampler, evaluation, end, measured: None };
    training.go(&dataset, rng)?;
    finish::finish(training, &tokenizer)
}

/// Ends the run here if a signal has come: between two stages all that was charged is saved.
fn heed(job: &request::Job) -> Result<(), RunError> {
    if stop::requested() {
        return Err(RunError::Interrupted { resume: job.resume_command() });
    }
    Ok(())
}

fn start_engine<B: Kernels>(
    plan: &CertifiedPlan,
    (vocab_size, physical_batch): (usize, usize),
    start: Option<Start>,
    folder: &RunFolder,
    device: B::Device,
    rng: &impl PrivacyRng,
) -> Result<Engine<B>, RunError> {
    let (model, training) = (plan.plan().model(), plan.plan().training());
    let mut init = rng.stream(Purpose::Initialization, 0, 0);
    let refused = |error: crate::engine::EngineError| RunError::Refused(error.to_string());
    let vocab_size = start.as_ref().map_or(vocab_size, |start| start.vocab_size);
    let mut engine =
        Engine::new(model, training, vocab_size, &mut init, physical_batch, device).map_err(refused)?;
    let performance = plan.plan().performance();
    engine = engine.recompute(performance.recompute).precision(performance.precision);
    if let Some(start) = start {
        engine.load_weights(start.weights).map_err(refused)?;
    }
    if let Some(checkpoint) = &folder.checkpoint {
        engine.load_state(checkpoint.state.clone()).map_err(refused)?;
    }
    Ok(engine)
}

/// Puts the checkpoint's digest on the ledger, ahead of the tokenizer's; a resumed run must start from the same one.
fn record_start(start: &Start, folder: &mut RunFolder) -> Result<(), RunError> {
    match folder.ledger.record().initial_weights() {
        Some(sha256) if sha256 == start.sha256 => return Ok(()),
        Some(_) => {
            let what = "model.initial: the checkpoint is not the one the run began with; put that one back";
            return Err(RunError::Refused(what.to_owned()));
        }
        None => {}
    }
    if !start.ignored.is_empty() {
        note(&format!("model.initial: not used: {}", start.ignored.join(", ")));
    }
    folder.ledger.append(ledger::Entry::InitialWeights { sha256: start.sha256.clone() })
}

/// The step to end before: the plan's last, or an earlier one if crashes burned more steps than are spare.
fn affordable_end(plan: &CertifiedPlan, folder: &RunFolder) -> Result<u64, RunError> {
    let (record, from, total) = (folder.ledger.record(), folder.steps_done(), plan.total_steps());
    // Without a crash nothing was burned, except the rest of a pass that a stop interrupted.
    let whole = record.reservations() == from && (record.resumes() == 0 || plan.pass(0).is_none());
    if !record.header().protected || whole {
        return Ok(total);
    }
    let fits = |end: u64| {
        let (mut charges, mut charging) = (record.charges(), Charging::after(plan, record));
        for step in from..end {
            if let Some(event) = charging.due(plan, step) {
                ledger::charge(&mut charges, &event, 1);
            }
            charging.note_step(plan, step);
        }
        Ok::<bool, RunError>(certificate::epsilon_of(plan, &charges)?.upper <= plan.epsilon().upper)
    };
    if fits(total)? {
        return Ok(total);
    }
    let (mut affordable, mut beyond) = (from, total);
    while affordable + 1 < beyond {
        let middle = affordable + (beyond - affordable) / 2;
        if fits(middle)? { affordable = middle } else { beyond = middle }
    }
    note(&format!("spare steps are used up: the run will end at step {affordable} instead of {total}"));
    Ok(affordable)
}

/// A run between its first and its last step.
struct Training<'a, B: Kernels> {
    job: &'a request::Job,
    folder: RunFolder,
    engine: Engine<B>,
    objective: Objective,
    sampler: Sampler,
    /// The plan's public evaluation text, if it has any.
    evaluation: Option<HeldOut>,
    end: u64,
    /// The last evaluation, and the number of steps done by then.
    measured: Option<(u64, Evaluation)>,
}

impl<B: Kernels> Training<'_, B> {
    fn go(&mut self, dataset: &Dataset, rng: &impl PrivacyRng) -> Result<(), RunError> {
        let first = self.folder.steps_done();
        let every = self.job.plan.plan().performance().checkpoint_every;
        let mut metrics = Metrics::open(&self.folder.path, first)?;
        let mut progress = Progress::start(first, self.end);
        for step in first..self.end {
            let learning_rate = self.step(step, dataset, rng)?;
            self.tell(step + 1, learning_rate, &mut metrics, &mut progress)?;
            let stopping = stop::requested() && step + 1 < self.end;
            if stopping || (step + 1).is_multiple_of(every) || step + 1 == self.end {
                self.checkpoint(step + 1)?;
            }
            if stopping {
                progress.finish();
                return Err(RunError::Interrupted { resume: self.job.resume_command() });
            }
        }
        progress.finish();
        Ok(())
    }

    /// One step: on the ledger first, then drawn, computed and taken.
    fn step(&mut self, step: u64, dataset: &Dataset, rng: &impl PrivacyRng) -> Result<f64, RunError> {
        let plan = &self.job.plan;
        let training = plan.plan().training();
        let phase =
            *plan.phase(step).ok_or_else(|| RunError::Failed(format!("the plan has no step {step}")))?;
        let learning_rate = learning_rate(&training.learning_rate, step, plan.total_steps());
        let expected_batch_size = phase.expected_batch_size as f64;
        let protected = self.folder.ledger.record().header().protected;
        self.folder.reserve(plan, step)?;
        let drawn = self.sampler.draw(plan, step, dataset.units() as u64, rng)?;
        let drawn = dataset.lot(&drawn, step, rng)?;
        let lot = self.objective.lot(&drawn, step, rng);
        let lot = lot.for_mechanism();
        let taken = if protected {
            let (noise_multiplier, l2_clip_norm) = (phase.noise_multiplier, training.l2_clip_norm);
            let figures = DpStep { noise_multiplier, l2_clip_norm, expected_batch_size, learning_rate, step };
            self.engine.dp_step(lot, figures, rng)
        } else {
            self.engine.plain_step(lot, PlainStep { expected_batch_size, learning_rate })
        };
        taken.map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(learning_rate)
    }

    fn checkpoint(&mut self, steps_done: u64) -> Result<(), RunError> {
        let ledger = self.folder.ledger.record().head();
        Checkpoint { steps_done, ledger, state: self.engine.state() }.write(&self.folder.path)
    }

    /// Public figures to the screen and the metrics file.
    fn tell(
        &mut self,
        steps_done: u64,
        learning_rate: f64,
        metrics: &mut Metrics,
        progress: &mut Progress,
    ) -> Result<(), RunError> {
        let plan = &self.job.plan;
        let every = plan.plan().evaluation().map(|evaluation| evaluation.every);
        let evaluate = every.is_some_and(|every| steps_done.is_multiple_of(every)) || steps_done == self.end;
        progress.moved(steps_done);
        if !evaluate && !progress.due() {
            return Ok(());
        }
        let epsilon = certificate::spent(plan, self.folder.ledger.record())?;
        if evaluate {
            let measure = |text: &HeldOut| text.measure(&self.engine);
            let measured = self.evaluation.as_ref().map(measure).transpose()?;
            let nll = measured.as_ref().map(|figures| figures.perplexity.get().ln());
            metrics.write(&Metric {
                step: steps_done,
                learning_rate: Released::from_plan(learning_rate),
                gradient_to_noise: Released::from_mechanism(self.engine.gradient_to_noise()),
                l2_clip_norm: Released::from_mechanism(self.engine.adapted_clip_norm()),
                epsilon: Released::from_plan(epsilon.map(|bounds| bounds.upper)),
                evaluation_nll: Released::from_public_text(nll),
            })?;
            if let Some(figures) = measured {
                progress.line(&format!("step {steps_done}: held-out {figures}"));
                self.measured = Some((steps_done, figures));
            }
        }
        let batch = plan.phase(steps_done - 1).map_or(0, |phase| phase.expected_batch_size);
        let expected_tokens = Released::from_plan(batch * u64::from(plan.plan().model().context));
        progress.show(&Tick { steps_done, expected_tokens, epsilon: Released::from_plan(epsilon) });
        Ok(())
    }
}
