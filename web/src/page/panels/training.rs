//! Batches, steps, clipping, and the optimizer.

use plan::{
    Adafactor, AdamW, Adaptive, Automatic, BatchPhase, Clipping, Decay, Lamb, Optimizer, PlanFile, Sgd,
};
use sycamore_reactive::create_selector;

use crate::log_scale::LogScale;
use crate::numbers::rounded_up;
use crate::page::dom::{El, button, el, table_head, table_row};
use crate::page::field::plan_field::{Choice, Number, PlanField, choice, number};
use crate::page::field::{Typed, choice_field, error_at, number_field};
use crate::page::state::PlannerState;
use crate::page::widgets::fieldset;
use crate::typed::NumberKind;

const BATCH: Number = number!(
    "batch", "Expected batch size, B",
    "Average number of units per step. The gradient sum is divided by B.";
    training.expected_batch_size as Option<u64>, Some(LogScale { min: 1.0, max: 1e6, integer: true })
);

const STEPS: Number = Number {
    write: |plan, value| {
        plan.training.steps = Some(value as u64);
        let warmup = &mut plan.training.learning_rate.warmup_steps;
        *warmup = (*warmup).min(value as u64);
    },
    ..number!(
        "steps", "Steps, T",
        "Every step uses privacy budget.";
        training.steps as Option<u64>, Some(LogScale { min: 1.0, max: 1e6, integer: true })
    )
};

const CLIP: Number = number!(
    "clip", "Clip norm, C",
    "Largest L2 norm of one unit’s gradient. Does not affect ε.";
    training.l2_clip_norm as f64, Some(LogScale { min: 1e-3, max: 100.0, integer: false })
);

const CLIPPING: Choice = choice!(
    "clipping", "Clipping method",
    "How each gradient is limited to C. Does not affect ε: every method has sensitivity C.";
    training.clipping;
    "flat", "Flat clipping" => (Clipping::Flat);
    "per_layer", "Per-layer clipping" => (Clipping::PerLayer);
    "automatic", "Automatic clipping" => (
        Clipping::Automatic(_), Clipping::Automatic(Automatic { stability: 0.01 })
    );
    "adaptive", "Adaptive clipping (quantile)" => (
        Clipping::Adaptive(_),
        Clipping::Adaptive(Adaptive { quantile: 0.5, learning_rate: 0.2, count_noise: 0.05 })
    );
);

const QUANTILE: Number = Number {
    field: PlanField {
        id: "quantile",
        label: "Target quantile",
        hint: "Share of gradients to leave unclipped. Their noisy count is paid for with more gradient noise, not with ε.",
        path: "training.clipping.adaptive.quantile",
    },
    integer: false,
    slider: None,
    read: |plan| match plan.training.clipping {
        Clipping::Adaptive(adaptive) => Some(adaptive.quantile),
        _ => None,
    },
    write: |plan, value| {
        if let Clipping::Adaptive(adaptive) = &mut plan.training.clipping {
            adaptive.quantile = value;
        }
    },
};

const OPTIMIZER: Choice = choice!(
    "optimizer", "Optimizer",
    "Does not affect ε: it sees only the noisy gradient."; training.optimizer;
    "adamw", "AdamW" => (
        Optimizer::Adamw(_), Optimizer::Adamw(AdamW { weight_decay: 0.01, ..AdamW::default() })
    );
    "sgd", "SGD" => (Optimizer::Sgd(_), Optimizer::Sgd(Sgd { momentum: 0.9 }));
    "adafactor", "Adafactor" => (Optimizer::Adafactor(_), Optimizer::Adafactor(Adafactor::default()));
    "lamb", "LAMB" => (Optimizer::Lamb(_), Optimizer::Lamb(Lamb::default()));
);

const PEAK: Number = number!(
    "rate", "Peak learning rate",
    "Reached at the end of warm-up.";
    training.learning_rate.peak as f64, Some(LogScale { min: 1e-6, max: 10.0, integer: false })
);

const WARMUP: Number = number!(
    "warmup", "Warm-up steps",
    "The rate grows linearly to its peak.";
    training.learning_rate.warmup_steps as u64, None
);

const DECAY: Choice = choice!(
    "decay", "Learning rate decay",
    "How the rate falls after warm-up."; training.learning_rate.decay;
    "constant", "Constant" => (Decay::Constant);
    "cosine", "Cosine" => (Decay::Cosine);
    "linear", "Linear" => (Decay::Linear);
    "quadratic", "Quadratic" => (Decay::Quadratic);
    "rsqrt", "Inverse square root" => (Decay::Rsqrt);
);

pub(crate) fn training(state: PlannerState) -> El {
    let scheduled = move || state.plan.with(|plan| plan.training.batch_schedule.is_some());
    let adaptive = move || state.plan.with(|plan| matches!(plan.training.clipping, Clipping::Adaptive(_)));
    let single = move || {
        let phases = button("Use a batch schedule", move |_| start_schedule(state));
        vec![number_field(state, BATCH), number_field(state, STEPS), phases.id("phases").class("quick-fix")]
    };
    fieldset("Training")
        .show_when(scheduled, move || schedule(state))
        .show_when(move || !scheduled(), single)
        .child(number_field(state, CLIP))
        .dynamic(move || clipped(state))
        .child(choice_field(state, CLIPPING))
        .show_when(adaptive, move || number_field(state, QUANTILE))
        .child(choice_field(state, OPTIMIZER))
        .child(number_field(state, PEAK))
        .child(number_field(state, WARMUP))
        .child(choice_field(state, DECAY))
}

