//! The network, and the cost of training it.

use plan::{Cost, Device, Family, MACHINES, Objective, PlanFile, SIZES, Size};
use sycamore_reactive::create_selector;

use crate::numbers::{BYTES, COUNTS, TIMES, approximate};
use crate::page::dom::{El, el, table_head, table_row};
use crate::page::field::plan_field::{Choice, Number, PlanField, choice, number};
use crate::page::field::{choice_field, number_field, select};
use crate::page::state::PlannerState;
use crate::page::widgets::fieldset;

const FAMILY: Choice = Choice {
    field: PlanField {
        id: "family",
        label: "Architecture",
        hint: "Does not affect ε. Some architectures change the training objective too.",
        path: "model.family",
    },
    options: &Family::NAMES,
    read: |plan| plan.model.family.name(),
    write: set_family,
};

/// Sets the architecture. Settings that it does not have are removed, and an objective that it cannot learn is replaced.
fn set_family(plan: &mut PlanFile, name: &str) {
    let family = Family::named(name).unwrap_or(Family::Gpt2);
    let fitting = family.objectives();
    let model = &mut plan.model;
    model.family = family;
    model.config.clear();
    if !family.has_grouped_heads() {
        model.kv_heads = None;
    }
    if !family.has_grouped_heads() || !family.has_head_width() {
        model.d_head = None;
    }
    model.untied &= family.can_untie();
    if family == Family::FeedForward {
        // A model without attention has one head in the plan.
        (model.history, model.heads) = (model.history.or(Some(8)), 1);
    } else {
        (model.history, model.hidden) = (None, None);
    }
    if !fitting.contains(&plan.training.objective) {
        plan.training.objective = fitting[0];
    }
}

const OBJECTIVE: Choice = choice!(
    "objective", "Training objective",
    "Does not affect ε. Each architecture supports some of these."; training.objective;
    "causal_lm", "Next token" => (Objective::CausalLm);
    "span_corruption", "Corrupted spans (T5)" => (Objective::SpanCorruption);
    "prefix_lm", "Text after a prefix (T5)" => (Objective::PrefixLm);
    "masked_lm", "Masked tokens (BERT)" => (Objective::MaskedLm);
    "masked_lm_next_sentence", "Masked + next sentence" => (Objective::MaskedLmNextSentence);
    "sequence_classification", "Class of a text" => (Objective::SequenceClassification);
    "multi_label_classification", "Classes of a text" => (Objective::MultiLabelClassification);
    "token_classification", "Tags of words" => (Objective::TokenClassification);
    "text_to_text", "Text to text" => (Objective::TextToText);
    "chat", "Conversations" => (Objective::Chat);
);

const DEVICES: Choice = choice!(
    "device", "Device", "Never affects ε. Only the CPU sums exactly."; performance.device;
    "cpu", "CPU" => (Device::Cpu);
    "wgpu", "GPU (WebGPU)" => (Device::Wgpu);
    "cuda", "NVIDIA GPU (CUDA)" => (Device::Cuda);
);

/// Another device than the CPU cannot sum exactly, so the plan asks for fast sums with it.
const DEVICE: Choice = Choice {
    write: |plan, value| {
        (DEVICES.write)(plan, value);
        if plan.performance.device != Device::Cpu {
            plan.privacy.arithmetic = None;
        }
    },
    ..DEVICES
};

const NUMBERS: [Number; 6] = [
    number!("width", "Width", "A multiple of the number of heads."; model.d_model as u32, None),
    number!("blocks", "Layers", "Transformer blocks."; model.layers as u32, None),
    number!("heads", "Attention heads", "Per layer."; model.heads as u32, None),
    number!("inner", "Feed-forward width", "Inner width of the feed-forward part."; model.d_ff as u32, None),
    number!("context", "Context length", "Tokens that the model sees at once."; model.context as u32, None),
    number!(
        "physical", "Micro-batch size",
        "Affects speed and memory only.";
        performance.physical_batch as Option<u32>, None
    ),
];

