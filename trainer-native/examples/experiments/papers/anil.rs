//! Anil et al. 2021, "Large-Scale Differentially Private BERT": masked words against batch size, growing batches and weight decay.
//! Brown stands for Wikipedia and BooksCorpus.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, on_text};

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let optimizer = |weight_decay: f64| json!({ "adamw": { "beta1": 0.75, "beta2": 0.9, "epsilon": 1e-11, "weight_decay": weight_decay } });
    let plan = on_text(
        "brown.txt",
        sizes.brown,
        json!({
            "privacy": { "delta": 1e-6, "epsilon": 5.36 },
            "tokenizer": { "train": { "model": "wordpiece", "vocab_size": 2000, "release": "pooled" } },
            "model": { "family": "bert", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 40 },
            "training": {
                "objective": "masked_lm", "l2_clip_norm": 0.1, "optimizer": optimizer(1.0),
                "learning_rate": { "peak": 2e-3, "warmup_steps": 40, "decay": "quadratic" }
            },
            "evaluation": { "source": { "path": "brown-test.txt" } }
        }),
    );
    let row = |name: &str, setting: &str, published, training: Value| {
        let plan = changed(&plan, json!({ "name": name, "training": training }));
        Experiment { weight_norm: true, ..Experiment::new("Anil 2021", setting, published, vec![plan]) }
    };
    let batch = |size: u64| json!({ "expected_batch_size": size, "steps": 400 });
    let growing: Vec<Value> = [(40, 128), (40, 224), (40, 320), (40, 416), (240, 512)]
        .map(|(steps, size)| json!({ "steps": steps, "expected_batch_size": size }))
        .into();
    vec![
        row("batch-32", "masked words, batches of 32", "38.5 % at 32 k", batch(32)),
        row("batch-128", "masked words, batches of 128", "figure 3", batch(128)),
        row("batch-512", "masked words, batches of 512", "60.5 % at 2 M", batch(512)),
        row(
            "batch-growing",
            "batches growing from 128 to 512",
            "as 1 M, 14 % fewer examples",
            json!({ "batch_schedule": growing }),
        ),
        row(
            "batch-light",
            "batches of 512, weight decay 0.01",
            "large weight decay is needed",
            changed(&batch(512), json!({ "optimizer": optimizer(0.01) })),
        ),
    ]
}
