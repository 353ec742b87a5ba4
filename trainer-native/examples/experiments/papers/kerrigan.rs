//! Kerrigan, Slack & Tuyls 2020, "Differentially Private Language Models Benefit from Public Pre-training": a public model of Brown
//! fine-tuned on Reddit. One row more has users as units.

use serde_json::{Value, json};

use super::corpus::Sizes;
use super::experiment::{Experiment, changed, from_checkpoint, on_text, public};

/// Rows that others are compared with, with their published figures.
const BROWN: (&str, f64) = ("Brown alone, measured on Reddit", 1584.54);
const TUNED: (&str, f64) = ("Brown, then Reddit without privacy", 1037.81);
const LARGE: (&str, f64) = ("larger: Brown alone, measured on Reddit", 1677.42);

/// The paper does not state its learning rate.
const SGD_RATE: f64 = 1.0;

#[allow(clippy::too_many_lines, reason = "a table")]
pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let reddit = reddit(sizes);
    let learning = json!({ "expected_batch_size": 64, "steps": 300 });
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
    let large = |plan: &Value, name: &str| {
        changed(plan, json!({ "name": name, "model": { "hidden": [400, 200], "d_ff": 400 } }))
    };
    let large_brown = large(&brown, "brown-large");
    let large_tuned = |name: &str, plan: &Value| {
        vec![large_brown.clone(), large(&from_checkpoint(plan, &large_brown), name)]
    };
    let decoder = |plan: &Value, name: &str| changed(plan, json!({ "name": name, "model": decoder_model() }));
    let decoder_brown = decoder(&brown, "brown-decoder");
    let decoder_tuned = |name: &str, plan: &Value| {
        vec![decoder_brown.clone(), decoder(&from_checkpoint(plan, &decoder_brown), name)]
    };
    let row = |setting: &str, published, plans| Experiment::new("Kerrigan 2020", setting, published, plans);
    let sgd = |noise| as_published(&reddit, noise);
    let by_sgd = |noise: &str, reported, plans| {
        row(&format!("Brown, then Reddit by SGD, σ = {noise}"), reported, plans)
    };
    vec![
        row(BROWN.0, "perplexity 1584.54", vec![brown.clone()]),
        row("Reddit alone, without privacy", "3787.68", vec![named(&plain, "reddit")])
            .published(3787.68, BROWN),
        row("Reddit alone, ε = 8", "infinite (figure 1)", vec![named(&at(8.0), "reddit-8")]),
        row(TUNED.0, "1037.81", tuned("tuned", &plain)).published(TUNED.1, BROWN),
        row("Brown, then Reddit, ε = 8", "1473.48 at σ = 1.1", tuned("tuned-8", &at(8.0)))
            .published(1473.48, BROWN),
        row("Brown, then Reddit, ε = 1", "–", tuned("tuned-1", &at(1.0))),
        by_sgd("1.1", "1473.48; preset kerrigan-2020-reddit", tuned("tuned-sgd", &sgd(1.1)))
            .published(1473.48, BROWN),
        by_sgd(
            "0.1",
            "1480.84; preset kerrigan-2020-reddit-less-noise",
            tuned("tuned-sgd-less-noise", &sgd(0.1)),
        )
        .published(1480.84, BROWN),
        row(LARGE.0, "1677.42", vec![large_brown.clone()]),
        row("larger: Reddit alone, without privacy", "1259.23", vec![large(&plain, "reddit-large")])
            .published(1259.23, LARGE),
        row("larger: Brown, then Reddit without privacy", "1019.31", large_tuned("tuned-large", &plain))
            .published(1019.31, LARGE),
        row(
            "larger: Brown, then Reddit by SGD, σ = 0.1",
            "1627.56; preset kerrigan-2020-reddit-large",
            large_tuned("tuned-large-sgd", &sgd(0.1)),
        )
        .published(1627.56, LARGE),
        row(
            "larger: Brown, then Reddit by SGD, σ = 1.1",
            "infinite",
            large_tuned("tuned-large-sgd-noise", &sgd(1.1)),
        ),
        row("a decoder: Brown alone", "–", vec![decoder_brown.clone()]),
        row(
            "a decoder: Brown, then Reddit without privacy",
            "45.14 (GPT-2)",
            decoder_tuned("decoder-tuned", &plain),
        ),
        row("a decoder: Brown, then Reddit, ε = 8", "–", decoder_tuned("decoder-tuned-8", &at(8.0))),
        row(
            "Brown, then messages, users as units, ε = 8",
            "–",
            tuned("tuned-users", &changed(&reddit, users)),
        ),
    ]
}

/// The paper's network and the private text, in small.
fn reddit(sizes: &Sizes) -> Value {
    on_text(
        "reddit.txt",
        sizes.reddit,
        json!({
            "privacy": { "delta": 1e-5, "epsilon": 8.0 },
            "tokenizer": { "public": { "path": "words.json", "made_from": "public_text" } },
            "model": {
                "family": "feed_forward", "d_model": 32, "layers": 2, "heads": 1, "d_ff": 100, "context": 24, "history": 10,
                "hidden": [100, 50]
            },
            "training": {
                "objective": "causal_lm", "expected_batch_size": 250, "steps": 40, "l2_clip_norm": 1.0,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 5e-3, "warmup_steps": 2, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "reddit-test.txt" } }
        }),
    )
}

/// A small decoder in place of GPT-2.
fn decoder_model() -> Value {
    json!({ "family": "gpt2", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 256, "history": null, "hidden": null })
}

/// DP-SGD without momentum, as the paper's, with its noise.
fn as_published(reddit: &Value, noise: f64) -> Value {
    let training = json!({
        "optimizer": { "adamw": null, "sgd": {} }, "learning_rate": { "peak": SGD_RATE, "warmup_steps": 2, "decay": "linear" }
    });
    let privacy = json!({ "epsilon": null, "noise_multipliers": { "training": noise } });
    changed(reddit, json!({ "privacy": privacy, "training": training }))
}
