//! Writes the privacy statement of a plan, and the table of its figures.

use plan::{PlanFile, Visibility, statement};

use crate::numbers::{fine_percent, grouped, percent, rounded_down, rounded_up};
use crate::presets::published;
use crate::protocol::{AttackerFigures, Certified, PhaseFigures};

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
    let (epsilon, delta) = (rounded_up(certified.epsilon.upper, 4), format!("{:e}", certified.delta));
    vec![
        Section { heading: "What is guaranteed", text: statement::guarantee(plan, &epsilon, &delta) },
        Section { heading: "How it works", text: statement::mechanism(plan) },
        Section { heading: "What is not protected", text: statement::limits(plan) },
    ]
}

/// Returns the terms of the statement with their explanations. A plan on public text has none.
pub(crate) fn terms(plan: &PlanFile) -> Vec<(&'static str, String)> {
    if is_public(plan) { Vec::new() } else { statement::terms(plan).into() }
}

/// Returns what an attacker learns at most, in words.
pub(crate) fn odds(attacker: &AttackerFigures) -> String {
    let [one, _] = attacker.true_positive_rates.map(percent);
    let (chance, certainty) = (percent(attacker.odds.upper), fine_percent(attacker.confidence));
    statement::odds(&chance, &certainty, &one)
}

/// What the author adds to a statement, none of which is in the plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signed {
    pub(crate) author: String,
    pub(crate) organisation: String,
    pub(crate) description: String,
    /// The day, as in ISO 8601.
    pub(crate) date: String,
}

impl Signed {
    /// Returns each part with its name.
    pub(crate) fn parts(&self) -> [(&'static str, &str); 4] {
        [
            ("Author of this statement", &self.author),
            ("Organisation", &self.organisation),
            ("Description of the data", &self.description),
            ("Date", &self.date),
        ]
    }
}

/// Returns whether the plan declares its text public, so that nothing is guaranteed.
pub(crate) fn is_public(plan: &PlanFile) -> bool {
    plan.data.visibility == Visibility::Public
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
