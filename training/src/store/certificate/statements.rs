//! Chooses the sentences of a certificate and fills in their figures.

use accountant::{Bounds, NeighboringRelation, Trials};
use dp_tokenizer::release::most_units;
use mechanisms::ReleaseMethod;
use plan::{
    Arithmetic, CertifiedPlan, MadeFrom, Objective, Plan, PoissonOfExamples, PrivacyUnit, Sampling, Source,
    SyntheticPrivacy,
};

use super::PhaseSummary;
use super::wording::{CURRENT, Wording};
use crate::ranks::Placement;
use crate::store::ledger::{Header, LedgerState, NoiseDraw, Randomness, Search};
use network::tensor_file::PrivacyMark;

/// Beginning of the mark on the files of a run on public text.
pub(crate) const DECLARED_PUBLIC: &str = "the plan declares the training text public";

/// Reason why a run or a sweep with a known key is not private.
pub(crate) const KNOWN_NOISE: &str =
    "the noise was made from a known key (--test-key): anyone can subtract it";

/// Returns every reason why a run is not private.
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

/// Returns the reasons that lie in the run itself, and not in earlier stages.
pub(crate) fn not_private_by_itself(plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    let header = ledger.header();
    let mut reasons = Vec::new();
    if let Randomness::TestKey { .. } = header.randomness {
        reasons.push(KNOWN_NOISE.to_owned());
    }
    if plan.plan().is_public() {
        reasons.push(format!("{DECLARED_PUBLIC}: it was used without noise or charge"));
    } else if !header.protected {
        reasons.push("a --non-private baseline: gradients were neither clipped nor given noise".to_owned());
    }
    reasons
}

/// Returns the mark that is written with the weights, so that a model without its folder still
/// states its promise.
pub fn mark(plan: &CertifiedPlan, ledger: &LedgerState) -> PrivacyMark {
    let promise = match not_private_because(plan, ledger).as_slice() {
        [] => "differentially private; certificate.json says in what sense".to_owned(),
        reasons => format!("NOT PRIVATE: {}", reasons.join("; ")),
    };
    PrivacyMark { promise, id: Some(ledger.header().id.clone()) }
}

/// States the guarantee for a reader without background.
pub(super) fn summary(
    wording: &Wording,
    plan: &CertifiedPlan,
    ledger: &LedgerState,
    epsilon: Option<Bounds>,
) -> Option<String> {
    let template = wording.summary?;
    match (epsilon, not_private_by_itself(plan, ledger).as_slice()) {
        (Some(epsilon), []) => {
            let same_units = ledger.parents().iter().any(|parent| parent.made_from == MadeFrom::SameUnits);
            let run = match ledger.header().search {
                Some(_) => "the sweep to which this run belongs protects",
                None if same_units => "this run and the earlier stages on the same units protect",
                None => "this run protects",
            };
            Some(with_figures(&template.replace("{run}", run), wording, plan, epsilon))
        }
        (_, reasons) => Some(format!("This run protects nobody: {}.", reasons.join("; "))),
    }
}

/// Returns the guarantee in a sentence, with what voids it.
pub(super) fn statement(
    wording: &Wording,
    plan: &CertifiedPlan,
    ledger: &LedgerState,
    epsilon: Option<Bounds>,
) -> String {
    let sentence = guarantee(wording, plan, epsilon);
    if epsilon.is_none() || plan.plan().is_public() {
        sentence
    } else if !not_private_by_itself(plan, ledger).is_empty() {
        void_by_known_noise(&sentence)
    } else if !not_private_because(plan, ledger).is_empty() {
        format!(
            "NOT PRIVATE for the text behind an earlier stage. For the training text of this run: {sentence}"
        )
    } else {
        sentence
    }
}

/// Marks a guarantee as void, because only secret randomness would give it.
pub(crate) fn void_by_known_noise(sentence: &str) -> String {
    format!("NOT PRIVATE. With secret randomness the same run would give: {sentence}")
}

/// States the guarantee in a sentence.
pub(crate) fn guarantee(wording: &Wording, plan: &CertifiedPlan, epsilon: Option<Bounds>) -> String {
    if plan.plan().is_public() {
        return wording.guarantee_of_public_text.to_owned();
    }
    let Some(epsilon) = epsilon else {
        return "NOT PRIVATE: no guarantee of any kind.".to_owned();
    };
    let template =
        wording.guarantee.replace("{neighbors}", neighbors(wording, plan.plan().privacy().relation));
    with_figures(&template, wording, plan, epsilon)
}

