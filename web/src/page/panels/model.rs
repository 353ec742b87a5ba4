//! The network and the machine.

use leptos::prelude::*;
use plan::{Device, MACHINES, Model, PlanFile};

use crate::numbers::{BYTES, COUNTS, TIMES, roughly};
use crate::page::desk::Desk;
use crate::page::field::{Choice, ChoiceField, Number, NumberField};

/// Width, blocks, heads, inner width and window of a named size.
const SIZES: [(&str, &str, [u32; 5]); 4] = [
    ("tiny", "Tiny: 2 blocks of 128", [128, 2, 4, 512, 64]),
    ("small", "Small: 4 blocks of 256", [256, 4, 4, 1024, 128]),
    ("medium", "Medium: 8 blocks of 512", [512, 8, 8, 2048, 256]),
    ("gpt2", "GPT-2 small: 12 blocks of 768", [768, 12, 12, 3072, 1024]),
];

const DEVICE: Choice = Choice {
    id: "device",
    label: "Device",
    hint: "Speed only; it cannot change ε.",
    path: "performance.device",
    options: &[
        ("cpu", "Processor"),
        ("wgpu", "Graphics processor, WebGPU"),
        ("cuda", "NVIDIA graphics processor"),
    ],
    read: |plan| match plan.performance.device {
        Device::Cpu => "cpu",
        Device::Wgpu => "wgpu",
        Device::Cuda => "cuda",
    },
    write: |plan, name| {
        plan.performance.device = match name {
            "wgpu" => Device::Wgpu,
            "cuda" => Device::Cuda,
            _ => Device::Cpu,
        };
    },
};

/// A number of the network.
const fn number(
    id: &'static str,
    label: &'static str,
    hint: &'static str,
    path: &'static str,
    read: fn(&PlanFile) -> Option<f64>,
    write: fn(&mut PlanFile, f64),
) -> Number {
    Number { id, label, hint, path, whole: true, scale: None, read, write }
}

const NUMBERS: [Number; 6] = [
    number(
        "width",
        "Width",
        "A multiple of the heads.",
        "model.d_model",
        |p| Some(p.model.d_model.into()),
        |p, x| {
            p.model.d_model = x as u32;
        },
    ),
    number(
        "blocks",
        "Blocks",
        "Layers of attention.",
        "model.layers",
        |p| Some(p.model.layers.into()),
        |p, x| {
            p.model.layers = x as u32;
        },
    ),
    number(
        "heads",
        "Heads",
        "Attention heads a block.",
        "model.heads",
        |p| Some(p.model.heads.into()),
        |p, x| {
            p.model.heads = x as u32;
        },
    ),
    number(
        "inner",
        "Inner width",
        "Of the feed-forward part.",
        "model.d_ff",
        |p| Some(p.model.d_ff.into()),
        |p, x| {
            p.model.d_ff = x as u32;
        },
    ),
    number(
        "context",
        "Window",
        "Tokens the model sees.",
        "model.context",
        |p| Some(p.model.context.into()),
        |p, x| {
            p.model.context = x as u32;
        },
    ),
    number(
        "physical",
        "Windows at once",
        "Speed and memory only.",
        "performance.physical_batch",
        |p| p.performance.physical_batch.map(f64::from),
        |p, x| p.performance.physical_batch = Some(x as u32),
    ),
];

/// Model and machine.
#[component]
pub fn ModelPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let load = move |event| {
        let name = event_target_value(&event);
        if let Some((_, _, sizes)) = SIZES.iter().find(|(size, ..)| *size == name) {
            let mut plan = desk.plan.get_untracked();
            let [d_model, layers, heads, d_ff, context] = *sizes;
            plan.model = Model { d_model, layers, heads, d_ff, context, ..plan.model };
            desk.replace(plan);
        }
    };
    let named = move |sizes: [u32; 5]| {
        desk.plan.with(|plan| {
            let Model { d_model, layers, heads, d_ff, context, .. } = &plan.model;
            [*d_model, *layers, *heads, *d_ff, *context] == sizes
        })
    };
    let own = move || !SIZES.iter().any(|(_, _, sizes)| named(*sizes));
    let options = SIZES.iter().map(|(name, label, sizes)| {
        view! { <option value=*name prop:selected=move || named(*sizes)>{*label}</option> }
    });
    view! {
        <fieldset class="panel">
            <legend>"Model and machine"</legend>
            <div class="field wide">
                <label for="size">"Size"</label>
                <select id="size" on:change=load>
                    {options.collect_view()}
                    <option value="own" prop:selected=own>"Another"</option>
                </select>
            </div>
            {NUMBERS.into_iter().map(|of| view! { <NumberField of/> }).collect_view()}
            <ChoiceField of=DEVICE/>
            <Machines/>
        </fieldset>
    }
}

/// What the plan takes, and how long that is on some machines.
#[component]
fn Machines() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let cost = Memo::new(move |_| desk.plan.with(PlanFile::cost));
    let rows = MACHINES.map(|machine| {
        let fits = move || if cost.get().fits(&machine) { "fits" } else { "too small" };
        view! {
            <tr>
                <th scope="row">{machine.name}</th>
                <td>{move || roughly(cost.get().seconds_on(&machine), &TIMES)}</td>
                <td>{roughly(machine.memory, &BYTES)}", "{fits}</td>
            </tr>
        }
    });
    view! {
        <div class="field wide">
            <p id="cost">
                {move || roughly(cost.get().parameters as f64, &COUNTS)}" parameters, "
                {move || roughly(cost.get().tokens as f64, &COUNTS)}" tokens, "
                {move || format!("{:.1e}", cost.get().flops)}" operations, at least "
                {move || roughly(cost.get().bytes as f64, &BYTES)}" of memory."
            </p>
            <table class="machines">
                <caption>"About how long, with a machine to itself"</caption>
                <thead><tr><th scope="col">"Machine"</th><th scope="col">"Time"</th><th scope="col">"Memory"</th></tr></thead>
                <tbody>{rows.into_iter().collect_view()}</tbody>
            </table>
            <details class="words">
                <summary>"By which formulas"</summary>
                <p class="hint">
                    "Operations: tokens × (8·P + 12·layers·width·window): 2·P forward, 4·P backward, at most 2·P for the norm \
                     of each gradient, the rest for attention. Tokens: steps × batch × window. Time: operations over the data \
                     sheet’s 32-bit rate times the part of it that training reaches (processor 25 %, RTX 4090 35 %, A100 50 %, \
                     H100 40 %). Memory: weights, gradient sum and two moments in 32 bits, and one physical batch. To a factor \
                     of two; never part of the promise."
                </p>
            </details>
        </div>
    }
}