/// Explains the effect of the clip norm on gradients and noise.
fn clipped(state: PlannerState) -> Option<El> {
    let noise = state.certified.with(|it| it.as_ref()?.1.phases.first().map(|phase| phase.gradient_noise))?;
    let plan = state.plan.get_clone();
    let text = format!(
        "Longer gradients are scaled to C. Each coordinate of the average gradient gets noise of σ·C/B = {}. {}",
        rounded_up(noise, 3),
        match plan.training.optimizer {
            Optimizer::Sgd(_) => "With SGD, a step is proportional to C: change the learning rate with it.",
            _ =>
                "This optimizer divides by the size of the gradient: once most gradients are clipped, C hardly matters.",
        }
    );
    Some(el("p").class("hint").id("clipped").child(text))
}

/// Builds the phases of a batch schedule: steps, and the batch size during them.
fn schedule(state: PlannerState) -> El {
    let count = create_selector(move || state.plan.with(|plan| plan.training.phases().len()));
    let rows =
        move || (0..count.get()).map(|index| phase_row(state, index, count.get() == 1)).collect::<Vec<_>>();
    let add = move |_| edit_phases(state, |phases| phases.extend(phases.last().copied()));
    let flatten = move |_| {
        let mut plan = state.plan.get_clone_untracked();
        use_one_batch_size(&mut plan);
        state.replace(plan);
    };
    let table = el("table")
        .class("phases")
        .child(el("caption").child("Batch schedule"))
        .child(table_head(&["Phase", "Steps", "Expected batch size", ""]))
        .child(el("tbody").dynamic(rows));
    let buttons = el("div").class("files").child(button("Add a phase", add).id("add-phase"));
    let flatten = button("Use one batch size for all steps", flatten).id("one-batch-size").class("quick-fix");
    el("div")
        .class("field wide")
        .child(table)
        .dynamic(move || error_at(state, "training.batch_schedule"))
        .child(buttons.child(flatten))
}

fn phase_row(state: PlannerState, index: usize, only: bool) -> El {
    let number = index + 1;
    let input = move |what: &str, id: &str, read: fn(&BatchPhase) -> u64, set: fn(&mut BatchPhase, u64)| {
        let value = move || {
            state
                .plan
                .with(|plan| plan.training.phases().get(index).map(read))
                .unwrap_or_default()
                .to_string()
        };
        let write = move |plan: &mut PlanFile, number: f64| {
            change_phases(plan, |phases| {
                if let Some(phase) = phases.get_mut(index) {
                    set(phase, number as u64);
                }
            });
        };
        let id = format!("phase-{number}-{id}");
        Typed::new(state, &id, "training.batch_schedule", NumberKind::Integer)
            .input(value, write)
            .attr("inputmode", "numeric")
            .attr("aria-label", &format!("{what} of phase {number}"))
            .dynamic_attr("aria-invalid", move || state.unread(&id).map(|_| "true".to_owned()))
    };
    let remove = move |_| {
        edit_phases(state, |phases| {
            phases.remove(index);
        })
    };
    let remove = button("Remove", remove).attr("aria-label", &format!("Remove phase {number}"));
    let cells = [
        input("Steps", "steps", |phase| phase.steps, |phase, n| phase.steps = n),
        input(
            "Expected batch size",
            "batch",
            |phase| phase.expected_batch_size,
            |phase, n| phase.expected_batch_size = n,
        ),
        remove.dynamic_flag("disabled", move || only),
    ];
    table_row(number.to_string(), cells.map(Into::into))
}

/// Changes the phases as one undo step.
fn edit_phases(state: PlannerState, change: impl FnOnce(&mut Vec<BatchPhase>)) {
    let mut plan = state.plan.get_clone_untracked();
    change_phases(&mut plan, change);
    state.replace(plan);
}

fn change_phases(plan: &mut PlanFile, change: impl FnOnce(&mut Vec<BatchPhase>)) {
    let mut phases = plan.training.phases();
    change(&mut phases);
    let training = &mut plan.training;
    (training.steps, training.expected_batch_size) = (None, None);
    training.batch_schedule = Some(phases);
    let warmup = plan.training.learning_rate.warmup_steps;
    plan.training.learning_rate.warmup_steps = warmup.min(plan.training.total_steps());
}

/// Splits the run into two phases. The second one has twice the batch size, or N.
fn start_schedule(state: PlannerState) {
    let max = state.plan.with_untracked(|plan| plan.data.units);
    edit_phases(state, |phases| {
        if let [only] = phases.as_mut_slice() {
            let later = BatchPhase {
                steps: (only.steps / 2).max(1),
                expected_batch_size: only.expected_batch_size.saturating_mul(2).min(max),
            };
            only.steps = only.steps.saturating_sub(later.steps).max(1);
            phases.push(later);
        }
    });
}

/// Replaces the schedule by the same number of steps with its largest batch size.
fn use_one_batch_size(plan: &mut PlanFile) {
    let phases = plan.training.phases();
    plan.training.steps = Some(plan.training.total_steps());
    plan.training.expected_batch_size = phases.iter().map(|phase| phase.expected_batch_size).max();
    plan.training.batch_schedule = None;
}
