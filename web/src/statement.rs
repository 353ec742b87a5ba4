//! Writes the privacy statement of a plan, and the table of its figures.

use accountant::NeighboringRelation;
use plan::{Clipping, PlanFile, PrivacyUnit, Sampling, Visibility};

use crate::numbers::{grouped, rounded_down, rounded_up};
use crate::presets::published;
use crate::protocol::{Certified, PhaseFigures};

/// A section of the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// Heading.
    pub(crate) heading: &'static str,
    /// Text.
    pub(crate) text: String,
}

/// Writes the statement of a certified plan.
pub(crate) fn sections(plan: &PlanFile, certified: &Certified) -> Vec<Section> {
    if is_public(plan) {
        let text = "NOT PRIVATE: this plan declares its text public. Training adds no noise, and nobody in the text is \
                    protected."
            .to_owned();
        return vec![Section { heading: "What is guaranteed", text }];
    }
    vec![
        Section { heading: "What is guaranteed", text: guarantee(plan, certified) },
        Section { heading: "How it works", text: mechanism(plan, certified) },
        Section { heading: "What is not protected", text: limits(plan) },
    ]
}

fn guarantee(plan: &PlanFile, certified: &Certified) -> String {
    let released = match plan.tokenizer.release() {
        Some(_) => "The vocabulary and the model, including every intermediate checkpoint, are",
        None => "The model, including every intermediate checkpoint, is",
    };
    format!(
        "{released} differentially private with ε = {} and δ = {:e}. This limits how well anyone who sees them can tell \
         whether {}.",
        rounded_up(certified.epsilon.upper, 4),
        certified.delta,
        hidden_change(plan.privacy.unit, plan.privacy.relation),
    )
}

fn mechanism(plan: &PlanFile, certified: &Certified) -> String {
    let initially =
        if matches!(plan.training.clipping, Clipping::Adaptive(_)) { ", which then adapts" } else { "" };
    let vocabulary = match certified.release {
        Some(_) => "The vocabulary is chosen from noisy word counts above a threshold.",
        None => "The vocabulary uses no private text.",
    };
    format!(
        "{} The gradient of each unit is clipped to an L2 norm of {}{initially}. Gaussian noise is added to the sum of the \
         clipped gradients. The sum is divided by the planned batch size, not by the actual one. {vocabulary}",
        sampling(plan.privacy.sampling),
        plan.training.l2_clip_norm,
    )
}

fn limits(plan: &PlanFile) -> String {
    format!(
        "Several units of one person together have less protection than one unit. The number of units ({}), all settings \
         of this plan and the evaluation text are public. The model may learn facts that many records share; that is its \
         purpose. Earlier experiments on the same text cost extra and are not counted here.",
        plan.data.units
    )
}

/// Describes in a sentence how batches are drawn.
fn sampling(sampling: Sampling) -> &'static str {
    match sampling {
        Sampling::Poisson => "Each training step draws every unit independently with the same probability.",
        Sampling::PoissonOfExamples(_) => {
            "Each training step draws every example, a window or a record, independently with the same probability. ε is for all examples \
             of a unit together."
        }
        Sampling::TruncatedPoisson(_) => {
            "Each training step draws every unit independently with the same probability. A batch above the maximum size \
             loses random units."
        }
        Sampling::FixedSize => "Each training step draws a batch of fixed size without replacement.",
        Sampling::BallsInBins => "In each pass over the data, every unit falls into one random batch.",
        Sampling::CyclicPoisson(_) => {
            "Every unit belongs to one random part. The training steps draw from one part after another, each unit \
             independently with the same probability, and their noise is correlated."
        }
        Sampling::Shuffle => {
            "Each pass cuts the shuffled units into batches. No privacy amplification is assumed for it."
        }
    }
}

/// Returns whether the plan declares its text public, so that nothing is guaranteed.
pub(crate) fn is_public(plan: &PlanFile) -> bool {
    plan.data.visibility == Visibility::Public
}

