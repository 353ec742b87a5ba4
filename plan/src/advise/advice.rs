//! Proposes a model, a batch size, a number of steps, the noise, a clip norm and a learning rate for a budget of privacy and of computing time.
//!
//! Every ε and σ is the accountant's and every number of operations is [`crate::Cost`]'s. What is a rule of thumb is called one and names
//! its source: it is no prediction of quality.

use accountant::calibrate::EpsilonTarget;
use accountant::correlated::{Participation, Strategy, TrainingRun, best_banded};
use serde::{Deserialize, Serialize};

use super::optimizer;
use crate::messages::refuse;
use crate::{CertifiedPlan, CyclicPoisson, Machine, Plan, PlanError, PlanFile, SIZES, Sampling, Size};

/// What training may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compute {
    /// So many seconds on a machine.
    Time {
        /// The machine.
        machine: Machine,
        /// Seconds.
        seconds: f64,
    },
    /// So many training tokens.
    Tokens(f64),
    /// So many floating-point operations.
    Flops(f64),
}

/// A batch size at the budget, with the noise that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Expected batch size.
    pub expected_batch_size: u64,
    /// Steps that the budget pays for with this batch.
    pub steps: u64,
    /// Noise multiplier that meets ε.
    pub noise_multiplier: f64,
    /// σ/B: standard deviation of the noise on the average gradient, in clip norms.
    pub noise_batch_ratio: f64,
    /// √T·B/σ: by how much T equal gradients of one clip norm exceed the noise of all steps.
    pub signal_to_noise: f64,
}

/// A proposed plan, and why.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The proposal.
    pub certified: CertifiedPlan,
    /// What it was chosen from: the batch sizes that were tried, in increasing order.
    pub candidates: Vec<Candidate>,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
    /// What to reconsider, one sentence each.
    pub warnings: Vec<String>,
}

/// Tokens for each parameter below which a smaller model is proposed.
///
/// A rule of thumb: the 20 tokens of compute-optimal training without privacy (Hoffmann et al. 2022,
/// <https://arxiv.org/abs/2203.15556>) times ten. That private training does best with smaller models on more tokens is a finding of
/// McKenna et al. 2025, <https://arxiv.org/abs/2501.18914>; the factor is ours.
const TOKENS_PER_PARAMETER: f64 = 200.0;

/// Fewest steps in which a model is trained, where the budget pays for them with one unit at a time. A rule of thumb.
const FEWEST_STEPS: u64 = 150;

/// The signal-to-noise ratio that a larger batch must add to be worth its steps.
const WORTHWHILE: f64 = 0.1;

/// Passes over the data beyond which more of them are not proposed. A rule of thumb: with full amplification, more steps add as much
/// noise as signal.
const MAX_EPOCHS: f64 = 100.0;

/// Fewer units than this are few for private training from random weights. A rule of thumb.
const FEW_UNITS: u64 = 10_000;

/// Proposes a plan with the data, the privacy and the tokenizer of `file`. `size` fixes the model; otherwise it is chosen too.
///
/// ```
/// use plan::{Compute, MACHINES, PlanFile, advise};
/// let file = PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
/// let compute = Compute::Time { machine: MACHINES[0], seconds: 600.0 };
/// let advice = advise(&file, compute, None)?;
/// assert!(advice.certified.epsilon().upper <= 8.0);
/// assert!(advice.certified.plan().file().cost().seconds_on(&MACHINES[0]) <= 600.0);
/// # Ok::<(), plan::PlanError>(())
/// ```
///
/// # Errors
/// [`PlanError::Field`] for a plan on public text, for one without ε, or for a budget that pays for less than one step of one unit;
/// whatever else is wrong with the plan.
pub fn advise(file: &PlanFile, compute: Compute, size: Option<&Size>) -> Result<Advice, PlanError> {
    let mut file = file.clone();
    file.privacy.noise_multipliers = None;
    // The batch is chosen for independent noise, and then the bands for the batch.
    let is_correlated = matches!(file.privacy.sampling, Sampling::CyclicPoisson(_));
    if is_correlated {
        file.privacy.sampling = Sampling::Poisson;
    }
    let training = &mut file.training;
    (training.batch_schedule, training.epochs) = (None, None);
    (training.steps, training.expected_batch_size) = (Some(1), Some(1));
    training.learning_rate.warmup_steps = 0;
    let chosen = match size {
        Some(size) => size,
        None => fitting_size(&file, compute),
    };
    chosen.apply(&mut file);
    optimizer::apply(&mut file);
    let target = target(&file)?;
    let affordable = examples(&file, compute);
    // The comparison refuses NaN.
    let useful = if affordable >= 1.0 { affordable.min(file.data.units as f64 * MAX_EPOCHS) } else { 0.0 };
    if useful < 1.0 {
        let (given, fix) =
            ("less than one step of one unit with this model", "raise the budget, or choose a smaller model");
        return refuse("budget", given, "more time, tokens or operations", fix);
    }
    let candidates = candidates(&file, &target, useful as u64)?;
    let best = candidates.iter().map(|tried| tried.signal_to_noise).fold(0.0, f64::max);
    let enough = |tried: &&Candidate| tried.signal_to_noise >= best * (1.0 - WORTHWHILE);
    let Some(chosen_batch) = candidates.iter().find(enough).copied() else {
        return Err(PlanError::Accountant(accountant::AccountantError::NotConverged {
            what: "no batch size meets ε",
        }));
    };
    set_batch(&mut file, chosen_batch.expected_batch_size, chosen_batch.steps);
    let warmup = (chosen_batch.steps / 10).min(100);
    file.training.learning_rate.warmup_steps = warmup;
    let mut reasons = reasons(&file, chosen, affordable, &target, &candidates, chosen_batch)?;
    if let Some((bands, change)) = best_bands(&file, &target, chosen_batch) {
        reasons.push(format!(
            "Correlated noise: {bands} bands (\"cyclic_poisson\") change the noise of sums over many steps by {:+.0} %.",
            change * 100.0
        ));
        if is_correlated {
            file.privacy.sampling = Sampling::CyclicPoisson(CyclicPoisson { bands });
        }
    }
    reasons.push(optimizer::reason(&file));
    let certified = Plan::try_from(file.clone())?.certify()?;
    Ok(Advice { certified, warnings: warnings(&file, compute), reasons, candidates })
}

