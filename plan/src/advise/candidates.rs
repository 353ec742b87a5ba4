//! Finds batches and steps that a budget pays for, with the noise that meets ε and the loss that the law predicts.

use accountant::calibrate::EpsilonTarget;
use serde::{Deserialize, Serialize};

use super::cost::Cost;
use super::law::{Setting, relative_loss, released};
use super::start::vocabulary;
use super::{SIZES, Size, optimizer};
use crate::messages::refuse;
use crate::{Machine, Plan, PlanError, PlanFile, TokenizerRelease, Trainable};

/// The limit on the work of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compute {
    /// A time on a machine.
    Time {
        /// The machine.
        machine: Machine,
        /// Number of seconds.
        seconds: f64,
    },
    /// A number of training tokens.
    Tokens(f64),
    /// A number of floating-point operations.
    Flops(f64),
}

/// Smallest number of steps for which a model is trained, if the budget pays for so many with one unit each. A rule of
/// thumb.
pub(super) const FEWEST_STEPS: u64 = 150;

/// Largest number of steps that is proposed: about twice that of the longest run that the law is fitted to.
const MOST_STEPS: u64 = 200_000;

/// Factor up to which a loss counts as the least: 1 % above it, which is also the paper's criterion where it says what
/// compute saturates.
const AS_GOOD: f64 = 1.01;

/// Factor up to which the law cannot tell a batch from the one with the least loss: the standard deviation of its error.
const INDISTINGUISHABLE: f64 = 1.03;

/// A batch size that the budget pays for, with the noise that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Expected batch size.
    pub expected_batch_size: u64,
    /// Number of steps that the budget pays for with this batch.
    pub steps: u64,
    /// The noise multiplier that meets ε.
    pub noise_multiplier: f64,
    /// σ/B: standard deviation of the noise on the average gradient, in clip norms.
    pub noise_batch_ratio: f64,
    /// Predicted loss as a multiple of the entropy of word frequencies. Above 1, the law expects a model that predicts
    /// worse than these.
    pub relative_loss: f64,
}

/// A size of model, and the batches that the budget pays for with it, in increasing order.
pub(super) struct Trial {
    /// The plan with this model; its batch and steps are not set.
    pub file: PlanFile,
    pub target: EpsilonTarget,
    pub candidates: Vec<Candidate>,
    plan: Plan,
    release: Option<TokenizerRelease>,
    parameters: f64,
}

impl Trial {
    /// Tries batches for a size; `None` if the budget pays for less than one step of one unit.
    pub fn new(file: &PlanFile, compute: Compute, size: &Size) -> Result<Option<Self>, PlanError> {
        let mut file = file.clone();
        size.apply(&mut file);
        let Some((mut trial, examples)) = Self::without_batch(file, compute)? else { return Ok(None) };
        trial.try_batches(examples)?;
        Ok(Some(trial))
    }

    /// Returns the usual batch and the usual passes for the plan's checkpoint, as far as the budget pays for them. No law says which are
    /// best.
    pub fn of_checkpoint(file: PlanFile, compute: Compute) -> Result<Option<(Self, Candidate)>, PlanError> {
        let Some((trial, examples)) = Self::without_batch(file, compute)? else { return Ok(None) };
        let (units, trainable) = (trial.file.population(), &trial.file.model.trainable);
        let batch = usual_batch(trainable, units).min(examples);
        let steps = usual_steps(trainable, units, batch).min(examples / batch);
        let usual = trial.candidate(batch, steps)?;
        Ok(Some((trial, usual)))
    }

    /// Returns a trial of the plan's model, and the number of units that the budget pays for.
    fn without_batch(mut file: PlanFile, compute: Compute) -> Result<Option<(Self, u64)>, PlanError> {
        optimizer::apply(&mut file);
        let plan = Plan::try_from(file.clone())?;
        let target = target(&plan)?;
        let examples = examples(&file, compute);
        if examples.is_nan() || examples < 1.0 {
            return Ok(None);
        }
        let release = plan.release(plan.tokenizer_noise(&target)?);
        let parameters = file.cost().parameters as f64;
        Ok(Some((Self { file, target, candidates: Vec::new(), plan, release, parameters }, examples as u64)))
    }

    /// Tries all sizes that fit the machine's memory, from the smallest, until the predicted loss has clearly grown
    /// again. The smallest is tried even if it does not fit.
    pub fn of_sizes(file: &PlanFile, compute: Compute) -> Result<Vec<Self>, PlanError> {
        let mut trials: Vec<Self> = Vec::new();
        // The smallest was measured with a start from released words alone.
        let from = usize::from(file.training.warm_start.is_none());
        for (index, size) in SIZES.iter().skip(from).enumerate() {
            let mut sized = file.clone();
            size.apply(&mut sized);
            let fits = match compute {
                Compute::Time { machine, .. } => {
                    sized.memory_on(&machine, vocabulary(&sized)) <= machine.memory
                }
                Compute::Tokens(_) | Compute::Flops(_) => true,
            };
            if index > 0 && !fits {
                break;
            }
            let Some(trial) = Self::new(file, compute, size)? else { break };
            let worse = trials.iter().any(|before| trial.least() > before.least() * AS_GOOD);
            trials.push(trial);
            if worse {
                break;
            }
        }
        Ok(trials)
    }

    /// Returns the least relative loss of all batches.
    pub fn least(&self) -> f64 {
        self.candidates.iter().map(|tried| tried.relative_loss).fold(f64::INFINITY, f64::min)
    }

