//! Synthetic text to share: comments of GoEmotions with their emotions are private, records drawn from a model of them train a
//! classifier, and real comments measure it. The model begins from public text.

use serde_json::{Value, json};

use super::corpus::{EMOTIONS, Sizes};
use super::experiment::{Experiment, Synthesis, changed, from_checkpoint, on_text, public};

/// Records that are drawn.
const RECORDS: u64 = 10_000;

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let speech = public(&on_text(
        "speech.txt",
        sizes.speech,
        json!({
            "name": "speech",
            "privacy": { "delta": 1e-6 },
            "tokenizer": { "train": { "model": "bpe", "vocab_size": 2000, "release": "pooled" } },
            "model": { "family": "gpt2", "d_model": 128, "layers": 2, "heads": 4, "d_ff": 512, "context": 32 },
            "training": {
                "objective": "causal_lm", "expected_batch_size": 64, "steps": 1000, "l2_clip_norm": 1.0,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 50, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "speech-test.txt" } }
        }),
    ));
    let comments = json!({
        "name": "comments",
        "data": {
            "source": { "path": "emotions.jsonl" }, "units": sizes.emotions, "visibility": "private",
            "text_field": "label", "target_field": "text", "label_histogram": { "labels": EMOTIONS }
        },
        "privacy": { "delta": 1e-5, "epsilon": 8.0 },
        "training": {
            "objective": "text_to_text", "expected_batch_size": 256, "steps": 70,
            "learning_rate": { "peak": 5e-3, "warmup_steps": 3, "decay": "linear" }
        },
        "evaluation": { "source": { "path": "emotions-test.jsonl" } }
    });
    let comments = from_checkpoint(&changed(&speech, comments), &speech);
    let classifier = |name: &str, path: &str, units: u64| -> Value {
        let plan = json!({
            "name": name,
            "data": { "source": { "path": path }, "units": units, "label_field": "label" },
            "training": {
                "objective": "sequence_classification", "labels": EMOTIONS, "expected_batch_size": 64, "steps": 400,
                "learning_rate": { "peak": 5e-4, "warmup_steps": 20, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "emotions-test.jsonl" } }
        });
        from_checkpoint(&changed(&speech, plan), &speech)
    };
    let real = classifier("emotions", "emotions.jsonl", sizes.emotions as u64);
    // A unit of the records is no person; the people behind them keep the ε of the run that wrote them.
    let written = json!({ "data": { "made_from": "disjoint_units" } });
    let drawn = changed(&classifier("emotions-synthetic", "synthetic.jsonl", RECORDS), written);
    let synthesis = Some(Synthesis { of: "comments", records: RECORDS, out: "synthetic.jsonl" });
    let row = |setting: &str, plans| Experiment::new("Synthetic text", setting, "–", plans);
    vec![
        row("emotions of comments, trained on real ones without privacy", vec![speech.clone(), real]),
        Experiment {
            synthesis,
            ..row("the same, trained on 10,000 synthetic records, ε = 8", vec![speech, comments, drawn])
        },
    ]
}
