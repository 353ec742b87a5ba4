//! What a model memorized is found: by `memorization`, `exposure` and `audit`, for every objective, family and split.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::{Command, Output};

use common::{Bench, on_public_text, stderr, tiny};
use dp_tokenizer::train::{CharacterConfig, characters};
use serde_json::{Value, json};

fn trainer(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    command.current_dir(bench.folder.path()).env("XDG_STATE_HOME", bench.path("state"));
    command.args(arguments).output().unwrap()
}

fn printed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Thirty words, none twice, in an order that only the number of the record tells.
fn words(record: u64) -> Vec<String> {
    let begins = ["ka", "lo", "mi", "ne", "ru", "de", "fo", "gi"];
    let word = |begin: &str, end: &str| format!("{begin}{end}");
    let mut words: Vec<String> =
        begins.iter().flat_map(|begin| ["n", "s", "t", "r", "l"].map(|end| word(begin, end))).collect();
    fastrand::Rng::with_seed(record).shuffle(&mut words);
    words.truncate(30);
    words
}

/// A row of the table.
#[derive(Clone, Debug)]
struct Case {
    /// Fields of a plan's model.
    model: Value,
    objective: &'static str,
    /// Fields of its training.
    training: Value,
}

fn cases() -> Vec<Case> {
    // Where the masks or the split change from step to step, training takes longer.
    let rate = json!({ "peak": 6e-3, "warmup_steps": 50, "decay": "linear" });
    let long = json!({ "steps": 1200, "views_per_unit": 2, "learning_rate": rate });
    let split = json!({ "prefix_split": { "read": 8, "written": 7 } });
    let none = json!({});
    // Halves that change places anywhere take a small model far longer to learn.
    let at_ends = json!({
        "sentence_split": "sentence_end", "steps": 2000, "views_per_unit": 2, "learning_rate": long["learning_rate"]
    });
    [
        (json!({ "family": "gpt2" }), "causal_lm", none.clone()),
        (json!({ "family": "llama" }), "causal_lm", none.clone()),
        (json!({ "family": "feed_forward", "heads": 1, "history": 6 }), "causal_lm", none.clone()),
        (json!({ "family": "t5", "context": 12, "d_model": 48, "layers": 2 }), "prefix_lm", long.clone()),
        (json!({ "family": "t5", "context": 9, "decoder_context": 8 }), "prefix_lm", none.clone()),
        (json!({ "family": "t5", "context": 9, "decoder_context": 8 }), "prefix_lm", split.clone()),
        (json!({ "family": "t5_v1_1" }), "prefix_lm", split),
        (json!({ "family": "t5" }), "span_corruption", none.clone()),
        (json!({ "family": "bert" }), "masked_lm", long.clone()),
        (json!({ "family": "bert", "d_model": 48 }), "masked_lm_next_sentence", at_ends),
        (json!({ "family": "t5" }), "text_to_text", none.clone()),
        (json!({ "family": "bart" }), "text_to_text", none.clone()),
        (json!({ "family": "gpt2", "context": 48 }), "text_to_text", none.clone()),
        (json!({ "family": "gpt2", "context": 64 }), "chat", none),
    ]
    .into_iter()
    .map(|(model, objective, training)| Case { model, objective, training })
    .collect()
}

