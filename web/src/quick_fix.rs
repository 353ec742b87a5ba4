//! Quick fixes: changes to the plan that remove the cause of a refusal. The page offers each as a button.

use accountant::NeighboringRelation;
use plan::{PlanFile, PrivacyUnit, Sampling, Source, Tokenizer, Visibility, Words};

use crate::numbers::grouped;
use crate::protocol::Refusal;

/// A change that removes the cause of a refusal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QuickFix {
    /// Label of the button.
    pub(crate) label: String,
    /// The changed plan.
    pub(crate) plan: PlanFile,
}

/// Returns the quick fixes for `refusal`. Empty if a person has to decide.
pub(crate) fn quick_fixes(refusal: &Refusal, plan: &PlanFile) -> Vec<QuickFix> {
    let remedies = refusal.remedies.iter().filter_map(|(label, text)| {
        let mut letters = label.chars();
        let first = letters.next()?.to_ascii_uppercase();
        Some(QuickFix {
            label: std::iter::once(first).chain(letters).collect(),
            plan: PlanFile::unchecked(text)?,
        })
    });
    let mut fixes: Vec<QuickFix> = remedies.collect();
    if !fixes.is_empty() {
        return fixes;
    }
    fixes = match refusal.path.split('.').next().unwrap_or_default() {
        "privacy" => for_privacy(refusal, plan),
        "data" | "evaluation" => for_data(&refusal.path, plan),
        _ => for_training(&refusal.path, plan),
    };
    fixes.retain(|fix| fix.plan != *plan);
    fixes
}

/// Makes the quick fix that consists of `change`.
fn quick_fix(label: impl Into<String>, plan: &PlanFile, change: impl FnOnce(&mut PlanFile)) -> QuickFix {
    let mut plan = plan.clone();
    change(&mut plan);
    QuickFix { label: label.into(), plan }
}

fn for_privacy(refusal: &Refusal, plan: &PlanFile) -> Vec<QuickFix> {
    match (refusal.path.as_str(), refusal.attainable_epsilon, refusal.default_delta) {
        ("privacy.sampling", ..) => vec![
            quick_fix("Use Poisson sampling", plan, |p| p.privacy.sampling = Sampling::Poisson),
            quick_fix("Set the adjacency to “Blank out one unit”", plan, |p| {
                p.privacy.relation = NeighboringRelation::ZeroOut;
            }),
        ],
        ("privacy.delta", _, Some(delta)) => {
            vec![quick_fix(format!("Set δ to {delta:e}"), plan, |p| p.privacy.delta = delta)]
        }
        ("privacy.epsilon", Some(attainable), _) => vec![
            quick_fix(format!("Set the target to ε = {attainable}"), plan, |p| {
                p.privacy.epsilon = Some(attainable)
            }),
            quick_fix("Calibrate the noise to the target ε", plan, |p| p.privacy.noise_multipliers = None),
        ],
        ("privacy.epsilon", None, _) => {
            vec![quick_fix("Set the target to ε = 8", plan, |p| p.privacy.epsilon = Some(8.0))]
        }
        (path, _, _) if path.starts_with("privacy.noise_multipliers") => {
            vec![quick_fix("Calibrate the noise to a target ε instead", plan, |p| {
                p.privacy.epsilon = p.privacy.epsilon.or(Some(8.0));
                p.privacy.noise_multipliers = None;
            })]
        }
        _ => Vec::new(),
    }
}

fn for_data(path: &str, plan: &PlanFile) -> Vec<QuickFix> {
    let only = match (path, &plan.data.source, plan.privacy.unit) {
        ("data.units", Source::Embedded { records, .. }, PrivacyUnit::Record) => {
            quick_fix(format!("Set N to {}", grouped(*records)), plan, |p| p.data.units = *records)
        }
        ("data.visibility", ..) => {
            quick_fix("Treat the text as private", plan, |p| p.data.visibility = Visibility::Private)
        }
        ("data.user_field", ..) => {
            quick_fix("Use the field “user”", plan, |p| p.data.user_field = Some("user".to_owned()))
        }
        ("data.owners_field", _, PrivacyUnit::Owner) => {
            quick_fix("Use the field “owners”", plan, |p| p.data.owners_field = Some("owners".to_owned()))
        }
        ("data.owners_field", ..) => quick_fix("Remove the field", plan, |p| p.data.owners_field = None),
        ("evaluation.source", ..) => quick_fix("Remove the evaluation", plan, |p| p.evaluation = None),
        _ => return Vec::new(),
    };
    vec![only]
}

