//! The whole path as a user runs it: plan → run → certificate → verify.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::{Workplace, altered, certified, program_path, tiny_plan};

/// A small version of the quickstart: the vocabulary is released privately, and the model is evaluated on public text.
fn small_plan() -> Value {
    altered(
        tiny_plan(),
        &[
            ("/tokenizer", json!({ "train": { "model": "unigram", "vocab_size": 512, "release": "sips" } })),
            ("/privacy/noise_multipliers", json!({ "training": 1.0, "tokenizer": 3.0 })),
            ("/evaluation", json!({ "source": { "embedded": { "records": 20, "seed": 8 } }, "every": 2 })),
        ],
    )
}

fn json_file(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_run_ends_with_a_model_and_a_certificate_that_verifies_within_the_plans_epsilon() {
    let (place, plan) = (Workplace::new(), small_plan());
    let outcome = place.train(&plan, &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for name in ["model.safetensors", "config.json", "tokenizer.json", "ledger.jsonl", "certificate.json"] {
        assert!(place.path("run").join(name).is_file(), "{name} is missing");
    }
    let verified = place.trainer(["verify", "run", "--json"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    let certificate = json_file(&place.path("run/certificate.json"));
    let spent = certificate["guarantee"]["epsilon"]["upper"].as_f64().expect("a figure");
    let promised = certified(&plan);
    assert!(spent > 0.0 && spent <= promised.epsilon().upper && promised.epsilon().upper <= 8.0, "{spent}");
    assert_eq!(certificate["private"], json!(true));
    assert!(verified.stdout.contains(&spent.to_string()), "{}", verified.stdout);
    assert!(certificate.to_string().contains(&promised.hash().to_string()), "the plan's hash is missing");
}

/// The library, the command line and the certificate give the same ε for a plan.
#[test]
fn a_plan_has_the_same_epsilon_in_library_and_command_line() {
    let (place, plan) = (Workplace::new(), small_plan());
    place.write("plan.json", plan.to_string());
    let asked = place.trainer(["verify", "plan.json", "--json"]);
    let asked: Value = serde_json::from_str(&asked.stdout).expect("JSON");
    let promised = certified(&plan);
    assert_eq!(asked["epsilon"]["upper"].as_f64(), Some(promised.epsilon().upper));
    assert_eq!(asked["epsilon"]["lower"].as_f64(), Some(promised.epsilon().lower));
    assert_eq!(asked["sha256"].as_str(), Some(promised.hash().as_ref()));
}

#[test]
fn verification_fails_after_one_bit_of_any_file_changes() {
    let place = Workplace::new();
    assert_eq!(place.train(&small_plan(), &[]).code, 0);
    assert_eq!(place.trainer(["verify", "run"]).code, 0);
    let names: Vec<String> = place.list("run").into_iter().filter(|name| !name.starts_with('.')).collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let path = place.path("run").join(&name);
        let original = fs::read(&path).expect("a file");
        for position in [0, original.len() / 2, original.len() - 2] {
            let mut bytes = original.clone();
            bytes[position] ^= 1;
            fs::write(&path, bytes).expect("a write");
            let outcome = place.trainer(["verify", "run"]);
            assert!(outcome.code == 1 || outcome.code == 2, "{name}, byte {position}: {outcome:?}");
            assert_eq!(outcome.stderr.trim_end().lines().count(), 1, "{name}, byte {position}: {outcome:?}");
        }
        fs::write(&path, &original[..original.len() - 1]).expect("a write");
        assert_ne!(place.trainer(["verify", "run"]).code, 0, "{name}, cut short");
        fs::remove_file(&path).expect("a removal");
        assert_ne!(place.trainer(["verify", "run"]).code, 0, "{name}, removed");
        fs::write(&path, original).expect("a write");
    }
    assert_eq!(place.trainer(["verify", "run"]).code, 0, "all restored");
}

/// The certificate's figures reveal a ledger that omits its last step, even if its chain of digests is intact.
#[test]
fn a_ledger_without_its_last_step_fails_verification() {
    let place = Workplace::new();
    assert_eq!(place.train(&tiny_plan(), &[]).code, 0);
    let path = place.path("run/ledger.jsonl");
    let text = fs::read_to_string(&path).expect("a ledger");
    let lines: Vec<&str> = text.lines().collect();
    let without_last_step = [&lines[..lines.len() - 2], &lines[lines.len() - 1..]].concat().join("\n") + "\n";
    fs::write(&path, without_last_step).expect("a write");
    assert_ne!(place.trainer(["verify", "run"]).code, 0);
}

#[test]
fn a_test_key_repeats_a_run_and_marks_it_not_private() {
    let runs: Vec<(Vec<u8>, Value)> = [Some("5"), Some("5"), Some("6"), None, None]
        .into_iter()
        .map(|key| {
            let place = Workplace::new();
            let arguments: Vec<&str> = key.map(|key| ["--test-key", key]).into_iter().flatten().collect();
            let outcome = place.train(&small_plan(), &arguments);
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            let weights = fs::read(place.path("run/model.safetensors")).expect("weights");
            (weights, json_file(&place.path("run/certificate.json")))
        })
        .collect();
    assert_eq!(runs[0].0, runs[1].0);
    assert_ne!(runs[0].0, runs[2].0);
    assert_ne!(runs[3].0, runs[4].0, "two private runs drew the same noise");
    let private: Vec<&Value> = runs.iter().map(|(_, certificate)| &certificate["private"]).collect();
    assert_eq!(private, [&json!(false), &json!(false), &json!(false), &json!(true), &json!(true)]);
}

/// With the same key, one SGD step on two data sets that differ in one record gives weights that differ by at most
/// learning rate × clip norm / expected batch size. The noise is scaled to this sensitivity.
#[test]
fn one_record_moves_one_step_by_at_most_its_clipped_share() {
    let plan = altered(
        tiny_plan(),
        &[
            ("/data/source", json!({ "path": "text.txt" })),
            ("/training/steps", json!(1)),
            ("/training/optimizer", json!({ "sgd": {} })),
            ("/training/learning_rate", json!({ "peak": 1.0 })),
            ("/training/l2_clip_norm", json!(0.5)),
            ("/privacy/noise_multipliers", json!({ "training": 2.0 })),
            // Every record takes part, including the one that differs.
            ("/training/expected_batch_size", json!(200)),
        ],
    );
    let text: Vec<String> = (0..200).map(|at| format!("record {at} speaks of {}", at * at)).collect();
    let weights = |records: &[String]| {
        let place = Workplace::new();
        place.write("text.txt", records.join("\n"));
        let outcome = place.train(&plan, &["--test-key", "3"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        floats(&fs::read(place.path("run/model.safetensors")).expect("weights"))
    };
    let (whole, without_last) = (weights(&text), weights(&text[..199]));
    assert_eq!(whole.len(), without_last.len());
    let squares = whole.iter().zip(&without_last).map(|(a, b)| f64::from(a - b).powi(2));
    let moved = squares.sum::<f64>().sqrt();
    let allowed = 1.0 * 0.5 / 200.0;
    // Weights are stored in 32 bits: each of about ten thousand may have an error of 1e-8.
    assert!(moved <= allowed * 1.001, "{moved} of {allowed}");
    // Far from a minimum, the gradient is longer than the clip norm, so the bound is reached.
    assert!(moved > 0.9 * allowed, "{moved} of {allowed}");
}

/// The values of a safetensors file of 32-bit floats: an 8-byte length, a JSON header, then the data.
fn floats(file: &[u8]) -> Vec<f32> {
    let header = u64::from_le_bytes(file[..8].try_into().expect("eight bytes"));
    let data = &file[8 + usize::try_from(header).expect("a length")..];
    data.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four bytes"))).collect()
}

/// Papers' releases as published: a plan takes the vocabulary as its tokenizer, and ε includes what the printed noise and
/// threshold really cost. Under the δ that the paper states, it is refused.
#[test]
fn a_vocabulary_by_a_papers_printed_formulas_is_a_plans_tokenizer_at_its_true_cost() {
    let place = Workplace::new();
    let records: Vec<String> =
        (0..800).map(|at| format!("the patient of room {at} has fever and pain")).collect();
    place.write("notes.txt", records.join("\n"));
    let dp_tokenizer = Command::new(program_path("dp-tokenizer"))
        .args([
            "train",
            "--input",
            "notes.txt",
            "--unit",
            "words:8",
            "--method",
            "hoory-2021",
            "--as-published",
        ])
        .args(["--epsilon", "4", "--delta", "1e-9", "--vocab-size", "400", "--out", "vocabulary"])
        .current_dir(place.path(""))
        .output();
    assert!(dp_tokenizer.is_ok_and(|output| output.status.success()));
    let alone = json_file(&place.path("vocabulary/privacy.json"));
    let really = alone["delta"].as_f64().expect("a figure");
    assert!(really > 100.0 * 1e-9, "{really}");
    let plan = |delta: f64| {
        let tokenizer =
            json!({ "public": { "path": "vocabulary/tokenizer.json", "made_from": "same_units" } });
        altered(
            tiny_plan(),
            &[
                ("/data", json!({ "source": { "path": "notes.txt" }, "units": 800 })),
                ("/privacy/unit", json!({ "words": 8 })),
                ("/privacy/delta", json!(delta)),
                ("/tokenizer", tokenizer),
            ],
        )
    };
    let refused = place.train(&plan(1e-9), &[]);
    assert!(refused.code == 2 && refused.stderr.contains("failure probability"), "{}", refused.stderr);
    assert!(!place.path("run").exists());
    let outcome = place.train(&plan(1e-3), &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let certificate = json_file(&place.path("run/certificate.json"));
    let spent = certificate["guarantee"]["epsilon"]["upper"].as_f64().expect("a figure");
    let training = certified(&altered(plan(1e-3), &[("/tokenizer", json!("bytes"))])).epsilon().upper;
    assert!(spent > training, "{spent} for the vocabulary and training, {training} for training alone");
    assert_eq!(place.trainer(["verify", "run"]).code, 0);
}
