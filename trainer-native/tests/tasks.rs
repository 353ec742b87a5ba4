//! Tasks from a plan to scores: labels of texts and of words, and texts that are written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{Bench, on_public_text, stderr, tiny};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use training::verify::verify_run;

/// A plan of a task on 240 records of `train.EXTENSION` and 60 of `test.EXTENSION`.
fn plan(family: &str, objective: &str, extension: &str) -> Value {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": format!("train.{extension}") }, "units": 240 });
    plan["evaluation"] = json!({ "source": { "path": format!("test.{extension}") }, "every": 20 });
    plan["model"] =
        json!({ "family": family, "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 40 });
    plan["training"]["objective"] = json!(objective);
    plan["training"]["steps"] = json!(100);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-2 });
    plan
}

/// Writes both files of a plan, with `row` of consecutive numbers.
fn write(bench: &Bench, extension: &str, header: &str, row: impl Fn(usize) -> String) {
    for (name, rows) in [("train", 0..240), ("test", 1000..1060)] {
        let text: String = rows.map(&row).collect();
        std::fs::write(bench.path(&format!("{name}.{extension}")), format!("{header}{text}")).unwrap();
    }
}

/// The class of a record, and a word that identifies it.
fn class(number: usize) -> (usize, &'static str) {
    let class = number * 7 % 3;
    (class, ["zzz", "qqqq", "xx"][class])
}

/// A word that makes test records differ from training records.
fn filler(number: usize) -> &'static str {
    if number < 1000 { "no" } else { "na" }
}

/// The runs of all tasks: a plan, its files, and the score that must exceed a guess.
fn runs() -> Vec<(Bench, &'static str, f64)> {
    let mut runs = Vec::new();
    let mut texts = plan("bert", "sequence_classification", "csv");
    texts["training"]["labels"] = json!(["first", "second", "third"]);
    texts["data"]["second_text_field"] = json!("more");
    let bench = Bench::new(&texts);
    write(&bench, "csv", "text,more,label\n", |number| {
        let (class, word) = class(number);
        format!(
            "\"{} {}, or\n\",{word},{}\n",
            filler(number),
            number % 10,
            ["first", "second", "third"][class]
        )
    });
    runs.push((bench, "accuracy", 0.6));

    let mut sets = plan("gpt2", "multi_label_classification", "tsv");
    sets["training"]["labels"] = json!(["a", "b"]);
    sets["data"]["columns"] = json!(["id", "label", "text"]);
    let bench = Bench::new(&sets);
    write(&bench, "tsv", "", |number| {
        let (class, word) = class(number);
        format!("{number}\t{}\t\"{word} {}\n", ["", "a", "b,a"][class], filler(number))
    });
    runs.push((bench, "micro_f1", 0.7));

    for extension in ["iob", "jsonl"] {
        let mut tagged = plan("bert", "token_classification", extension);
        tagged["training"]["labels"] = json!(["O", "B-Thing", "I-Thing"]);
        let bench = Bench::new(&tagged);
        write(&bench, extension, "", |number| {
            let words = [filler(number), &class(number).1.to_uppercase(), "XX", "."];
            let tags = ["O", "B-Thing", "I-Thing", "O"];
            if extension == "jsonl" {
                return format!("{}\n", json!({ "text": words, "label": tags }));
            }
            let lines = words.iter().zip(tags).map(|(word, tag)| format!("{word}\t{tag}\n"));
            lines.collect::<String>() + "\n"
        });
        runs.push((bench, "f1", 0.6));
    }

    for family in ["t5", "gpt2"] {
        let mut written = plan(family, "text_to_text", "jsonl");
        written["data"]["text_field"] = json!("pair.en");
        written["data"]["target_field"] = json!("pair.de");
        let bench = Bench::new(&written);
        write(&bench, "jsonl", "", |number| {
            let word = class(number).1;
            format!("{}\n", json!({ "pair": { "en": format!("{number}{word}"), "de": word.repeat(2) } }))
        });
        runs.push((bench, "token_accuracy", 0.3));
    }
    runs.push((classified_by_t5(), "accuracy", 0.6));
    runs
}

/// Pairs of texts, which the encoder and decoder of a T5 read.
fn classified_by_t5() -> Bench {
    let mut pairs = plan("t5", "sequence_classification", "jsonl");
    pairs["training"]["labels"] = json!(["no", "yes", "maybe"]);
    pairs["data"]["second_text_field"] = json!("more");
    let bench = Bench::new(&pairs);
    write(&bench, "jsonl", "", |number| {
        let (class, word) = class(number);
        let text = format!("{} {}", filler(number), number % 10);
        format!("{}\n", json!({ "text": text, "more": word, "label": (["no", "yes", "maybe"][class]) }))
    });
    bench
}