/// The plan of a case on `units` records.
fn bench(case: &Case, units: u64) -> Bench {
    let Case { model, objective, training } = case;
    let mut plan = tiny();
    let file = format!("train.{}", ending(objective));
    plan.as_object_mut().unwrap().remove("evaluation");
    plan["data"] = json!({ "source": { "path": file }, "units": units });
    // So many words are released from few records only with little noise.
    plan["privacy"]["epsilon"] = json!(5000.0);
    plan["tokenizer"] = json!({ "train": { "model": "unigram", "vocab_size": 400, "release": "sips" } });
    plan["model"] = json!({ "context": 16, "d_model": 32, "layers": 1, "heads": 2, "d_ff": 64 });
    plan["training"] = json!({
        "objective": objective, "expected_batch_size": units.min(30), "steps": 400, "l2_clip_norm": 1.0,
        "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-2, "warmup_steps": 10 }
    });
    for (part, fields) in [("model", model), ("training", training)] {
        plan[part].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    }
    plan["performance"]["checkpoint_every"] = json!(1000);
    if *objective == "chat" {
        plan["data"]["text_field"] = json!("messages");
        plan["tokenizer"] =
            json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    }
    let bench = Bench::new(&plan);
    write_chat_tokenizer(&bench);
    for (name, first) in [("train", 0), ("valid", 1000)] {
        let lines = |line: &dyn Fn(&[String]) -> String| -> String {
            (first..first + units).map(|record| line(&words(record)) + "\n").collect()
        };
        let text = lines(&|words| match *objective {
            "masked_lm_next_sentence" => format!("{}. {}.", words[..6].join(" "), words[6..12].join(" ")),
            _ => words.join(" "),
        });
        let pairs = lines(&|words| {
            let message = |role: &str, said: &[String]| json!({ "role": role, "content": said.join(" ") });
            let messages = [message("user", &words[..3]), message("assistant", &words[3..8])];
            json!({ "text": words[..8].join(" "), "target": words[8..18].join(" "), "messages": messages })
                .to_string()
        });
        std::fs::write(bench.path(&format!("{name}.txt")), text).unwrap();
        std::fs::write(bench.path(&format!("{name}.jsonl")), pairs).unwrap();
    }
    bench
}

/// The ending of the files that an objective reads.
fn ending(objective: &str) -> &'static str {
    if ["text_to_text", "chat"].contains(&objective) { "jsonl" } else { "txt" }
}

/// A tokenizer of characters with a template of conversations, in `base/`.
fn write_chat_tokenizer(bench: &Bench) {
    let config = CharacterConfig { vocab_size: 400, byte_fallback: true, ..CharacterConfig::default() };
    let alphabet = "▁abcdefghijklmnopqrstuvwxyz";
    let tokenizer = characters(&[(alphabet.to_owned(), 1.0)], &config).unwrap().tokenizer;
    let template = "{% for message in messages %}{{ message.role }}: {{ message.content }}<|im_end|>{% endfor %}{% if \
                    add_generation_prompt %}assistant: {% endif %}";
    let files = [
        ("tokenizer.json", tokenizer.with_special_tokens(&["<|im_end|>"]).to_json()),
        ("tokenizer_config.json", json!({ "eos_token": "<|im_end|>", "pad_token": "<pad>" }).to_string()),
        ("chat_template.jinja", template.to_owned()),
    ];
    std::fs::create_dir(bench.path("base")).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(bench.path("base").join(name), text).unwrap());
}

/// Makes the plan one of public text, and trains.
fn train_on_public(bench: &Bench) {
    let path = bench.path("plan.json");
    let plan: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    std::fs::write(&path, on_public_text(&plan).to_string()).unwrap();
    bench.model("run", &["--test-key", "1"]);
}

fn memorization(bench: &Bench, ending: &str, arguments: &[&str]) -> Output {
    let files = ["train", "valid"].map(|name| format!("{name}.{ending}"));
    let asked = ["memorization", "run", "--train", &files[0], "--valid", &files[1], "--json"];
    trainer(bench, &[&asked, arguments].concat())
}

/// The shares of training and of other records that the model writes exactly, over six records each.
fn exact(found: &Value) -> [f64; 2] {
    ["train, unique", "validation, unique"].map(|split| {
        let row = found["rows"].as_array().unwrap().iter().find(|row| row["split"] == split).unwrap();
        assert_eq!(row["figures"]["examples"], 6, "{found}");
        row["figures"]["exact_match"].as_f64().unwrap()
    })
}

