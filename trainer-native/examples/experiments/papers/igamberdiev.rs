//! Igamberdiev et al. 2024, "DP-NMT": translation against ε, Poisson sampling against shuffled passes, from a model of public text as
//! mT5 is. Captions stand for news and conversations; the public ones are others than the private ones.

use plan::{Plan, PlanFile};
use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, from_checkpoint, on_text, public};

/// Rows that others are compared with.
const START: &str = "en→de, public captions alone";
const ALL: &str = "en→de, all captions without privacy";

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let start = start(sizes);
    let plan = from_checkpoint(&private(sizes), &start);
    let row = |name: &str, setting: &str, published, plan: &Value| {
        let plan = changed(plan, json!({ "name": name }));
        Experiment::new("Igamberdiev 2024", setting, published, vec![start.clone(), plan])
    };
    let at = |epsilon: f64| changed(&plan, json!({ "privacy": { "epsilon": epsilon } }));
    let shuffled = |plan: &Value| {
        changed(plan, json!({ "privacy": { "sampling": "shuffle", "relation": "replace_one" } }))
    };
    // Without noise, small batches learn more from as many examples.
    let without = changed(&public(&plan), json!({ "training": { "expected_batch_size": 50, "steps": 800 } }));
    let part = changed(&at(5.0), json!({ "model": { "trainable": "cross_attention" } }));
    let stop = json!({ "evaluation": { "every": 5, "patience": 2, "smallest_change": 0.02, "keep_best": true, "beams": 4 } });
    let [weak, moderate, strong] = [1000.0, 5.0, 1.0].map(|epsilon| format!("en→de, ε = {epsilon}, Poisson"));
    vec![
        Experiment::new("Igamberdiev 2024", START, "–", vec![start.clone()]),
        row("nmt-public", ALL, "BLEU 36.19 (WMT-16)", &without),
        row("nmt-1000", &weak, "15.12", &at(1000.0)).published(15.12, (ALL, 36.19)),
        row("nmt-5", &moderate, "7.23; preset igamberdiev-2024-dp-nmt", &at(5.0))
            .published(7.23, (weak.clone(), 15.12)),
        row("nmt-1", &strong, "2.35", &at(1.0)).published(2.35, (moderate.clone(), 7.23)),
        row(
            "nmt-5-claimed",
            "en→de, shuffled with the noise of ε = 5 for Poisson",
            "19.24",
            &shuffled(&at_noise_of(&at(5.0))),
        )
        .published(19.24, (moderate.clone(), 7.23)),
        row("nmt-1000-shuffle", "en→de, shuffled, ε = 1000 of its own", "–", &shuffled(&at(1000.0))),
        row("nmt-5-shuffle", "en→de, shuffled, ε = 5 of its own", "–", &shuffled(&at(5.0))),
        row("nmt-5-cross", "en→de, ε = 5, Poisson, all but cross-attention frozen", "–", &part),
        row("nmt-5-stop", "en→de, ε = 5, Poisson, early stop, four beams", "–", &changed(&at(5.0), stop)),
    ]
}

/// Learning from public captions.
fn start(sizes: &Sizes) -> Value {
    let steps = json!({
        "name": "phrases", "data": { "source": { "path": "phrases.jsonl" }, "units": sizes.phrases },
        "training": { "expected_batch_size": 50, "steps": 1000 }
    });
    changed(&public(&private(sizes)), steps)
}

fn private(sizes: &Sizes) -> Value {
    // Invented captions are few.
    let batch = 300.min(sizes.captions);
    on_text(
        "captions.jsonl",
        sizes.captions,
        json!({
            "data": { "text_field": "en", "target_field": "de" },
            "privacy": { "delta": 1e-8 },
            "tokenizer": { "train": { "model": "unigram", "vocab_size": 1000, "release": "pooled" } },
            "model": {
                "family": "t5_v1_1", "d_model": 64, "layers": 2, "heads": 4, "d_ff": 128, "context": 40, "decoder_context": 40
            },
            "training": {
                "objective": "text_to_text", "expected_batch_size": batch, "steps": 30, "l2_clip_norm": 0.5,
                "optimizer": { "adamw": { "beta1": 0.9, "beta2": 0.98 } },
                "learning_rate": { "peak": 3e-3, "warmup_steps": 5, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "captions-test.jsonl" } }
        }),
    )
}

/// A plan whose noise is stated, as its ε takes it, in place of its ε.
fn at_noise_of(plan: &Value) -> Value {
    let file = PlanFile::parse(&changed(plan, json!({ "name": "noise" })).to_string());
    let certified = file.and_then(Plan::try_from).and_then(|plan| plan.certify());
    let noise = certified.ok().and_then(|plan| Some(plan.phases().first()?.noise_multiplier()));
    changed(plan, json!({ "privacy": { "epsilon": null, "noise_multipliers": { "training": noise } } }))
}
