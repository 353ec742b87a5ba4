//! What the figures mean: odds, several units or runs, and other ways to account.

use accountant::Bounds;
use leptos::prelude::*;

use crate::ask::{AttackerFigures, Method};
use crate::numbers::{odds, rounded_down, rounded_up};
use crate::page::desk::Desk;

/// Odds, groups, runs and methods.
#[component]
pub fn AttackPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let aside = desk.aside;
    let told = move || aside.attacker.get().map(|figures| view! { <Odds figures/> });
    let groups = Signal::derive(move || {
        let row =
            |(units, bounds): (u32, Option<Bounds>)| (format!("{units} units of one person"), proven(bounds));
        aside.groups.get().into_iter().map(row).collect()
    });
    let runs = Signal::derive(move || {
        let row = |(runs, bounds): (u64, Option<Bounds>)| (format!("{runs} runs looked at"), proven(bounds));
        aside.runs.get().into_iter().map(row).collect()
    });
    let methods = Signal::derive(move || {
        let certified = desk.certified.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon));
        let own = certified.map(|bounds| ("Certified: this run".to_owned(), range(bounds)));
        let row = |(method, bounds)| match method {
            Method::Renyi => ("Rényi orders, as most papers".to_owned(), cost(bounds)),
            Method::Shuffled => ("The same noise on shuffled batches".to_owned(), range(bounds)),
        };
        own.into_iter().chain(aside.methods.get().into_iter().map(row)).collect()
    });
    view! {
        <section class="panel" aria-labelledby="attack-title">
            <h2 id="attack-title">"What it means"</h2>
            <div class="stack" class:stale=move || desk.stale.get()>
                {told}
                <Small id="groups" caption="More than one: units together" head=["Protected together", "at the same δ"] rows=groups/>
                <Small id="runs" caption="More than one: settings tried on the same text" head=["All results seen", "at the same δ"] rows=runs/>
                <Small id="methods" caption="Other accounting, side by side" head=["Method", "ε"] rows=methods/>
                <p class="hint">
                    "Most published figures assume Poisson sampling while the programs drew shuffled batches, which have no such \
                     amplification: their ε lies in the range shown."
                </p>
            </div>
        </section>
    }
}

#[component]
fn Odds(figures: AttackerFigures) -> impl IntoView {
    let AttackerFigures { odds: right, mu } = figures;
    view! {
        <p class="odds" id="odds">
            "An attacker who starts from fifty to fifty whether a unit was there is right at most "
            <strong>{odds(right.upper)}" times in 100"</strong>
            "; a guess is right 50 times. As strong as one Gaussian mechanism with μ ≤ "
            <strong id="mu">{rounded_up(mu.upper, 4)}</strong>" at this δ."
        </p>
    }
}

#[component]
fn Small(
    id: &'static str,
    caption: &'static str,
    head: [&'static str; 2],
    rows: Signal<Vec<(String, String)>>,
) -> impl IntoView {
    let body = move || {
        let row =
            |(name, value): (String, String)| view! { <tr><th scope="row">{name}</th><td>{value}</td></tr> };
        rows.get().into_iter().map(row).collect_view()
    };
    let [first, second] = head;
    view! {
        <table id=id>
            <caption>{caption}</caption>
            <thead><tr><th scope="col">{first}</th><th scope="col">{second}</th></tr></thead>
            <tbody>{body}</tbody>
        </table>
    }
}

/// What is not proven has no figure: thresholds say nothing of groups, and repeated ones use up δ.
fn proven(bounds: Option<Bounds>) -> String {
    bounds.map_or("nothing proven: the vocabulary’s thresholds fail more often".to_owned(), cost)
}

fn cost(bounds: Bounds) -> String {
    format!("ε ≤ {}", rounded_up(bounds.upper, 4))
}

fn range(bounds: Bounds) -> String {
    format!("{} ≤ ε ≤ {}", rounded_down(bounds.lower, 4), rounded_up(bounds.upper, 4))
}