#[test]
fn memorized_text_is_found_for_every_objective_family_and_split() {
    for case in cases() {
        let bench = bench(&case, 6);
        train_on_public(&bench);
        let found = printed(&memorization(&bench, ending(case.objective), &[]));
        let [train, valid] = exact(&found);
        assert!(train >= 0.5 && valid <= 0.2, "{case:?}: {train} {valid}");
        assert!(found["lower_bound"].is_null(), "{found}");
    }
}

/// A split that training did not make is refused, or its figures say that they are lower bounds. Those of a shorter continuation are not.
#[test]
fn another_split_than_the_trained_one_is_refused_or_named_a_lower_bound() {
    let bench = bench(&cases()[5], 6);
    train_on_public(&bench);
    let asked = |prefix: &str, continuation: &str| {
        memorization(&bench, "txt", &["--prefix", prefix, "--continuation", continuation])
    };
    for (prefix, continuation, part) in [
        ("8", "8", "--continuation 8: the continuation is longer than the 7 tokens"),
        ("9", "7", "--prefix 9: the prompt is longer than the 8 tokens"),
        ("8", "0", "allowed: at least 1 each"),
    ] {
        let output = asked(prefix, continuation);
        let message = stderr(&output);
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains(part), "{message}");
    }
    for continuation in ["7", "4"] {
        let found = printed(&asked("8", continuation));
        assert!(exact(&found)[0] >= 0.8 && found["lower_bound"].is_null(), "{found}");
    }
    let found = printed(&asked("6", "7"));
    assert!(
        found["lower_bound"].as_str().unwrap().contains("trained to write 7 tokens after 8, not after 6"),
        "{found}"
    );
}

/// The cases that make windows of text, each objective and split once.
fn audited() -> impl Iterator<Item = Case> {
    let cases = cases();
    [0, 3, 4, 5, 7, 8].into_iter().map(move |at| {
        let Case { mut model, objective, training } = cases[at].clone();
        model
            .as_object_mut()
            .unwrap()
            .retain(|field, _| ["family", "decoder_context"].contains(&field.as_str()));
        let split = training.get("prefix_split").map_or(json!({}), |split| json!({ "prefix_split": split }));
        Case { model, objective, training: split }
    })
}

/// A guess finds a canary with probability ½, so 18 of 20 with probability 2e-4.
#[test]
fn an_audit_finds_what_is_memorized_for_every_objective_and_split() {
    for case in audited() {
        let bench = bench(&case, 60);
        let plain = ["--canaries", "40", "--non-private", "--test-key", "3", "--json"];
        let run = ["audit", "--plan", "plan.json", "--out", "run"];
        let found = printed(&trainer(&bench, &[&run[..], &plain].concat()));
        assert!(found["correct"].as_u64().unwrap() >= 18, "{case:?}: {found}");
    }
}

#[test]
fn exposure_finds_what_is_memorized_for_every_objective_and_split() {
    for case in audited() {
        let bench = bench(&case, 60);
        let run = ["exposure", "--plan", "plan.json", "--out", "curve", "--test-key", "3", "--json"];
        let secrets = ["--patterns", "HHHS", "--secrets", "2", "--copies", "10"];
        let found = printed(&trainer(&bench, &[&run[..], &secrets].concat()));
        let exposure = |row: usize| found["rows"][row]["without_privacy"]["exposure"].as_f64().unwrap();
        // With 396 candidates, exposure is at most 8.6 bits. Chance gives about 1.
        assert!(exposure(1) > 7.0 && exposure(0) < 5.0, "{case:?}: {found}");
    }
    for (at, pattern) in [(4, "HSHHH"), (5, "HSHHH"), (7, "HSHHH"), (7, "SHH")] {
        let bench = bench(&cases()[at], 60);
        let run = ["exposure", "--plan", "plan.json", "--out", "curve", "--patterns", pattern];
        let output = trainer(&bench, &run);
        let message = stderr(&output);
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(
            message.contains("training never predicts the secret") && !bench.path("curve").exists(),
            "{message}"
        );
    }
}
