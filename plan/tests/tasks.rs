//! Tests of the labels, fields and data that a plan of a task may have.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::slice::from_ref;

use common::{altered, certify, refusal};
use serde_json::{Value, json};

/// Returns the quickstart as the plan of a task, with further changes.
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
        ("t5", &["text_to_text", "sequence_classification", "multi_label_classification"]),
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
    let written = [
        ("/data/second_text_field", json!("b")),
        ("/data/text_prefix", json!("mrpc sentence1: ")),
        ("/data/second_text_prefix", json!("sentence2: ")),
    ];
    for answers in [json!({ "labels": ["not_equivalent", "equivalent"] }), json!({ "numbers": 0.2 })] {
        let answers = [("/training/answers", answers), ("/model/family", json!("t5"))];
        certify(&task("text_to_text", &[&written[..], &answers].concat())).unwrap();
    }
    certify(&task("text_to_text", &[("/data/target_field", json!("de")), ("/data/format", json!("csv"))]))
        .unwrap();
    certify(&task("token_classification", &[("/data/format", json!("iob"))])).unwrap();
    let width =
        [("/model/family", json!("t5_v1_1")), ("/model/d_head", json!(7)), ("/model/heads", json!(6))];
    certify(&task("text_to_text", &width)).unwrap();
}

/// Returns a classifier of texts on a BERT from a checkpoint, with these fields of its model.
fn on_checkpoint(objective: &str, model: &[(&str, Value)]) -> Value {
    let public = json!({ "public": { "path": "a/tokenizer.json", "made_from": "public_text" } });
    let mut plan = task(objective, &[("/model/family", json!("bert")), ("/tokenizer", public)]);
    plan["model"]["initial"] = json!({ "checkpoint": "a" });
    plan["model"]["checkpoint_made_from"] = json!("public_text");
    for (field, value) in model {
        plan["model"][field] = value.clone();
    }
    plan
}

#[test]
fn a_head_is_trained_alone_where_there_is_one_and_reads_means_where_a_family_has_them() {
    let (head, mean) = (("trainable", json!("head")), ("pooling", json!("mean")));
    let text = "sequence_classification";
    for model in [from_ref(&head), from_ref(&mean), &[head.clone(), mean.clone()]] {
        certify(&on_checkpoint(text, model)).unwrap();
        certify(&on_checkpoint("multi_label_classification", model)).unwrap();
    }
    certify(&on_checkpoint("token_classification", from_ref(&head))).unwrap();
    let mut random = on_checkpoint(text, from_ref(&head));
    random["model"]
        .as_object_mut()
        .unwrap()
        .retain(|field, _| !["initial", "checkpoint_made_from"].contains(&&**field));
    let refusals = [
        (
            on_checkpoint("masked_lm", from_ref(&head)),
            "model.trainable: \"head\" with this training.objective",
        ),
        (on_checkpoint("token_classification", from_ref(&mean)), "model.pooling: given"),
        (on_checkpoint(text, &[("family", json!("gpt2")), mean]), "\"bert\", \"roberta\" or \"distilbert\""),
        (random, "start at random"),
    ];
    for (plan, part) in refusals {
        let message = refusal(&plan);
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// The average follows from what is released, so it changes no event.
#[test]
fn averages_of_weights_cost_nothing_and_have_a_range() {
    let plain = certify(&task("sequence_classification", &[("/model/family", json!("bert"))])).unwrap();
    let averaged = |averaging: Value| {
        let mut plan = task("sequence_classification", &[("/model/family", json!("bert"))]);
        plan["training"]["averaging"] = averaging;
        plan
    };
    for averaging in [json!({ "tail": 1.0 }), json!({ "tail": 0.1 }), json!({ "exponential": 0.99 })] {
        let certified = certify(&averaged(averaging)).unwrap();
        assert_eq!(certified.event(), plain.event());
        assert_eq!(certified.epsilon(), plain.epsilon());
    }
    for averaging in
        [json!({ "tail": 0.0 }), json!({ "tail": 1.1 }), json!({ "exponential": 1.0 }), json!("tail")]
    {
        let message = refusal(&averaged(averaging.clone()));
        assert!(message.contains("training.averaging"), "{averaging}: {message}");
    }
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
        (
            "token_classification",
            "/model/family",
            json!("t5"),
            "training.objective: \"token_classification\"",
        ),
        ("text_to_text", "/model/family", json!("bert"), "training.objective: \"text_to_text\""),
        (class, "/model/d_head", json!(8), "model.d_head: given"),
        ("causal_lm", "/training/sentence_split", json!("sentence_end"), "training.sentence_split: given"),
        (class, "/evaluation/beams", json!(4), "evaluation.beams: given"),
        ("text_to_text", "/evaluation/beams", json!(1), "evaluation.beams: 1"),
    ];
    for (objective, pointer, value, expected) in cases {
        let message = refusal(&task(objective, &[(pointer, value)]));
        assert!(message.contains(expected) && message.lines().count() == 1, "{expected}: {message}");
    }
}

#[test]
fn counts_of_labels_are_part_of_the_cost_of_a_plan() {
    let histogram = |noise: f64| json!({ "labels": ["no", "yes"], "noise_multiplier": noise });
    let fixed = ("/privacy/noise_multipliers", json!({ "tokenizer": 5.0, "training": 2.0 }));
    let no_target = ("/privacy/epsilon", Value::Null);
    let epsilon = |changes: &[(&str, Value)]| {
        let all: Vec<_> = changes.iter().cloned().chain([fixed.clone(), no_target.clone()]).collect();
        certify(&task("text_to_text", &all)).unwrap().epsilon()
    };
    let without = epsilon(&[]);
    let cheap = epsilon(&[("/data/label_histogram", histogram(50.0))]);
    let dear = epsilon(&[("/data/label_histogram", histogram(0.5))]);
    assert!(without.upper < cheap.lower && cheap.upper < without.upper * 1.1, "{without:?} {cheap:?}");
    assert!(dear.lower > 2.0 * without.upper, "{dear:?}");
    // A plan with a target gives training more noise, so that both together stay within it.
    let noise = |changes: &[(&str, Value)]| {
        let certified = certify(&task("text_to_text", changes)).unwrap();
        assert!(certified.epsilon().upper <= certified.plan().privacy().epsilon.unwrap());
        certified.phases()[0].noise_multiplier()
    };
    assert!(noise(&[("/data/label_histogram", histogram(2.0))]) > 1.01 * noise(&[]));
    let charged = certify(&task("text_to_text", &[("/data/label_histogram", histogram(2.0))])).unwrap();
    let event = charged.label_histogram_event().unwrap();
    assert!(charged.covers([(&event, 1)]) && !charged.covers([(&event, 2)]));
    let refused = refusal(&task("causal_lm", &[("/data/label_histogram", histogram(2.0))]));
    assert!(refused.contains("data.label_histogram: given"), "{refused}");
    let twice = json!({ "labels": ["no", "no"] });
    let refused = refusal(&task("text_to_text", &[("/data/label_histogram", twice)]));
    assert!(refused.contains("data.label_histogram.labels[1]: \"no\""), "{refused}");
}

#[test]
fn conversations_need_the_tokenizer_of_a_checkpoint_and_a_decoder() {
    let public =
        ("/tokenizer", json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } }));
    certify(&task("chat", std::slice::from_ref(&public))).unwrap();
    let settings = json!({ "learn": "all", "truncation_side": "left", "date": "2026-01-31" });
    certify(&task("chat", &[public.clone(), ("/training/chat", settings)])).unwrap();
    for (changes, expected) in [
        (vec![], "tokenizer: not \"public\""),
        (vec![public.clone(), ("/model/family", json!("bert"))], "training.objective: \"chat\""),
        (vec![public.clone(), ("/training/chat", json!({ "learn": "questions" }))], "training.chat.learn"),
        (vec![public.clone(), ("/training/chat", json!({ "date": "31 Jan" }))], "training.chat.date"),
    ] {
        let message = refusal(&task("chat", &changes));
        assert!(message.contains(expected) && message.lines().count() == 1, "{expected}: {message}");
    }
    let message = refusal(&task("text_to_text", &[("/training/chat", json!({}))]));
    assert!(message.contains("training.chat: given"), "{message}");
}