/// Describes neighboring texts.
fn neighbors(wording: &Wording, relation: NeighboringRelation) -> &'static str {
    match relation {
        NeighboringRelation::AddOrRemoveOne => wording.add_or_remove_one,
        NeighboringRelation::ReplaceOne => wording.replace_one,
        NeighboringRelation::ZeroOut => wording.zero_out,
    }
}

/// Fills neighbors, unit, ε and δ into a sentence that states a guarantee.
pub(crate) fn guarantee_of_privacy(template: &str, privacy: &SyntheticPrivacy, epsilon: Bounds) -> String {
    let template = template.replace("{neighbors}", neighbors(&CURRENT, privacy.relation));
    figures(&template, &CURRENT, privacy.unit, epsilon, privacy.delta)
}

fn with_figures(template: &str, wording: &Wording, plan: &CertifiedPlan, epsilon: Bounds) -> String {
    figures(template, wording, plan.plan().privacy().unit, epsilon, plan.delta().get())
}

fn figures(template: &str, wording: &Wording, of: PrivacyUnit, epsilon: Bounds, delta: f64) -> String {
    template
        .replace("{unit}", &unit(wording, of))
        .replace("{epsilon}", &epsilon.upper.to_string())
        .replace("{delta}", &delta.to_string())
}

/// Describes the unit in words.
pub(super) fn unit(wording: &Wording, unit: PrivacyUnit) -> String {
    match unit {
        PrivacyUnit::Record => "one record".to_owned(),
        PrivacyUnit::User => "one user with all their records".to_owned(),
        PrivacyUnit::Owner => "one owner with all their own and shared records".to_owned(),
        PrivacyUnit::Words(words) => wording.unit_of_words.replace("{words}", &words.to_string()),
    }
}

/// Returns the conditions of the guarantee that the program cannot check or does not meet.
pub(super) fn assumptions(wording: &Wording, plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    let mut list = if plan.plan().is_public() {
        vec![wording.public_text.to_owned()]
    } else {
        conditions_of_privacy(wording, plan, ledger)
    };
    if !plan.plan().is_public() {
        let refusals = refusals(plan.plan()).join("; ");
        let compared = (!refusals.is_empty()).then(|| wording.refusals.replace("{conditions}", &refusals));
        list.extend(compared.into_iter().chain(user_ids(wording, plan.plan())));
    }
    if !ledger.placements().is_empty() && !plan.plan().is_public() {
        list.push(wording.trusted_hosts.to_owned());
    }
    list.extend(earlier_public_text(wording, plan.plan(), ledger.header()));
    if let Some(sha256) = ledger.initial_weights()
        && plan.plan().model().made_from() == MadeFrom::PublicText
    {
        list.push(wording.public_checkpoint.replace("{sha256}", sha256));
    }
    if let Some(evaluation) = plan.plan().evaluation() {
        let [length, shorter] =
            if evaluation.accept_equal_phrases { wording.equal_phrases } else { wording.every_record };
        list.push(wording.evaluation.replace("{length}", length).replace("{shorter}", shorter));
    }
    let tokenizer = plan.plan().tokenizer();
    if tokenizer.file().is_some() && tokenizer.made_from() == MadeFrom::PublicText {
        let which = if tokenizer.release().is_some() { " that released words extend" } else { "" };
        list.push(wording.public_tokenizer.replace("{which}", which));
    }
    if !tokenizer.prior().is_empty() {
        list.push(wording.public_prior.to_owned());
    }
    if plan.plan().data().made_from() != MadeFrom::PublicText {
        list.push(wording.written_text.to_owned());
    }
    if plan.plan().evaluation().is_some_and(|text| text.made_from() != MadeFrom::PublicText) {
        list.push(wording.written_evaluation.to_owned());
    }
    if !ledger.parents().is_empty() || !ledger.header().public_stages.is_empty() {
        list.push(wording.evaluation_of_stages.to_owned());
    }
    list.extend(
        ledger.parents().iter().map(|parent| relation_of_texts(wording, &parent.name, parent.made_from)),
    );
    list
}

