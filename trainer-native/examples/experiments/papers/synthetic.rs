//! Synthetic text to share: comments of GoEmotions with their emotions are private, records drawn from a model of them train a
//! classifier, and real comments measure it. No public text is read: the model begins from words that were counted by emotion.

use serde_json::{Value, json};

use super::corpus::{EMOTIONS, Sizes};
use super::experiment::{Experiment, Synthesis, changed, on_text, public};

/// Records that are drawn.
const RECORDS: u64 = 120_000;

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let comments = on_text(
        "emotions.jsonl",
        sizes.emotions,
        json!({
            "name": "comments",
            "data": { "text_field": "label", "target_field": "text", "label_histogram": { "labels": EMOTIONS } },
            "privacy": { "delta": 1e-5, "epsilon": 8.0, "tokenizer_share": 0.7 },
            "tokenizer": { "train": { "model": "bpe", "vocab_size": 2000, "release": "pooled", "words": "pairs_by_label" } },
            "model": { "family": "gpt2", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 256, "context": 32 },
            "training": {
                "objective": "text_to_text", "expected_batch_size": 256, "steps": 20, "l2_clip_norm": 1.0,
                "warm_start": { "steps": 6000 },
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 1e-3, "warmup_steps": 3, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "emotions-test.jsonl" } }
        }),
    );
    let classifier = |name: &str, path: &str, units: u64| -> Value {
        let plan = json!({
            "name": name,
            "data": {
                "source": { "path": path }, "units": units, "label_field": "label",
                "text_field": null, "target_field": null, "label_histogram": null
            },
            "training": {
                "objective": "sequence_classification", "labels": EMOTIONS, "expected_batch_size": 64, "steps": 2400,
                "learning_rate": { "warmup_steps": 20 }
            }
        });
        public(&changed(&comments, plan))
    };
    let real = classifier("emotions", "emotions.jsonl", sizes.emotions as u64);
    // A unit of the records is no person; the people behind them keep the ε of the run that wrote them.
    let written = json!({ "data": { "made_from": "disjoint_units" } });
    let drawn = changed(&classifier("emotions-synthetic", "synthetic.jsonl", RECORDS), written);
    let synthesis = Some(Synthesis { of: "comments", records: RECORDS, out: "synthetic.jsonl" });
    let row = |setting: &str, plans| Experiment::new("Synthetic text", setting, "–", plans);
    vec![
        row("emotions of comments, trained on real ones without privacy", vec![real]),
        Experiment {
            synthesis,
            ..row("the same, trained on 120,000 synthetic records, ε = 8", vec![comments, drawn])
        },
    ]
}
