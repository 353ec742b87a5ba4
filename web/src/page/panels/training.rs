//! Batches, steps, clipping and the optimizer.

use leptos::prelude::*;
use plan::{Adafactor, AdamW, BatchPhase, Decay, Lamb, Optimizer, PlanFile, Sgd};

use crate::numbers::typed_whole;
use crate::page::desk::Desk;
use crate::page::field::{Choice, ChoiceField, Complaint, Number, NumberField};
use crate::scale::Scale;

const BATCH: Number = Number {
    id: "batch",
    label: "Expected batch, B",
    hint: "Units a step draws on average, each with probability B/N. The sum is divided by B.",
    path: "training.expected_batch_size",
    whole: true,
    scale: Some(Scale { least: 1.0, most: 1e6, whole: true }),
    read: |plan| plan.training.expected_batch_size.map(|value| value as f64),
    write: |plan, value| plan.training.expected_batch_size = Some(value as u64),
};

const STEPS: Number = Number {
    id: "steps",
    label: "Steps, T",
    hint: "Every step costs.",
    path: "training.steps",
    whole: true,
    scale: Some(Scale { least: 1.0, most: 1e6, whole: true }),
    read: |plan| plan.training.steps.map(|value| value as f64),
    write: |plan, value| {
        plan.training.steps = Some(value as u64);
        let warmup = &mut plan.training.learning_rate.warmup_steps;
        *warmup = (*warmup).min(value as u64);
    },
};

const CLIP: Number = Number {
    id: "clip",
    label: "Clip norm, C",
    hint: "Largest L2 norm of one unit's gradient. ε depends on σ alone, not on C.",
    path: "training.l2_clip_norm",
    whole: false,
    scale: Some(Scale { least: 1e-3, most: 100.0, whole: false }),
    read: |plan| Some(plan.training.l2_clip_norm),
    write: |plan, value| plan.training.l2_clip_norm = value,
};

const OPTIMIZER: Choice = Choice {
    id: "optimizer",
    label: "Optimizer",
    hint: "Costs nothing: it sees the noisy gradient alone.",
    path: "training.optimizer",
    options: &[("adamw", "AdamW"), ("sgd", "SGD"), ("adafactor", "Adafactor"), ("lamb", "LAMB")],
    read: |plan| match plan.training.optimizer {
        Optimizer::Adamw(_) => "adamw",
        Optimizer::Sgd(_) => "sgd",
        Optimizer::Adafactor(_) => "adafactor",
        Optimizer::Lamb(_) => "lamb",
    },
    write: |plan, name| {
        plan.training.optimizer = match name {
            "sgd" => Optimizer::Sgd(Sgd { momentum: 0.9 }),
            "adafactor" => Optimizer::Adafactor(Adafactor::default()),
            "lamb" => Optimizer::Lamb(Lamb::default()),
            _ => Optimizer::Adamw(AdamW { weight_decay: 0.01, ..AdamW::default() }),
        };
    },
};

const PEAK: Number = Number {
    id: "rate",
    label: "Peak learning rate",
    hint: "Reached after the warm-up.",
    path: "training.learning_rate.peak",
    whole: false,
    scale: Some(Scale { least: 1e-6, most: 10.0, whole: false }),
    read: |plan| Some(plan.training.learning_rate.peak),
    write: |plan, value| plan.training.learning_rate.peak = value,
};

const WARMUP: Number = Number {
    id: "warmup",
    label: "Warm-up steps",
    hint: "Linear growth to the peak.",
    path: "training.learning_rate.warmup_steps",
    whole: true,
    scale: None,
    read: |plan| Some(plan.training.learning_rate.warmup_steps as f64),
    write: |plan, value| plan.training.learning_rate.warmup_steps = value as u64,
};

const DECAY: Choice = Choice {
    id: "decay",
    label: "Then",
    hint: "How the learning rate falls to the last step.",
    path: "training.learning_rate.decay",
    options: &[
        ("constant", "stay at the peak"),
        ("cosine", "half a cosine"),
        ("linear", "a straight line"),
        ("quadratic", "a parabola"),
        ("rsqrt", "one over the root of the step"),
    ],
    read: |plan| match plan.training.learning_rate.decay {
        Decay::Constant => "constant",
        Decay::Cosine => "cosine",
        Decay::Linear => "linear",
        Decay::Quadratic => "quadratic",
        Decay::Rsqrt => "rsqrt",
    },
    write: |plan, name| {
        plan.training.learning_rate.decay = match name {
            "cosine" => Decay::Cosine,
            "linear" => Decay::Linear,
            "quadratic" => Decay::Quadratic,
            "rsqrt" => Decay::Rsqrt,
            _ => Decay::Constant,
        };
    },
};