/// The number of bands with the least noise in prefix sums, and by which share it differs from that of independent noise, at the ε of
/// the whole plan; `None` where the plan samples otherwise, or has too many steps.
fn best_bands(file: &PlanFile, target: &EpsilonTarget, chosen: Candidate) -> Option<(u64, f64)> {
    let Candidate { expected_batch_size, steps, .. } = chosen;
    if file.privacy.sampling != Sampling::Poisson {
        return None;
    }
    let units = file.data.units;
    let sampling_probability = expected_batch_size as f64 / units as f64;
    let poisson = Participation::CyclicPoisson { sampling_probability };
    let alone = Strategy::independent(steps).ok()?.noise_multiplier(poisson, target).ok()?;
    let best = best_banded(TrainingRun { units, expected_batch_size, steps }, target).ok()?;
    Some((best.bands, best.equivalent_noise_multiplier / alone - 1.0))
}

fn target(file: &PlanFile) -> Result<EpsilonTarget, PlanError> {
    let plan = Plan::try_from(file.clone())?;
    match plan.privacy().epsilon {
        Some(epsilon) if !plan.is_public() => {
            Ok(EpsilonTarget { epsilon, delta: plan.delta(), relation: plan.privacy().relation })
        }
        _ => {
            let fix = "give the ε that the plan must not exceed";
            refuse("privacy.epsilon", "missing", "a number > 0, and private text", fix)
        }
    }
}

fn set_batch(file: &mut PlanFile, batch: u64, steps: u64) {
    (file.training.expected_batch_size, file.training.steps) = (Some(batch), Some(steps));
}

/// Units that the budget pays for in all, expected batch times steps.
fn examples(file: &PlanFile, compute: Compute) -> f64 {
    let mut one = file.clone();
    set_batch(&mut one, 1, 1);
    let cost = one.cost();
    match compute {
        Compute::Time { machine, seconds } => seconds / cost.seconds_on(&machine),
        Compute::Tokens(tokens) => tokens / cost.tokens as f64,
        Compute::Flops(flops) => flops / cost.flops,
    }
}

/// The largest size with enough tokens for each parameter and enough memory, else the smallest.
fn fitting_size(file: &PlanFile, compute: Compute) -> &'static Size {
    let fits = |size: &&Size| {
        let mut sized = file.clone();
        size.apply(&mut sized);
        let cost = sized.cost();
        let memory = match compute {
            Compute::Time { machine, .. } => cost.fits(&machine),
            Compute::Tokens(_) | Compute::Flops(_) => true,
        };
        memory
            && examples(&sized, compute) * cost.tokens as f64 >= TOKENS_PER_PARAMETER * cost.parameters as f64
    };
    SIZES.iter().rev().find(fits).unwrap_or(&SIZES[0])
}

