//! A refusal's fix as a change to the plan, so that the page can offer it as a button.

use plan::{PlanFile, PrivacyUnit, Source, Visibility};

use crate::ask::Refusal;
use crate::numbers::grouped;

/// A change that answers a refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What the button says.
    pub label: String,
    /// The plan with the change made.
    pub plan: PlanFile,
}

/// The changes that answer `refusal`; empty where a person has to decide.
#[must_use]
pub fn remedies(refusal: &Refusal, plan: &PlanFile) -> Vec<Remedy> {
    let mut offered = match refusal.path.split('.').next().unwrap_or_default() {
        "privacy" => for_privacy(refusal, plan),
        "data" | "evaluation" => for_data(&refusal.path, plan),
        _ => for_training(&refusal.path, plan),
    };
    offered.retain(|remedy| remedy.plan != *plan);
    offered
}

/// `plan` with `change` made.
fn remedy(label: impl Into<String>, plan: &PlanFile, change: impl FnOnce(&mut PlanFile)) -> Remedy {
    let mut plan = plan.clone();
    change(&mut plan);
    Remedy { label: label.into(), plan }
}

fn for_privacy(refusal: &Refusal, plan: &PlanFile) -> Vec<Remedy> {
    match (refusal.path.as_str(), refusal.attainable_epsilon, refusal.default_delta) {
        ("privacy.delta", _, Some(delta)) => {
            vec![remedy(format!("Set δ to {delta:e}"), plan, |p| p.privacy.delta = delta)]
        }
        ("privacy.epsilon", Some(attainable), _) => vec![
            remedy(format!("Promise ε = {attainable}"), plan, |p| p.privacy.epsilon = Some(attainable)),
            remedy("Calibrate the noise to the promise", plan, |p| p.privacy.noise_multipliers = None),
        ],
        ("privacy.epsilon", None, _) => vec![remedy("Set ε to 8", plan, |p| p.privacy.epsilon = Some(8.0))],
        (path, _, _) if path.starts_with("privacy.noise_multipliers") => {
            vec![remedy("Calibrate the noise to a promise instead", plan, |p| {
                p.privacy.epsilon = p.privacy.epsilon.or(Some(8.0));
                p.privacy.noise_multipliers = None;
            })]
        }
        _ => Vec::new(),
    }
}

fn for_data(path: &str, plan: &PlanFile) -> Vec<Remedy> {
    let only = match (path, &plan.data.source, plan.privacy.unit) {
        ("data.units", Source::Embedded { records, .. }, PrivacyUnit::Record) => {
            remedy(format!("Set units to {}", grouped(*records)), plan, |p| p.data.units = *records)
        }
        ("data.visibility", ..) => {
            remedy("Treat the text as private", plan, |p| p.data.visibility = Visibility::Private)
        }
        ("data.user_field", ..) => {
            remedy("Use the field “user”", plan, |p| p.data.user_field = Some("user".to_owned()))
        }
        ("evaluation.source", ..) => remedy("Leave evaluation out", plan, |p| p.evaluation = None),
        _ => return Vec::new(),
    };
    vec![only]
}

fn for_training(path: &str, plan: &PlanFile) -> Vec<Remedy> {
    let only = match path {
        "training.expected_batch_size" => {
            let most = plan.data.units.max(1);
            let label = format!("Set the batch to {}", grouped(most));
            remedy(label, plan, |p| p.training.expected_batch_size = Some(most))
        }
        "training.learning_rate.warmup_steps" => {
            let steps = plan.training.total_steps();
            let label = format!("Warm up for {} steps", grouped(steps));
            remedy(label, plan, |p| p.training.learning_rate.warmup_steps = steps)
        }
        "model.d_model" => {
            let heads = plan.model.heads.max(1);
            let width = (plan.model.d_model / heads).max(1) * heads;
            remedy(format!("Set the width to {width}"), plan, |p| p.model.d_model = width)
        }
        _ => return Vec::new(),
    };
    vec![only]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply;
    use crate::ask::{Request, Task};
    use crate::presets::PRESETS;

    /// Oracle: the trainer's own check of the changed plan.
    #[test]
    fn every_remedy_offered_removes_the_refusal_it_answers() {
        type Spoil = fn(&mut PlanFile);
        let spoilt: [(&str, Spoil); 9] = [
            ("training.expected_batch_size", |p| p.training.expected_batch_size = Some(1_000_000)),
            ("privacy.delta", |p| p.privacy.delta = 0.5),
            ("privacy.epsilon", |p| p.privacy.epsilon = Some(-1.0)),
            ("data.units", |p| p.data.units = 6001),
            ("data.visibility", |p| p.data.visibility = Visibility::Public),
            ("evaluation.source", |p| p.evaluation.as_mut().unwrap().source = p.data.source.clone()),
            ("training.learning_rate.warmup_steps", |p| p.training.learning_rate.warmup_steps = 10_000),
            ("model.d_model", |p| p.model.d_model = 127),
            ("privacy.noise_multipliers.training", |p| {
                p.privacy.noise_multipliers =
                    Some(plan::NoiseMultipliers { tokenizer: Some(1.0), training: 0.0 });
            }),
        ];
        for (path, spoil) in spoilt {
            let mut plan = PRESETS[0].plan().unwrap();
            spoil(&mut plan);
            let refused = refusal(&plan).unwrap_or_else(|| panic!("{path}: the spoilt plan was accepted"));
            assert_eq!(refused.path, path, "{refused:?}");
            let offered = remedies(&refused, &plan);
            assert!(!offered.is_empty(), "{path}: nothing offered for {refused:?}");
            for remedy in offered {
                let left = refusal(&remedy.plan);
                assert_eq!(left, None, "{path}: “{}” does not help", remedy.label);
            }
        }
    }

    fn refusal(plan: &PlanFile) -> Option<Refusal> {
        reply(&Request { id: 0, task: Task::Certify(crate::text(plan)) }).outcome.err()
    }
}