/// Training.
#[component]
pub fn TrainingPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let scheduled = Memo::new(move |_| desk.plan.with(|plan| plan.training.batch_schedule.is_some()));
    view! {
        <fieldset class="panel">
            <legend>"Training"</legend>
            <Show when=move || scheduled.get()><Schedule/></Show>
            <Show when=move || !scheduled.get()>
                <NumberField of=BATCH/>
                <NumberField of=STEPS/>
                <button type="button" id="phases" class="remedy" on:click=move |_| phased(desk)>"Change the batch as training goes on"</button>
            </Show>
            <NumberField of=CLIP/>
            <ChoiceField of=OPTIMIZER/>
            <NumberField of=PEAK/>
            <NumberField of=WARMUP/>
            <ChoiceField of=DECAY/>
        </fieldset>
    }
}

/// Phases, each of so many steps at its own batch size.
#[component]
fn Schedule() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let count = Memo::new(move |_| desk.plan.with(|plan| plan.training.phases().len()));
    let rows = move || (0..count.get()).map(|at| view! { <Phase at alone=count.get() == 1/> }).collect_view();
    let add = move |_| edit(desk, |phases| phases.extend(phases.last().copied()));
    let level = move |_| {
        let mut plan = desk.plan.get_untracked();
        level(&mut plan);
        desk.replace(plan);
    };
    view! {
        <div class="field wide">
            <table class="phases">
                <caption>"Batch schedule"</caption>
                <thead>
                    <tr><th scope="col">"Phase"</th><th scope="col">"Steps"</th><th scope="col">"Expected batch"</th><td></td></tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
            <Complaint path="training.batch_schedule"/>
            <div class="files">
                <button type="button" id="add-phase" on:click=add>"Add a phase"</button>
                <button type="button" id="level" class="remedy" on:click=level>"Use one batch size for all steps"</button>
            </div>
        </div>
    }
}

#[component]
fn Phase(at: usize, alone: bool) -> impl IntoView {
    let desk = expect_context::<Desk>();
    let part = move |part: fn(&BatchPhase) -> u64| {
        move || {
            desk.plan.with(|plan| plan.training.phases().get(at).map(part)).unwrap_or_default().to_string()
        }
    };
    let write = move |event: web_sys::Event, set: fn(&mut BatchPhase, u64)| match typed_whole(
        &event_target_value(&event),
    ) {
        Ok(number) => edit(desk, |phases| {
            if let Some(phase) = phases.get_mut(at) {
                set(phase, number);
            }
        }),
        Err(slip) => desk.announce(slip),
    };
    let remove = move |_| {
        edit(desk, |phases| {
            phases.remove(at);
        })
    };
    let number = at + 1;
    view! {
        <tr>
            <th scope="row">{number}</th>
            <td><input type="text" inputmode="numeric" id=format!("phase-{number}-steps") aria-label=format!("Steps of phase {number}")
                prop:value=part(|phase| phase.steps) on:change=move |event| write(event, |phase, n| phase.steps = n)/></td>
            <td><input type="text" inputmode="numeric" id=format!("phase-{number}-batch") aria-label=format!("Expected batch of phase {number}")
                prop:value=part(|phase| phase.expected_batch_size)
                on:change=move |event| write(event, |phase, n| phase.expected_batch_size = n)/></td>
            <td><button type="button" disabled=alone aria-label=format!("Remove phase {number}") on:click=remove>"Remove"</button></td>
        </tr>
    }
}

/// Changes the phases as one step of undo.
fn edit(desk: Desk, change: impl FnOnce(&mut Vec<BatchPhase>)) {
    let mut plan = desk.plan.get_untracked();
    let mut phases = plan.training.phases();
    change(&mut phases);
    let training = &mut plan.training;
    (training.steps, training.expected_batch_size) = (None, None);
    training.batch_schedule = Some(phases);
    let warmup = plan.training.learning_rate.warmup_steps;
    plan.training.learning_rate.warmup_steps = warmup.min(plan.training.total_steps());
    desk.replace(plan);
}

/// Splits the run into two phases, the second at twice the batch as far as N allows.
fn phased(desk: Desk) {
    let most = desk.plan.with_untracked(|plan| plan.data.units);
    edit(desk, |phases| {
        if let [only] = phases.as_mut_slice() {
            let later = BatchPhase {
                steps: (only.steps / 2).max(1),
                expected_batch_size: only.expected_batch_size.saturating_mul(2).min(most),
            };
            only.steps = only.steps.saturating_sub(later.steps).max(1);
            phases.push(later);
        }
    });
}

/// The same number of steps at the largest batch.
fn level(plan: &mut PlanFile) {
    let phases = plan.training.phases();
    plan.training.steps = Some(plan.training.total_steps());
    plan.training.expected_batch_size = phases.iter().map(|phase| phase.expected_batch_size).max();
    plan.training.batch_schedule = None;
}