pub(crate) fn model(state: PlannerState) -> El {
    let load = move |name: String| {
        if let Some(size) = SIZES.iter().find(|size| size.name == name) {
            let mut plan = state.plan.get_clone_untracked();
            size.apply(&mut plan);
            state.replace(plan);
        }
    };
    let selected =
        create_selector(move || state.plan.with(|plan| Size::of(plan).map_or("custom", |size| size.name)));
    let sizes = SIZES.iter().map(|size| (size.name, size.label)).chain([("custom", "Custom")]);
    let size = el("div")
        .class("field wide")
        .child(el("label").attr("for", "size").child("Size"))
        .child(select("size", sizes, move || selected.get(), load));
    let panel = fieldset("Model and hardware")
        .child(choice_field(state, FAMILY))
        .child(choice_field(state, OBJECTIVE))
        .child(size);
    let panel = NUMBERS.into_iter().fold(panel, |panel, of| panel.child(number_field(state, of)));
    panel.child(choice_field(state, DEVICE)).child(machines(state))
}

/// Number of machines of one kind that train together, in the table.
const TOGETHER: u64 = 8;

/// Size of the model, and estimated time and memory on some machines.
fn machines(state: PlannerState) -> El {
    let cost = create_selector(move || state.plan.with(PlanFile::cost));
    let rows = MACHINES.into_iter().map(|machine| {
        let time = move || approximate(cost.get().seconds_on(&machine), &TIMES);
        let fits = move || {
            let fits = if cost.get().fits(&machine) { "enough" } else { "too small" };
            format!("{}, {fits}", approximate(machine.memory, &BYTES))
        };
        let together = move || {
            let cost = cost.get();
            let eight = cost.on_ranks(TOGETHER, &cost.speed_of(&machine));
            approximate(eight.step_seconds * cost.steps as f64, &TIMES)
        };
        let cells =
            [el("span").dynamic_text(time), el("span").dynamic_text(together), el("span").dynamic_text(fits)];
        table_row(machine.name, cells.map(Into::into))
    });
    let summary = move || {
        let Cost { parameters, tokens, flops, bytes, .. } = cost.get();
        let uncounted = match state.plan.with(|plan| plan.tokenizer.file().is_some()) {
            true => {
                " The tokens of the public tokenizer are in its file and not counted here: a dry run of the trainer counts them."
            }
            false => "",
        };
        format!(
            "{} parameters, {} training tokens, {flops:.1e} operations, at least {} of memory.{uncounted}",
            approximate(parameters as f64, &COUNTS),
            approximate(tokens as f64, &COUNTS),
            approximate(bytes as f64, &BYTES)
        )
    };
    let table = el("table")
        .class("machines")
        .child(el("caption").child("Estimated training time"))
        .child(table_head(&["Machine", "Time", "Time on 8 (MPI)", "Memory"]))
        .child(rows.fold(el("tbody"), El::child));
    let assumed = MACHINES.map(|machine| {
        let (peak, share) = (machine.peak_flops / 1e12, machine.utilization * 100.0);
        format!("{} {peak} × {share} %", machine.name)
    });
    let formulas = el("p").class("hint").child(format!(
        "Tokens = steps × batch size × context length. Operations = tokens × (4·P + 4·T + 12·layers·width·context), with P \
         parameters, of which T are trained: 2·P forward, 2·P + 2·T backward, at most 2·T for gradient norms, the rest for attention. Time = operations / \
         (peak rate × utilization). Memory = weights, gradient sum and two moments in 32 bits, and one micro-batch. Assumed \
         peak rates in 10¹² operations per second, times utilization: {}. On P machines, each computes ⌈M/P⌉ of a drawn batch's M micro-batches, keeps 1/P of the moments, and sends \
         12·T·(P − 1)/P bytes a step, at {} Gbit/s (beyond 134 million trained parameters, it also keeps 1/P of the gradient sum, which is sent after each micro-batch); some 20 messages a step wait for the network's latency. Expect errors up to a factor of two. ε does not \
         depend on these estimates.",
        assumed.join("; "),
        MACHINES.map(|machine| (machine.network * 8e-9).to_string()).join(", ")
    ));
    let formulas =
        el("details").class("more").child(el("summary").child("How this is estimated")).child(formulas);
    el("div").class("field wide").child(el("p").id("cost").dynamic_text(summary)).child(table).child(formulas)
}
