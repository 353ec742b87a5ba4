//! Answers to the page's questions. Every figure comes from `plan` and `accountant`.

use accountant::budget;
use plan::{CertifiedPlan, NoiseMultipliers, Plan, PlanError, PlanFile};

use crate::ask::{
    Answer, Axis, Certified, NoiseFigures, PhaseFigures, Refusal, ReleaseFigures, Reply, Request, Sought,
    Task, Variation,
};
use crate::explain;

/// Answers one request.
#[must_use]
pub fn reply(request: &Request) -> Reply {
    let outcome = match &request.task {
        Task::Certify(text) => certify(text).map(|certified| Answer::Certified(Box::new(certified))),
        Task::Read(text) => PlanFile::parse(text).map(|file| Answer::Plan(crate::text(&file))),
        Task::Vary(variation) => vary(variation),
        Task::Solve(sought) => solve(sought),
        Task::Promise(promise) => explain::promise(promise).map(Answer::Promised),
        Task::Explain(explanation) => explain::explain(explanation),
    };
    Reply { id: request.id, outcome: outcome.map_err(|error| refusal(&error, &request.task)) }
}

/// What the plan in `text` costs.
///
/// # Errors
/// Whatever the trainer would say of the same text.
pub fn certify(text: &str) -> Result<Certified, PlanError> {
    let certified = Plan::try_from(PlanFile::parse(text)?)?.certify()?;
    Ok(figures(&certified))
}

fn figures(certified: &CertifiedPlan) -> Certified {
    let phases: Vec<PhaseFigures> = certified
        .phases()
        .iter()
        .map(|phase| PhaseFigures {
            steps: phase.steps,
            expected_batch_size: phase.expected_batch_size,
            sampling_probability: phase.sampling_probability,
            noise_multiplier: phase.noise_multiplier(),
            noise_batch_ratio: phase.noise_batch_ratio(),
        })
        .collect();
    let release = certified.tokenizer_release().map(|release| ReleaseFigures {
        noise_multiplier: release.noise_multiplier,
        threshold_delta: release.threshold_delta,
    });
    Certified {
        epsilon: certified.epsilon(),
        delta: certified.delta().get(),
        fixed_text: fixed(certified),
        phases,
        release,
        hash: certified.hash().to_owned(),
        default_delta: budget::default_delta(certified.plan().data().units),
    }
}

/// The plan with the noise it was found to need and no promise, so that a variation states its own ε.
fn fixed(certified: &CertifiedPlan) -> String {
    let mut file = certified.plan().file().clone();
    let training = certified.phases().first().map_or(f64::NAN, |phase| phase.noise_multiplier());
    let tokenizer = certified.tokenizer_release().map(|release| release.noise_multiplier);
    file.privacy.epsilon = None;
    file.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer, training });
    crate::text(&file)
}

fn vary(variation: &Variation) -> Result<Answer, PlanError> {
    let mut file = PlanFile::parse(&variation.text)?;
    match variation.axis {
        Axis::Noise => {
            if let Some(noise) = &mut file.privacy.noise_multipliers {
                noise.training = variation.value;
            }
        }
        Axis::Steps => stop_after(&mut file, variation.value as u64),
        Axis::Batch => {
            file.training.expected_batch_size = Some(variation.value as u64);
            return needed_noise(file);
        }
    }
    Ok(Answer::Epsilon(Plan::try_from(file)?.certify()?.epsilon()))
}

/// The noise with which the plan keeps its promise.
fn needed_noise(mut file: PlanFile) -> Result<Answer, PlanError> {
    file.privacy.noise_multipliers = None;
    let certified = Plan::try_from(file)?.certify()?;
    let figures = certified.phases().first().map(|phase| NoiseFigures {
        noise_multiplier: phase.noise_multiplier(),
        noise_batch_ratio: phase.noise_batch_ratio(),
    });
    Ok(figures.map_or(Answer::Nothing, Answer::Noise))
}

fn solve(sought: &Sought) -> Result<Answer, PlanError> {
    let solved = crate::text(&PlanFile::parse(&sought.text)?.solved_for(sought.unknown)?);
    let certified = certify(&solved)?;
    Ok(Answer::Solved(solved, Box::new(certified)))
}

/// The same plan, ended early and without spare steps: what has been spent by then.
fn stop_after(file: &mut PlanFile, steps: u64) {
    let mut left = steps;
    let mut phases = file.training.phases();
    phases.retain_mut(|phase| {
        phase.steps = phase.steps.min(left);
        left -= phase.steps;
        phase.steps > 0
    });
    file.privacy.spare_steps = 0;
    file.training.learning_rate.warmup_steps = 0;
    file.training.expected_batch_size = None;
    file.training.steps = None;
    file.training.batch_schedule = Some(phases);
}

fn refusal(error: &PlanError, task: &Task) -> Refusal {
    let none = String::new;
    let (path, given, allowed, fix) = match error {
        PlanError::Field { path, given, allowed, fix } => {
            (path.clone(), given.clone(), allowed.clone(), fix.clone())
        }
        PlanError::Overstated { stated, upper, delta, .. } => (
            "privacy.epsilon".to_owned(),
            format!("ε = {stated} is promised, but this noise gives ε ≤ {upper} at δ = {delta}"),
            format!("ε ≥ {upper}"),
            "raise the promise, or let the noise be calibrated".to_owned(),
        ),
        PlanError::Version { given, known, fix } => {
            ("version".to_owned(), given.clone(), known.to_string(), (*fix).to_owned())
        }
        PlanError::Syntax { line, column, what, fix } => (
            none(),
            format!("line {line}, column {column}: {what}"),
            "a plan.json".to_owned(),
            (*fix).to_owned(),
        ),
        other => (none(), other.to_string(), none(), none()),
    };
    let attainable_epsilon = match error {
        PlanError::Overstated { upper, .. } => Some(*upper),
        _ => None,
    };
    let units = match task {
        Task::Certify(text) | Task::Solve(Sought { text, .. }) => {
            PlanFile::unchecked(text).map(|file| file.data.units)
        }
        Task::Read(_) | Task::Vary(_) | Task::Promise(_) | Task::Explain(_) => None,
    };
    let default_delta = units.map(budget::default_delta);
    Refusal { path, given, allowed, fix, attainable_epsilon, default_delta }
}
