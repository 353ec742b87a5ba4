//! What a plan promises, in plain words.

use accountant::NeighboringRelation;
use plan::{Clipping, PlanFile, PrivacyUnit, Sampling, Tokenizer, Visibility};

use crate::ask::{Certified, PhaseFigures};
use crate::numbers::{grouped, rounded_down, rounded_up};
use crate::presets::published;

/// A paragraph of the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paragraph {
    /// What it is about.
    pub heading: &'static str,
    /// The sentences.
    pub text: String,
}

/// The statement of a certified plan.
#[must_use]
pub fn paragraphs(plan: &PlanFile, certified: &Certified) -> Vec<Paragraph> {
    if is_public(plan) {
        let text = "NOT PRIVATE: the text is declared public, training adds no noise, and nothing is promised to anyone in it."
            .to_owned();
        return vec![Paragraph { heading: "What is promised", text }];
    }
    let unit = unit(plan.privacy.unit);
    let released = match plan.tokenizer {
        Tokenizer::Train(_) => "the trained model and its vocabulary, at every step of training,",
        Tokenizer::Public(_) | Tokenizer::Bytes => "the trained model, at every step of training,",
    };
    let promise = format!(
        "Whoever sees {released} can tell from them only within ε = {} and δ = {:e} whether {unit} was {}.",
        rounded_up(certified.epsilon.upper, 4),
        certified.delta,
        neighbour(plan.privacy.relation),
    );
    let how = format!(
        "Batches are drawn {}; each unit’s gradient is brought within an L2 norm {} {}, which Gaussian noise hides; the sum \
         is divided by the planned batch size, never by the drawn one.{}",
        drawn(plan.privacy.sampling),
        if matches!(plan.training.clipping, Clipping::Adaptive(_)) { "that starts at" } else { "of" },
        plan.training.l2_clip_norm,
        match certified.release {
            Some(_) => " The vocabulary is chosen from noisy word counts above a threshold.",
            None => " The vocabulary uses no private text.",
        }
    );
    let limits = format!(
        "Several units of one person together are protected less than one. The number of units ({}), every setting of \
         this plan and the evaluation text are public. Facts that many records share can be learnt: that is the \
         purpose. Settings tried before on the same text cost extra and are not counted here.",
        plan.data.units
    );
    vec![
        Paragraph { heading: "What is promised", text: promise },
        Paragraph { heading: "How it is kept", text: how },
        Paragraph { heading: "What is not protected", text: limits },
    ]
}

/// How batches come about.
fn drawn(sampling: Sampling) -> &'static str {
    match sampling {
        Sampling::Poisson => "by taking every unit independently at each step",
        Sampling::TruncatedPoisson(_) => {
            "by taking every unit independently, and cut at random where they are too large"
        }
        Sampling::FixedSize => "without replacement, of the same size at each step",
        Sampling::BallsInBins => "by letting every unit fall into one batch of each pass at random",
        Sampling::Shuffle => "from passes over the shuffled units, charged without amplification",
    }
}

/// Whether the plan promises nothing, because its text is declared public.
#[must_use]
pub fn is_public(plan: &PlanFile) -> bool {
    plan.data.visibility == Visibility::Public
}

/// One unit, as the object of a sentence.
#[must_use]
pub fn unit(unit: PrivacyUnit) -> String {
    match unit {
        PrivacyUnit::Record => "any one record".to_owned(),
        PrivacyUnit::User => "all records of any one user".to_owned(),
        PrivacyUnit::Words(count) => format!("any one run of {count} words"),
    }
}

fn neighbour(relation: NeighboringRelation) -> &'static str {
    match relation {
        NeighboringRelation::AddOrRemoveOne => "there at all",
        NeighboringRelation::ReplaceOne => "itself or something else",
        NeighboringRelation::ZeroOut => "used or left blank",
    }
}

/// Everything the certificate will say, named.
#[must_use]
pub fn figures(plan: &PlanFile, certified: &Certified) -> Vec<(&'static str, String)> {
    let noises = |name: fn(&PhaseFigures) -> String| {
        let mut all: Vec<String> = certified.phases.iter().map(name).collect();
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
        ("ε, certified upper bound", upper),
        ("ε, certified lower bound", lower),
        ("ε, as published", published(plan).unwrap_or("–").to_owned()),
        ("δ", format!("{:e}", certified.delta)),
        ("Noise multiplier of training, σ", noises(|phase| rounded_up(phase.noise_multiplier, 5))),
        ("Noise multiplier of the vocabulary", release),
        ("Sampling probability, q", noises(|phase| rounded_up(phase.sampling_probability, 4))),
        ("Expected batch", noises(|phase| grouped(phase.expected_batch_size))),
        ("Steps, and spare ones", {
            format!("{} + {}", grouped(plan.training.total_steps()), grouped(plan.privacy.spare_steps))
        }),
        ("Units", grouped(plan.data.units)),
        ("Plan", format!("{}…", &certified.hash[..certified.hash.len().min(8)])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::certify;
    use crate::presets::PRESETS;

    #[test]
    fn a_public_plan_promises_nothing_and_says_so() {
        let mut plan = PRESETS[0].plan().unwrap();
        plan.data.visibility = Visibility::Public;
        plan.privacy.epsilon = None;
        plan.privacy.noise_multipliers = None;
        let certified = certify(&crate::text(&plan)).unwrap();
        assert!(
            paragraphs(&plan, &certified).iter().all(|paragraph| paragraph.text.starts_with("NOT PRIVATE"))
        );
        assert!(
            figures(&plan, &certified)
                .iter()
                .all(|(name, value)| !name.starts_with("ε, cert") || value == "NOT PRIVATE")
        );
    }
}
