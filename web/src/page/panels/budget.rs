//! How much may be learnt about one unit.

use accountant::Bounds;
use leptos::prelude::*;
use plan::{NoiseMultipliers, Tokenizer};

use crate::ask::{Aim, Promise, Stage};
use crate::numbers::{rounded_up, typed};
use crate::page::client;
use crate::page::desk::{Desk, Unknown};
use crate::page::field::{Complaint, Number, NumberField};
use crate::scale::Scale;

const EPSILON: Number = Number {
    id: "target-epsilon",
    label: "Promised ε",
    hint: "The noise is calibrated to it, vocabulary and training together. Smaller protects more.",
    path: "privacy.epsilon",
    whole: false,
    scale: Some(Scale { least: 0.05, most: 50.0, whole: false }),
    read: |plan| plan.privacy.epsilon,
    write: |plan, value| plan.privacy.epsilon = Some(value),
};

const NOISE: Number = Number {
    id: "noise-training",
    label: "Noise multiplier of training, σ",
    hint: "Standard deviation of the noise over the clip norm.",
    path: "privacy.noise_multipliers.training",
    whole: false,
    scale: Some(Scale { least: 0.2, most: 100.0, whole: false }),
    read: |plan| plan.privacy.noise_multipliers.map(|noise| noise.training),
    write: |plan, value| {
        if let Some(noise) = &mut plan.privacy.noise_multipliers {
            noise.training = value;
        }
    },
};

const RELEASE_NOISE: Number = Number {
    id: "noise-tokenizer",
    label: "Noise multiplier of the vocabulary",
    hint: "Of the whole release, seen as one Gaussian mechanism.",
    path: "privacy.noise_multipliers.tokenizer",
    whole: false,
    scale: Some(Scale { least: 0.2, most: 100.0, whole: false }),
    read: |plan| plan.privacy.noise_multipliers.and_then(|noise| noise.tokenizer),
    write: |plan, value| {
        if let Some(noise) = &mut plan.privacy.noise_multipliers {
            noise.tokenizer = Some(value);
        }
    },
};

const DELTA: Number = Number {
    id: "delta",
    label: "δ",
    hint: "Probability with which the promise may fail; far below 1/N.",
    path: "privacy.delta",
    whole: false,
    scale: None,
    read: |plan| Some(plan.privacy.delta),
    write: |plan, value| plan.privacy.delta = value,
};

const SHARE: Number = Number {
    id: "share",
    label: "Share of the vocabulary",
    hint: "Part of the budget that the vocabulary gets; training has the rest.",
    path: "privacy.tokenizer_share",
    whole: false,
    scale: Some(Scale { least: 0.005, most: 0.9, whole: false }),
    read: |plan| Some(plan.privacy.tokenizer_share),
    write: |plan, value| plan.privacy.tokenizer_share = value,
};

const SPARE: Number = Number {
    id: "spare",
    label: "Spare steps",
    hint: "Charged up front: a crash burns a step and takes one from here.",
    path: "privacy.spare_steps",
    whole: true,
    scale: None,
    read: |plan| Some(plan.privacy.spare_steps as f64),
    write: |plan, value| plan.privacy.spare_steps = value as u64,
};

/// The four quantities of which one follows from the others.
const UNKNOWNS: [(Unknown, &str, &str); 4] = [
    (Unknown::Noise, "give-epsilon", "σ, from ε, T and B"),
    (Unknown::Epsilon, "give-noise", "ε, from σ, T and B"),
    (Unknown::Steps, "find-steps", "T, from ε, σ and B"),
    (Unknown::Batch, "find-batch", "B, from ε, σ and T"),
];

