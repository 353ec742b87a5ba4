//! Experiments of the papers at the scale of two cores, on real text, in one table beside the published figures.
//!
//! ```sh
//! cargo run --release -p trainer-native --example papers -- DATA [FOLDER] [--smoke]
//! ```
//!
//! `DATA` has `multi30k/` and `brown/`. Finished runs are not run again, others go on where they stopped. `--smoke` takes two
//! steps of each run.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use dp_tokenizer::corpus::Format;
use serde_json::{Value, json};
use trainer_native::run::{Request, run};

#[path = "../common/mod.rs"]
mod common;

use common::{Outcome, brown, records, write};

/// One row of the table.
struct Experiment {
    name: &'static str,
    paper: &'static str,
    setting: &'static str,
    /// What the paper reports for the setting that this one reduces.
    published: &'static str,
    plan: Value,
}

fn main() -> Outcome {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let mut paths = std::env::args_os().skip(1).filter(|argument| argument != "--smoke").map(PathBuf::from);
    let data = paths.next().ok_or("give DATA, optionally a folder, and --smoke for two steps of each run")?;
    let folder = paths
        .next()
        .unwrap_or_else(|| PathBuf::from(if smoke { "runs/papers-smoke" } else { "runs/papers" }));
    fs::create_dir_all(&folder)?;
    prepare(&data, &folder)?;
    let mut table =
        "| paper | setting | published | ε ≤ | here | minutes |\n|---|---|---|---|---|---|\n".to_owned();
    for mut experiment in translation().into_iter().chain(batches()) {
        if smoke {
            experiment.plan["training"]["steps"] = json!(2);
            experiment.plan["training"]["learning_rate"] = json!({ "peak": 1e-3 });
            if let Some(training) = experiment.plan["training"].as_object_mut() {
                training.remove("batch_schedule");
                training.insert("expected_batch_size".to_owned(), json!(64));
            }
        }
        table += &carry_out(&experiment, &folder)?;
        fs::write(folder.join("papers.md"), &table)?;
    }
    writeln!(stdout(), "{table}")?;
    Ok(())
}

/// Writes the texts that the plans name.
fn prepare(data: &Path, folder: &Path) -> Outcome {
    let pairs = |name: &str, most: usize| -> Outcome<Vec<String>> {
        let [english, german] = ["en", "de"]
            .map(|language| records(&data.join(format!("multi30k/{name}.{language}.gz")), Format::Text));
        let pair = |(en, de)| json!({ "en": en, "de": de }).to_string();
        Ok(english?.into_iter().zip(german?).map(pair).take(most).collect())
    };
    write(&folder.join("captions.jsonl"), &pairs("train", usize::MAX)?)?;
    write(&folder.join("captions-test.jsonl"), &pairs("test_2016_flickr", 200)?)?;
    let sentences = brown(&data.join("brown/brown_plain.tsv.zst"))?;
    let (test, train) = sentences.split_at(500);
    write(&folder.join("brown.txt"), train)?;
    write(&folder.join("brown-test.txt"), test)
}

/// Runs or resumes an experiment. Returns its row.
fn carry_out(experiment: &Experiment, folder: &Path) -> Outcome<String> {
    let Experiment { name, paper, setting, published, plan } = experiment;
    let (path, out) = (folder.join(format!("{name}.json")), folder.join(name));
    fs::write(&path, serde_json::to_string_pretty(plan)?)?;
    let minutes = folder.join(format!("{name}.minutes"));
    let before: f64 = fs::read_to_string(&minutes).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let finished = out.join("certificate.json").exists();
    let start = Instant::now();
    let resume = out.join("ledger.jsonl").exists();
    let summary = run(&Request { resume, out: Some(out.clone()), ..Request::new(path) })?;
    let spent = if finished { before } else { before + start.elapsed().as_secs_f64() / 60.0 };
    fs::write(&minutes, spent.to_string())?;
    let figures: Value = serde_json::from_slice(&fs::read(out.join("evaluation.json"))?)?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let scores = figures["scores"].as_array().cloned().unwrap_or_default();
    let mut result: Vec<String> = scores
        .iter()
        .map(|score| format!("{} {:.2}", score["name"].as_str().unwrap_or(""), number(&score["score"])))
        .collect();
    result.push(format!("accuracy {:.2} %", 100.0 * number(&figures["accuracy"])));
    let epsilon = summary
        .epsilon
        .map_or("∞".to_owned(), |bounds| format!("{:.3}", (bounds.upper * 1e3).ceil() / 1e3));
    Ok(format!("| {paper} | {setting} | {published} | {epsilon} | {} | {spent:.1} |\n", result.join(", ")))
}

