//! Igamberdiev et al. 2024, "DP-NMT": translation against ε, Poisson sampling against shuffled passes. Captions stand for news and
//! conversations.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, on_text, public};

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let plan = on_text(
        "captions.jsonl",
        sizes.captions,
        json!({
            "data": { "text_field": "en", "target_field": "de" },
            "privacy": { "delta": 1e-8, "epsilon": 5.0 },
            "tokenizer": { "train": { "model": "unigram", "vocab_size": 1000, "release": "pooled" } },
            "model": {
                "family": "t5_v1_1", "d_model": 64, "layers": 2, "heads": 4, "d_ff": 128, "context": 40, "decoder_context": 40
            },
            "training": {
                "objective": "text_to_text", "expected_batch_size": 500, "steps": 200, "l2_clip_norm": 0.5,
                "optimizer": { "adamw": { "beta1": 0.9, "beta2": 0.98 } },
                "learning_rate": { "peak": 5e-3, "warmup_steps": 10, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "captions-test.jsonl" } }
        }),
    );
    let row = |name: &str, setting: &str, published, plan: &Value| {
        let plan = changed(plan, json!({ "name": name }));
        Experiment::new("Igamberdiev 2024", setting, published, vec![plan])
    };
    let at = |epsilon: f64| changed(&plan, json!({ "privacy": { "epsilon": epsilon } }));
    let shuffled = json!({ "privacy": { "sampling": "shuffle", "relation": "replace_one" } });
    // Without noise, small batches learn more from as many examples.
    let smaller = json!({ "training": { "expected_batch_size": 50, "steps": 2000 } });
    vec![
        row("nmt-public", "en→de, without privacy", "BLEU 36.19 (WMT-16)", &changed(&public(&plan), smaller)),
        row("nmt-1000", "en→de, ε = 1000, Poisson", "BLEU 15.12", &at(1000.0)),
        row("nmt-5", "en→de, ε = 5, Poisson", "BLEU 7.23", &at(5.0)),
        row("nmt-1", "en→de, ε = 1, Poisson", "BLEU 2.35", &at(1.0)),
        row(
            "nmt-5-shuffle",
            "en→de, ε = 5, shuffled passes with their own ε",
            "BLEU 19.24, charged as Poisson",
            &changed(&at(5.0), shuffled),
        ),
    ]
}
