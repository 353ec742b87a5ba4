//! Anil et al. 2021, "Large-Scale Differentially Private BERT": masked words against ε, batch size, growing batches and weight decay,
//! with gradients beside their noise. Paragraphs of novels, each divided between two sentences, stand for Wikipedia and BooksCorpus.
//! Where the paper takes 20,000 steps of millions of pairs, all rows begin from a BERT of public text.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, Further, changed, from_checkpoint, on_text, public};

/// Rows that others are compared with, with their published figures.
const SMALL: (&str, f64) = ("batches of 32", 38.5);
const LARGE: (&str, f64) = ("batches of 512", 60.5);
const STRICT: (&str, f64) = ("batches of 128, ε = 1.08", 33.2);
/// Steps of each run.
const STEPS: u64 = 20;

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let start = start(sizes);
    let plan = from_checkpoint(&plan(sizes), &start);
    let row = |name: &str, setting: &str, published, changes: Value| {
        let plan = changed(&changed(&plan, changes), json!({ "name": name }));
        let plans = vec![start.clone(), plan];
        Experiment { further: Further::Norms, ..Experiment::new("Anil 2021", setting, published, plans) }
    };
    let batch = |size: u64| json!({ "training": { "expected_batch_size": size, "steps": STEPS } });
    let at = |epsilon: f64| changed(&batch(128), json!({ "privacy": { "epsilon": epsilon } }));
    let growing: Value = [(2, 128), (2, 224), (2, 320), (2, 416), (12, 512)]
        .map(|(steps, size)| json!({ "steps": steps, "expected_batch_size": size }))
        .into();
    let growing = json!({ "training": { "batch_schedule": growing } });
    let by_root = changed(&growing, json!({ "privacy": { "scale_noise_by_sqrt_batch": true } }));
    let light = changed(&batch(512), json!({ "training": { "optimizer": adamw(0.01) } }));
    // A `null` takes AdamW away from the plan, so these changes are one object.
    let lamb = json!({ "training": {
        "expected_batch_size": 512, "steps": STEPS,
        "optimizer": { "adamw": null, "lamb": { "beta1": 0.75, "beta2": 0.9, "weight_decay": 1.0 } }
    } });
    let without = public(&changed(&plan, changed(&batch(512), json!({ "name": "batch-512-public" }))));
    vec![
        Experiment::new("Anil 2021", "the public start alone", "–", vec![start.clone()]),
        Experiment::new(
            "Anil 2021",
            "batches of 512 without privacy",
            "70 % at 32 k",
            vec![start.clone(), without],
        ),
        row("batch-32", SMALL.0, "38.5 % at 32 k", batch(32)),
        row("batch-128", "batches of 128", "figure 3; preset anil-2021-dp-bert", batch(128)),
        row("batch-512", LARGE.0, "60.5 % at 2 M; preset anil-2021-dp-bert-2m", batch(512))
            .published(LARGE.1, SMALL),
        row("epsilon-1", STRICT.0, "33.2 % at 65 k", at(1.08)),
        row("epsilon-11", "batches of 128, ε = 10.6", "42.85 % at 65 k", at(10.6)).published(42.85, STRICT),
        row(
            "batch-growing",
            "batches growing from 128 to 512",
            "as 1 M, 14 % fewer examples; preset anil-2021-dp-bert-schedule",
            growing,
        ),
        row("batch-root", "the same, noise growing with √batch (Hoory 2021, §3.3)", "–", by_root),
        row("batch-light", "batches of 512, weight decay 0.01", "large weight decay is needed", light),
        row("batch-lamb", "batches of 512, LAMB", "left open", lamb),
    ]
}

/// Pretraining of a small BERT.
fn plan(sizes: &Sizes) -> Value {
    on_text(
        "novels.jsonl",
        sizes.novels,
        json!({
            "privacy": { "delta": 1e-6, "epsilon": 5.36 },
            "tokenizer": { "public": { "path": "articles.json", "made_from": "public_text" } },
            "model": model(),
            "training": {
                "objective": "masked_lm_next_sentence", "sentence_split": "sentence_end", "l2_clip_norm": 0.1, "optimizer": adamw(1.0),
                "learning_rate": { "peak": 1e-2, "warmup_steps": 5, "decay": "quadratic" }
            },
            "evaluation": { "source": { "path": "novels-test.jsonl" }, "every": 5, "records": 200 }
        }),
    )
}

/// Learning from Brown, with a vocabulary of articles.
pub fn start(sizes: &Sizes) -> Value {
    let public_text = json!({
        "name": "brown-bert", "data": { "source": { "path": "brown.txt" }, "units": sizes.brown },
        "training": {
            "expected_batch_size": 64, "steps": 700,
            "optimizer": { "adamw": { "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01 } },
            "learning_rate": { "peak": 4e-3, "warmup_steps": 50, "decay": "linear" }
        },
        "evaluation": { "every": 1000 }
    });
    changed(&public(&plan(sizes)), public_text)
}

/// A small BERT.
pub fn model() -> Value {
    json!({ "family": "bert", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 64 })
}

fn adamw(weight_decay: f64) -> Value {
    json!({ "adamw": { "beta1": 0.75, "beta2": 0.9, "epsilon": 1e-11, "weight_decay": weight_decay } })
}