/// A pair task as T5 reads it. Its headline is the score of whole answers.
#[test]
fn written_labels_and_numbers_are_scored_as_such() {
    let words = ["no", "yes", "maybe"];
    for (answers, decoder_context) in [(json!({ "labels": words }), 8), (json!({ "numbers": 0.2 }), 6)] {
        let mut plan = on_public_text(&plan("t5", "text_to_text", "jsonl"));
        plan["data"]["text_prefix"] = json!("task a: ");
        plan["data"]["second_text_field"] = json!("more");
        plan["data"]["second_text_prefix"] = json!("b: ");
        plan["model"]["decoder_context"] = json!(decoder_context);
        plan["training"]["answers"] = answers.clone();
        plan["training"]["steps"] = json!(200);
        let bench = Bench::new(&plan);
        write(&bench, "jsonl", "", |number| {
            let (class, word) = class(number);
            let target = match answers["labels"].is_array() {
                true => json!(words[class]),
                // Rounded to 0.6, 1.6 and 2.6.
                false => json!((class as f64 + 0.55).to_string()),
            };
            format!(
                "{}\n",
                json!({ "text": filler(number), "more": format!("{word} {number}"), "target": target })
            )
        });
        bench.model("run", &["--test-key", "3"]);
        let figures = read_json(&bench.path("run/evaluation.json"));
        assert!(figures["scores"].is_null(), "{figures}");
        let shown = stderr(&bench.run("run", &["--test-key", "3", "--resume"]));
        if answers["labels"].is_array() {
            let found = &figures["answers"]["labels"];
            assert_eq!(found["texts"], 60, "{figures}");
            assert!((found["majority_accuracy"].as_f64().unwrap() - 1.0 / 3.0).abs() < 0.05, "{figures}");
            for way in ["written", "likeliest"] {
                assert!(found[way]["accuracy"].as_f64().unwrap() > 0.6, "{way}: {figures}");
            }
        } else {
            let found = &figures["answers"]["numbers"];
            assert!(
                found["pearson"].as_f64().unwrap() > 0.5 && found["spearman"].as_f64().unwrap() > 0.5,
                "{figures}"
            );
        }
        assert!(!shown.contains("warning"), "{shown}");
        let prompt = ["generate", "@0", "--prompt", "no b: zzz 7", "--temperature", "0", "--tokens", "6"];
        let written = String::from_utf8(program(&prompt, &[&bench.path("run")]).stdout).unwrap();
        let answer = if answers["labels"].is_array() { "no" } else { "0.6" };
        assert_eq!(written.trim(), answer, "the prefix stands before a prompt as well");
        write(&bench, "jsonl", "", |_| {
            json!({ "text": "a", "more": "b", "target": "other" }).to_string() + "\n"
        });
        refuses_named(&bench, "record 1 has a");
    }
}

/// Refuses a changed text in one line.
fn refuses_named(bench: &Bench, expected: &str) {
    let output = bench.run("again", &[]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains(expected), "{message}");
}

