//! Anil et al. 2021, "Large-Scale Differentially Private BERT": masked words against ε, batch size, growing batches and weight decay,
//! with gradients beside their noise. Paragraphs of novels, each divided between two sentences, stand for Wikipedia and BooksCorpus.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, on_text};

/// Rows that others are compared with, with their published figures.
const SMALL: (&str, f64) = ("batches of 32", 38.5);
const LARGE: (&str, f64) = ("batches of 512", 60.5);

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let plan = plan(sizes);
    let row = |name: &str, setting: &str, published, training: Value| {
        let plan = changed(&plan, json!({ "name": name, "training": training }));
        Experiment { norms: true, ..Experiment::new("Anil 2021", setting, published, vec![plan]) }
    };
    let batch = |size: u64| json!({ "expected_batch_size": size, "steps": 60 });
    let at = |row: Experiment, epsilon: f64| with_privacy(row, json!({ "epsilon": epsilon }));
    let growing: Value = [(6, 128), (6, 224), (6, 320), (6, 416), (36, 512)]
        .map(|(steps, size)| json!({ "steps": steps, "expected_batch_size": size }))
        .into();
    let growing = json!({ "batch_schedule": growing });
    // A step of LAMB has the length of the weights, so its rate is larger.
    let lamb = json!({
        "expected_batch_size": 512, "steps": 60,
        "optimizer": { "adamw": null, "lamb": { "beta1": 0.75, "beta2": 0.9, "weight_decay": 1.0 } }, "learning_rate": { "peak": 1e-2 }
    });
    let by_root =
        row("batch-root", "the same, noise growing with √batch (Hoory 2021, §3.3)", "–", growing.clone());
    let by_root = with_privacy(by_root, json!({ "scale_noise_by_sqrt_batch": true }));
    vec![
        row("batch-32", SMALL.0, "38.5 % at 32 k", batch(32)),
        row("batch-128", "batches of 128", "figure 3; preset anil-2021-dp-bert", batch(128)),
        row("batch-512", LARGE.0, "60.5 % at 2 M; preset anil-2021-dp-bert-2m", batch(512))
            .published(LARGE.1, SMALL),
        at(row("epsilon-1", "batches of 128, ε = 1.08", "33.2 % at 65 k", batch(128)), 1.08),
        at(row("epsilon-11", "batches of 128, ε = 10.6", "42.85 % at 65 k", batch(128)), 10.6)
            .published(42.85, ("batches of 128, ε = 1.08", 33.2)),
        row(
            "batch-growing",
            "batches growing from 128 to 512",
            "as 1 M, 14 % fewer examples; preset anil-2021-dp-bert-schedule",
            growing,
        ),
        by_root,
        row(
            "batch-light",
            "batches of 512, weight decay 0.01",
            "large weight decay is needed",
            changed(&batch(512), json!({ "optimizer": adamw(0.01) })),
        ),
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
            "model": { "family": "bert", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 64 },
            "training": {
                "objective": "masked_lm_next_sentence", "sentence_split": "sentence_end", "l2_clip_norm": 0.1, "optimizer": adamw(1.0),
                "learning_rate": { "peak": 2e-2, "warmup_steps": 15, "decay": "quadratic" }
            },
            "evaluation": { "source": { "path": "novels-test.jsonl" }, "every": 5, "records": 100 }
        }),
    )
}

/// The row with other fields of privacy.
fn with_privacy(row: Experiment, privacy: Value) -> Experiment {
    let plans = row.plans.iter().map(|plan| changed(plan, json!({ "privacy": privacy })));
    Experiment { plans: plans.collect(), ..row }
}

fn adamw(weight_decay: f64) -> Value {
    json!({ "adamw": { "beta1": 0.75, "beta2": 0.9, "epsilon": 1e-11, "weight_decay": weight_decay } })
}