/// Budget.
#[component]
pub fn BudgetPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let fixed = Memo::new(move |_| desk.plan.with(|plan| plan.privacy.noise_multipliers.is_some()));
    let promised = move || desk.plan.with(|plan| plan.privacy.epsilon.is_some());
    let trained = Memo::new(move |_| desk.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Train(_))));
    let scheduled = Memo::new(move |_| desk.plan.with(|plan| plan.training.batch_schedule.is_some()));
    let modes = UNKNOWNS.map(|(unknown, id, label)| {
        let chosen = move || desk.unknown.get() == unknown;
        let lock = move || if chosen() { " (locked to the rest)" } else { "" };
        // A schedule has no one number of steps, and no one batch.
        let out = move || scheduled.get() && matches!(unknown, Unknown::Steps | Unknown::Batch);
        view! {
            <label>
                <input type="radio" name="given" id=id prop:checked=chosen disabled=out
                    on:change=move |_| find(desk, unknown)/>
                {label}{lock}
            </label>
        }
    });
    view! {
        <fieldset class="panel">
            <legend>"Budget"</legend>
            <div class="modes" role="radiogroup" aria-label="What is found from the rest">
                <span class="modes-title">"Find"</span>
                {modes.into_iter().collect_view()}
            </div>
            <Complaint path="privacy.noise_multipliers"/>
            <Show when=promised><NumberField of=EPSILON/></Show>
            <Show when=move || fixed.get()><NumberField of=NOISE/></Show>
            <Found/>
            <Show when=move || fixed.get() && trained.get()><NumberField of=RELEASE_NOISE/></Show>
            <NumberField of=DELTA/>
            <DefaultDelta/>
            <Show when=move || trained.get() && !fixed.get()><NumberField of=SHARE/></Show>
            <NumberField of=SPARE/>
            <Split/>
            <OtherWords/>
        </fieldset>
    }
}

/// The quantity that is found, where it has no field of its own.
#[component]
fn Found() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let found = move || {
        let noise = desk.unknown.get() == Unknown::Noise;
        let name = if noise { "Noise multiplier of training, σ" } else { "ε" };
        desk.certified.with(|it| {
            let (_, certified) = it.as_ref()?;
            let value =
                if noise { certified.phases.first()?.noise_multiplier } else { certified.epsilon.upper };
            Some((name, rounded_up(value, 5)))
        })
    };
    let shown = move || matches!(desk.unknown.get(), Unknown::Noise | Unknown::Epsilon);
    view! {
        <Show when=shown>
            <div class="field found" class:stale=move || desk.stale.get()>
                {move || found().map(|(name, value)| view! {
                    <p class="name">{name}" (found from the rest)"</p><output id="found">{value}</output>
                })}
            </div>
        </Show>
    }
}

/// How the budget is split: the planned shares as a bar, and what each stage costs alone.
#[component]
fn Split() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let share = move || {
        desk.plan.with(|plan| match (&plan.tokenizer, plan.privacy.noise_multipliers) {
            (Tokenizer::Train(_), None) => Some(plan.privacy.tokenizer_share),
            _ => None,
        })
    };
    let bar = move || {
        share().map(|share| {
            let width = format!("{}%", share * 100.0);
            let told = format!("Vocabulary {width} of the squared μ, training the rest");
            view! {
                <svg class="split" role="img" aria-label=told height="14">
                    <rect class="rest" width="100%" height="14"/>
                    <rect class="part" width=width height="14"/>
                </svg>
            }
        })
    };
    let rows = move || {
        let name = |stage| if stage == Stage::Vocabulary { "Vocabulary alone" } else { "Training alone" };
        let row = |(stage, bounds): (Stage, Bounds)| {
            view! { <tr><th scope="row">{name(stage)}</th><td>"ε ≤ "{rounded_up(bounds.upper, 4)}</td></tr> }
        };
        desk.aside.stages.get().into_iter().map(row).collect_view()
    };
    let joint = move || desk.certified.with(|it| it.as_ref().map(|(_, c)| rounded_up(c.epsilon.upper, 4)));
    view! {
        <div class="field wide" class:stale=move || desk.stale.get()>
            {bar}
            <table class="stages">
                <caption>"Stages, each at the whole δ, and all of them composed"</caption>
                <tbody>
                    {rows}
                    <tr><th scope="row">"Together, composed exactly"</th><td>"ε ≤ "{joint}</td></tr>
                    <tr><th scope="row">"Evaluation"</th><td>"nothing: its text is public"</td></tr>
                    <tr><th scope="row">"Trying settings"</th><td>"see “More than one”: each run costs"</td></tr>
                </tbody>
            </table>
        </div>
    }
}

