//! Plans, sweeps and findings.

use serde_json::{Value, json};

use super::common::tiny;
use super::{Hostile, nested};

const VERIFY: &str = "verify {}/plan.json";
const DRY: &str = "--quiet --plan {}/plan.json --out {}/run --dry-run";

fn change(pointer: &str, value: Value) -> String {
    let mut plan = tiny();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    plan.pointer_mut(parent).unwrap()[field] = value;
    plan.to_string()
}

fn plan(name: impl Into<String>, text: impl Into<Vec<u8>>) -> Hostile {
    Hostile::new(name, VERIFY, "plan.json").file("plan.json", text)
}

/// A plan that may be valid. It must be read in time in any case.
fn dry(name: &str, text: impl Into<Vec<u8>>) -> Hostile {
    Hostile::new(name, DRY, "").file("plan.json", text).or_read()
}

fn texts() -> Vec<Hostile> {
    let whole = tiny().to_string();
    let long = "a".repeat(10_000_000);
    let with = |field: &str| whole.replacen('{', &format!("{{{field},"), 1);
    vec![
        plan("lists in lists", nested("[", "", "]", 1_000_000)),
        plan("objects in objects", nested(r#"{"a":"#, "1", "}", 1_000_000)),
        plan(
            "lists in lists in a field",
            change("/model/config", json!({ "rope_theta": 1 }))
                .replace("1}", &(nested("[", "", "]", 100_000) + "}")),
        ),
        plan("17 MB of blanks", " ".repeat(17 << 20)),
        plan("no UTF-8", vec![0xFF; 1000]),
        plan(
            "a number of a million digits",
            change("/training/steps", json!(1))
                .replace("\"steps\":1", &format!("\"steps\":{}", "1".repeat(1_000_000))),
        ),
        plan("a field of 10 MB", with(&format!("\"{long}\":1"))),
        plan("a field with line ends", with("\"a\\nb\\u001b[31m\":1")),
        plan("a million unknown fields", {
            let fields: Vec<String> = (0..1_000_000).map(|at| format!("\"{at}\":1")).collect();
            with(&fields.join(","))
        }),
        plan("the same field twice", with("\"version\":1")),
        plan("a name of 10 MB", change("/name", json!(long))),
        plan("an objective of 10 MB", change("/training/objective", json!(long))),
        plan("a family of 10 MB", change("/model/family", json!(long))),
        plan("a list of a million numbers as a unit", change("/privacy/unit", json!(vec![0; 1_000_000]))),
        plan("a path of 10 MB", change("/data/source", json!({ "path": long }))).or_read(),
        dry("the same, to be read", change("/data/source", json!({ "path": long }))),
        plan("a path with a zero byte", change("/data/source", json!({ "path": "a\0b" }))).or_read(),
        dry("the same, to be read", change("/data/source", json!({ "path": "a\0b" }))),
        plan("a million paths", change("/data/source", json!({ "paths": vec!["a"; 1_000_000] }))),
        plan(
            "a million labels",
            change("/training/labels", json!((0..1_000_000).map(|at| at.to_string()).collect::<Vec<_>>())),
        ),
        plan("10,000 equal labels", {
            let mut plan: Value =
                serde_json::from_str(&change("/training/labels", json!(vec!["a"; 10_000]))).unwrap();
            plan["training"]["objective"] = json!("sequence_classification");
            plan.to_string()
        }),
    ]
}

fn figures() -> Vec<Hostile> {
    let mut all = Vec::new();
    let huge = [json!(1e18), json!(u64::MAX), json!(-1), json!(0), json!(1.5), json!(null), json!("1")];
    for pointer in [
        "/data/units",
        "/training/steps",
        "/training/expected_batch_size",
        "/training/l2_clip_norm",
        "/model/d_model",
        "/model/layers",
        "/model/heads",
        "/model/d_ff",
        "/model/context",
        "/performance/physical_batch",
        "/performance/checkpoint_every",
        "/evaluation/every",
        "/privacy/spare_steps",
        "/privacy/epsilon",
        "/privacy/delta",
        "/training/learning_rate/peak",
        "/training/learning_rate/warmup_steps",
    ] {
        for figure in &huge {
            all.push(plan(format!("{pointer} = {figure}"), change(pointer, figure.clone())).or_read());
        }
    }
    all
}

fn many(changes: &[(&str, Value)]) -> String {
    let mut plan = tiny();
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        plan.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    plan.to_string()
}

fn phases() -> Vec<Hostile> {
    let phases: Vec<Value> =
        (1..=1000).map(|at| json!({ "steps": at, "expected_batch_size": 20 + at % 7 })).collect();
    let scheduled = |phases: Vec<Value>| {
        let mut plan = tiny();
        let training = plan["training"].as_object_mut().unwrap();
        training.remove("steps");
        training.remove("expected_batch_size");
        training.insert("batch_schedule".to_owned(), json!(phases));
        plan["data"]["units"] = json!(100_000);
        plan["privacy"]["delta"] = json!(1e-6);
        plan.to_string()
    };
    vec![
        plan("a thousand phases", scheduled(phases)).or_read(),
        plan("10,000 phases", scheduled(vec![json!({ "steps": 1, "expected_batch_size": 20 }); 10_000])),
    ]
}

/// Figures within their ranges, at their ends.
fn ends() -> Vec<Hostile> {
    let most = 9_007_199_254_740_991_u64;
    let users = [
        ("/data/units", json!(most)),
        ("/training/expected_batch_size", json!(20)),
        ("/privacy/delta", json!(1e-17)),
    ];
    vec![
        plan("9e15 users", many(&users)).or_read(),
        dry("9e15 users, to be read", many(&users)),
        dry(
            "9e15 users of invented notes",
            many(&[
                ("/data/source/embedded/records", json!(100_000_000)),
                ("/data/units", json!(100_000_000)),
                ("/privacy/delta", json!(1e-10)),
            ]),
        ),
        dry("1e9 steps", many(&[("/training/steps", json!(1_000_000_000))])),
        dry(
            "a warm-up of 1e9 steps",
            many(&[("/training/learning_rate/warmup_steps", json!(1_000_000_000))]),
        ),
        dry("a rate of 1e30", many(&[("/training/learning_rate/peak", json!(1e30))])),
        dry(
            "the widest model",
            many(&[
                ("/model/d_model", json!(65_536)),
                ("/model/d_ff", json!(262_144)),
                ("/model/layers", json!(1024)),
            ]),
        ),
        dry("the longest window", many(&[("/model/context", json!(131_072))])),
        dry("the most layers", many(&[("/model/layers", json!(1024))])),
        dry("a micro-batch of 65,536", many(&[("/performance/physical_batch", json!(65_536))])),
        dry(
            "the largest vocabulary",
            many(&[(
                "/tokenizer",
                json!({ "train": { "model": "unigram", "vocab_size": 1_000_000_000, "release": "sips" } }),
            )]),
        ),
        plan("the smallest budget", many(&[("/privacy/epsilon", json!(1e-6))])).or_read(),
        plan("the largest budget", many(&[("/privacy/epsilon", json!(1e4))])).or_read(),
    ]
}

fn sweeps() -> Vec<Hostile> {
    let sweep = |name: &str, text: String| {
        Hostile::new(name, "sweep --sweep {}/sweep.json --out {}/out", "sweep.json")
            .file("sweep.json", text)
            .file("plan.json", tiny().to_string())
    };
    let rates: Vec<f64> = (1..2_000_000).map(|at| f64::from(at) * 1e-9).collect();
    vec![
        sweep("lists in lists", nested("[", "", "]", 1_000_000)),
        sweep(
            "two million settings",
            json!({ "version": 1, "plan": "plan.json", "learning_rate": rates }).to_string(),
        ),
        sweep(
            "a plan that is the sweep",
            json!({ "version": 1, "plan": "sweep.json", "learning_rate": [1e-3] }).to_string(),
        ),
        sweep("no object", "7".to_owned()),
    ]
}

pub(crate) fn all() -> Vec<Hostile> {
    [texts(), figures(), phases(), ends(), sweeps()].into_iter().flatten().collect()
}
