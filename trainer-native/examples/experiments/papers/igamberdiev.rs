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
    let mut rows = vec![
        Experiment::new("Igamberdiev 2024", START, "–", vec![start.clone()]),
        row("nmt-public", ALL, "BLEU 36.19 (WMT-16), 10.09 (BSD)", &without),
        row("nmt-1000", &weak, "15.12, 1.01", &at(1000.0)).published(15.12, (ALL, 36.19)),
        row("nmt-5", &moderate, "7.23, 0.06; preset igamberdiev-2024-dp-nmt", &at(5.0))
            .published(7.23, (weak.clone(), 15.12)),
        row("nmt-1", &strong, "2.35, 0.00", &at(1.0)).published(2.35, (moderate.clone(), 7.23)),
    ];
    // The paper's shuffled batches have the noise that is right for Poisson sampling.
    for (name, epsilon, published, figure, beside) in [
        ("nmt-1000-claimed", 1000.0, "20.86, 1.36", 20.86, (weak, 15.12)),
        ("nmt-5-claimed", 5.0, "19.24, 0.06", 19.24, (moderate, 7.23)),
        ("nmt-1-claimed", 1.0, "19.83, 0.00", 19.83, (strong, 2.35)),
    ] {
        let setting = format!("en→de, shuffled with the noise of ε = {epsilon} for Poisson");
        let plan = shuffled(&at_noise_of(&at(epsilon)));
        rows.push(row(name, &setting, published, &plan).published(figure, beside));
    }
    rows.extend([
        row("nmt-1000-shuffle", "en→de, shuffled, ε = 1000 of its own", "–", &shuffled(&at(1000.0))),
        row("nmt-5-shuffle", "en→de, shuffled, ε = 5 of its own", "–", &shuffled(&at(5.0))),
        row("nmt-5-cross", "en→de, ε = 5, Poisson, all but cross-attention frozen", "–", &part),
        row("nmt-5-stop", "en→de, ε = 5, Poisson, early stop, four beams", "–", &changed(&at(5.0), stop)),
    ]);
    let few = json!({
        "data": { "source": { "path": "captions-few.jsonl" }, "units": sizes.few_captions },
        "training": { "expected_batch_size": 256.min(sizes.few_captions), "steps": 15 }
    });
    let few = changed(&plan, few);
    let at = |epsilon: f64| changed(&few, json!({ "privacy": { "epsilon": epsilon } }));
    const FEW: &str = "1,065 captions without privacy";
    rows.push(row("few-public", FEW, "5.42 (ClinSPEn-CC)", &public(&few)));
    for (name, epsilon, published, figure, with_shuffling, shuffled_figure) in [
        ("few-1000", 1000.0, "0.70", 0.70, "0.03", 0.03),
        ("few-5", 5.0, "0.83", 0.83, "0.80", 0.80),
        ("few-1", 1.0, "0.54", 0.54, "0.50", 0.50),
    ] {
        let setting = format!("1,065 captions, ε = {epsilon}, Poisson");
        rows.push(row(name, &setting, published, &at(epsilon)).published(figure, (FEW, 5.42)));
        let plan = shuffled(&at_noise_of(&at(epsilon)));
        let other = format!("1,065 captions, shuffled with the noise of ε = {epsilon} for Poisson");
        rows.push(
            row(&format!("{name}-claimed"), &other, with_shuffling, &plan)
                .published(shuffled_figure, (setting, figure)),
        );
    }
    rows
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
