//! Conversations, as a user trains on them and continues them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::process::{Command, Output};

use common::{Bench, stderr, tiny};
use dp_tokenizer::train::{CharacterConfig, characters};
use serde_json::{Value, json};

const TEMPLATE: &str = "{% for message in messages %}{% if message.role not in ['user', 'assistant'] %}{{ raise_exception('no ' + \
                        message.content) }}{% endif %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor \
                        %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Other characters become bytes.
const ALPHABET: &str = "▁abcdefghijklmnopqrstuvwxyzIW0123456789.?";

/// A plan of conversations with the tokenizer and the template in `base/`.
fn bench() -> Bench {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": "train.jsonl" }, "units": 200, "text_field": "messages" });
    plan["training"]["objective"] = json!("chat");
    plan["training"]["steps"] = json!(6);
    plan["model"]["context"] = json!(64);
    plan["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    plan["evaluation"] = json!({ "source": { "path": "public.jsonl" }, "every": 6 });
    let bench = Bench::new(&plan);
    fs::create_dir(bench.path("base")).unwrap();
    let config = CharacterConfig { vocab_size: 400, byte_fallback: true, ..CharacterConfig::default() };
    let tokenizer = characters(&[(ALPHABET.to_owned(), 1.0)], &config).unwrap().tokenizer;
    let tokenizer = tokenizer.with_special_tokens(&["<|im_start|>", "<|im_end|>"]);
    fs::write(bench.path("base/tokenizer.json"), tokenizer.to_json()).unwrap();
    fs::write(bench.path("base/chat_template.jinja"), TEMPLATE).unwrap();
    let config = json!({ "eos_token": "<|im_end|>", "pad_token": { "content": "<pad>", "lstrip": false } });
    fs::write(bench.path("base/tokenizer_config.json"), config.to_string()).unwrap();
    fs::write(bench.path("train.jsonl"), (0..200).map(|at| line("user", at)).collect::<String>()).unwrap();
    fs::write(bench.path("public.jsonl"), (500..520).map(|at| line("user", at)).collect::<String>()).unwrap();
    bench
}

fn line(role: &str, at: usize) -> String {
    let question = json!({ "role": role, "content": format!("What is {at}?") });
    format!(
        "{}\n",
        json!({ "messages": [question, { "role": "assistant", "content": format!("It is {}.", at + 1) }] })
    )
}

fn generate(bench: &Bench, prompt: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .args(["generate", "--temperature", "0", "--tokens", "8", "--prompt", prompt])
        .arg(bench.path("run"))
        .output()
        .unwrap()
}

#[test]
fn a_run_of_conversations_has_its_template_and_takes_the_assistants_turn() {
    let bench = bench();
    bench.model("run", &["--test-key", "3"]);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(bench.path("run").join(name)).unwrap()).unwrap()
    };
    assert_eq!(fs::read_to_string(bench.path("run/chat_template.jinja")).unwrap(), TEMPLATE);
    let config = read("tokenizer_config.json");
    assert_eq!((&config["eos_token"], &config["padding_side"]), (&json!("<|im_end|>"), &json!("left")));
    let tokens: Value = read("tokenizer.json");
    let added = tokens["added_tokens"].as_array().unwrap();
    let end = added.iter().find(|token| token["content"] == "<|im_end|>").unwrap()["id"].as_u64().unwrap();
    // It is also the token that the tokenizer states for the end of a text.
    assert_eq!(read("generation_config.json")["eos_token_id"], end);
    // Only answers are measured: "It is N." with the end of the turn and of the line.
    let evaluation = read("evaluation.json");
    let answered: usize = (500..520).map(|at: usize| format!("It is {}.", at + 1).len() + 2).sum();
    assert_eq!(evaluation["tokens"].as_u64().unwrap() as usize, answered, "{evaluation}");
    // A text is a message of the user; a list is a conversation.
    let [text, list] =
        ["Hi", r#"[{"role": "user", "content": "Hi"}]"#].map(|prompt| generate(&bench, prompt));
    assert!(text.status.success() && list.status.success(), "{} {}", stderr(&text), stderr(&list));
    assert_eq!(text.stdout, list.stdout);
    let refused = generate(&bench, r#"[{"role": "robot", "content": "Hi"}]"#);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("no Hi"), "{}", stderr(&refused));
}

/// The records are conversations as those of the training text: prompt and answer, which ends before the string.
#[test]
fn synthetic_conversations_are_prompts_with_an_answer_each_that_ends_at_the_stop() {
    let bench = bench();
    bench.model("run", &["--test-key", "3"]);
    let synthesize = |out: &str, options: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_trainer-native"))
            .args(["synthesize", "--count", "20", "--tokens", "40", "--seed", "7", "--out"])
            .arg(bench.path(out))
            .args(options)
            .arg(bench.path("run"))
            .output()
            .unwrap()
    };
    let missing = synthesize("none.jsonl", &[]);
    assert!(missing.status.code() == Some(2) && stderr(&missing).contains("--prompts: missing"));
    let asked = json!({ "messages": [{ "role": "user", "content": "What is 7?" }] });
    fs::write(bench.path("asked.jsonl"), format!("{asked}\n")).unwrap();
    let prompts = bench.path("asked.jsonl").to_str().unwrap().to_owned();
    let prompts = ["--prompts", &prompts, "--field", "messages"];
    let answers = |out: &str, options: &[&str]| -> Vec<String> {
        let output = synthesize(out, &[&prompts[..], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let text = fs::read_to_string(bench.path(out)).unwrap();
        let record = |line: &str| {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["messages"][0], asked["messages"][0]);
            assert_eq!(record["messages"][1]["role"], "assistant");
            record["messages"][1]["content"].as_str().unwrap().to_owned()
        };
        text.lines().map(record).collect()
    };
    let whole = answers("whole.jsonl", &[]);
    // A model that learnt nothing writes runs of bytes, which are characters as a whole or not at all, and between them these tokens.
    let stops = ["</s>", "<|im_start|>"];
    let cut = answers("cut.jsonl", &["--stop", stops[0], "--stop", stops[1]]);
    assert_eq!((whole.len(), cut.len()), (20, 20));
    // The same seed draws the same tokens up to the stop.
    let before = |text: &String| stops.iter().filter_map(|stop| text.find(stop)).min();
    let wanted: Vec<&str> = whole.iter().map(|text| &text[..before(text).unwrap_or(text.len())]).collect();
    assert_eq!(cut, wanted);
    assert!(wanted.iter().zip(&whole).any(|(cut, whole)| cut.len() < whole.len()), "{whole:?}");
    assert!(
        fs::read_to_string(bench.path("cut.card.md"))
            .unwrap()
            .contains("\"stop\":[\"</s>\",\"<|im_start|>\"]")
    );
}

#[test]
fn conversations_and_templates_that_do_not_fit_are_refused_before_anything_is_written() {
    let bench = bench();
    let refused = |words: &str| {
        let output = bench.run("run", &[]);
        let message = stderr(&output);
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains(words) && !message.contains("What"), "{message}");
        assert!(!bench.path("run").exists());
    };
    let text = fs::read_to_string(bench.path("train.jsonl")).unwrap();
    for bad in [
        line("robot", 3),
        "{\"messages\": \"What?\"}\n".to_owned(),
        "{\"messages\": [{\"content\": \"What\"}]}\n".to_owned(),
    ] {
        fs::write(bench.path("train.jsonl"), bad + &text).unwrap();
        refused("data.source: record 1: its messages do not fit the chat template");
    }
    fs::write(bench.path("train.jsonl"), format!("{text}{{\"text\": \"What\"}}\n")).unwrap();
    refused("no field \"messages\"");
    fs::write(bench.path("train.jsonl"), text).unwrap();
    fs::write(bench.path("base/chat_template.jinja"), "{% for m in messages %}").unwrap();
    refused("chat_template.jinja: line 1 of the chat template");
    fs::remove_file(bench.path("base/chat_template.jinja")).unwrap();
    refused("no chat template; put chat_template.jinja beside the tokenizer");
}