/// The powers of two up to N, each with the steps that `examples` units pay for and the noise that meets ε.
fn candidates(file: &PlanFile, target: &EpsilonTarget, examples: u64) -> Result<Vec<Candidate>, PlanError> {
    let plan = Plan::try_from(file.clone())?;
    let release = plan.release(plan.tokenizer_noise(target)?);
    let units = file.data.units;
    let powers = core::iter::successors(Some(1_u64), |batch| batch.checked_mul(2));
    let batches = powers.take_while(|batch| *batch < units).chain([units]);
    let fewest = FEWEST_STEPS.min(examples);
    let mut tried = Vec::new();
    for batch in batches.filter(|batch| examples / batch >= fewest) {
        let steps = (examples / batch).min(1_000_000_000);
        let mut at_batch = plan.clone();
        set_batch(&mut at_batch.file, batch, steps);
        let noise = target.noise_multiplier(|noise| at_batch.pipeline_with(release.as_ref(), noise))?;
        tried.push(Candidate {
            expected_batch_size: batch,
            steps,
            noise_multiplier: noise,
            noise_batch_ratio: noise / batch as f64,
            signal_to_noise: (steps as f64).sqrt() * batch as f64 / noise,
        });
    }
    Ok(tried)
}

/// Why the proposal is what it is.
fn reasons(
    file: &PlanFile,
    size: &Size,
    affordable: f64,
    target: &EpsilonTarget,
    candidates: &[Candidate],
    chosen: Candidate,
) -> Result<Vec<String>, PlanError> {
    let cost = file.cost();
    let tokens = affordable * f64::from(file.model.context);
    let mut reasons = vec![format!(
        "Model: {} has {:.1e} parameters, and the budget pays for {:.0} tokens for each. The rule of thumb is at least \
         {TOKENS_PER_PARAMETER} with privacy, so that the best model is smaller than without (McKenna et al. 2025).",
        size.name,
        cost.parameters as f64,
        tokens / cost.parameters as f64,
    )];
    let Candidate { expected_batch_size: batch, steps, noise_batch_ratio: ratio, .. } = chosen;
    let larger = candidates.iter().find(|tried| tried.expected_batch_size > batch);
    reasons.push(match larger {
        Some(larger) => format!(
            "Batch: σ/B is {ratio:.2e}. At the same cost, a batch of {} has {} steps, and changes the ratio of signal to noise over \
             all steps by {:+.0} %.",
            larger.expected_batch_size,
            larger.steps,
            (larger.signal_to_noise / chosen.signal_to_noise - 1.0) * 100.0
        ),
        None => format!(
            "Batch: σ/B is {ratio:.2e}. A larger batch would leave fewer than {FEWEST_STEPS} steps, a rule of thumb."
        ),
    });
    let epochs = steps as f64 * batch as f64 / file.data.units as f64;
    if affordable > file.data.units as f64 * MAX_EPOCHS {
        reasons.push(format!(
            "Passes: {epochs:.0}. The budget pays for more, but they would add as much noise as signal. More data or a larger ε \
             would help; more time does not."
        ));
    }
    let doubled =
        noise_for(file, &EpsilonTarget { epsilon: 2.0 * target.epsilon, ..*target }, file.data.units)?;
    reasons.push(format!(
        "ε: at ε = {} the noise would be {:.2} times this one.",
        2.0 * target.epsilon,
        doubled / chosen.noise_multiplier
    ));
    if let Ok(more) = noise_for(file, target, file.data.units.saturating_mul(10)) {
        reasons.push(format!(
            "Data: with ten times the data, the noise would be {:.2} times this one.",
            more / chosen.noise_multiplier
        ));
    }
    Ok(reasons)
}

/// The noise that meets `target` with another number of units.
fn noise_for(file: &PlanFile, target: &EpsilonTarget, units: u64) -> Result<f64, PlanError> {
    let mut changed = file.clone();
    changed.data.units = units;
    if let crate::Source::Embedded { records, .. } = &mut changed.data.source {
        *records = units;
    }
    let plan = Plan::try_from(changed)?;
    let release = plan.release(plan.tokenizer_noise(target)?);
    Ok(target.noise_multiplier(|noise| plan.pipeline_with(release.as_ref(), noise))?)
}

/// What to reconsider before training.
fn warnings(file: &PlanFile, compute: Compute) -> Vec<String> {
    let mut warnings = Vec::new();
    if file.data.units < FEW_UNITS {
        let vocabulary = if file.tokenizer.release().is_some() { "a public vocabulary and " } else { "" };
        warnings.push(format!(
            "{} units are few: a model that starts from random weights learns little. Consider {vocabulary}a public checkpoint.",
            file.data.units
        ));
    }
    if let Compute::Time { machine, .. } = compute
        && !file.cost().fits(&machine)
    {
        warnings.push(format!("{} has too little memory for this model.", machine.name));
    }
    warnings
}

