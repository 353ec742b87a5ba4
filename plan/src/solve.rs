//! The largest number of steps, or the largest batch, for a given ε and noise.

use accountant::calibrate::EpsilonTarget;
use serde::{Deserialize, Serialize};

use crate::{Plan, PlanError, PlanFile};

/// Largest number of steps of a plan.
const MOST_STEPS: u64 = 1_000_000_000;

/// The quantity to find where ε and the noise are both given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// The number of steps.
    Steps,
    /// The expected batch size.
    ExpectedBatchSize,
}

impl PlanFile {
    /// The same plan with the largest number of steps, or the largest expected batch size, with which its noise stays within
    /// its ε.
    ///
    /// The current value of the unknown is ignored. A warm-up that is longer than the steps found is shortened to them.
    ///
    /// ```
    /// use plan::{NoiseMultipliers, Plan, PlanFile, Unknown};
    /// let mut file = PlanFile::parse(include_str!("../presets/quickstart.json"))?;
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
    /// [`PlanError::Field`] for a batch schedule, a missing ε or noise, an ε that a single step of one unit exceeds, and
    /// whatever else is wrong with the plan; [`PlanError::Accountant`] as in certification.
    pub fn solved_for(&self, unknown: Unknown) -> Result<Self, PlanError> {
        let mut file = self.clone();
        let (Some(target), Some(noise)) = (file.privacy.epsilon, file.privacy.noise_multipliers) else {
            return Err(refuse(
                "privacy",
                "ε or the noise is missing",
                "both, from which the third quantity is found",
            ));
        };
        if file.training.batch_schedule.is_some() {
            return Err(refuse(
                "training.batch_schedule",
                "several batch sizes",
                "one batch size for all steps",
            ));
        }
        set(&mut file, unknown, 1);
        let most = match unknown {
            Unknown::Steps => MOST_STEPS,
            Unknown::ExpectedBatchSize => file.data.units,
        };
        let plan = Plan::try_from(file.clone())?;
        let release = plan.release(noise.tokenizer);
        let (delta, relation) = (plan.delta(), plan.privacy().relation);
        let found = EpsilonTarget { epsilon: target, delta, relation }.steps(most, |count| {
            let mut tried = plan.clone();
            set(&mut tried.file, unknown, count);
            tried.pipeline_with(release.as_ref(), noise.training)
        })?;
        if found == 0 {
            let given = format!("ε = {target}, which this noise exceeds with a single step of a single unit");
            return Err(refuse("privacy.epsilon", &given, "a larger ε, or more noise"));
        }
        set(&mut file, unknown, found);
        Ok(file)
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

fn refuse(path: &str, given: &str, allowed: &str) -> PlanError {
    PlanError::Field {
        path: path.to_owned(),
        given: given.to_owned(),
        allowed: allowed.to_owned(),
        fix: "give them, or solve for another quantity".to_owned(),
    }
}
