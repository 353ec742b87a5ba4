//! How much may be learnt about one unit.

use leptos::prelude::*;
use plan::{NoiseMultipliers, Tokenizer};

use crate::page::desk::Desk;
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

/// Budget.
#[component]
pub fn BudgetPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let fixed = Memo::new(move |_| desk.plan.with(|plan| plan.privacy.noise_multipliers.is_some()));
    let promised = move || desk.plan.with(|plan| plan.privacy.epsilon.is_some());
    let trained = Memo::new(move |_| desk.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Train(_))));
    view! {
        <fieldset class="panel">
            <legend>"Budget"</legend>
            <div class="modes" role="radiogroup" aria-label="What is given">
                <label>
                    <input type="radio" name="given" id="give-epsilon" prop:checked=move || !fixed.get()
                        on:change=move |_| give_epsilon(desk)/>
                    "Give ε, find σ"
                </label>
                <label>
                    <input type="radio" name="given" id="give-noise" prop:checked=move || fixed.get()
                        on:change=move |_| give_noise(desk)/>
                    "Give σ, find ε"
                </label>
            </div>
            <Complaint path="privacy.noise_multipliers"/>
            <Show when=promised><NumberField of=EPSILON/></Show>
            <Show when=move || fixed.get()><NumberField of=NOISE/></Show>
            <Show when=move || fixed.get() && trained.get()><NumberField of=RELEASE_NOISE/></Show>
            <NumberField of=DELTA/>
            <DefaultDelta/>
            <Show when=move || trained.get() && !fixed.get()><NumberField of=SHARE/></Show>
            <NumberField of=SPARE/>
        </fieldset>
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

fn give_epsilon(desk: Desk) {
    let certified = desk.certified.get_untracked();
    let mut plan = desk.plan.get_untracked();
    let reached = certified.map_or(8.0, |(_, certified)| certified.epsilon.upper);
    plan.privacy.epsilon = plan.privacy.epsilon.or(Some(reached));
    plan.privacy.noise_multipliers = None;
    desk.replace(plan);
}

fn give_noise(desk: Desk) {
    let mut plan = desk.plan.get_untracked();
    let found = desk.certified.get_untracked().and_then(|(_, certified)| {
        let training = certified.phases.first()?.noise_multiplier;
        Some((training, certified.release.map(|release| release.noise_multiplier)))
    });
    let (training, release) = found.unwrap_or((1.0, None));
    let needed = matches!(plan.tokenizer, Tokenizer::Train(_));
    let tokenizer = needed.then(|| release.unwrap_or(training));
    plan.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer, training });
    plan.privacy.epsilon = None;
    desk.replace(plan);
}
