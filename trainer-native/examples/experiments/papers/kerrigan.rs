//! Kerrigan, Slack & Tuyls 2020, "Differentially Private Language Models Benefit from Public Pre-training": a public model of Brown
//! fine-tuned on Reddit. One row more has users as units.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, from_checkpoint, on_text, public};

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let reddit = on_text(
        "reddit.txt",
        sizes.reddit,
        json!({
            "privacy": { "delta": 1e-5, "epsilon": 8.0 },
            "tokenizer": { "public": { "path": "words.json", "made_from": "public_text" } },
            "model": {
                "family": "feed_forward", "d_model": 32, "layers": 2, "heads": 1, "d_ff": 100, "context": 32, "history": 10,
                "hidden": [100, 50]
            },
            "training": {
                "objective": "causal_lm", "expected_batch_size": 500, "steps": 150, "l2_clip_norm": 1.0,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 5e-3, "warmup_steps": 2, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "reddit-test.txt" } }
        }),
    );
    let learning = json!({ "expected_batch_size": 64, "steps": 1500 });
    let brown = json!({
        "name": "brown", "training": learning, "data": { "source": { "path": "brown.txt" }, "units": sizes.brown }
    });
    let brown = changed(&public(&reddit), brown);
    let named = |plan: &Value, name: &str| changed(plan, json!({ "name": name }));
    let tuned = |name: &str, plan: &Value| vec![brown.clone(), named(&from_checkpoint(plan, &brown), name)];
    let plain = changed(&public(&reddit), json!({ "training": learning }));
    let at = |epsilon: f64| changed(&reddit, json!({ "privacy": { "epsilon": epsilon } }));
    let users = json!({
        "data": { "source": { "path": "messages.jsonl" }, "user_field": "user", "units": sizes.users },
        "privacy": { "unit": "user", "delta": 1e-4 }, "training": { "expected_batch_size": 200 }
    });
    let row = |setting: &str, published, plans| Experiment::new("Kerrigan 2020", setting, published, plans);
    vec![
        row("Brown alone, measured on Reddit", "perplexity 1584.54", vec![brown.clone()]),
        row("Reddit alone, without privacy", "3787.68", vec![named(&plain, "reddit")]),
        row("Reddit alone, ε = 8", "infinite (figure 1)", vec![named(&at(8.0), "reddit-8")]),
        row("Brown, then Reddit without privacy", "1037.81", tuned("tuned", &plain)),
        row("Brown, then Reddit, ε = 8", "1473.48 at σ = 1.1", tuned("tuned-8", &at(8.0))),
        row("Brown, then Reddit, ε = 1", "–", tuned("tuned-1", &at(1.0))),
        row(
            "Brown, then messages, users as units, ε = 8",
            "–",
            tuned("tuned-users", &changed(&reddit, users)),
        ),
    ]
}