/// A checkpoint as a run on public text leaves it, and chat logs of customers: `init` alone writes the plan.
#[test]
fn init_makes_of_chat_logs_and_a_checkpoint_the_plan_of_an_adapter() {
    let bench = bench();
    let mut plan: Value = serde_json::from_slice(&fs::read(bench.path("plan.json")).unwrap()).unwrap();
    plan = common::on_public_text(&plan);
    plan["training"]["steps"] = json!(5);
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench.model("checkpoint", &[]);
    let log = |at: usize| format!("{{\"customer\": \"c{at}\", {}", &line("user", at + 1000)[1..]);
    fs::write(bench.path("chats.jsonl"), (0..120).map(log).collect::<String>()).unwrap();
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        command.current_dir(bench.folder.path()).args(arguments.split_whitespace());
        command.env("XDG_STATE_HOME", bench.path("state")).output().unwrap()
    };
    let init = "init chats.jsonl --units 120 --epsilon 8 --steps 2 --batch-size 16 --out chat.json";
    let asked = run(&format!("{init} --unit record"));
    assert!(
        asked.status.code() == Some(2) && stderr(&asked).contains("--checkpoint: chat"),
        "{}",
        stderr(&asked)
    );
    let output = run(&format!("{init} --unit user --checkpoint checkpoint"));
    assert!(output.status.success(), "{}", stderr(&output));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("chat: \"messages\" holds lists") && told.contains("adapters (LoRA)"), "{told}");
    let plan: Value = serde_json::from_slice(&fs::read(bench.path("chat.json")).unwrap()).unwrap();
    assert_eq!(
        (&plan["data"]["text_field"], &plan["data"]["user_field"]),
        (&json!("messages"), &json!("customer"))
    );
    assert_eq!(plan["model"]["trainable"]["lora"]["targets"], json!(["c_attn"]));
    assert_eq!((&plan["training"]["objective"], &plan["model"]["context"]), (&json!("chat"), &json!(64)));

    let output = run("train --plan chat.json --test-key 7 --out adapted");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(bench.path("adapted/adapter/adapter_model.safetensors").is_file());
}