/// A promise made as μ, or as the success of an attack: the accountant says which ε it is.
#[component]
fn OtherWords() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let mu = RwSignal::new("1".to_owned());
    let hits = RwSignal::new("10".to_owned());
    let alarms = RwSignal::new("1".to_owned());
    let slip = RwSignal::new(String::new());
    let ask = move |aim: Result<Aim, String>| match aim {
        Ok(aim) => {
            slip.set(String::new());
            client::promise(Promise { delta: desk.plan.with_untracked(|plan| plan.privacy.delta), aim });
        }
        Err(fault) => slip.set(fault),
    };
    let by_mu = move |_| ask(typed(&mu.get_untracked()).map(Aim::Mu));
    let by_rates = move |_| {
        let share = |text: RwSignal<String>| typed(&text.get_untracked()).map(|percent| percent / 100.0);
        ask(share(alarms).and_then(|false_positive_rate| {
            Ok(Aim::Rates { false_positive_rate, true_positive_rate: share(hits)? })
        }));
    };
    let input = |id: &'static str, label: &'static str, text: RwSignal<String>| {
        view! {
            <label for=id>{label}</label>
            <input id=id type="text" inputmode="decimal" autocomplete="off" prop:value=move || text.get()
                on:input=move |event| text.set(event_target_value(&event))/>
        }
    };
    view! {
        <details class="wide words">
            <summary>"Promise it in other words"</summary>
            <div class="line">
                {input("aim-mu", "μ of Gaussian privacy", mu)}
                <button type="button" id="set-mu" on:click=by_mu>"Promise this μ"</button>
            </div>
            <div class="line">
                {input("aim-tpr", "An attack finds at most, in 100 who are there", hits)}
                {input("aim-fpr", "while it wrongly names, in 100 who are not", alarms)}
                <button type="button" id="set-rates" on:click=by_rates>"Promise these rates"</button>
            </div>
            <p class="hint">"The accountant finds the ε that keeps the promise, rounded down; it becomes the promised ε."</p>
            <p class="slip">{move || slip.get()}</p>
        </details>
    }
}

/// Offers the δ that this many units call for.
#[component]
fn DefaultDelta() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let better = move || {
        let called_for =
            desk.certified.with(|it| it.as_ref().map(|(_, certified)| certified.default_delta))?;
        (desk.plan.with(|plan| plan.privacy.delta) != called_for && desk.refusal.with(Option::is_none))
            .then_some(called_for)
    };
    move || {
        better().map(|value| {
            let set = move |_| {
                let mut plan = desk.plan.get_untracked();
                plan.privacy.delta = value;
                desk.replace(plan);
            };
            view! {
                <button type="button" class="remedy" on:click=set>{format!("Set δ to {value:e}, as N calls for")}</button>
            }
        })
    }
}

/// Makes `unknown` the quantity that is found; what the plan lacks for that is taken from what is certified.
fn find(desk: Desk, unknown: Unknown) {
    let certified = desk.certified.get_untracked().map(|(_, certified)| certified);
    let mut plan = desk.plan.get_untracked();
    let needs_noise = unknown != Unknown::Noise;
    if needs_noise && plan.privacy.noise_multipliers.is_none() {
        let found = certified.as_ref().and_then(|certified| {
            let training = certified.phases.first()?.noise_multiplier;
            Some((training, certified.release.map(|release| release.noise_multiplier)))
        });
        let (training, release) = found.unwrap_or((1.0, None));
        let tokenizer = matches!(plan.tokenizer, Tokenizer::Train(_)).then(|| release.unwrap_or(training));
        plan.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer, training });
    }
    let reached = certified.map_or(8.0, |certified| certified.epsilon.upper);
    match unknown {
        Unknown::Noise => plan.privacy.noise_multipliers = None,
        Unknown::Epsilon => plan.privacy.epsilon = None,
        Unknown::Steps | Unknown::Batch => {}
    }
    if unknown != Unknown::Epsilon {
        plan.privacy.epsilon = plan.privacy.epsilon.or(Some(reached));
    }
    desk.unknown.set(unknown);
    if plan == desk.plan.get_untracked() {
        client::certify(desk);
    } else {
        desk.replace(plan);
    }
}
