//! The certificate's sentences.

use accountant::{Bounds, NeighboringRelation};
use plan::{CertifiedPlan, PrivacyUnit};

use crate::store::ledger::{Header, LedgerState, Randomness};

/// Every reason for which a run protects nobody.
pub(super) fn not_private_because(plan: &CertifiedPlan, header: &Header) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Randomness::TestKey { .. } = header.randomness {
        reasons.push("the noise was made from a known key (--test-key): anyone can subtract it".to_owned());
    }
    if plan.plan().is_public() {
        reasons.push(
            "the plan declares the training text public: it was used without noise or charge".to_owned(),
        );
    } else if !header.protected {
        reasons.push("a --non-private baseline: gradients were neither clipped nor given noise".to_owned());
    }
    reasons
}

/// What stands beside the weights themselves, so that a model taken out of its folder still says what it is.
pub(crate) fn mark(plan: &CertifiedPlan, header: &Header) -> String {
    match not_private_because(plan, header).as_slice() {
        [] => "differentially private; certificate.json says in what sense".to_owned(),
        reasons => format!("NOT PRIVATE: {}", reasons.join("; ")),
    }
}

/// The guarantee in a sentence.
pub(super) fn guarantee(plan: &CertifiedPlan, epsilon: Option<Bounds>, private: bool) -> String {
    if plan.plan().is_public() {
        return "NOT PRIVATE. Nothing private was used: the plan declares the training text public, so no noise was added \
                and no privacy was spent. Nothing is promised to anybody whose text it is."
            .to_owned();
    }
    let Some(epsilon) = epsilon else {
        return "NOT PRIVATE: no guarantee of any kind.".to_owned();
    };
    let (unit, delta) = (unit(plan.plan().privacy().unit), plan.delta().get());
    let neighbors = match plan.plan().privacy().relation {
        NeighboringRelation::AddOrRemoveOne => format!("that differ by the presence of {unit}"),
        NeighboringRelation::ReplaceOne => format!("of equal size that differ in {unit}"),
        NeighboringRelation::ZeroOut => {
            format!("that differ in {unit}, which contributes nothing in one of them")
        }
    };
    let sentence = format!(
        "For any two training texts {neighbors}, the probability of any property of everything this run released \
         (vocabulary, every intermediate and the final weights) differs by at most a factor e^ε with ε = {}, plus \
         δ = {delta}.",
        epsilon.upper
    );
    if private {
        sentence
    } else {
        format!("NOT PRIVATE. With secret randomness the same run would give: {sentence}")
    }
}

/// The unit in words.
pub(super) fn unit(unit: PrivacyUnit) -> String {
    match unit {
        PrivacyUnit::Record => "one record".to_owned(),
        PrivacyUnit::User => "one user with all their records".to_owned(),
        PrivacyUnit::Words(words) => format!("one run of {words} words"),
    }
}

/// Conditions that the guarantee rests on and the program cannot check, or does not meet.
pub(super) fn assumptions(plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    let mut list = if plan.plan().is_public() {
        vec!["The training text is public, as the plan declares: this program cannot check it.".to_owned()]
    } else {
        conditions_of_privacy(plan)
    };
    if let Some(sha256) = ledger.initial_weights() {
        list.push(format!(
            "Training began from the weights of a public checkpoint (SHA-256 of its files' digests {sha256}), made without \
             the private text, as the plan declares; ε says nothing about the text that checkpoint was made from."
        ));
    }
    if plan.plan().evaluation().is_some() {
        list.push("The evaluation text is public, as the plan declares.".to_owned());
    }
    if matches!(plan.plan().tokenizer(), plan::Tokenizer::Public(_)) {
        list.push("The tokenizer was made without the private text, as the plan declares.".to_owned());
    }
    list
}

fn conditions_of_privacy(plan: &CertifiedPlan) -> Vec<String> {
    vec![
        "NOT MET: Gradient noise is a floating-point Gaussian (Box-Muller in f64 on 52 random bits, added and rounded to \
         f32), not an exact one: the gap to the ideal mechanism is not part of ε (Mironov 2012, doi:10.1145/2382196.2382264)."
            .to_owned(),
        "NOT MET: Norms and clipped sums are computed in f32: a clipped gradient can exceed the clip norm by a relative \
         rounding error of the order of 1e-6, which is not part of ε."
            .to_owned(),
        format!(
            "The number of units, {}, is declared public and fixes the sampling probability; it was not to be taken from \
             the private text more finely than anyone may know.",
            plan.plan().data().units
        ),
        "The plan's figures (learning rate, clip norm, sizes, steps, vocabulary size) were chosen without looking at this \
         private text; trials on it are charged nowhere."
            .to_owned(),
        "The operating system's random generator and ChaCha20 are as good as true randomness to an attacker.".to_owned(),
    ]
}

/// What the guarantee leaves open.
pub(super) fn not_protected(plan: &CertifiedPlan) -> Vec<String> {
    if plan.plan().is_public() {
        return vec!["Everything: the model may repeat its training text word for word.".to_owned()];
    }
    let unit_limit = match plan.plan().privacy().unit {
        PrivacyUnit::Record => {
            "A person with several records: each record is protected by itself, all together by less."
        }
        PrivacyUnit::User => "What users write about each other: each user's own records are protected.",
        PrivacyUnit::Words(_) => {
            "A person with several runs of words, and a record longer than one run: each run is protected by itself, all \
             together by less."
        }
    };
    [
        unit_limit,
        "What is true of the population: the model is meant to learn it, and it may say something about people whose text \
         was not used.",
        "The evaluation text and the plan itself.",
        "Running time, memory, power and other physical traces of the computation, and whoever can read this machine's \
         memory or the training text on its disk.",
        "Other releases made from the same text: their ε adds to this one.",
    ]
    .map(str::to_owned)
    .to_vec()
}