/// States how the training text was compared with text that earlier stages called public.
fn earlier_public_text(wording: &Wording, plan: &Plan, header: &Header) -> Vec<String> {
    let of = |behind_text: bool| {
        let stages = header.public_stages.iter().filter(|stage| stage.behind_text == behind_text);
        stages.map(|stage| stage.name.as_str()).collect::<Vec<_>>()
    };
    let states = [(wording.earlier_public_text, of(false)), (wording.chosen_text, of(true))];
    let stated = states.into_iter().filter(|(_, names)| !plan.is_public() && !names.is_empty());
    stated.map(|(template, names)| template.replace("{stages}", &names.join(", "))).collect()
}

/// Describes the ranks of a process.
pub(super) fn ranks(placement: Option<Placement>) -> String {
    placement.map_or_else(|| "1".to_owned(), |placement| placement.to_string())
}

/// Describes how the gradient noise is drawn.
pub(super) fn noise(wording: &Wording, noise: NoiseDraw) -> &'static str {
    match noise {
        NoiseDraw::ExactOnGrid => wording.exact_noise,
    }
}

/// States what a plan declares about the text behind an earlier stage.
fn relation_of_texts(wording: &Wording, name: &str, made_from: MadeFrom) -> String {
    let template = match made_from {
        MadeFrom::SameUnits => wording.stage_on_same_units,
        MadeFrom::DisjointUnits => wording.stage_on_disjoint_units,
        MadeFrom::PublicText => wording.stage_on_public_text,
    };
    template.replace("{name}", name)
}

/// Describes how clipped gradients are summed.
pub(super) fn sums(wording: &Wording, arithmetic: Arithmetic) -> &'static str {
    match arithmetic {
        Arithmetic::Fast => wording.sums_of_floats,
        Arithmetic::Exact => wording.sums_of_integers,
    }
}

/// Returns the limits that the arithmetic of a run puts on its guarantee; empty if there are none.
fn limits_of_arithmetic(wording: &Wording, arithmetic: Option<Arithmetic>) -> Vec<String> {
    match arithmetic {
        Some(Arithmetic::Fast) => vec![wording.fast_sums.to_owned()],
        Some(Arithmetic::Exact) | None => Vec::new(),
    }
}

fn conditions_of_privacy(wording: &Wording, plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    let mut conditions = limits_of_arithmetic(wording, ledger.arithmetic());
    let hyperparameters = match &ledger.header().search {
        Some(search) => search_in_words(wording, search),
        None => wording.hyperparameters.to_owned(),
    };
    let units = match plan.plan().privacy().sampling {
        Sampling::PoissonOfExamples(PoissonOfExamples { examples, examples_per_unit }) => {
            match plan.plan().privacy().unit {
                PrivacyUnit::Owner => wording.owned_records,
                _ => wording.declared_examples,
            }
            .replace("{examples}", &examples.to_string())
            .replace("{examples_per_unit}", &examples_per_unit.to_string())
        }
        sampling if sampling.needs_exact_units() => wording.exact_units.to_owned(),
        _ => wording.declared_units.to_owned(),
    };
    conditions.extend([
        units.replace("{units}", &plan.plan().data().units.to_string()),
        hyperparameters,
        wording.randomness.to_owned(),
    ]);
    conditions
}

/// Returns the conditions that the training text must meet to be accepted: everything in it on
/// which the refusal of a run depends, apart from the number of units and the evaluation text,
/// which have sentences of their own.
pub(super) fn refusals(plan: &Plan) -> Vec<String> {
    let data = plan.data();
    if matches!(data.source, Source::Embedded { .. }) {
        return Vec::new();
    }
    if data.token_file().is_some() {
        return vec![
            "its token file is whole and made for the unit and the tokenizer of the plan".to_owned(),
        ];
    }
    let objective = plan.training().objective;
    let mut conditions = vec![
        "it has at least one record".to_owned(),
        "each record can be read in the plan's format, is UTF-8, and has the fields that the plan names"
            .to_owned(),
        "no file of it is named twice, none of the texts that the plan names holds half of the records or of the runs of 13 words \
         (20 characters in scripts without blanks) of another one, and fewer than half of the texts in a folder are there twice"
            .to_owned(),
    ];
    match plan.privacy().unit {
        PrivacyUnit::User => conditions.push("each record has a user, who is not blank".to_owned()),
        PrivacyUnit::Owner => {
            conditions.push("each record has a list of owners, none of whom is blank".to_owned())
        }
        PrivacyUnit::Record | PrivacyUnit::Words(_) => {}
    }
    if plan.training().labels.is_some() {
        conditions.push("each label is one of those that training.labels lists".to_owned());
    }
    if data.label_histogram.is_some() {
        conditions.push("each label is one of those that data.label_histogram lists".to_owned());
    }
    if let Some((method, _)) = plan.tokenizer().release() {
        conditions.extend(release_conditions(method, plan.privacy().unit));
    }
    match objective {
        Objective::TokenClassification => conditions.push("each word has one tag".to_owned()),
        Objective::SequenceClassification => conditions.push("each record has one label".to_owned()),
        Objective::Chat => {
            conditions.push("each conversation is one that the chat template accepts".to_owned());
        }
        _ => {}
    }
    conditions
}

