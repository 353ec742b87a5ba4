//! A token file in place of text gives the same run, bit for bit, or is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use tokenizer::Tokenizer;

use common::{Bench, ledger, stderr, tiny};
use dp_tokenizer::corpus::{Files, Source};
use dp_tokenizer::tokens::encode_corpus;
use dp_tokenizer::unit::PrivacyUnit;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const UNITS: [(PrivacyUnit, u64); 3] =
    [(PrivacyUnit::Record, 300), (PrivacyUnit::User, 60), (PrivacyUnit::Words(5), 600)];

fn plan(unit: PrivacyUnit, units: u64, file: &str) -> Value {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": file }, "units": units });
    if file.ends_with("jsonl") {
        plan["data"]["user_field"] = json!("user");
    }
    plan["privacy"]["unit"] = json!(unit);
    plan["tokenizer"] = json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } });
    plan["training"]["steps"] = json!(12);
    plan
}

/// A folder with the plan, the text, a tokenizer, and the text as tokens.
fn bench(unit: PrivacyUnit, units: u64, file: &str) -> Bench {
    let bench = Bench::new(&plan(unit, units, file));
    let text: String = (0..300)
        .map(|n| format!("{}\n", json!({ "user": format!("u{}", n * 7 % 60), "text": format!("note {n} of a secret line, é or so") })))
        .collect();
    fs::write(bench.path("notes.jsonl"), text).unwrap();
    let tokenizer = Tokenizer::bytes(&["</s>".to_owned()]).unwrap();
    let json = tokenizer.to_json();
    fs::write(bench.path("tokenizer.json"), &json).unwrap();
    let mut files = Files::of([bench.path("notes.jsonl")]);
    files.user_field = Some("user".to_owned());
    let digest = Sha256::digest(json.as_bytes()).into();
    encode_corpus(&Source::Files(files), unit, &tokenizer, digest, &bench.path("notes.tokens"), 2).unwrap();
    bench
}

#[test]
fn the_same_plan_from_text_and_from_tokens_gives_the_same_weights_and_events() {
    for (unit, units) in UNITS {
        let runs = ["notes.jsonl", "notes.tokens"].map(|file| {
            let bench = bench(unit, units, file);
            let model = bench.model("run", &["--test-key", "5"]);
            let events: Vec<Value> =
                ledger(&bench.path("run")).into_iter().filter(|entry| entry["kind"] != "header").collect();
            let certificate: Value =
                serde_json::from_slice(&fs::read(bench.path("run/certificate.json")).unwrap()).unwrap();
            (model, events, certificate["guarantee"]["epsilon"].clone())
        });
        assert!(runs[0].0 == runs[1].0, "{unit:?}: other weights");
        assert_eq!(runs[0].1, runs[1].1, "{unit:?}");
        assert!(runs[0].2.is_object() && runs[0].2 == runs[1].2, "{unit:?}: {} {}", runs[0].2, runs[1].2);
    }
}

#[test]
fn a_token_file_of_other_units_or_of_another_tokenizer_is_refused_before_anything_is_written() {
    let refused = |bench: &Bench, words: &[&str]| {
        let output = bench.run("run", &[]);
        let message = stderr(&output);
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!message.contains("secret") && !bench.path("run").exists(), "{message}");
    };
    // Otherwise only some of a user's records would be protected.
    let records = bench(PrivacyUnit::Record, 300, "notes.tokens");
    let user = plan(PrivacyUnit::User, 300, "notes.tokens");
    fs::write(records.path("plan.json"), user.to_string()).unwrap();
    refused(&records, &["holds units of record", "--unit user"]);
    let other = bench(PrivacyUnit::Record, 300, "notes.tokens");
    fs::write(other.path("tokenizer.json"), Tokenizer::bytes(&[]).unwrap().to_json()).unwrap();
    refused(&other, &["SHA-256", "dp-tokenizer encode --tokenizer tokenizer.json --unit record"]);
    let damaged = bench(PrivacyUnit::Record, 300, "notes.tokens");
    fs::write(damaged.path("notes.tokens"), &fs::read(damaged.path("notes.tokens")).unwrap()[..999]).unwrap();
    refused(&damaged, &["notes.tokens", "damaged"]);
    // A line of the text that the token file was made from.
    let overlap = bench(PrivacyUnit::Words(5), 600, "notes.tokens");
    let mut with = plan(PrivacyUnit::Words(5), 600, "notes.tokens");
    with["evaluation"] = json!({ "source": { "path": "held_out.txt" }, "every": 5 });
    fs::write(overlap.path("plan.json"), with.to_string()).unwrap();
    fs::write(overlap.path("held_out.txt"), "other text\nnote 7 of a secret line, é or so\n").unwrap();
    refused(&overlap, &["evaluation.source", "shares text"]);
}