/// Translation of captions, as Igamberdiev et al. translate news and conversations.
fn translation() -> [Experiment; 4] {
    let experiment = |name, setting, published, privacy: Value| {
        let is_public = privacy["epsilon"].is_null();
        let mut plan = json!({
            "version": 1,
            "name": name,
            "data": {
                "source": { "path": "captions.jsonl" }, "text_field": "en", "target_field": "de", "units": 29_000,
                "visibility": if is_public { "public" } else { "private" }
            },
            "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-8, "sampling": "poisson" },
            "tokenizer": { "train": { "model": "unigram", "vocab_size": 2000, "release": "pooled" } },
            "model": {
                "family": "t5_v1_1", "d_model": 96, "layers": 2, "heads": 4, "d_ff": 192, "context": 40, "decoder_context": 40
            },
            "training": {
                "objective": "text_to_text", "expected_batch_size": 580, "steps": 250, "l2_clip_norm": 0.5,
                "optimizer": { "adamw": { "beta1": 0.9, "beta2": 0.98 } },
                "learning_rate": { "peak": 5e-3, "warmup_steps": 20, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "captions-test.jsonl" }, "every": 1000 }
        });
        if let (Some(all), Some(own)) = (plan["privacy"].as_object_mut(), privacy.as_object()) {
            all.extend(own.clone());
        }
        Experiment { name, paper: "Igamberdiev 2024", setting, published, plan }
    };
    [
        experiment("nmt-public", "en→de, without privacy", "BLEU 36.19 (WMT-16)", json!({})),
        experiment("nmt-1000", "en→de, ε = 1000, Poisson", "BLEU 15.12", json!({ "epsilon": 1000.0 })),
        experiment("nmt-5", "en→de, ε = 5, Poisson", "BLEU 7.23", json!({ "epsilon": 5.0 })),
        experiment(
            "nmt-5-shuffle",
            "en→de, ε = 5, shuffled passes with their own ε",
            "BLEU 19.24, charged as Poisson",
            json!({ "epsilon": 5.0, "sampling": "shuffle", "relation": "replace_one" }),
        ),
    ]
}

/// Masked words of Brown in batches of several sizes, as Anil et al. train BERT-large.
fn batches() -> [Experiment; 5] {
    let experiment = |name, setting, published, training: Value| {
        let mut plan = json!({
            "version": 1,
            "name": name,
            "data": { "source": { "path": "brown.txt" }, "units": 56_840 },
            "privacy": {
                "unit": "record", "relation": "add_or_remove_one", "delta": 1e-6, "epsilon": 5.36, "sampling": "poisson"
            },
            "tokenizer": { "train": { "model": "wordpiece", "vocab_size": 2000, "release": "pooled" } },
            "model": { "family": "bert", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 40 },
            "training": {
                "objective": "masked_lm", "l2_clip_norm": 0.1,
                "optimizer": { "adamw": { "beta1": 0.75, "beta2": 0.9, "epsilon": 1e-11, "weight_decay": 1.0 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 20, "decay": "quadratic" }
            },
            "evaluation": { "source": { "path": "brown-test.txt" }, "every": 1000 }
        });
        if let (Some(all), Some(own)) = (plan["training"].as_object_mut(), training.as_object()) {
            all.extend(own.clone());
        }
        Experiment { name, paper: "Anil 2021", setting, published, plan }
    };
    let batch = |size: u64| json!({ "expected_batch_size": size, "steps": 60 });
    let growing: Vec<Value> = [(6, 256), (6, 448), (6, 640), (6, 832), (36, 1024)]
        .map(|(steps, size)| json!({ "steps": steps, "expected_batch_size": size }))
        .into();
    let mut light = batch(1024);
    light["optimizer"] =
        json!({ "adamw": { "beta1": 0.75, "beta2": 0.9, "epsilon": 1e-11, "weight_decay": 0.01 } });
    [
        experiment("batch-64", "masked words, batches of 64", "38.5 % at 32 k", batch(64)),
        experiment("batch-256", "masked words, batches of 256", "figure 3", batch(256)),
        experiment("batch-1024", "masked words, batches of 1,024", "60.5 % at 2 M", batch(1024)),
        experiment(
            "batch-growing",
            "batches growing from 256 to 1,024",
            "as 1 M, 14 % fewer examples",
            json!({ "batch_schedule": growing }),
        ),
        experiment(
            "batch-light",
            "batches of 1,024, weight decay 0.01",
            "large weight decay is needed",
            light,
        ),
    ]
}