fn program(arguments: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    for argument in arguments {
        match argument.strip_prefix('@').map(|index| paths[index.parse::<usize>().unwrap()]) {
            Some(path) => command.arg(path),
            None => command.arg(argument),
        };
    }
    command.output().unwrap()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_task_trains_verifies_repeats_and_scores_above_a_guess() {
    for (bench, score, least) in runs() {
        let plan = read_json(&bench.path("plan.json"));
        let (objective, source) = (&plan["training"]["objective"], &plan["data"]["source"]["path"]);
        let [first, again] = ["a", "b"].map(|run| bench.model(run, &["--test-key", "3"]));
        assert!(first == again, "{objective}");
        bench.model("private", &[]);
        let run = bench.path("private");
        assert!(verify_run(&run).unwrap().private, "{objective}");
        bench.model("baseline", &["--non-private", "--test-key", "3"]);
        let figures = read_json(&bench.path("baseline").join("evaluation.json"));
        assert!(figures[score].as_f64().unwrap() > least, "{objective} of {source}: {figures}");
        let test = bench.path(&source.as_str().unwrap().replace("train", "test"));
        let output = program(&["eval", "@0", "--text", "@1", "--json"], &[&bench.path("baseline"), &test]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), figures, "{objective}");
        for command in [&["export", "@0", "--out", "@1"][..], &["report", "@0"]] {
            let output = program(command, &[&run, &bench.path("exported")]);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        let predicted = program(&["predict", "@0", "--input", "@1"], &[&bench.path("baseline"), &test]);
        if objective == "text_to_text" {
            assert!(stderr(&predicted).contains("predicts tokens"), "{}", stderr(&predicted));
            // It answers its prompt and does not go on with it.
            let greedy = ["generate", "@0", "--prompt", "77xx", "--temperature", "0", "--tokens", "8"];
            let answer = String::from_utf8(program(&greedy, &[&bench.path("baseline")]).stdout).unwrap();
            assert!(!answer.trim().is_empty() && !answer.contains("77"), "{source}: {answer}");
            let names: Vec<&Value> =
                figures["scores"].as_array().unwrap().iter().map(|score| &score["name"]).collect();
            assert_eq!(names, ["BLEU", "chrF2"], "{source}");
            if plan["model"]["family"] == "t5" {
                assert_eq!(scored(&bench, &["--temperature", "0"]), figures["scores"]);
            }
        } else {
            assert_eq!(String::from_utf8(predicted.stdout).unwrap().lines().count(), 60, "{objective}");
        }
    }
}

/// The texts of an evaluation are those that a beam search finds for the first records.
#[test]
fn an_evaluation_with_beams_scores_the_texts_of_a_beam_search() {
    let mut plan = on_public_text(&plan("t5", "text_to_text", "jsonl"));
    plan["data"]["text_field"] = json!("pair.en");
    plan["data"]["target_field"] = json!("pair.de");
    let bench = Bench::new(&plan);
    write(&bench, "jsonl", "", |number| {
        let word = class(number).1;
        format!("{}\n", json!({ "pair": { "en": format!("{number}{word}"), "de": word.repeat(2) } }))
    });
    let scores = |bench: &Bench| read_json(&bench.path("baseline/evaluation.json"))["scores"].clone();
    bench.model("baseline", &["--test-key", "3"]);
    let greedy = scores(&bench);
    std::fs::remove_dir_all(bench.path("baseline")).unwrap();
    for (field, value) in [("beams", 3), ("records", 20)] {
        plan["evaluation"][field] = json!(value);
    }
    std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench.model("baseline", &["--test-key", "3"]);
    let test = std::fs::read_to_string(bench.path("test.jsonl")).unwrap();
    let first: Vec<&str> = test.lines().take(20).collect();
    std::fs::write(bench.path("test.jsonl"), first.join("\n")).unwrap();
    let searched = scores(&bench);
    assert_eq!(scored(&bench, &["--beams", "3"]), searched);
    assert_ne!(searched, greedy);
}

/// Returns the scores that `score` gives to the texts of `generate` with these options. Both have oracles of
/// their own.
fn scored(bench: &Bench, decoding: &[&str]) -> Value {
    let paths = ["baseline", "test.jsonl", "written.jsonl", "references.txt"].map(|name| bench.path(name));
    let references = std::fs::read_to_string(&paths[1]).unwrap();
    let target =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["pair"]["de"].as_str().unwrap().to_owned();
    std::fs::write(&paths[3], references.lines().map(target).collect::<Vec<_>>().join("\n")).unwrap();
    let paths = paths.each_ref().map(|path| path.as_path());
    let written =
        ["generate", "@0", "--prompts", "@1", "--field", "pair.en", "--tokens", "40", "--out", "@2"];
    let written = [&written, decoding].concat();
    for command in [&written[..], &["score", "@2", "@3", "--json"]] {
        let output = program(command, &paths);
        assert!(output.status.success(), "{}", stderr(&output));
        if command[0] == "score" {
            return serde_json::from_slice(&output.stdout).unwrap();
        }
    }
    Value::Null
}

/// The number of cut records is shown if they are public, and not if they are private.
#[test]
fn records_that_are_cut_are_counted_where_they_are_public() {
    let mut private = plan("t5", "text_to_text", "jsonl");
    private["model"]["context"] = json!(12);
    private["training"]["steps"] = json!(1);
    let bench = Bench::new(&private);
    // 11 bytes and the end-of-text token fit.
    write(&bench, "jsonl", "", |number| {
        let width = if number % 3 == 0 { 12 } else { 11 };
        format!("{}\n", json!({ "text": format!("{number:0>width$}"), "target": "yes" }))
    });
    let notes = |run: &str| stderr(&bench.run(run, &[]));
    let evaluation =
        "evaluation: 20 of 60 records are longer than the model's 12 tokens (12 to be written) and are cut";
    let said = notes("private");
    assert!(
        said.contains("training: records longer than the model's 12 tokens are cut")
            && said.contains(evaluation),
        "{said}"
    );
    assert!(!said.contains("of 240"), "{said}");
    std::fs::write(bench.path("plan.json"), on_public_text(&private).to_string()).unwrap();
    let said = notes("public");
    assert!(said.contains("training: 80 of 240 records are longer") && said.contains(evaluation), "{said}");
}

/// The fields that `transformers` needs to load the model as one for this task.
#[test]
fn configurations_name_the_task_and_its_labels() {
    let want = [
        ("BertForSequenceClassification", json!({ "0": "first", "1": "second", "2": "third" })),
        ("GPT2ForSequenceClassification", json!({ "0": "a", "1": "b" })),
        ("BertForTokenClassification", json!({ "0": "O", "1": "B-Thing", "2": "I-Thing" })),
        ("BertForTokenClassification", json!({ "0": "O", "1": "B-Thing", "2": "I-Thing" })),
        ("T5ForConditionalGeneration", Value::Null),
        ("GPT2LMHeadModel", Value::Null),
        ("T5ForSequenceClassification", json!({ "0": "no", "1": "yes", "2": "maybe" })),
    ];
    for ((bench, ..), (architecture, labels)) in runs().into_iter().zip(want) {
        let mut plan = read_json(&bench.path("plan.json"));
        plan["training"]["steps"] = json!(1);
        std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        bench.model("run", &[]);
        let config = read_json(&bench.path("run").join("config.json"));
        assert_eq!((&config["architectures"][0], &config["id2label"]), (&json!(architecture), &labels));
        let starts = config["decoder_start_token_id"].is_u64();
        assert_eq!(
            starts,
            architecture.starts_with("T5"),
            "{architecture} shifts its decoder's input by itself"
        );
    }
}

/// A file or a plan that does not fit, the change, and the one line of the refusal.
#[test]
fn labels_and_fields_that_do_not_fit_are_refused_in_one_line_without_private_text() {
    let bench = Bench::new(&{
        let mut plan = plan("bert", "sequence_classification", "jsonl");
        plan["training"]["labels"] = json!(["yes", "no"]);
        plan
    });
    let row =
        |number: usize| json!({ "text": "Secret", "label": (["yes", "no"][number % 2]) }).to_string() + "\n";
    let cases = [
        (
            "train.jsonl",
            json!({ "text": "Secret", "label": "SecretLabel" }).to_string(),
            "record 241 has a label that",
        ),
        (
            "train.jsonl",
            json!({ "text": "Secret", "label": ["yes", "no"] }).to_string(),
            "record 241 has 2 labels",
        ),
        ("train.jsonl", json!({ "text": "Secret" }).to_string(), "no field \"label\""),
        (
            "test.jsonl",
            json!({ "text": "fine", "label": "perhaps" }).to_string(),
            "label \"perhaps\" that training.labels",
        ),
    ];
    for (file, line, expected) in cases {
        write(&bench, "jsonl", "", row);
        let mut text = std::fs::read_to_string(bench.path(file)).unwrap();
        text.push_str(&line);
        std::fs::write(bench.path(file), text).unwrap();
        refuses(&bench, expected);
    }
    write(&bench, "jsonl", "", row);
    refuses(&bench, "it shares text with the training text");
    std::fs::write(bench.path("test.jsonl"), "\n").unwrap();
    refuses(&bench, "evaluation.source");

    let mut tags = plan("bert", "token_classification", "jsonl");
    tags["training"]["labels"] = json!(["O", "B-X"]);
    let bench = Bench::new(&tags);
    write(&bench, "jsonl", "", |_| {
        json!({ "text": ["Secret", "word"], "label": ["B-X"] }).to_string() + "\n"
    });
    refuses(&bench, "record 1 has 2 words and 1 tags");
    write(&bench, "jsonl", "", |_| json!({ "text": ["Secret"], "label": ["Q-X"] }).to_string() + "\n");
    refuses(&bench, "record 1 has a label that training.labels does not list");
}

fn refuses(bench: &Bench, expected: &str) {
    let output = bench.run("run", &[]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains(expected) && !message.contains("Secret"), "{expected}: {message}");
    assert!(!bench.path("run").exists(), "{expected}: nothing is written");
}

/// A model of tokens becomes a model of labels: its backbone is kept, its head is drawn, and a head
/// with other labels is refused.
#[test]
fn a_checkpoint_is_tuned_for_labels_whole_or_with_adapters() {
    let mut tuned = plan("gpt2", "sequence_classification", "csv");
    tuned = on_public_text(&tuned);
    tuned["training"]["labels"] = json!(["first", "second", "third"]);
    tuned["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    tuned["model"]["initial"] = json!({ "checkpoint": "base" });
    tuned["model"]["checkpoint_made_from"] = json!("public_text");
    let mut base = tiny();
    base["model"] = plan("gpt2", "", "")["model"].clone();
    base["training"]["steps"] = json!(1);
    base["training"]["learning_rate"] = json!({ "peak": 1e-3 });
    let bench = Bench::new(&on_public_text(&base));
    bench.model("base", &[]);
    write(&bench, "csv", "text,label\n", |number| {
        let (class, word) = class(number);
        format!("{word},{}\n", ["first", "second", "third"][class])
    });
    let set = |plan: &Value| std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    for (run, trainable) in [
        ("all", json!("all")),
        ("lora", json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_attn"] } })),
    ] {
        tuned["model"]["trainable"] = trainable;
        set(&tuned);
        bench.model(run, &[]);
        let figures = read_json(&bench.path(run).join("evaluation.json"));
        assert!(figures["accuracy"].as_f64().is_some(), "{figures}");
    }
    tuned["model"]["trainable"] = json!("all");
    tuned["model"]["initial"] = json!({ "checkpoint": "all" });
    tuned["model"]["checkpoint_made_from"] = json!("public_text");
    tuned["tokenizer"] = json!({ "public": { "path": "all/tokenizer.json", "made_from": "public_text" } });
    tuned["training"]["labels"] = json!(["second", "first", "third"]);
    set(&tuned);
    refuses(&bench, "its head predicts the labels [\"first\", \"second\", \"third\"]");
    tuned["model"]["family"] = json!("llama");
    set(&tuned);
    refuses(&bench, "config.json has");
}

/// A classifier on means of the hidden states of a public BERT. Its head alone is trained, from features that are computed once.
fn head_on_means() -> Bench {
    let mut base = tiny();
    base["model"] = plan("bert", "", "")["model"].clone();
    base["training"]["objective"] = json!("masked_lm");
    base["training"]["steps"] = json!(1);
    base["training"]["learning_rate"] = json!({ "peak": 1e-3 });
    let bench = Bench::new(&on_public_text(&base));
    bench.model("base", &[]);
    let mut tuned = plan("bert", "sequence_classification", "csv");
    tuned["privacy"]["spare_steps"] = json!(20);
    tuned["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    tuned["model"]["initial"] = json!({ "checkpoint": "base" });
    tuned["model"]["checkpoint_made_from"] = json!("public_text");
    tuned["model"]["pooling"] = json!("mean");
    tuned["model"]["trainable"] = json!("head");
    tuned["training"]["labels"] = json!(["first", "second", "third"]);
    tuned["training"]["optimizer"] = json!({ "sgd": { "momentum": 0.0 } });
    tuned["training"]["learning_rate"] = json!({ "peak": 4.0 });
    tuned["training"]["averaging"] = json!({ "tail": 0.5 });
    tuned["performance"]["checkpoint_every"] = json!(10);
    std::fs::write(bench.path("plan.json"), tuned.to_string()).unwrap();
    write(&bench, "csv", "text,label\n", |number| {
        let (class, word) = class(number);
        format!("{} {word} {word},{}\n", filler(number), ["first", "second", "third"][class])
    });
    bench
}

#[test]
fn a_head_on_means_learns_alone_verifies_and_predicts_what_it_was_evaluated_with() {
    let bench = head_on_means();
    let model = bench.model("run", &[]);
    let run = bench.path("run");
    let figures = read_json(&run.join("evaluation.json"));
    assert!(figures["accuracy"].as_f64().unwrap() > 0.6, "{figures}");
    assert!(verify_run(&run).unwrap().private);
    let base = std::fs::read(bench.path("base/model.safetensors")).unwrap();
    let [base, model] = [&base, &model].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    let mut heads = Vec::new();
    for (name, tensor) in model.iter() {
        match base.tensor(name) {
            Ok(own) => assert!(own.data() == tensor.data(), "{name} moved"),
            Err(_) => heads.push(name.to_owned()),
        }
    }
    heads.sort_unstable();
    assert_eq!(heads, ["mean_classifier.bias", "mean_classifier.weight"]);
    // The head of sentence-transformers is the model's.
    let dense = std::fs::read(run.join("2_Dense/model.safetensors")).unwrap();
    let dense = SafeTensors::deserialize(&dense).unwrap();
    for part in ["weight", "bias"] {
        let own = model.tensor(&format!("mean_classifier.{part}")).unwrap();
        assert!(dense.tensor(&format!("linear.{part}")).unwrap().data() == own.data(), "{part}");
    }
    assert_eq!(read_json(&run.join("modules.json")).as_array().unwrap().len(), 3);
    assert_eq!(read_json(&run.join("config.json"))["architectures"], json!(["BertModel"]));
    let evaluated = program(&["eval", "@0", "--text", "@1", "--json"], &[&run, &bench.path("test.csv")]);
    let evaluated: Value = serde_json::from_slice(&evaluated.stdout).unwrap();
    assert_eq!(evaluated["accuracy"], figures["accuracy"]);
    let exported = program(&["export", "@0", "--out", "@1", "--dtype", "bf16"], &[&run, &bench.path("out")]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    assert!(bench.path("out/2_Dense/config.json").is_file());
    assert!(verify_run(&bench.path("out")).unwrap().private);
}

/// Features of words: one vector for each tag.
#[test]
fn a_head_alone_learns_tags_and_init_says_that_its_time_is_for_full_contexts() {
    let bench = head_on_means();
    let [tagged, mut tuned] =
        [plan("bert", "token_classification", "iob"), read_json(&bench.path("plan.json"))];
    for part in ["data", "evaluation"] {
        tuned[part] = tagged[part].clone();
    }
    tuned["model"].as_object_mut().unwrap().remove("pooling");
    tuned["training"]["objective"] = json!("token_classification");
    tuned["training"]["labels"] = json!(["O", "B-Thing"]);
    std::fs::write(bench.path("plan.json"), tuned.to_string()).unwrap();
    write(&bench, "iob", "", |number| format!("{}\tO\n{}\tB-Thing\n\n", filler(number), class(number).1));
    bench.model("run", &[]);
    let figures = read_json(&bench.path("run/evaluation.json"));
    assert!(figures["f1"].as_f64().unwrap() > 0.6, "{figures}");
    assert!(verify_run(&bench.path("run")).unwrap().private);

    let options =
        ["init", "@0", "--checkpoint", "@1", "--labels", "O,B-Thing", "--unit", "record", "--units", "240"];
    let out = ["--epsilon", "8", "--out", "@2"];
    let paths = ["train.iob", "base", "new.json"].map(|name| bench.path(name));
    let init = program(&[&options[..], &out].concat(), &paths.each_ref().map(PathBuf::as_path));
    let said = String::from_utf8(init.stdout).unwrap();
    assert!(
        said.contains("the head alone is trained") && said.contains("if every text has 40 tokens"),
        "{said}"
    );
}

/// The average is in the checkpoint, and features are computed again as they were.
#[test]
fn an_averaged_head_goes_on_to_the_bit_after_a_stop_and_differs_from_the_last_step() {
    for averaging in [json!({ "tail": 0.9 }), json!({ "exponential": 0.95 })] {
        let bench = head_on_means();
        let mut plan = read_json(&bench.path("plan.json"));
        plan["training"]["averaging"] = averaging.clone();
        std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        let key = ["--test-key", "4"];
        let whole = bench.model("whole", &key);
        let mut running =
            bench.command("cut", &key).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !bench.path("cut/checkpoint.safetensors").exists() && running.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        running.kill().unwrap();
        running.wait().unwrap();
        let checkpoint = bench.path("cut/checkpoint.safetensors");
        let state = std::fs::read(&checkpoint).unwrap_or_default();
        if let Ok(state) = SafeTensors::deserialize(&state) {
            // Features of private records are in no file.
            let known = ["mean_classifier.", "average.mean_classifier.", "optimizer."];
            let is_known = |name: &&str| known.iter().any(|start| name.starts_with(start));
            assert!(state.names().iter().all(is_known), "{:?}", state.names());
        }
        let resumed = bench.resumed("cut", &key);
        assert!(bench.model("cut", &resumed) == whole, "{averaging}");
        plan["training"].as_object_mut().unwrap().remove("averaging");
        std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        assert!(bench.model("last", &key) != whole);
    }
}