#[test]
fn answers_and_prefixes_that_nothing_reads_are_refused() {
    for (objective, changes, part) in [
        (
            "text_to_text",
            vec![("/training/answers", json!({ "labels": ["yes"] }))],
            "training.answers.labels: 1 labels",
        ),
        ("text_to_text", vec![("/training/answers", json!({ "labels": ["a", "a"] }))], "each label once"),
        ("text_to_text", vec![("/training/answers", json!({ "numbers": 0.0 }))], "training.answers.numbers"),
        (
            "sequence_classification",
            vec![("/training/answers", json!({ "numbers": 0.2 }))],
            "only \"text_to_text\" reads it",
        ),
        (
            "text_to_text",
            vec![("/data/second_text_prefix", json!("b: "))],
            "nothing without data.second_text_field",
        ),
        ("token_classification", vec![("/data/text_prefix", json!("ner: "))], "data.text_prefix"),
    ] {
        let message = refusal(&task(objective, &changes));
        assert!(message.contains(part), "{message}");
    }
}

/// Ponomareva et al. 2022, section 5.2: 512 tokens of text are read and 114 are written. The end-of-text tokens come on top.
#[test]
fn a_split_of_a_prefix_counts_tokens_of_text_and_names_the_contexts_that_hold_it() {
    let of = |context: u64, decoder: Value| {
        altered(&[
            ("/model/family", json!("t5")),
            ("/model/context", json!(context)),
            ("/model/decoder_context", decoder),
            ("/training/objective", json!("prefix_lm")),
            ("/training/prefix_split", json!({ "read": 512, "written": 114 })),
        ])
    };
    certify(&of(513, json!(115))).unwrap();
    certify(&of(513, Value::Null)).unwrap();
    for (plan, part) in [
        (of(512, json!(115)), "model.context: 512; allowed: at least 513"),
        (of(513, json!(114)), "model.decoder_context: 114; allowed: at least 115"),
        (
            altered(&[("/training/prefix_split", json!({ "read": 5, "written": 5 }))]),
            "training.prefix_split: given; allowed: nothing: only \"prefix_lm\" reads it",
        ),
    ] {
        let message = refusal(&plan);
        assert!(message.contains(part), "{message}");
    }
}
