//! Compares two schemes for units that have several examples, at the same ε and the same work.
//!
//! *User sampling* draws units, and averages several views of each before the clip. *Example sampling* draws examples,
//! of which each unit has a bounded number, under the event of all of them together.
//!
//! # References
//! Charles et al. 2024, "Fine-tuning large language models with user-level differential privacy",
//! <https://arxiv.org/abs/2407.07737>.

use core::fmt;

use accountant::calibrate::EpsilonTarget;
use serde::{Deserialize, Serialize};

use super::candidates::target;
use crate::messages::refuse;
use crate::{Plan, PlanError, PlanFile, PoissonOfExamples, Sampling};

/// Numbers of views, or of examples, of a unit that are tried.
const TRIED: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Units with equally many examples. The figures are declared public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitsWith {
    /// Number of windows or records of each unit.
    pub examples: u64,
    /// Number of such units.
    pub units: u64,
}

/// A scheme of sampling, with the noise that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserScheme {
    /// Whether examples are sampled, instead of units.
    pub samples_examples: bool,
    /// Largest number of views of a unit in a step or, if examples are sampled, of examples of a unit in training.
    pub per_unit: u32,
    /// Units or examples that a step draws on average.
    pub expected_batch_size: u64,
    /// Number of examples of all units, with at most `per_unit` of each.
    pub examples: u64,
    /// The noise multiplier that meets ε.
    pub noise_multiplier: f64,
    /// Noise on the average gradient, in norms of one example's gradient, if the gradients of a unit's examples are
    /// equal: σ/B.
    pub noise_if_equal: f64,
    /// Noise on the average gradient, in norms of one example's gradient, if the gradients of a unit's examples are
    /// orthogonal. The mean of g of them then has 1/√g of the norm of one, and so has the clip norm.
    pub noise_if_orthogonal: f64,
}

impl UserScheme {
    /// Creates the scheme that reads so many examples in a step. Its noise is not known yet.
    fn of(units: &[UnitsWith], samples_examples: bool, per_unit: u32, examples_in_step: f64) -> Self {
        let (examples, count) = (bounded(units, per_unit), bounded(units, 1));
        let (views, population) =
            if samples_examples { (1.0, examples) } else { (examples as f64 / count as f64, count) };
        let expected_batch_size = ((examples_in_step / views).round() as u64).clamp(1, population);
        Self {
            samples_examples,
            per_unit,
            expected_batch_size,
            examples,
            noise_multiplier: f64::NAN,
            noise_if_equal: f64::NAN,
            noise_if_orthogonal: f64::NAN,
        }
    }

    fn with_noise(self, plan: &Plan, target: &EpsilonTarget) -> Result<Self, PlanError> {
        let release = plan.release(plan.tokenizer_noise(target)?);
        let noise_multiplier =
            target.noise_multiplier(|noise| plan.pipeline_with(release.as_ref(), noise))?;
        let noise_if_equal = noise_multiplier / self.expected_batch_size as f64;
        let noise_if_orthogonal = noise_if_equal / self.views(plan.data().units).sqrt();
        Ok(Self { noise_multiplier, noise_if_equal, noise_if_orthogonal, ..self })
    }

    /// Returns the mean number of views of each thing that is sampled, if there are so many units.
    fn views(&self, units: u64) -> f64 {
        if self.samples_examples { 1.0 } else { self.examples as f64 / units as f64 }
    }

    /// Returns the scheme with the least noise if the gradients of a unit's examples are equal: a rule of thumb for the
    /// first steps, in which they agree. Among schemes with the same noise, it takes the one with the most views.
    /// Example sampling uses only a part of each unit's examples, so it must be better by 1 %.
    #[must_use]
    pub fn best(schemes: &[Self]) -> Option<&Self> {
        let noise = |scheme: &Self| scheme.noise_if_equal * if scheme.samples_examples { 1.01 } else { 1.0 };
        let more_views = |one: &Self, other: &Self| other.per_unit.cmp(&one.per_unit);
        schemes.iter().min_by(|one, other| noise(one).total_cmp(&noise(other)).then(more_views(one, other)))
    }

    /// Writes the scheme into a plan.
    pub fn apply(&self, file: &mut PlanFile) {
        let Self { samples_examples, per_unit, examples, expected_batch_size, .. } = *self;
        (file.privacy.sampling, file.training.views_per_unit) = if samples_examples {
            (Sampling::PoissonOfExamples(PoissonOfExamples { examples, examples_per_unit: per_unit }), 1)
        } else {
            (Sampling::Poisson, per_unit)
        };
        file.privacy.noise_multipliers = None;
        file.training.expected_batch_size = Some(expected_batch_size);
    }
}

impl fmt::Display for UserScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            per_unit, expected_batch_size, noise_multiplier, noise_if_equal, noise_if_orthogonal, ..
        } = *self;
        if self.samples_examples {
            let examples = self.examples;
            write!(f, "{expected_batch_size} of {examples} examples, at most {per_unit} of a unit")?;
        } else {
            write!(f, "{expected_batch_size} units with up to {per_unit} views")?;
        }
        write!(f, ": σ = {noise_multiplier:.3}, noise {noise_if_equal:.1e}")?;
        if noise_if_orthogonal < noise_if_equal {
            write!(f, " to {noise_if_orthogonal:.1e}")?;
        }
        write!(f, " norms of an example's gradient")
    }
}