    /// Returns the middle one of the batches that the law cannot tell from the best: losses are flat around their least, which so lies
    /// almost anywhere among them. Its number of steps is halved while the loss stays as good. With a start from released words all
    /// batches are alike for the law: there the one of the least loss is taken, with all the steps that lower it.
    pub fn chosen(&self) -> Result<Candidate, PlanError> {
        let [alike, as_good] = match self.file.training.warm_start {
            Some(_) => [1.0, 1.0],
            None => [INDISTINGUISHABLE, AS_GOOD],
        };
        let good = |tried: &&Candidate| tried.relative_loss <= self.least() * alike;
        let good: Vec<Candidate> = self.candidates.iter().filter(good).copied().collect();
        let Some(mut chosen) = good.get(good.len().saturating_sub(1) / 2).copied() else {
            return Err(PlanError::Accountant(accountant::AccountantError::NotConverged {
                what: "no batch size meets ε",
            }));
        };
        let as_good = chosen.relative_loss * as_good;
        while chosen.steps / 2 >= FEWEST_STEPS {
            let shorter = self.candidate(chosen.expected_batch_size, chosen.steps / 2)?;
            if shorter.relative_loss > as_good {
                break;
            }
            chosen = shorter;
        }
        Ok(chosen)
    }

    /// Tries the powers of two and N as batch sizes, from the largest down, until the predicted loss has clearly grown
    /// again. Each gets the steps that `examples` units pay for.
    fn try_batches(&mut self, examples: u64) -> Result<(), PlanError> {
        let units = self.file.population();
        let powers = core::iter::successors(Some(1_u64), |batch| batch.checked_mul(2));
        let batches: Vec<u64> = powers.take_while(|batch| *batch < units).chain([units]).collect();
        let fewest = FEWEST_STEPS.min(examples);
        for batch in batches.into_iter().rev().filter(|batch| examples / batch >= fewest) {
            let tried = self.candidate(batch, (examples / batch).min(MOST_STEPS))?;
            self.candidates.insert(0, tried);
            if tried.relative_loss > self.least() * INDISTINGUISHABLE * AS_GOOD {
                break;
            }
        }
        Ok(())
    }

    /// Returns what the law predicts from, of so many steps with this σ/B.
    pub fn setting(&self, steps: u64, noise_batch_ratio: f64) -> Setting {
        Setting {
            parameters: self.parameters,
            steps: steps as f64,
            noise_batch_ratio,
            released: released(&self.file, self.target.epsilon),
        }
    }

    fn candidate(&self, batch: u64, steps: u64) -> Result<Candidate, PlanError> {
        let mut plan = self.plan.clone();
        set_batch(&mut plan.file, batch, steps);
        let noise = self.target.noise_multiplier(|noise| plan.pipeline_with(self.release.as_ref(), noise))?;
        let noise_batch_ratio = noise / batch as f64;
        Ok(Candidate {
            expected_batch_size: batch,
            steps,
            noise_multiplier: noise,
            noise_batch_ratio,
            relative_loss: relative_loss(self.setting(steps, noise_batch_ratio)),
        })
    }
}

pub(super) fn target(plan: &Plan) -> Result<EpsilonTarget, PlanError> {
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

/// Returns the usual expected batch for a plan that trains this: a power of two near three tenths of the units for a head, whose steps on
/// features cost next to no time and whose larger batches have less noise a unit; for norms and a head near a third, at most 2048, or near
/// a twelfth if that is more; near a twenty-fourth for more weights.
#[must_use]
pub fn usual_batch(trainable: &Trainable, units: u64) -> u64 {
    match trainable {
        Trainable::Head => 1 << (units * 3 / 10).clamp(1, 1 << 14).ilog2(),
        Trainable::Norms => 1 << (units / 3).min(2048).max(units / 12).clamp(1, 1 << 14).ilog2(),
        _ => (units / 24).next_power_of_two().clamp(16, 2048).min(units),
    }
}

/// Returns the usual number of steps of a plan that trains this: 60 for a head or norms, else those of six passes.
#[must_use]
pub fn usual_steps(trainable: &Trainable, units: u64, batch: u64) -> u64 {
    match trainable {
        Trainable::Head | Trainable::Norms => 60,
        _ => (6 * units).div_ceil(batch.max(1)).clamp(100, 2000),
    }
}

pub(super) fn set_batch(file: &mut PlanFile, batch: u64, steps: u64) {
    (file.training.expected_batch_size, file.training.steps) = (Some(batch), Some(steps));
}

/// Returns the number of units that the budget pays for in all: expected batch times steps. The start from released
/// words takes its time first.
pub(super) fn examples(file: &PlanFile, compute: Compute) -> f64 {
    let mut one = file.clone();
    set_batch(&mut one, 1, 1);
    let cost = one.cost_with_vocabulary(vocabulary(&one));
    let paid = paid_examples(&cost, compute);
    // Features are computed once for each unit, and steps on them cost next to nothing.
    if file.has_fixed_features() && paid >= file.population() as f64 { f64::from(u32::MAX) } else { paid }
}

fn paid_examples(cost: &Cost, compute: Compute) -> f64 {
    match compute {
        Compute::Time { machine, seconds } => {
            let flops = seconds * machine.peak_flops * machine.utilization;
            (flops - cost.warm_start_flops).max(0.0) / cost.flops
        }
        Compute::Tokens(tokens) => tokens / cost.tokens as f64,
        Compute::Flops(flops) => flops / cost.flops,
    }
}
