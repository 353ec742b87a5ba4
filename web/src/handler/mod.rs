//! Carries out the page's tasks. Every figure comes from `plan` and `accountant`.

mod analysis;

use accountant::budget;
use plan::{
    CHECKPOINTS, CertifiedPlan, Compute, MACHINES, NoiseMultipliers, Plan, PlanError, PlanFile, Size, Start,
    Trained,
};

use crate::presets::PRESETS;
use crate::protocol::{
    AdviceFigures, AdviceRequest, Answer, Certified, NoiseFigures, Parameter, PhaseFigures, Refusal,
    ReleaseFigures, Request, Response, SolveRequest, Task, USUAL_EPSILONS, Variation,
};

/// Carries out one request.
#[must_use]
pub fn handle(request: &Request) -> Response {
    let outcome = match &request.task {
        Task::Certify(text) => certify(text).map(|certified| Answer::Certified(Box::new(certified))),
        Task::Parse(text) => PlanFile::parse(text).map(|plan| Answer::Plan(plan.text())),
        Task::Vary(variation) => vary(variation),
        Task::Solve(request) => solve(request),
        Task::Convert(conversion) => analysis::epsilon_of(conversion).map(Answer::Converted),
        Task::Analyze(request) => analysis::analyze(request),
        Task::Advise(request) => advise(request),
    };
    Response { id: request.id, outcome: outcome.map_err(|error| refusal(&error, &request.task)) }
}

/// Certifies the plan in `text`.
///
/// # Errors
/// The error that the trainer reports for the same text.
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
            gradient_noise: certified.gradient_noise(phase),
        })
        .collect();
    let release = certified.tokenizer_release().map(|release| ReleaseFigures {
        noise_multiplier: release.noise_multiplier,
        threshold_delta: release.threshold_delta,
    });
    Certified {
        epsilon: certified.epsilon(),
        delta: certified.delta().get(),
        plan_with_noise: plan_with_noise(certified),
        phases,
        release,
        hash: certified.hash().to_owned(),
        default_delta: budget::default_delta(certified.plan().data().units),
    }
}

/// Returns the plan with its calibrated noise and without a target, so that each variation has its own ε.
fn plan_with_noise(certified: &CertifiedPlan) -> String {
    let mut file = certified.plan().file().clone();
    let training = certified.phases().first().map_or(f64::NAN, |phase| phase.noise_multiplier());
    let tokenizer = certified.tokenizer_release().map(|release| release.noise_multiplier);
    file.privacy.epsilon = None;
    file.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer, training });
    file.text()
}

fn vary(variation: &Variation) -> Result<Answer, PlanError> {
    let mut file = PlanFile::parse(&variation.plan)?;
    match variation.parameter {
        Parameter::NoiseMultiplier => {
            if let Some(noise) = &mut file.privacy.noise_multipliers {
                noise.training = variation.value;
            }
        }
        Parameter::Steps => stop_after(&mut file, variation.value as u64),
        Parameter::SpareSteps => file.privacy.spare_steps = variation.value as u64,
        Parameter::BatchSize => {
            file.training.expected_batch_size = Some(variation.value as u64);
            return needed_noise(file);
        }
        Parameter::BatchSizeAt(target) => {
            file.training.expected_batch_size = Some(variation.value as u64);
            file.privacy.epsilon = USUAL_EPSILONS.get(target).copied();
            return needed_noise(file);
        }
    }
    Ok(Answer::Epsilon(Plan::try_from(file)?.certify()?.epsilon()))
}

/// Returns the noise that the plan needs for its target ε.
fn needed_noise(mut file: PlanFile) -> Result<Answer, PlanError> {
    file.privacy.noise_multipliers = None;
    let certified = Plan::try_from(file)?.certify()?;
    let figures = certified.phases().first().map(|phase| NoiseFigures {
        noise_multiplier: phase.noise_multiplier(),
        noise_batch_ratio: phase.noise_batch_ratio(),
    });
    Ok(figures.map_or(Answer::Unavailable, Answer::Noise))
}

fn solve(request: &SolveRequest) -> Result<Answer, PlanError> {
    let solved = PlanFile::parse(&request.plan)?.solved_for(request.unknown)?.text();
    let certified = certify(&solved)?;
    Ok(Answer::Solved(solved, Box::new(certified)))
}

fn advise(request: &AdviceRequest) -> Result<Answer, PlanError> {
    let mut file = PlanFile::parse(&request.plan)?;
    // An example's name stands for its own plan alone.
    if PRESETS.iter().any(|preset| preset.name == file.name) {
        file.name = "proposal".to_owned();
    }
    let machine = MACHINES[request.machine.min(MACHINES.len() - 1)];
    let compute = Compute::Time { machine, seconds: request.seconds };
    let advice = plan::advise(&file, compute, start(&request.start))?;
    let proposal = advice.certified.plan().file();
    let advised = AdviceFigures {
        seconds: advice.cost.seconds_on(&machine),
        memory: advice.memory,
        reasons: advice.reasons,
        warnings: advice.warnings,
        prediction: advice.prediction,
        candidates: advice.candidates,
    };
    Ok(Answer::Advised(proposal.text(), Box::new(figures(&advice.certified)), advised))
}

/// Reads what training starts from.
fn start(name: &str) -> Start {
    let Some((checkpoint, trained)) = name.split_once('/') else {
        return Size::named(name).map_or(Start::Proposed, Start::Random);
    };
    let checkpoint = CHECKPOINTS.iter().find(|known| known.name == checkpoint);
    Start::Checkpoint(checkpoint, if trained == "all" { Trained::All } else { Trained::Lora })
}

/// Ends the plan after `steps` steps and drops its spare steps, so that its ε is what those steps have spent.
fn stop_after(file: &mut PlanFile, steps: u64) {
    let mut remaining = steps;
    let mut phases = file.training.phases();
    phases.retain_mut(|phase| {
        phase.steps = phase.steps.min(remaining);
        remaining -= phase.steps;
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
            format!("the target is ε = {stated}, but this noise gives ε ≤ {upper} at δ = {delta}"),
            format!("ε ≥ {upper}"),
            "raise the target, or let the noise be calibrated".to_owned(),
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
        PlanError::NothingFits { epsilon, smallest, .. } => (
            "privacy.epsilon".to_owned(),
            format!("with this noise, {smallest} exceeds ε = {epsilon}"),
            none(),
            "raise the noise or ε".to_owned(),
        ),
        other => (none(), other.to_string(), none(), none()),
    };
    let attainable_epsilon = match error {
        PlanError::Overstated { upper, .. } => Some(*upper),
        _ => None,
    };
    let given_plan = match task {
        Task::Certify(plan)
        | Task::Solve(SolveRequest { plan, .. })
        | Task::Advise(AdviceRequest { plan, .. }) => PlanFile::unchecked(plan),
        Task::Parse(_) | Task::Vary(_) | Task::Convert(_) | Task::Analyze(_) => None,
    };
    let default_delta = given_plan.as_ref().map(|file| budget::default_delta(file.data.units));
    let remedies = match (error, given_plan) {
        (PlanError::NothingFits { remedies, .. }, Some(file)) => {
            let changed = |remedy: &plan::Remedy| {
                let mut file = file.clone();
                remedy.apply(&mut file);
                (remedy.to_string(), file.text())
            };
            remedies.iter().map(changed).collect()
        }
        _ => Vec::new(),
    };
    Refusal { path, given, allowed, fix, attainable_epsilon, default_delta, remedies }
}
