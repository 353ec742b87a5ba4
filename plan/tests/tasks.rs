//! What a plan of a task may say: labels, fields and data.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use common::{altered, certify, refusal};
use serde_json::{Value, json};

/// The quickstart as the plan of a task, changed further.
fn task(objective: &str, changes: &[(&str, Value)]) -> Value {
    let mut all = vec![
        ("/data/source", json!({ "path": "train.tsv" })),
        ("/evaluation/source", json!({ "path": "test.tsv" })),
        ("/training/objective", json!(objective)),
    ];
    if objective.ends_with("classification") {
        all.push(("/training/labels", json!(["no", "yes"])));
    }
    all.extend_from_slice(changes);
    altered(&all)
}

#[test]
fn every_task_is_accepted_by_the_families_that_learn_it() {
    for (family, objectives) in [
        (
            "gpt2",
            &[
                "sequence_classification",
                "multi_label_classification",
                "token_classification",
                "text_to_text",
            ][..],
        ),
        ("bert", &["sequence_classification", "multi_label_classification", "token_classification"]),
        ("t5", &["text_to_text"]),
    ] {
        for objective in objectives {
            certify(&task(objective, &[("/model/family", json!(family))])).unwrap();
        }
    }
    let pairs = [
        ("/data/second_text_field", json!("b")),
        ("/data/label_field", json!("c")),
        ("/data/columns", json!(["text", "b", "c"])),
    ];
    certify(&task("sequence_classification", &pairs)).unwrap();
    certify(&task("text_to_text", &[("/data/target_field", json!("de")), ("/data/format", json!("csv"))]))
        .unwrap();
    certify(&task("token_classification", &[("/data/format", json!("iob"))])).unwrap();
    let width =
        [("/model/family", json!("t5_v1_1")), ("/model/d_head", json!(7)), ("/model/heads", json!(6))];
    certify(&task("text_to_text", &width)).unwrap();
}

#[test]
fn fields_and_labels_that_do_not_fit_are_refused_with_the_way_out() {
    let class = "sequence_classification";
    let cases = [
        (class, "/training/labels", Value::Null, "training.labels: missing"),
        (class, "/training/labels", json!(["one"]), "training.labels: 1 labels"),
        (class, "/training/labels", json!(["a", "b", "a"]), "training.labels[2]: \"a\""),
        (class, "/training/labels", json!(["a", " b"]), "training.labels[1]: \" b\""),
        ("multi_label_classification", "/training/labels", json!(["a,b"]), "names without commas"),
        ("causal_lm", "/training/labels", json!(["a", "b"]), "training.labels: given; allowed: nothing"),
        ("causal_lm", "/data/label_field", json!("a"), "data.label_field: given"),
        (class, "/data/target_field", json!("a"), "data.target_field: given"),
        ("token_classification", "/data/second_text_field", json!("a"), "data.second_text_field: given"),
        (class, "/data/label_field", json!("text"), "data.label_field: \"text\""),
        (
            class,
            "/data/source",
            json!({ "embedded": { "records": 6000, "seed": 7 } }),
            "data.source: \"embedded\"",
        ),
        (
            class,
            "/evaluation/source",
            json!({ "embedded": { "records": 60, "seed": 9 } }),
            "evaluation.source: \"emb",
        ),
        (class, "/data/format", json!("text"), "data.format: \"text\""),
        (class, "/data/format", json!("iob"), "data.format: \"iob\""),
        (class, "/privacy/unit", json!({ "words": 64 }), "privacy.unit: words"),
        (class, "/model/family", json!("t5"), "training.objective: \"sequence_classification\""),
        ("text_to_text", "/model/family", json!("bert"), "training.objective: \"text_to_text\""),
        (class, "/model/d_head", json!(8), "model.d_head: given"),
    ];
    for (objective, pointer, value, expected) in cases {
        let message = refusal(&task(objective, &[(pointer, value)]));
        assert!(message.contains(expected) && message.lines().count() == 1, "{expected}: {message}");
    }
}
