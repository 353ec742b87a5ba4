//! Which sentences a certificate has, and the figures in them.

use accountant::{Bounds, NeighboringRelation};
use plan::{CertifiedPlan, MadeFrom, PrivacyUnit};

use super::wording::Wording;
use crate::store::ledger::{LedgerState, Randomness};

/// The reason why a run on public text is not private.
pub(crate) const PUBLIC_TEXT: &str =
    "the plan declares the training text public: it was used without noise or charge";

/// Every reason why a run is not private.
pub(super) fn not_private_because(plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    let mut reasons = not_private_by_itself(plan, ledger);
    for parent in ledger.parents() {
        let name = &parent.name;
        reasons.extend(
            parent
                .not_private_because
                .iter()
                .map(|reason| format!("it builds on {name}, which is not: {reason}")),
        );
    }
    reasons
}

/// The reasons that lie in the run and not in what it builds on.
pub(crate) fn not_private_by_itself(plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    let header = ledger.header();
    let mut reasons = Vec::new();
    if let Randomness::TestKey { .. } = header.randomness {
        reasons.push("the noise was made from a known key (--test-key): anyone can subtract it".to_owned());
    }
    if plan.plan().is_public() {
        reasons.push(PUBLIC_TEXT.to_owned());
    } else if !header.protected {
        reasons.push("a --non-private baseline: gradients were neither clipped nor given noise".to_owned());
    }
    reasons
}

/// The mark beside the weights, so that a model without its folder still says what it promises.
pub(crate) fn mark(plan: &CertifiedPlan, ledger: &LedgerState) -> String {
    match not_private_because(plan, ledger).as_slice() {
        [] => "differentially private; certificate.json says in what sense".to_owned(),
        reasons => format!("NOT PRIVATE: {}", reasons.join("; ")),
    }
}

/// The guarantee for a reader without background.
pub(super) fn summary(
    wording: &Wording,
    plan: &CertifiedPlan,
    ledger: &LedgerState,
    epsilon: Option<Bounds>,
) -> Option<String> {
    let template = wording.summary?;
    match (epsilon, not_private_by_itself(plan, ledger).as_slice()) {
        (Some(epsilon), []) => Some(
            template
                .replace("{unit}", &unit(wording, plan.plan().privacy().unit))
                .replace("{epsilon}", &epsilon.upper.to_string())
                .replace("{delta}", &plan.delta().get().to_string()),
        ),
        (_, reasons) => Some(format!("This run protects nobody: {}.", reasons.join("; "))),
    }
}

/// The guarantee in a sentence.
pub(super) fn guarantee(
    wording: &Wording,
    plan: &CertifiedPlan,
    ledger: &LedgerState,
    epsilon: Option<Bounds>,
) -> String {
    if plan.plan().is_public() {
        return wording.guarantee_of_public_text.to_owned();
    }
    let Some(epsilon) = epsilon else {
        return "NOT PRIVATE: no guarantee of any kind.".to_owned();
    };
    let neighbors = match plan.plan().privacy().relation {
        NeighboringRelation::AddOrRemoveOne => wording.add_or_remove_one,
        NeighboringRelation::ReplaceOne => wording.replace_one,
        NeighboringRelation::ZeroOut => wording.zero_out,
    };
    let sentence = wording
        .guarantee
        .replace("{neighbors}", neighbors)
        .replace("{unit}", &unit(wording, plan.plan().privacy().unit))
        .replace("{epsilon}", &epsilon.upper.to_string())
        .replace("{delta}", &plan.delta().get().to_string());
    if !not_private_by_itself(plan, ledger).is_empty() {
        format!("NOT PRIVATE. With secret randomness the same run would give: {sentence}")
    } else if !not_private_because(plan, ledger).is_empty() {
        format!(
            "NOT PRIVATE for the text behind an earlier stage. For the training text of this run: {sentence}"
        )
    } else {
        sentence
    }
}

/// The unit in words.
pub(super) fn unit(wording: &Wording, unit: PrivacyUnit) -> String {
    match unit {
        PrivacyUnit::Record => "one record".to_owned(),
        PrivacyUnit::User => "one user with all their records".to_owned(),
        PrivacyUnit::Words(words) => wording.unit_of_words.replace("{words}", &words.to_string()),
    }
}

/// Conditions that the guarantee rests on and the program cannot check, or does not meet.
pub(super) fn assumptions(wording: &Wording, plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    let mut list = if plan.plan().is_public() {
        vec![wording.public_text.to_owned()]
    } else {
        conditions_of_privacy(wording, plan)
    };
    if let Some(sha256) = ledger.initial_weights()
        && plan.plan().model().checkpoint_made_from == MadeFrom::PublicText
    {
        list.push(wording.public_checkpoint.replace("{sha256}", sha256));
    }
    if plan.plan().evaluation().is_some() {
        list.push(wording.evaluation.to_owned());
    }
    if let plan::Tokenizer::Public(public) = plan.plan().tokenizer()
        && public.made_from == MadeFrom::PublicText
    {
        list.push("The tokenizer was made without the private text, as the plan declares.".to_owned());
    }
    list.extend(ledger.parents().iter().map(|parent| relation_of_texts(&parent.name, parent.made_from)));
    list
}

/// What a plan declares of the text behind an earlier stage.
fn relation_of_texts(name: &str, made_from: MadeFrom) -> String {
    match made_from {
        MadeFrom::SameUnits => format!(
            "The text behind the stage {name} has the units of the training text, as the plan declares. What that stage spent \
             is part of ε, so ε covers both together."
        ),
        MadeFrom::DisjointUnits => format!(
            "The text behind the stage {name} has no unit in common with the training text, as the plan declares. ε is for \
             units of the training text. A unit of the other text has the guarantee of that stage, in the table above."
        ),
        MadeFrom::PublicText => {
            format!("The text behind the stage {name} is public, as the plan of that stage declares.")
        }
    }
}

fn conditions_of_privacy(wording: &Wording, plan: &CertifiedPlan) -> Vec<String> {
    let exact = plan.plan().privacy().sampling.needs_exact_units();
    let units = if exact { wording.exact_units } else { wording.declared_units };
    vec![
        "NOT MET: Gradient noise is a floating-point Gaussian (Box-Muller in f64 on 52 random bits, added and rounded to \
         f32), not an exact one: the gap to the ideal mechanism is not part of ε (Mironov 2012, doi:10.1145/2382196.2382264)."
            .to_owned(),
        "NOT MET: Norms and clipped sums are computed in f32: a clipped gradient can exceed the clip norm by a relative \
         rounding error of the order of 1e-6, which is not part of ε."
            .to_owned(),
        units.replace("{units}", &plan.plan().data().units.to_string()),
        wording.hyperparameters.to_owned(),
        wording.randomness.to_owned(),
    ]
}

/// What the guarantee does not cover.
pub(super) fn not_protected(wording: &Wording, plan: &CertifiedPlan) -> Vec<String> {
    if plan.plan().is_public() {
        return vec!["Everything: the model may repeat its training text word for word.".to_owned()];
    }
    let unit_limit = match plan.plan().privacy().unit {
        PrivacyUnit::Record => wording.records,
        PrivacyUnit::User => wording.users,
        PrivacyUnit::Words(_) => wording.words,
    };
    [
        unit_limit,
        wording.population,
        "The evaluation text and the plan itself.",
        wording.side_channels,
        wording.other_releases,
    ]
    .map(str::to_owned)
    .to_vec()
}