impl PlanFile {
    /// Passes over the data: units drawn in all steps, divided by the number of units.
    ///
    /// ```
    /// let file = plan::PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
    /// assert_eq!(file.epochs(), 150.0 * 256.0 / 6000.0);
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn epochs(&self) -> f64 {
        let drawn = |phase: crate::BatchPhase| phase.steps as f64 * phase.expected_batch_size as f64;
        self.training.phases().into_iter().map(drawn).sum::<f64>() / self.data.units as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MACHINES;

    fn quickstart() -> PlanFile {
        PlanFile::parse(include_str!("../../presets/quickstart.json")).unwrap()
    }

    /// Oracle: `accountant correlated`, which has the least noise at these bands.
    #[test]
    fn correlated_noise_gets_the_bands_with_the_least_noise() {
        let mut file = quickstart();
        file.tokenizer = crate::Tokenizer::Bytes;
        file.privacy.sampling = Sampling::CyclicPoisson(CyclicPoisson { bands: 1 });
        let compute = Compute::Tokens(6000.0 * 64.0 * 6.4);
        let advice = advise(&file, compute, None).unwrap();
        let plan = advice.certified.plan();
        let phase = plan.training().phases()[0];
        let run =
            TrainingRun { units: 6000, expected_batch_size: phase.expected_batch_size, steps: phase.steps };
        let rows = accountant::correlated::compare(run, &target(plan.file()).unwrap()).unwrap();
        assert_eq!(plan.privacy().sampling, Sampling::CyclicPoisson(CyclicPoisson { bands: rows[1].bands }));
        assert!(rows[1].bands > 1 && advice.certified.epsilon().upper <= 8.0);
        let said = format!("{} bands", rows[1].bands);
        assert!(advice.reasons.iter().any(|reason| reason.contains(&said)), "{:?}", advice.reasons);
        file.privacy.sampling = Sampling::Poisson;
        let independent = advise(&file, compute, None).unwrap();
        assert_eq!(independent.certified.plan().privacy().sampling, Sampling::Poisson);
        assert!(independent.reasons.iter().any(|reason| reason.contains(&said)));
    }

    /// Oracle: certification of each candidate as a plan of its own.
    #[test]
    fn every_candidate_meets_epsilon_at_its_noise_and_the_proposal_is_the_smallest_good_one() {
        let compute = Compute::Tokens(150.0 * 256.0 * 64.0);
        let advice = advise(&quickstart(), compute, Some(&SIZES[0])).unwrap();
        let proposal = advice.certified.plan().file().training.clone();
        let best = advice.candidates.iter().map(|tried| tried.signal_to_noise).fold(0.0, f64::max);
        for tried in &advice.candidates {
            let mut file = quickstart();
            set_batch(&mut file, tried.expected_batch_size, tried.steps);
            file.training.learning_rate.warmup_steps = 0;
            let noise = Plan::try_from(file).unwrap().certify().unwrap().phases()[0].noise_multiplier();
            assert!((tried.noise_multiplier / noise - 1.0).abs() < 1e-5, "{tried:?}: {noise}");
            if Some(tried.expected_batch_size) < proposal.expected_batch_size {
                assert!(tried.signal_to_noise < 0.9 * best, "{tried:?} is as good and smaller");
            }
        }
        assert!(advice.candidates.len() > 5);
    }

    #[test]
    fn more_time_gives_a_larger_model_and_stays_within_the_time() {
        let size = |seconds| {
            let mut file = quickstart();
            file.data.units = 10_000_000;
            file.privacy.delta = 1e-9;
            file.data.source = crate::Source::Path("notes.jsonl".to_owned());
            let advice = advise(&file, Compute::Time { machine: MACHINES[4], seconds }, None).unwrap();
            let file = advice.certified.plan().file().clone();
            assert!(file.cost().seconds_on(&MACHINES[4]) <= seconds);
            SIZES.iter().position(|size| Some(size) == Size::of(&file)).unwrap()
        };
        let sizes = [60.0, 3600.0, 360_000.0].map(size);
        assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2], "{sizes:?}");
    }

    #[test]
    fn a_budget_or_a_plan_without_an_answer_is_refused() {
        let nothing = advise(&quickstart(), Compute::Tokens(10.0), None).unwrap_err();
        assert!(nothing.to_string().starts_with("budget: less than one step"), "{nothing}");
        assert!(advise(&quickstart(), Compute::Flops(f64::NAN), None).is_err());
        let mut open = quickstart();
        open.privacy.epsilon = None;
        assert!(
            advise(&open, Compute::Tokens(1e9), None).unwrap_err().to_string().starts_with("privacy.epsilon")
        );
    }
}
