//! Finds the largest number of steps, or the largest batch, for a given ε and noise.

use accountant::calibrate::EpsilonTarget;
use serde::{Deserialize, Serialize};

use crate::messages::refuse;
use crate::{NoiseMultipliers, Plan, PlanError, PlanFile, Remedy, TokenizerRelease};

/// The quantity to find if ε and the noise are both given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// The number of steps.
    Steps,
    /// The expected batch size.
    ExpectedBatchSize,
}

impl Remedy {
    /// Makes the change in a plan.
    pub fn apply(self, file: &mut PlanFile) {
        match self {
            Self::ExpectedBatchSize(size) => set(file, Unknown::ExpectedBatchSize, size),
            Self::Steps(steps) => set(file, Unknown::Steps, steps),
            Self::NoiseMultiplier(training) => {
                let tokenizer = file.privacy.noise_multipliers.and_then(|noise| noise.tokenizer);
                file.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer, training });
            }
            Self::NoSpareSteps => file.privacy.spare_steps = 0,
        }
    }
}

/// The fix for a plan that leaves nothing to solve for.
const FIX: &str = "give them, or solve for another quantity";

impl PlanFile {
    /// Returns the same plan with the largest number of steps, or the largest expected batch size, with which its noise
    /// stays within its ε.
    ///
    /// The current value of the unknown is ignored. A warm-up that is longer than the steps found is shortened to them.
    ///
    /// ```
    /// use plan::{NoiseMultipliers, Plan, PlanFile, Unknown};
    /// let mut file = PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
    /// file.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer: Some(5.0), training: 1.5 });
    /// let found = file.solved_for(Unknown::Steps)?;
    /// assert!(Plan::try_from(found.clone())?.certify()?.epsilon().upper <= 8.0);
    /// let mut longer = found;
    /// longer.training.steps = longer.training.steps.map(|steps| steps + 1);
    /// assert!(Plan::try_from(longer)?.certify().is_err());
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlanError::Field`] for a batch schedule, a missing ε or noise, and whatever else is wrong with the plan;
    /// [`PlanError::NothingFits`] if a single step, or a batch of one unit, exceeds ε; [`PlanError::Accountant`] as in
    /// certification.
    pub fn solved_for(&self, unknown: Unknown) -> Result<Self, PlanError> {
        let mut file = self.clone();
        let (Some(target), Some(noise)) = (file.privacy.epsilon, file.privacy.noise_multipliers) else {
            return refuse(
                "privacy",
                "ε or the noise is missing",
                "both, from which the third quantity is found",
                FIX,
            );
        };
        if file.training.batch_schedule.is_some() {
            return refuse(
                "training.batch_schedule",
                "several batch sizes",
                "one batch size for all steps",
                FIX,
            );
        }
        set(&mut file, unknown, 1);
        let most = match unknown {
            Unknown::Steps => file.privacy.sampling.max_steps(),
            Unknown::ExpectedBatchSize => file.population() / file.privacy.sampling.parts(),
        };
        let plan = Plan::try_from(file.clone())?;
        let release = plan.release(noise.tokenizer);
        let (delta, relation) = (plan.delta(), plan.privacy().relation);
        let search =
            FixedNoisePlan { plan, release, target: EpsilonTarget { epsilon: target, delta, relation } };
        let found = search.largest(most, |count, file| set(file, unknown, count))?;
        if found == 0 {
            return Err(search.nothing_fits(self, unknown));
        }
        set(&mut file, unknown, found);
        Ok(file)
    }
}

/// A plan whose noise is given, and its ε.
struct FixedNoisePlan {
    plan: Plan,
    release: Option<TokenizerRelease>,
    target: EpsilonTarget,
}

impl FixedNoisePlan {
    /// Returns the largest count up to `most` with which the plan stays within ε after `change`.
    fn largest(&self, most: u64, change: impl Fn(u64, &mut PlanFile)) -> Result<u64, PlanError> {
        Ok(self.target.steps(most, |count| self.event(|file| change(count, file)))?)
    }

    fn event(&self, change: impl Fn(&mut PlanFile)) -> accountant::DpEvent {
        let mut tried = self.plan.clone();
        change(&mut tried.file);
        let noise = tried.privacy().noise_multipliers.map_or(f64::NAN, |noise| noise.training);
        tried.pipeline_with(self.release.as_ref(), noise)
    }

    /// Returns the refusal of a plan whose unknown has no value, with the changes that give it one. The unknown is 1 in
    /// `self.plan`.
    fn nothing_fits(&self, given: &PlanFile, unknown: Unknown) -> PlanError {
        let (batch, steps) = (given.training.expected_batch_size, given.training.steps);
        // The value that the other quantity would need.
        let other = match unknown {
            Unknown::Steps => self
                .largest(batch.unwrap_or(1), |size, file| set(file, Unknown::ExpectedBatchSize, size))
                .map(Remedy::ExpectedBatchSize),
            Unknown::ExpectedBatchSize => self
                .largest(steps.unwrap_or(1), |count, file| set(file, Unknown::Steps, count))
                .map(Remedy::Steps),
        };
        let other = other.ok().filter(|it| !matches!(it, Remedy::ExpectedBatchSize(0) | Remedy::Steps(0)));
        let more_noise = |noise| self.event(|file| Remedy::NoiseMultiplier(noise).apply(file));
        let noise = self.target.noise_multiplier(more_noise).ok().map(Remedy::NoiseMultiplier);
        let without_spare = self.plan.privacy().spare_steps > 0
            && self.largest(1, |_, file| Remedy::NoSpareSteps.apply(file)).is_ok_and(|count| count > 0);
        let spare = without_spare.then_some(Remedy::NoSpareSteps);
        let EpsilonTarget { epsilon, delta, relation } = self.target;
        let exceeds = |release: &TokenizerRelease| {
            accountant::epsilon(&release.event, delta, relation).is_ok_and(|alone| alone.upper > epsilon)
        };
        let smallest = match unknown {
            _ if self.release.as_ref().is_some_and(exceeds) => "the release of the vocabulary alone",
            Unknown::Steps if self.plan.privacy().spare_steps > 0 => "one step with the reserve steps",
            Unknown::Steps => "one step",
            Unknown::ExpectedBatchSize => "a batch of one unit",
        };
        let remedies = [other, noise, spare].into_iter().flatten().collect();
        PlanError::NothingFits { epsilon, smallest, remedies }
    }
}

fn set(file: &mut PlanFile, unknown: Unknown, count: u64) {
    match unknown {
        Unknown::Steps => {
            file.training.steps = Some(count);
            let warmup = &mut file.training.learning_rate.warmup_steps;
            *warmup = (*warmup).min(count);
        }
        Unknown::ExpectedBatchSize => file.training.expected_batch_size = Some(count),
    }
}