fn for_training(path: &str, plan: &PlanFile) -> Vec<QuickFix> {
    let only = match path {
        "training.expected_batch_size" => {
            let max = plan.data.units.max(1);
            let label = format!("Set the batch size to {}", grouped(max));
            quick_fix(label, plan, |p| p.training.expected_batch_size = Some(max))
        }
        "training.learning_rate.warmup_steps" => {
            let steps = plan.training.total_steps();
            let label = format!("Set warm-up to {} steps", grouped(steps));
            quick_fix(label, plan, |p| p.training.learning_rate.warmup_steps = steps)
        }
        "training.warm_start" => quick_fix("Do not start from released words", plan, |p| {
            p.training.warm_start = None;
            if let Tokenizer::Train(trained) = &mut p.tokenizer
                && trained.words.has_pairs()
            {
                trained.words = Words::ByClass;
            }
        }),
        "model.d_model" => {
            let heads = plan.model.heads.max(1);
            let width = (plan.model.d_model / heads).max(1) * heads;
            quick_fix(format!("Set the width to {width}"), plan, |p| p.model.d_model = width)
        }
        _ => return Vec::new(),
    };
    vec![only]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::handle;
    use crate::presets::PRESETS;
    use crate::protocol::{Request, Task};

    /// Oracle: the check that the trainer makes of the changed plan.
    #[test]
    fn every_quick_fix_removes_its_refusal() {
        type Break = fn(&mut PlanFile);
        let broken: [(&str, Break); 11] = [
            ("privacy.sampling", |p| p.privacy.sampling = Sampling::Shuffle),
            ("training.expected_batch_size", |p| p.training.expected_batch_size = Some(1_000_000)),
            ("privacy.delta", |p| p.privacy.delta = 0.5),
            ("privacy.epsilon", |p| p.privacy.epsilon = Some(-1.0)),
            ("data.units", |p| p.data.units = 6001),
            ("data.visibility", |p| p.data.visibility = Visibility::Public),
            ("evaluation.source", |p| p.evaluation.as_mut().unwrap().source = p.data.source.clone()),
            ("training.learning_rate.warmup_steps", |p| p.training.learning_rate.warmup_steps = 10_000),
            ("training.warm_start", |p| {
                p.data.source = Source::Path("records.jsonl".to_owned());
                p.evaluation = None;
                p.training.objective = plan::Objective::SequenceClassification;
                p.training.labels = Some(["no", "yes"].map(str::to_owned).to_vec());
            }),
            ("model.d_model", |p| p.model.d_model = 127),
            ("privacy.noise_multipliers.training", |p| {
                p.privacy.noise_multipliers =
                    Some(plan::NoiseMultipliers { tokenizer: Some(1.0), training: 0.0 });
            }),
        ];
        for (path, break_it) in broken {
            let mut plan = PRESETS[0].plan().unwrap();
            break_it(&mut plan);
            let refused = refusal(&plan).unwrap_or_else(|| panic!("{path}: the broken plan was accepted"));
            assert_eq!(refused.path, path, "{refused:?}");
            let fixes = quick_fixes(&refused, &plan);
            assert!(!fixes.is_empty(), "{path}: no quick fix for {refused:?}");
            for fix in fixes {
                let remaining = refusal(&fix.plan);
                assert_eq!(remaining, None, "{path}: “{}” does not help", fix.label);
            }
        }
    }

    fn refusal(plan: &PlanFile) -> Option<Refusal> {
        handle(&Request { id: 0, task: Task::Certify(plan.text()) }).outcome.err()
    }
}
