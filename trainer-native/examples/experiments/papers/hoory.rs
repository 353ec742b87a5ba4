//! Hoory et al. 2021, "Learning and Evaluating a Differentially Private Pre-trained Language Model": entities after private
//! pretraining, against noise, epochs and batch size. Abstracts of BC5CDR stand for clinical notes; the sentences that the model is
//! pretrained on have no part in fine-tuning. Each row of pretrained weights has one of random weights and the same vocabulary.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, from_checkpoint, on_text, public};

const PAPER: &str = "Hoory 2021";
/// Rows that others are compared with, with their published figures.
const RANDOM: (&str, f64) = ("random weights, vocabulary of the notes without privacy", 76.3);
const PRIVATE_WORDS: (&str, f64) = ("random weights, vocabulary of the notes at σ = 1", 76.3);
const LITTLE_NOISE: (&str, f64) = ("pretrained with σ = 1, batches of 128, 60 steps", 84.5);
const MUCH_NOISE: (&str, f64) = ("the same with σ = 2.72", 83.7);

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let (pretraining, tuning) = (pretraining(sizes), tuning(sizes));
    let first = |name: &str, plan: &Value| changed(plan, json!({ "name": format!("notes-{name}") }));
    let row = |name: &str, setting: &str, published, plan: &Value| {
        let first = first(name, plan);
        let tuned = from_checkpoint(&tuning, &first);
        let tuned = changed(&tuned, json!({ "name": format!("entities-{name}") }));
        Experiment::new(PAPER, setting, published, vec![first, tuned])
    };
    // The vocabulary of a pretraining run, and none of its weights.
    let random = |name: &str, setting: &str, plan: &Value| {
        let first = first(name, plan);
        let model = json!({ "name": format!("entities-{name}-random"), "model": { "initial": null, "checkpoint_made_from": null } });
        let tuned = changed(&from_checkpoint(&tuning, &first), model);
        Experiment::new(PAPER, setting, "F1 76.3 (i2b2-2010)", vec![first, tuned])
    };
    let private = |noise: f64, batch: u64, steps: u64| {
        let training = json!({ "expected_batch_size": batch, "steps": steps });
        changed(
            &pretraining,
            json!({ "privacy": { "noise_multipliers": { "training": noise } }, "training": training }),
        )
    };
    let open =
        changed(&public(&pretraining), json!({ "training": { "expected_batch_size": 64, "steps": 400 } }));
    let long = changed(&open, json!({ "training": { "steps": 2400 } }));
    let little = private(1.0, 128, 60);
    let warm = json!({ "tokenizer": { "train": { "words": "pairs" } }, "training": { "warm_start": { "steps": 300 } } });
    vec![
        random("public", RANDOM.0, &open),
        row("public", "pretrained without privacy", "86.8", &open).published(86.8, RANDOM),
        row("public-long", "pretrained without privacy, six times as long", "–", &long)
            .published(86.8, RANDOM),
        random("noise-1", PRIVATE_WORDS.0, &little),
        row("noise-1", LITTLE_NOISE.0, "84.5", &little).published(84.5, PRIVATE_WORDS),
        row("noise-3", MUCH_NOISE.0, "83.7; preset hoory-2021-dp-wordpiece", &private(2.72, 128, 60))
            .published(83.7, LITTLE_NOISE),
        // Figure 1 has no numbers; F1 and ε rise.
        row("epochs", "σ = 2.72, 120 steps", "higher than 60 steps", &private(2.72, 128, 120))
            .published(83.8, MUCH_NOISE),
        row("batches", "σ = 2.72, batches of 384", "higher than of 128", &private(2.72, 384, 60))
            .published(83.8, MUCH_NOISE),
        row("warm", "σ = 1, after 300 steps on pairs of released words", "–", &changed(&little, warm)),
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
                "objective": "masked_lm", "expected_batch_size": 128, "steps": 60, "l2_clip_norm": 0.1,
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
                "objective": "token_classification", "expected_batch_size": 32, "steps": 300, "l2_clip_norm": 1.0,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 20, "decay": "linear" },
                "labels": ["O", "B-Chemical", "I-Chemical", "B-Disease", "I-Disease"]
            },
            "evaluation": { "source": { "path": "entities-test.iob" } }
        }),
    ))
}
