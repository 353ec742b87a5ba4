//! What a budget buys: held-out scores of private models beside those of the same plans without privacy, and of the levers that
//! a plan has at equal ε.

use serde_json::{Value, json};

use super::Table;
use super::corpus::{EMOTIONS, Sizes};
use super::experiment::{Experiment, changed, on_text, public};

pub(crate) const TABLE: Table = Table {
    name: "utility",
    head: ["text", "setting", "24 November"],
    groups: &[
        ("notes", notes),
        ("plays", plays),
        ("articles", articles),
        ("comments", comments),
        ("novels", novels),
        ("messages", messages),
        ("emotions", emotions),
    ],
};

/// A row for each change of a plan, and one without privacy.
fn rows(
    group: &'static str,
    setting: &str,
    before: &'static str,
    plan: &Value,
    levers: &[(&str, &str, Value)],
) -> Vec<Experiment> {
    let named = |name: &str, plan: &Value| vec![changed(plan, json!({ "name": name }))];
    let base = plan["name"].as_str().unwrap_or_default();
    let row = |setting: String, before, plans| Experiment::new(group, setting, before, plans);
    let lever = |(name, words, change): &(&str, &str, Value)| {
        let plan = changed(plan, change.clone());
        row(format!("{setting}, {words}"), "–", named(&format!("{base}-{name}"), &plan))
    };
    let mut rows = vec![row(setting.to_owned(), before, named(base, plan))];
    rows.extend(levers.iter().map(lever));
    rows.push(row(
        format!("{setting}, without privacy"),
        "–",
        named(&format!("{base}-public"), &public(plan)),
    ));
    rows
}

fn notes(_: &Sizes) -> Vec<Experiment> {
    let plan =
        serde_json::from_str(include_str!("../../../plan/presets/quickstart.json")).unwrap_or_default();
    let average = json!({ "training": { "averaging": { "tail": 0.5 } } });
    rows("notes", "quickstart, ε = 8", "102.8", &plan, &[("average", "mean of the last half", average)])
}

/// The example `dp_sgd_transformer` of `jax_privacy`: ε = 1, batches of 1,000, 100 steps.
fn plays(sizes: &Sizes) -> Vec<Experiment> {
    let plan = on_text(
        "plays.jsonl",
        sizes.plays,
        json!({
            "name": "plays",
            "privacy": { "delta": 1e-5, "epsilon": 1.0 },
            "tokenizer": "bytes",
            "model": {
                "family": "feed_forward", "d_model": 32, "layers": 1, "heads": 1, "d_ff": 128, "context": 129, "history": 6
            },
            "training": {
                "objective": "causal_lm", "expected_batch_size": 1000, "steps": 100, "l2_clip_norm": 1.0,
                "optimizer": { "sgd": { "momentum": 0.9 } },
                "learning_rate": { "peak": 1.0, "warmup_steps": 5, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "plays-test.jsonl" } }
        }),
    );
    rows("plays", "bytes, ε = 1", "14.9 (2.70 nats)", &plan, &[])
}

/// A small GPT-2 with a vocabulary of the text, which begins with texts of released pairs of words.
pub(super) fn language_model(path: &str, units: usize, context: u64, batch: u64, steps: u64) -> Value {
    on_text(
        path,
        units,
        json!({
            "name": path.split('.').next(),
            "privacy": { "delta": 1e-6, "epsilon": 8.0, "tokenizer_share": 0.1 },
            "tokenizer": {
                "train": {
                    "model": "unigram", "vocab_size": 2048, "release": "pooled", "words": "pairs", "byte_fallback": true
                }
            },
            "model": { "family": "gpt2", "d_model": 64, "layers": 2, "heads": 4, "d_ff": 256, "context": context },
            "training": {
                "objective": "causal_lm", "expected_batch_size": batch, "steps": steps, "l2_clip_norm": 1.0,
                "warm_start": { "steps": 600 },
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 5, "decay": "cosine" }
            },
            "evaluation": { "source": { "path": path.replace('.', "-test.") } }
        }),
    )
}

fn articles(_: &Sizes) -> Vec<Experiment> {
    let preset: Value =
        serde_json::from_str(include_str!("../../../plan/presets/wikitext.json")).unwrap_or_default();
    let texts = json!({
        "name": "articles",
        "data": { "source": { "path": "articles.txt" } },
        "evaluation": { "source": { "path": "articles-test.txt" }, "every": 1000 }
    });
    let pairs = json!({
        "tokenizer": { "train": { "release": "pooled", "words": "pairs" } },
        "training": { "warm_start": { "steps": 600 } }
    });
    let levers = [("pairs", "start from pairs of words", pairs)];
    rows("articles", "WikiText, units of 32 words, ε = 8", "–", &changed(&preset, texts), &levers)
}

fn comments(sizes: &Sizes) -> Vec<Experiment> {
    let plan = language_model("comments.txt", sizes.comments, 32, 512, 100);
    let at = |epsilon: f64| json!({ "privacy": { "epsilon": epsilon } });
    let words = json!({ "tokenizer": { "train": { "words": null } }, "training": { "warm_start": null } });
    let levers =
        [("3", "ε = 3", at(3.0)), ("1", "ε = 1", at(1.0)), ("words", "start from word frequencies", words)];
    rows("comments", "Reddit, ε = 8", "–", &plan, &levers)
}

fn novels(sizes: &Sizes) -> Vec<Experiment> {
    let plan = language_model("novels.jsonl", sizes.novels, 64, 512, 100);
    rows("novels", "by paragraph, ε = 8", "–", &plan, &[])
}

fn messages(sizes: &Sizes) -> Vec<Experiment> {
    let plan = language_model("messages.jsonl", sizes.messages, 32, 512, 100);
    let test = json!({ "evaluation": { "source": { "path": "speech-test.txt" } } });
    let plan = changed(&plan, test);
    let users = json!({
        "data": { "user_field": "user", "units": sizes.users },
        "privacy": { "unit": "user", "delta": 1e-5 },
        "training": { "expected_batch_size": 256 }
    });
    rows("messages", "IRC by message, ε = 8", "–", &plan, &[("users", "by user", users)])
}

/// Seven groups of emotions.
fn emotions(sizes: &Sizes) -> Vec<Experiment> {
    let plan = on_text(
        "emotions.jsonl",
        sizes.emotions,
        json!({
            "name": "emotions",
            "data": { "label_field": "label" },
            "privacy": { "delta": 1e-5, "epsilon": 8.0, "tokenizer_share": 0.1 },
            "tokenizer": { "train": { "model": "wordpiece", "vocab_size": 2048, "release": "pooled" } },
            "model": { "family": "bert", "d_model": 64, "layers": 1, "heads": 4, "d_ff": 256, "context": 32 },
            "training": {
                "objective": "sequence_classification", "labels": EMOTIONS, "expected_batch_size": 1024, "steps": 200,
                "l2_clip_norm": 0.3, "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 10, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "emotions-test.jsonl" } }
        }),
    );
    let labels = |epsilon: f64| {
        json!({
            "privacy": { "epsilon": epsilon, "tokenizer_share": 0.7 },
            "tokenizer": { "train": { "words": "pairs_by_label" } }, "training": { "warm_start": { "steps": 6000 } }
        })
    };
    let levers = [
        ("labels", "start from words by label", labels(8.0)),
        ("labels-3", "the same, ε = 3", labels(3.0)),
        ("labels-1", "the same, ε = 1", labels(1.0)),
    ];
    rows("emotions", "GoEmotions, seven groups, from random weights, ε = 8", "–", &plan, &levers)
}