/// Describes the change that nobody can detect, in words that can follow “whether”.
fn hidden_change(unit: PrivacyUnit, relation: NeighboringRelation) -> String {
    let (subject, verb) = match unit {
        PrivacyUnit::Record => ("any one record".to_owned(), "was"),
        PrivacyUnit::User => ("the records of any one user".to_owned(), "were"),
        PrivacyUnit::Words(count) => (format!("any one sequence of {count} words"), "was"),
    };
    let change = match relation {
        NeighboringRelation::AddOrRemoveOne => "in the training data",
        NeighboringRelation::ReplaceOne => "replaced by other text",
        NeighboringRelation::ZeroOut => "blanked out",
    };
    format!("{subject} {verb} {change}")
}

/// Returns the name and value of every figure in the certificate.
pub(crate) fn figures(plan: &PlanFile, certified: &Certified) -> Vec<(&'static str, String)> {
    let by_phase = |value: fn(&PhaseFigures) -> String| {
        let mut all: Vec<String> = certified.phases.iter().map(value).collect();
        all.dedup();
        all.join(", ")
    };
    let release =
        certified.release.map_or("–".to_owned(), |release| rounded_up(release.noise_multiplier, 5));
    let [upper, lower] = if is_public(plan) {
        ["NOT PRIVATE"; 2].map(str::to_owned)
    } else {
        [rounded_up(certified.epsilon.upper, 6), rounded_down(certified.epsilon.lower, 6)]
    };
    vec![
        ("Certified ε, upper bound", upper),
        ("Certified ε, lower bound", lower),
        ("Published ε", published(plan).unwrap_or("–").to_owned()),
        ("Failure probability δ", format!("{:e}", certified.delta)),
        ("Training noise multiplier σ", by_phase(|phase| rounded_up(phase.noise_multiplier, 5))),
        ("Vocabulary noise multiplier", release),
        ("Sampling probability q", by_phase(|phase| rounded_up(phase.sampling_probability, 4))),
        ("Expected batch size B", by_phase(|phase| grouped(phase.expected_batch_size))),
        ("Steps T + reserve steps", {
            format!("{} + {}", grouped(plan.training.total_steps()), grouped(plan.privacy.spare_steps))
        }),
        ("Passes over the data (epochs)", format!("{:.2}", plan.epochs())),
        ("Number of units N", grouped(plan.data.units)),
        ("Plan SHA-256", format!("{}…", &certified.hash[..certified.hash.len().min(8)])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::certify;
    use crate::presets::PRESETS;

    #[test]
    fn no_statement_and_no_figure_names_a_file() {
        for preset in PRESETS {
            let (mut plan, certified) = (preset.plan().unwrap(), certify(preset.text).unwrap());
            plan.data.source = plan::Source::Path("secret.jsonl".to_owned());
            plan.model.initial = plan::Initial::Checkpoint("secret".to_owned());
            if let Some(evaluation) = &mut plan.evaluation {
                evaluation.source = plan::Source::Path("secret.txt".to_owned());
            }
            let sections = sections(&plan, &certified);
            let figures = figures(&plan, &certified);
            assert!(sections.iter().all(|section| !section.text.contains("secret")), "{}", preset.name);
            assert!(figures.iter().all(|(_, value)| !value.contains("secret")), "{}", preset.name);
        }
    }

    #[test]
    fn a_public_plan_has_no_guarantee_and_says_so() {
        let mut plan = PRESETS[0].plan().unwrap();
        plan.tokenizer = plan::Tokenizer::Bytes;
        plan.training.warm_start = None;
        plan.data.visibility = Visibility::Public;
        plan.privacy.epsilon = None;
        plan.privacy.noise_multipliers = None;
        let certified = certify(&plan.text()).unwrap();
        assert!(sections(&plan, &certified).iter().all(|section| section.text.starts_with("NOT PRIVATE")));
        let epsilons: Vec<String> = figures(&plan, &certified)
            .into_iter()
            .filter(|(name, _)| name.starts_with("Certified ε"))
            .map(|(_, value)| value)
            .collect();
        assert_eq!(epsilons, ["NOT PRIVATE"; 2]);
    }
}