/// Returns the conditions under which the release of a vocabulary accepts text.
fn release_conditions(method: ReleaseMethod, unit: PrivacyUnit) -> Vec<String> {
    let most = most_units(method).map(|most| format!("it has at most {most} units"));
    let is_ordered = method == ReleaseMethod::Policy && unit == PrivacyUnit::User;
    let order = is_ordered.then(|| "the ids of all users have different hashes of 64 bits".to_owned());
    most.into_iter().chain(order).collect()
}

/// States what the plan declares about users or owners, if they are the unit.
fn user_ids(wording: &Wording, plan: &Plan) -> Option<String> {
    let (sentence, field) = match plan.privacy().unit {
        PrivacyUnit::User => (wording.user_ids, plan.data().user_field.as_ref()?),
        PrivacyUnit::Owner => (wording.owner_ids, plan.data().owners_field.as_ref()?),
        PrivacyUnit::Record | PrivacyUnit::Words(_) => return None,
    };
    Some(sentence.replace("{field}", &format!("{field:?}")))
}

/// Describes how a search chose this run, and the cost of that choice.
fn search_in_words(wording: &Wording, search: &Search) -> String {
    match search.selection() {
        Some(trials) => wording.selected_trial.replace("{distribution}", &distribution(trials)),
        None => wording.published_trial.replace("{runs}", &search.published_trials().to_string()),
    }
}

/// Describes the distribution of the number of trials.
pub(crate) fn distribution(trials: Trials) -> String {
    match trials {
        Trials::Poisson { mean } => format!("a Poisson distribution of mean {mean}"),
        Trials::TruncatedNegativeBinomial { shape, stop } => {
            format!("a truncated negative binomial distribution with shape {shape} and stop {stop}")
        }
        other => format!("{other:?}"),
    }
}

/// Returns the limits of the guarantee.
pub(super) fn not_protected(wording: &Wording, plan: &CertifiedPlan, ledger: &LedgerState) -> Vec<String> {
    if plan.plan().is_public() {
        return vec![wording.unprotected_public_text.to_owned()];
    }
    let unit_limit = match plan.plan().privacy().unit {
        PrivacyUnit::Record => wording.records,
        PrivacyUnit::User => wording.users,
        PrivacyUnit::Owner => wording.owners,
        PrivacyUnit::Words(_) => wording.words,
    };
    let mut list = [
        unit_limit,
        wording.population,
        wording.public_inputs,
        wording.side_channels,
        wording.other_releases,
    ]
    .map(str::to_owned)
    .to_vec();
    if ledger.header().search.as_ref().and_then(Search::selection).is_some() {
        list.push(wording.secret_trials.to_owned());
    }
    list.push(copies(wording, ledger.copies()));
    let sampling = plan.plan().privacy().sampling;
    list.extend(ledger.header().canaries.as_ref().map(|planting| planting.statement(sampling)));
    list
}

/// States that a ledger records only what was done in its own folder.
fn copies(wording: &Wording, resumed: u64) -> String {
    let limit = wording.copies;
    match resumed {
        0 => limit.to_owned(),
        times => format!("{limit} This run was resumed in a copy (--copied) {times} times."),
    }
}

/// Describes how the noise of a phase is correlated.
pub(super) fn correlation(phase: &PhaseSummary) -> String {
    let diagonals: Vec<String> = phase.correlation.iter().map(f64::to_string).collect();
    format!(
        "The noise of the {} steps is correlated. It is C⁻¹z: C has the diagonals {}, and z is independent Gaussian noise of σ times the \
         L2 norm of a column of C. Two steps that a unit joins are at least {} apart. Each process that resumed the run started a new block \
         of such noise.",
        phase.steps,
        diagonals.join(", "),
        diagonals.len()
    )
}
