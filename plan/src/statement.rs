//! The sentences in which a plan is explained to people outside of the field: on the planner page and in the statement of a finished run.

use mechanisms::PrivacyUnit;

use crate::{Clipping, PlanFile, Sampling};
use accountant::NeighboringRelation;

/// States what is guaranteed, with ε and δ as they are to be shown.
#[must_use]
pub fn guarantee(plan: &PlanFile, epsilon: &str, delta: &str) -> String {
    let released = match plan.tokenizer.release() {
        Some(_) => "The vocabulary and the model, including every intermediate checkpoint, are",
        None => "The model, including every intermediate checkpoint, is",
    };
    format!(
        "{released} differentially private with ε = {epsilon} and δ = {delta}. This limits how well anyone who sees them can tell \
         whether {}.",
        hidden_change(plan.privacy.unit, plan.privacy.relation),
    )
}

/// Explains how training keeps the guarantee.
#[must_use]
pub fn mechanism(plan: &PlanFile) -> String {
    let initially =
        if matches!(plan.training.clipping, Clipping::Adaptive(_)) { ", which then adapts" } else { "" };
    let vocabulary = match plan.tokenizer.release() {
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

/// States what the guarantee does not cover.
#[must_use]
pub fn limits(plan: &PlanFile) -> String {
    format!(
        "Several units of one person together have less protection than one unit. The number of units ({}), all settings \
         of this plan and the evaluation text are public. The model may learn facts that many records share; that is its \
         purpose. Earlier experiments on the same text cost extra and are not counted here.",
        plan.data.units
    )
}

/// Explains the terms of a statement, each in a sentence for readers outside of the field.
#[must_use]
pub fn terms(plan: &PlanFile) -> [(&'static str, String); 7] {
    let unit = match plan.privacy.unit {
        PrivacyUnit::Record => "one record".to_owned(),
        PrivacyUnit::User => "all records of one user".to_owned(),
        PrivacyUnit::Owner => "all records of one owner, alone or shared".to_owned(),
        PrivacyUnit::Words(count) => format!("one sequence of {count} words"),
    };
    let compared = match plan.privacy.relation {
        NeighboringRelation::AddOrRemoveOne => "the same text without that unit",
        NeighboringRelation::ReplaceOne => "the same text with another unit in its place",
        NeighboringRelation::ZeroOut => "the same text with that unit blanked out",
    };
    let say = |text: &str| text.to_owned();
    [
        ("Privacy unit", format!("What is protected as a whole: {unit}.")),
        (
            "Compared texts",
            format!("The guarantee compares the results for the training text with those for {compared}."),
        ),
        (
            "ε (epsilon)",
            say(
                "The limit on what the results can reveal about a unit: apart from δ, they change the odds between the two compared texts \
                 by at most the factor e to the power of ε. A smaller ε protects more.",
            ),
        ),
        (
            "δ (delta)",
            say(
                "A small allowance for outcomes that reveal more than ε permits: their excess probability is at most δ, which is less \
                 than one divided by the number of units.",
            ),
        ),
        (
            "Clipping",
            say("What a unit can contribute to a step is cut to a limited size, so that no unit stands out."),
        ),
        (
            "Noise multiplier σ",
            say(
                "The size of the random noise that hides a unit, in multiples of the largest contribution of one unit.",
            ),
        ),
        (
            "Certified",
            say(
                "The stated ε is an upper bound that includes every rounding error: the true value is not larger.",
            ),
        ),
    ]
}

/// States what an attacker learns at most, in percent as they are to be shown: the chance of a right answer on average, the certainty after a
/// single outcome, and the share of units that are found with 1 % false alarms.
#[must_use]
pub fn odds(chance: &str, certainty: &str, found: &str) -> String {
    format!(
        "An attacker who knows everything else and starts from even odds is right with a probability of at most {chance} % on \
         average over all outcomes. After a single outcome, the attacker can be up to {certainty} % sure; outcomes \
         that allow more have an excess probability of at most δ. \
         With 1 % false alarms, the attacker finds at most {found} % of the units."
    )
}

/// Describes in a sentence how batches are drawn.
#[must_use]
pub fn sampling(sampling: Sampling) -> &'static str {
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

/// Describes the change that nobody can detect, as it follows “whether”.
fn hidden_change(unit: PrivacyUnit, relation: NeighboringRelation) -> String {
    let (subject, verb) = match unit {
        PrivacyUnit::Record => ("any one record".to_owned(), "was"),
        PrivacyUnit::User => ("the records of any one user".to_owned(), "were"),
        PrivacyUnit::Owner => ("the records of any one owner, alone or shared,".to_owned(), "were"),
        PrivacyUnit::Words(count) => (format!("any one sequence of {count} words"), "was"),
    };
    let change = match relation {
        NeighboringRelation::AddOrRemoveOne => "in the training data",
        NeighboringRelation::ReplaceOne => "replaced by other text",
        NeighboringRelation::ZeroOut => "blanked out",
    };
    format!("{subject} {verb} {change}")
}
