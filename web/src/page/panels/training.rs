//! Batches, steps, clipping and the optimizer.

use leptos::prelude::*;
use plan::{Adafactor, AdamW, Decay, Lamb, Optimizer, PlanFile, Sgd};

use crate::numbers::grouped;
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
            <Show when=move || !scheduled.get()><NumberField of=BATCH/><NumberField of=STEPS/></Show>
            <NumberField of=CLIP/>
            <ChoiceField of=OPTIMIZER/>
            <NumberField of=PEAK/>
            <NumberField of=WARMUP/>
            <ChoiceField of=DECAY/>
        </fieldset>
    }
}

/// A schedule is read from a plan file; here it can be seen, or given up for one batch size.
#[component]
fn Schedule() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let rows = move || {
        let phases = desk.plan.with(|plan| plan.training.phases());
        let row = |phase: plan::BatchPhase| {
            view! { <tr><td>{grouped(phase.steps)}</td><td>{grouped(phase.expected_batch_size)}</td></tr> }
        };
        phases.into_iter().map(row).collect_view()
    };
    let level = move |_| {
        let mut plan = desk.plan.get_untracked();
        level(&mut plan);
        desk.replace(plan);
    };
    view! {
        <div class="field wide">
            <table>
                <caption>"Batch schedule"</caption>
                <thead><tr><th scope="col">"Steps"</th><th scope="col">"Expected batch"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
            <Complaint path="training.batch_schedule"/>
            <button type="button" class="remedy" on:click=level>"Use one batch size for all steps"</button>
        </div>
    }
}

/// The same number of steps at the largest batch.
fn level(plan: &mut PlanFile) {
    let phases = plan.training.phases();
    plan.training.steps = Some(plan.training.total_steps());
    plan.training.expected_batch_size = phases.iter().map(|phase| phase.expected_batch_size).max();
    plan.training.batch_schedule = None;
}
