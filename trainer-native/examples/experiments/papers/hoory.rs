//! Hoory et al. 2021, "Learning and Evaluating a Differentially Private Pre-trained Language Model": entities after private
//! pretraining, against noise, epochs and batch size. Abstracts of BC5CDR stand for clinical notes; the sentences that the model is
//! pretrained on have no part in fine-tuning.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, from_checkpoint, on_text, public};

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let (pretraining, tuning) = (pretraining(sizes), tuning(sizes));
    let paper = "Hoory 2021";
    let row = |name: &str, setting: &str, published, plan: &Value| {
        let first = changed(plan, json!({ "name": format!("notes-{name}") }));
        let tuned = from_checkpoint(&tuning, &first);
        let tuned = changed(&tuned, json!({ "name": format!("entities-{name}") }));
        Experiment::new(paper, setting, published, vec![first, tuned])
    };
    let private = |noise: f64, batch: u64, steps: u64| {
        let training = json!({ "expected_batch_size": batch, "steps": steps });
        changed(
            &pretraining,
            json!({ "privacy": { "noise_multipliers": { "training": noise } }, "training": training }),
        )
    };
    let none = changed(&tuning, json!({ "name": "entities-none" }));
    vec![
        Experiment::new(paper, "entities, no pretraining on notes", "F1 76.3 (i2b2-2010)", vec![none]),
        row("public", "pretrained without privacy", "86.8", &public(&pretraining)),
        row("noise-1", "pretrained with σ = 1, batches of 256, 60 steps", "84.5", &private(1.0, 256, 60)),
        row("noise-3", "the same with σ = 2.72", "83.7", &private(2.72, 256, 60)),
        row(
            "epochs",
            "the same with σ = 2.72, 180 steps",
            "F1 and ε rise with epochs",
            &private(2.72, 256, 180),
        ),
        row(
            "batches",
            "the same with σ = 2.72, batches of 768",
            "F1 and ε rise with batches",
            &private(2.72, 768, 60),
        ),
    ]
}

/// A small BERT.
fn model() -> Value {
    json!({ "family": "bert", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 48 })
}

/// Private pretraining on the notes.
fn pretraining(sizes: &Sizes) -> Value {
    on_text(
        "notes.txt",
        sizes.notes,
        json!({
            "privacy": { "delta": 1e-5, "noise_multipliers": { "tokenizer": 2.0, "training": 1.0 } },
            "tokenizer": { "train": { "model": "wordpiece", "vocab_size": 1500, "release": "pooled" } },
            "model": model(),
            "training": {
                "objective": "masked_lm", "expected_batch_size": 256, "steps": 60, "l2_clip_norm": 0.1,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 5, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "brown-test.txt" } }
        }),
    )
}

/// Entities, from weights that a row chooses.
fn tuning(sizes: &Sizes) -> Value {
    public(&on_text(
        "entities.iob",
        sizes.entities,
        json!({
            "privacy": { "delta": 1e-5 },
            "tokenizer": { "train": { "model": "wordpiece", "vocab_size": 1500, "release": "pooled" } },
            "model": model(),
            "training": {
                "objective": "token_classification", "expected_batch_size": 32, "steps": 600, "l2_clip_norm": 1.0,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 20, "decay": "linear" },
                "labels": ["O", "B-Chemical", "I-Chemical", "B-Disease", "I-Disease"]
            },
            "evaluation": { "source": { "path": "entities-test.iob" } }
        }),
    ))
}
