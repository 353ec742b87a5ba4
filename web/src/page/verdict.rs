//! The figures: in short in the header, in full in the first panel of results.

use leptos::prelude::*;
use plan::PlanFile;

use super::desk::Desk;
use super::exchange;
use super::field::Refused;
use super::panels::Outdated;
use crate::ask::{Certified, Refusal};
use crate::numbers::{rounded_down, rounded_up};
use crate::statement::{figures, is_public};

/// The sticky head of the page.
#[component]
pub fn Header() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let state = move || match (desk.refusal.with(Option::is_some), desk.stale.get()) {
        (true, _) => ("refused", "✕ refused"),
        (false, true) => ("busy", "… computing"),
        (false, false) if desk.plan.with(is_public) => ("refused", "✕ not private"),
        (false, false) => ("certified", "✓ certified"),
    };
    let upper = move || {
        let exact = desk.certified.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon.upper));
        exact.filter(|_| desk.refusal.with(Option::is_none) && !desk.plan.with(is_public))
    };
    let shown = move || !desk.refusal.with(Option::is_some);
    let lower = move || {
        let lower = desk.certified.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon.lower));
        lower.filter(|_| shown()).map(|lower| rounded_down(lower, 4))
    };
    let mu =
        move || desk.aside.attacker.get().filter(|_| shown()).map(|figures| rounded_up(figures.mu.upper, 3));
    view! {
        <header>
            <h1>"Privacy planner"<span class="plan-name">{move || desk.plan.with(|plan| plan.name.clone())}</span></h1>
            <p class="verdict" class:stale=move || desk.stale.get()>
                <span class="epsilon" id="epsilon" data-exact=move || upper().map(|exact| exact.to_string())>
                    "ε ≤ " {move || upper().map_or("–".to_owned(), |exact| rounded_up(exact, 4))}
                </span>
                <span class="bounds">{move || lower().map(|lower| format!("and ≥ {lower}"))}</span>
                <span class="delta">" at δ = " {move || format!("{:e}", desk.plan.with(|plan| plan.privacy.delta))}</span>
                <span class="delta">{move || mu().map(|mu| format!("μ ≤ {mu}"))}</span>
                <span class=move || format!("state {}", state().0) id="state">{move || state().1}</span>
            </p>
            <Actions/>
        </header>
    }
}

#[component]
fn Actions() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let refused = move || desk.stale.get() || desk.refusal.with(Option::is_some);
    view! {
        <div class="actions" role="toolbar" aria-label="Plan">
            <button type="button" id="undo" disabled=move || !desk.can_go().0 on:click=move |_| desk.undo()>"Undo"</button>
            <button type="button" id="redo" disabled=move || !desk.can_go().1 on:click=move |_| desk.redo()>"Redo"</button>
            <button type="button" id="link" on:click=move |_| exchange::link(desk)>"Link"</button>
            <span class="file">
                <input id="import" type="file" accept=".json,application/json"
                    on:change=move |event| exchange::import(desk, &event)/>
                <label for="import">"Open…"</label>
            </span>
            <button type="button" id="export" class="primary" disabled=refused on:click=move |_| exchange::export(desk)>
                "Save plan.json"
            </button>
        </div>
    }
}

/// Everything the certificate will say, beside a pinned plan where there is one.
#[component]
pub fn Figures() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let columns = move || {
        let own = desk.certified.get();
        let pinned = desk.pinned.get();
        own.map(|own| table(&own, pinned.as_ref()))
    };
    let pinned = move || desk.pinned.with(Option::is_some);
    let pin = move |_| desk.pinned.set(if pinned() { None } else { desk.certified.get_untracked() });
    view! {
        <section class="panel figures" aria-labelledby="figures-title">
            <h2 id="figures-title">"Result"</h2>
            {move || desk.rejected.get().map(|refusal| view! { <Rejected refusal/> })}
            {move || {
                desk.refusal
                    .get()
                    .map(|refusal| {
                        let place = refusal.path.clone();
                        let place = if place.is_empty() { "The plan is refused".to_owned() } else { place };
                        view! { <div class="refusal" id="refusal"><p class="place">{place}</p><Refused refusal/></div> }
                    })
            }}
            <Outdated/>
            <div id="figures" class:stale=move || desk.stale.get()>{columns}</div>
            <button type="button" id="pin" aria-pressed=move || pinned().to_string() on:click=pin>
                {move || if pinned() { "Forget the pinned plan" } else { "Pin this plan to compare" }}
            </button>
        </section>
    }
}

/// A file or link that is no plan. What lies on the desk stays.
#[component]
fn Rejected(refusal: Refusal) -> impl IntoView {
    let desk = expect_context::<Desk>();
    let place = if refusal.path.is_empty() { String::new() } else { format!("{}: ", refusal.path) };
    let allowed =
        if refusal.allowed.is_empty() { String::new() } else { format!(" Allowed: {}.", refusal.allowed) };
    view! {
        <div class="refusal" id="rejected" role="alert">
            <p class="place">"Not opened"</p>
            <div class="refused">
                <p><strong>{place}{refusal.given}</strong>{allowed}" "{refusal.fix}</p>
                <button type="button" class="dismiss" on:click=move |_| desk.rejected.set(None)>"Keep the plan as it is"</button>
            </div>
        </div>
    }
}

fn table(own: &(PlanFile, Certified), pinned: Option<&(PlanFile, Certified)>) -> impl IntoView + use<> {
    let other = pinned.map(|(plan, certified)| figures(plan, certified));
    let head = other.is_some().then(|| {
        view! { <thead><tr><td></td><th scope="col">"This plan"</th><th scope="col">"Pinned"</th></tr></thead> }
    });
    let body: Vec<_> = figures(&own.0, &own.1)
        .into_iter()
        .enumerate()
        .map(|(at, (name, value))| {
            let beside = other.as_ref().map(|rows| rows[at].1.clone());
            let differs = beside.as_ref().is_some_and(|beside| *beside != value);
            view! {
                <tr class:differs=differs>
                    <th scope="row">{name}</th><td>{value}</td>{beside.map(|beside| view! { <td>{beside}</td> })}
                </tr>
            }
        })
        .collect();
    view! { <div class="scroll" tabindex="0" role="region" aria-label="Figures"><table>{head}<tbody>{body}</tbody></table></div> }
}
