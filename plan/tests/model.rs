//! Tests of the values that the model section may have, family by family.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use common::{altered, certify, refusal};
use serde_json::{Value, json};

/// Returns the quickstart with this model, and with a public tokenizer if the model starts from a checkpoint.
fn with_model(model: &Value) -> Value {
    let mut changes = vec![("/model", model.clone())];
    if model.get("initial").is_some() {
        changes.push((
            "/tokenizer",
            json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } }),
        ));
    }
    altered(&changes)
}

fn decoder() -> Value {
    json!({ "family": "decoder", "d_model": 12, "layers": 2, "heads": 4, "kv_heads": 2, "d_head": 6, "d_ff": 20,
            "context": 64 })
}

fn feed_forward() -> Value {
    json!({ "family": "feed_forward", "d_model": 10, "layers": 3, "heads": 1, "d_ff": 50, "context": 64, "history": 20,
            "hidden": [50, 25, 5] })
}

fn gpt2() -> Value {
    json!({ "family": "gpt2", "d_model": 12, "layers": 2, "heads": 4, "d_ff": 20, "context": 64 })
}

fn set(mut model: Value, field: &str, value: Value) -> Value {
    model[field] = value;
    model
}

#[test]
fn every_family_is_accepted() {
    let checkpoint = json!({ "checkpoint": "gpt2-small" });
    let lora = json!({ "lora": { "rank": 4, "alpha": 8.0, "targets": ["c_attn"] } });
    let tuned = set(set(gpt2(), "initial", checkpoint), "checkpoint_made_from", json!("public_text"));
    for model in [
        gpt2(),
        decoder(),
        set(decoder(), "untied", json!(true)),
        set(
            set(decoder(), "family", json!("qwen3")),
            "config",
            json!({ "rope_theta": 1e6, "layer_types": ["full_attention"] }),
        ),
        feed_forward(),
        // The width of a head, which follows here, may be odd.
        set(set(gpt2(), "family", json!("stablelm")), "kv_heads", json!(2)),
        set(tuned.clone(), "trainable", lora),
        set(tuned, "trainable", json!({ "last_layers": 2 })),
    ] {
        certify(&with_model(&model)).unwrap();
    }
}

/// Later versions add fields; a plan that does not use them keeps its digest.
#[test]
fn what_is_left_out_is_not_written() {
    let text = certify(&with_model(&gpt2())).unwrap().to_json().to_owned();
    let fields = ["kv_heads", "d_head", "untied", "history", "hidden", "initial", "trainable", "config"];
    for field in fields.into_iter().chain(["pooling", "averaging"]) {
        assert!(!text.contains(field), "{field}");
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused_with_place_and_fix() {
    let cases = [
        (set(gpt2(), "history", json!(4)), "model.history: given", "\"feed_forward\""),
        (set(feed_forward(), "kv_heads", json!(1)), "model.kv_heads: given", "\"decoder\""),
        (set(gpt2(), "untied", json!(true)), "model.untied: given", "\"decoder\""),
        (set(decoder(), "kv_heads", json!(3)), "model.kv_heads: 3 with 4 heads", "a divisor"),
        (set(decoder(), "d_head", json!(5)), "model.d_head: 5", "even"),
        (set(decoder(), "heads", json!(6)), "", ""),
        (set(feed_forward(), "heads", json!(2)), "model.heads: 2", "set it to 1"),
        (set(feed_forward(), "layers", json!(2)), "model.hidden: 3 widths", "2 widths"),
        (set(feed_forward(), "hidden", json!([60, 5, 5])), "model.hidden: 3 widths, the largest 60", "50"),
    ];
    for (model, place, fix) in cases {
        if place.is_empty() {
            certify(&with_model(&model)).unwrap();
            continue;
        }
        let message = refusal(&with_model(&model));
        assert!(message.contains(place) && message.contains(fix), "{message}");
    }
    let mut missing = feed_forward();
    missing.as_object_mut().unwrap().remove("history");
    assert!(refusal(&with_model(&missing)).contains("model.history: missing"));
}

#[test]
fn a_checkpoint_needs_its_tokenizer_and_a_part_needs_a_checkpoint() {
    let tuned = set(gpt2(), "initial", json!({ "checkpoint": "gpt2-small" }));
    let message = refusal(&with_model(&tuned));
    let parts = ["model.checkpoint_made_from: missing", "no private text", "same_units", "disjoint_units"];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    let tuned = set(tuned, "checkpoint_made_from", json!("public_text"));
    let message = refusal(&altered(&[("/model", tuned.clone())]));
    assert!(message.starts_with("tokenizer: not the one of model.initial"), "{message}");
    let message = refusal(&with_model(&set(gpt2(), "trainable", json!({ "last_layers": 1 }))));
    assert!(message.contains("model.trainable: a part") && message.contains("checkpoint"), "{message}");
    let message = refusal(&with_model(&set(tuned.clone(), "trainable", json!({ "last_layers": 3 }))));
    assert!(message.contains("model.trainable.last_layers: 3 of 2 layers"), "{message}");
    let message = refusal(&with_model(&set(tuned.clone(), "trainable", json!("cross_attention"))));
    assert!(message.contains("model.trainable: \"cross_attention\" with model.family \"gpt2\""), "{message}");
    let unnamed = json!({ "lora": { "rank": 4, "alpha": 8.0, "targets": [" "] } });
    let message = refusal(&with_model(&set(tuned, "trainable", unnamed)));
    assert!(message.contains("model.trainable.lora.targets"), "{message}");
}

#[test]
fn dropout_is_below_one_and_of_a_family_that_has_it() {
    let of = |model: &Value, rate: f64| {
        let mut plan = with_model(model);
        plan["training"]["dropout"] = json!(rate);
        plan
    };
    certify(&of(&gpt2(), 0.1)).unwrap();
    assert!(refusal(&of(&gpt2(), 1.0)).starts_with("training.dropout: 1.0"));
    let message = refusal(&of(&feed_forward(), 0.1));
    assert!(message.starts_with("training.dropout: 0.1 with model.family \"feed_forward\""), "{message}");
    certify(&of(&feed_forward(), 0.0)).unwrap();
}
