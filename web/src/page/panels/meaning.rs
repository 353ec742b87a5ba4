//! Explains what the figures mean: an attacker's odds, groups of units, repeated runs, and other
//! accounting methods.

use accountant::Bounds;
use accountant::correlated::Compared;

use crate::numbers::{fine_percent, percent, rounded_down, rounded_up};
use crate::page::dom::{Content, El, el, section, table_head, table_row};
use crate::page::state::PlannerState;
use crate::page::widgets::{dimmable, hint};
use crate::protocol::{AccountingMethod, AttackerFigures, GroupFigures, RunFigures};

pub(crate) fn meaning(state: PlannerState) -> El {
    let results = state.secondary_results;
    let stack = dimmable(results.dimmed, "div", "stack")
        .dynamic(move || results.attacker.get().map(odds))
        .child(groups(state))
        .child(runs(state))
        .child(hint(
            "“All results are used” composes that many complete runs. “Only the best is used”: the runs share one vocabulary, \
             and the number of training runs is secret. It is drawn from a Poisson distribution with this mean before the \
             first run. Scores are computed from the trained models on public text, and only the model with the best score is \
             ever looked at. If the number of runs is fixed in advance or known, “All results are used” applies.",
        ))
        .child(methods(state))
        .child(hint(
            "Most published figures assume Poisson sampling, but the programs drew shuffled batches. Shuffling is not proven \
             to protect as well: ε of such a run lies in the range shown.",
        ))
        .child(correlated(state))
        .child(hint(
            "Noise: the noise multiplier at which DP-SGD would have the same mean squared error in sums of gradients. The trainer \
             has DP-SGD and BandMF (sampling “cyclic_poisson”); the others are shown for comparison. All have the ε of training alone.",
        ));
    section("panel", "attack-title", "What it means").child(stack)
}

fn odds(AttackerFigures { odds, confidence, true_positive_rates, mu }: AttackerFigures) -> El {
    let [one, thousandth] = true_positive_rates.map(percent);
    el("p")
        .class("odds")
        .id("odds")
        .child("An attacker tries to tell whether one unit was in the training data, starting from even odds. On average over all \
                outcomes, the answer is right with a probability of at most ")
        .child(el("strong").child(format!("{} %", percent(odds.upper))))
        .child(format!(
            "; a blind guess is right in 50 % of cases. After a single outcome, the attacker can be up to {} % sure; outcomes that \
             allow more have an excess probability of at most δ. With 1 % false alarms, the attacker finds at most {one} % of the units; with 0.1 %, at most \
             {thousandth} %. The protection equals that of one Gaussian mechanism with μ ≤ ",
            fine_percent(confidence)
        ))
        .child(el("strong").id("mu").child(rounded_up(mu.upper, 4)))
        .child(" at this δ.")
}

fn groups(state: PlannerState) -> El {
    let rows = move || {
        let row =
            |(units, figures): (u32, GroupFigures)| table_row(units.to_string(), [group(figures).into()]);
        state.secondary_results.groups.get_clone().into_iter().map(row).collect::<Vec<_>>()
    };
    table("groups", "Several units of one person", &["Units", "ε at the same δ"], rows)
}

/// Describes ε of a group. If the vocabulary's thresholds fail the group with a probability above δ, gives that
/// probability, and ε of training alone.
fn group(GroupFigures { whole, failure, training }: GroupFigures) -> String {
    match (whole, training) {
        (Some(whole), _) => at_most(whole),
        (None, Some(training)) => format!(
            "training {}; the vocabulary reveals a word that only they use with probability up to {}, above δ",
            at_most(training),
            rounded_up(failure, 2)
        ),
        (None, None) => "no proven bound for this batch sampling".to_owned(),
    }
}

fn runs(state: PlannerState) -> El {
    let rows = move || {
        let row = |(runs, figures): (u64, RunFigures)| {
            let RunFigures { all, best } = figures;
            let all = all.map_or("no bound: the thresholds of these runs use up δ".to_owned(), at_most);
            let best = best.map_or("no proven bound for this batch sampling".to_owned(), at_most);
            table_row(runs.to_string(), [all, best].map(Into::into))
        };
        state.secondary_results.runs.get_clone().into_iter().map(row).collect::<Vec<_>>()
    };
    let head = ["Runs", "All results are used", "Only the best is used"];
    table("runs", "Several runs on the same text", &head, rows)
}

fn methods(state: PlannerState) -> El {
    let results = state.secondary_results;
    let rows = move || {
        let certified = results.plan.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon));
        let own = certified.map(|bounds| table_row("This plan, certified", [range(bounds).into()]));
        let other = |(method, bounds)| match method {
            AccountingMethod::Renyi => table_row("Rényi DP, as in most papers", [at_most(bounds).into()]),
            AccountingMethod::Shuffled => table_row("Same noise, shuffled batches", [range(bounds).into()]),
        };
        own.into_iter().chain(results.methods.get_clone().into_iter().map(other)).collect::<Vec<_>>()
    };
    table("methods", "Other accounting methods", &["Method", "ε"], rows)
}

fn correlated(state: PlannerState) -> El {
    let rows = move || {
        let row = |row: Compared| {
            let known = [
                row.family.batches().to_owned(),
                row.bands.to_string(),
                rounded_up(row.noise_multiplier, 4),
                rounded_up(row.equivalent_noise_multiplier, 4),
            ];
            table_row(row.family.name(), known.map(Into::into))
        };
        state.secondary_results.correlated.get_clone().into_iter().map(row).collect::<Vec<_>>()
    };
    let head = ["Mechanism", "Batches", "Bands", "Noise σ", "Noise"];
    table("correlated", "Correlated noise at the same ε", &head, rows)
}

fn table<C: Into<Content>>(
    id: &'static str,
    caption: &'static str,
    head: &[&'static str],
    rows: impl Fn() -> C + 'static,
) -> El {
    let table = el("table").id(id).child(el("caption").child(caption));
    table.child(table_head(head)).child(el("tbody").dynamic(rows))
}

fn at_most(bounds: Bounds) -> String {
    format!("ε ≤ {}", rounded_up(bounds.upper, 4))
}

fn range(bounds: Bounds) -> String {
    format!("{} ≤ ε ≤ {}", rounded_down(bounds.lower, 4), rounded_up(bounds.upper, 4))
}