impl PlanFile {
    /// Returns schemes of user sampling and of example sampling with the plan's ε, its steps and the number of examples
    /// that it reads in a step. The number of views or examples of a unit is doubled until a batch has all of these
    /// examples.
    ///
    /// ```
    /// use plan::{PlanFile, UnitsWith};
    /// let mut file = PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
    /// let units = [UnitsWith { examples: 1, units: 4000 }, UnitsWith { examples: 30, units: 2000 }];
    /// let schemes = file.user_schemes(&units)?;
    /// let [one, two] = [1, 2].map(|views| schemes.iter().find(|s| !s.samples_examples && s.per_unit == views));
    /// // Units with two views are fewer in the same number of windows, which takes more noise.
    /// assert_eq!(two.map(|scheme| scheme.expected_batch_size), Some(192));
    /// assert!(two.map(|scheme| scheme.noise_if_equal) > one.map(|scheme| scheme.noise_if_equal));
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlanError::Field`] if `units` are not those of the plan, for a plan without ε or with several phases, and for whatever else is
    /// wrong with the plan.
    pub fn user_schemes(&self, units: &[UnitsWith]) -> Result<Vec<UserScheme>, PlanError> {
        let count: u64 = units.iter().map(|some| some.units).fold(0, u64::saturating_add);
        let have_some = units.iter().all(|some| some.examples > 0 && some.units > 0);
        let [phase] = self.training.phases()[..] else {
            let (given, allowed) = ("several batch sizes", "one batch size for all steps");
            return refuse("training.batch_schedule", given, allowed, "give expected_batch_size and steps");
        };
        if count != self.data.units || !have_some {
            let given = format!("{count} units with examples");
            let allowed =
                format!("the {} units of data.units, each with at least one example", self.data.units);
            let fix = "declare how many units have how many examples";
            return refuse("--examples-per-unit", given, &allowed, fix);
        }
        let target = target(&Plan::try_from(self.clone())?)?;
        let views = bounded(units, self.training.views_per_unit) as f64 / count as f64;
        let examples_in_step = match self.privacy.sampling {
            Sampling::PoissonOfExamples(_) => phase.expected_batch_size as f64,
            _ => phase.expected_batch_size as f64 * views,
        };
        let mut schemes = Vec::new();
        for samples_examples in [false, true] {
            // A number is left out if no unit has so many examples that it would make a difference.
            let tried = TRIED
                .into_iter()
                .filter(|most| *most == 1 || bounded(units, *most) > bounded(units, most / 2));
            for per_unit in tried {
                let draft = UserScheme::of(units, samples_examples, per_unit, examples_in_step);
                let mut file = self.clone();
                draft.apply(&mut file);
                // A plan refuses views that are together longer than the longest window.
                let Ok(plan) = Plan::try_from(file) else { break };
                let scheme = draft.with_noise(&plan, &target)?;
                schemes.push(scheme);
                // Once the batch has all examples of the step, more examples of a unit only add noise.
                let examples = scheme.expected_batch_size as f64 * scheme.views(self.data.units);
                if per_unit > 1 && examples > 0.99 * examples_in_step {
                    break;
                }
            }
        }
        Ok(schemes)
    }
}

/// Returns the number of examples of all units, with at most `most` of each.
fn bounded(units: &[UnitsWith], most: u32) -> u64 {
    let of = |some: &UnitsWith| some.examples.min(most.into()).saturating_mul(some.units);
    units.iter().map(of).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(batch: u64) -> PlanFile {
        let mut file = PlanFile::parse(include_str!("../../presets/quickstart.json")).unwrap();
        (file.tokenizer, file.training.warm_start) = (crate::Tokenizer::Bytes, None);
        file.training.expected_batch_size = Some(batch);
        file
    }

    fn with(examples: u64, units: u64) -> UnitsWith {
        UnitsWith { examples, units }
    }

    /// Oracle: certification of each scheme as a plan of its own.
    #[test]
    fn every_scheme_meets_epsilon_at_its_noise_and_reads_the_same_examples_in_a_step() {
        let file = file(256);
        let schemes = file.user_schemes(&[with(1, 4000), with(7, 2000)]).unwrap();
        let kinds: Vec<(bool, u32)> =
            schemes.iter().map(|scheme| (scheme.samples_examples, scheme.per_unit)).collect();
        assert_eq!(kinds, [(false, 1), (false, 2), (true, 1), (true, 2)]);
        for scheme in &schemes {
            let mut plan = file.clone();
            scheme.apply(&mut plan);
            let certified = Plan::try_from(plan).unwrap().certify().unwrap();
            let noise = certified.phases()[0].noise_multiplier();
            assert!((scheme.noise_multiplier / noise - 1.0).abs() < 1e-5, "{scheme}: {noise}");
            let views = if scheme.samples_examples { 1.0 } else { scheme.examples as f64 / 6000.0 };
            assert!((scheme.expected_batch_size as f64 * views / 256.0 - 1.0).abs() < 0.01, "{scheme}");
        }
        // One example of each unit is the unit.
        assert_eq!(schemes[0].noise_multiplier, schemes[2].noise_multiplier);
        assert!(schemes[2].noise_if_equal < schemes[3].noise_if_equal);
        assert_eq!(UserScheme::best(&schemes), Some(&schemes[0]));
    }

    /// Where a step reads more examples than there are units, more views cost no noise.
    #[test]
    fn views_are_proposed_where_a_step_has_room_for_all_units() {
        let mut file = file(6000);
        file.training.views_per_unit = 4;
        let schemes = file.user_schemes(&[with(16, 6000)]).unwrap();
        let best = UserScheme::best(&schemes).unwrap();
        assert!(!best.samples_examples && best.per_unit == 4 && best.expected_batch_size == 6000, "{best}");
        let message = file.user_schemes(&[with(16, 5999)]).unwrap_err().to_string();
        assert!(message.contains("5999 units") && message.contains("6000 units of data.units"), "{message}");
        assert!(file.user_schemes(&[with(16, 6000), with(0, 0)]).is_err());
    }
}
