//! What ranks compare before a run: their files with each other's, and texts among them. This needs `mpirun`; `cargo xtask setup`
//! installs it.
#![cfg(feature = "mpi")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::ranks::{messages, on_ranks, ranks_of, signal};
use common::{Bench, stderr, tiny};
use dp_tokenizer::corpus::Source;
use dp_tokenizer::tokens::encode_corpus;
use dp_tokenizer::unit::PrivacyUnit;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokenizer::Tokenizer;

fn note(n: usize) -> String {
    format!(
        "Visit {n}: seen on ward {n} with a cough for {n} days, then sent home with {n} tablets and advice {n}.\n"
    )
}

fn notes(numbers: Range<usize>) -> String {
    numbers.map(note).collect()
}

/// Each row is refused or accepted in the same words on 1, 2 and 3 ranks.
#[test]
fn texts_are_refused_and_accepted_on_several_ranks_as_on_one() {
    let words = notes(690..691).split(' ').map(|word| format!("{word}\n")).collect::<String>();
    let rows = [
        ("the text in another case", notes(0..700).to_uppercase(), Some("shares text")),
        ("a record among others", notes(1_000..1_300) + &note(691), Some("the first of them record 301")),
        ("the words of a record as lines", notes(1_000..1_020) + &words, Some("shares text")),
        ("other text", notes(1_000..1_300), None),
    ];
    for (row, public, want) in rows {
        let mut plan = tiny();
        plan["data"] = json!({ "source": { "path": "train.txt" }, "units": 700 });
        plan["evaluation"] = json!({ "source": { "path": "public.txt" }, "every": 6 });
        plan["training"]["steps"] = json!(6);
        let bench = Bench::new(&plan);
        fs::write(bench.path("train.txt"), notes(0..700)).unwrap();
        fs::write(bench.path("public.txt"), public).unwrap();
        let mut said = Vec::new();
        for count in 1..=3 {
            let out = format!("run{count}");
            let command = bench.command(&out, &["--test-key", "1"]);
            let output = if count == 1 {
                bench.run(&out, &["--test-key", "1"])
            } else {
                on_ranks(count, &command).output().unwrap()
            };
            let found = messages(&output);
            match want {
                None => assert!(output.status.success(), "{row}: {}", stderr(&output)),
                Some(want) => {
                    assert_eq!(
                        (output.status.code(), found.len()),
                        (Some(2), 1),
                        "{row}: {}",
                        stderr(&output)
                    );
                    assert!(found[0].contains(want) && !bench.path(&out).exists(), "{row}: {}", found[0]);
                }
            }
            said.push(found);
        }
        assert!(said.iter().all(|found| want.is_none() || *found == said[0]), "{row}: {said:?}");
    }
}

/// After this time ranks are stuck.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// Runs one program on rank 0 and another on rank 1.
fn on_two(first: &Command, second: &Command) -> Output {
    let mut command = on_ranks(1, first);
    command.args([":", "-np", "1"]).arg(second.get_program()).args(second.get_args());
    ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Waits until all ranks have ended, and fails if they hang.
fn ended(mut ranks: Child) -> Output {
    let begun = Instant::now();
    while ranks.try_wait().unwrap().is_none() {
        if begun.elapsed() > HANGS_AFTER {
            ranks.kill().unwrap();
            panic!("ranks hang: {}", stderr(&ranks.wait_with_output().unwrap()));
        }
        sleep(Duration::from_millis(10));
    }
    ranks.wait_with_output().unwrap()
}

/// Checks that ranks ended with one message that has all these parts.
fn assert_refused(output: &Output, parts: &[&str]) {
    let said = stderr(output);
    let messages = messages(output);
    assert_eq!((output.status.code(), messages.len()), (Some(2), 1), "{parts:?}: {said}");
    assert!(parts.iter().all(|part| messages[0].contains(part)), "{parts:?}: {said}");
}

const TOKENIZER: [&str; 4] = ["</s>", "<|im_start|>", "<|im_end|>", "<|pad|>"];

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}";

fn write_tokens(bench: &Bench, numbers: Range<usize>) {
    fs::write(bench.path("encoded.txt"), notes(numbers)).unwrap();
    let (text, json) = (bench.path("encoded.txt"), fs::read(bench.path("tokenizer.json")).unwrap());
    let (source, tokenizer) =
        (Source::files([text]), Tokenizer::bytes(&TOKENIZER.map(str::to_owned)).unwrap());
    let (digest, file) = (Sha256::digest(json).into(), bench.path("train.tokens"));
    encode_corpus(&source, PrivacyUnit::Record, &tokenizer, digest, &file, 1).unwrap();
}

fn labelled(first: &str) -> String {
    let label = |n: usize| if n == 0 { first } else { ["good", "fair"][n % 2] };
    (0..200).map(|n| format!("{}\n", json!({ "text": format!("note {n}"), "label": label(n) }))).collect()
}

/// A folder with a plan, and with the files of every plan here.
fn with_files(plan: &Value) -> Bench {
    let bench = Bench::new(plan);
    let write = |name: &str, text: String| fs::write(bench.path(name), text).unwrap();
    write("train.txt", notes(0..200));
    write("public.txt", notes(1_000..1_050));
    write("labelled.jsonl", labelled("good"));
    let talk = |n: usize| {
        let says = |role: &str| json!({ "role": role, "content": format!("visit {n}") });
        format!("{}\n", json!({ "messages": [says("user"), says("assistant")] }))
    };
    write("talk.jsonl", (0..200).map(talk).collect());
    write("tokenizer.json", Tokenizer::bytes(&TOKENIZER.map(str::to_owned)).unwrap().to_json());
    write("tokenizer_config.json", json!({ "eos_token": "<|im_end|>", "pad_token": "<|pad|>" }).to_string());
    write("chat_template.jinja", TEMPLATE.to_owned());
    write_tokens(&bench, 0..200);
    bench
}

/// A plan on one of the files.
fn plan_of(file: &str, objective: &str) -> Value {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": file }, "units": 200 });
    plan["tokenizer"] = json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } });
    plan["training"]["objective"] = json!(objective);
    plan.as_object_mut().unwrap().remove("evaluation");
    match objective {
        "chat" => plan["data"]["text_field"] = json!("messages"),
        "sequence_classification" => plan["training"]["labels"] = json!(["good", "fair"]),
        _ => plan["evaluation"] = json!({ "source": { "path": "public.txt" }, "every": 20 }),
    }
    plan
}

/// Each row changes one file of rank 1 alone.
#[test]
fn a_file_that_differs_on_one_rank_is_refused_by_one_message() {
    let [texts, tokens, chat, labels] = [
        ("train.txt", "causal_lm"),
        ("train.tokens", "causal_lm"),
        ("talk.jsonl", "chat"),
        ("labelled.jsonl", "sequence_classification"),
    ]
    .map(|(file, objective)| plan_of(file, objective));
    let other_labels = {
        let mut plan = labels.clone();
        plan["training"]["labels"] = json!(["fair", "good"]);
        plan.to_string()
    };
    let write = |name: &'static str, text: String| {
        move |bench: &Bench| fs::write(bench.path(name), text.as_bytes()).unwrap()
    };
    type Change = Box<dyn Fn(&Bench)>;
    let other = "it reads another plan, training text, evaluation text";
    let rows: [(&Value, Change, &str); 8] = [
        (&texts, Box::new(write("train.txt", notes(1..201))), "its files differ from those of rank 0"),
        (&texts, Box::new(|bench| fs::remove_file(bench.path("train.txt")).unwrap()), "train.txt"),
        (&texts, Box::new(write("public.txt", notes(1_001..1_051))), other),
        (
            &texts,
            Box::new(write("tokenizer.json", Tokenizer::bytes(&["</s>".to_owned()]).unwrap().to_json())),
            other,
        ),
        (&tokens, Box::new(|bench| write_tokens(bench, 1..201)), other),
        (&chat, Box::new(write("chat_template.jinja", TEMPLATE.replace("role }}", "role }}:"))), other),
        (
            &labels,
            Box::new(write("labelled.jsonl", labelled("fair"))),
            "its files differ from those of rank 0",
        ),
        (&labels, Box::new(write("plan.json", other_labels)), other),
    ];
    for (plan, change, part) in rows {
        let [first, second] = [(); 2].map(|()| with_files(plan));
        change(&second);
        let output = on_two(&first.command("run", &[]), &second.command("run", &[]));
        assert_refused(&output, &["rank 1 of 2", part]);
        assert!(!first.path("run").exists());
    }
    // All plans are carried out where nothing differs.
    for plan in [texts, tokens, chat, labels] {
        let bench = with_files(&plan);
        let output = on_two(&bench.command("run", &["--dry-run"]), &bench.command("run", &["--dry-run"]));
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

/// Each row starts rank 1 in another way than rank 0.
#[test]
fn a_rank_that_is_started_in_another_way_is_refused_by_one_message() {
    let bench = with_files(&plan_of("train.txt", "causal_lm"));
    let command = |options: &[&str]| bench.command("run", options);
    let program = |path: &Path, arguments: &[&str]| {
        let mut program = Command::new(path);
        program.args(arguments);
        program
    };
    let own = Path::new(env!("CARGO_BIN_EXE_trainer-native"));
    let copy = bench.path("trainer-native");
    fs::copy(own, &copy).unwrap();
    // Bytes after its end do not change what an executable does.
    fs::OpenOptions::new().append(true).open(&copy).unwrap().write_all(b"another build").unwrap();
    let [plan, run] = ["plan.json", "run"].map(|name| bench.path(name).display().to_string());
    let other = "another command or other options than rank 0";
    let rows = [
        (command(&[]), command(&["--test-key", "5"]), other),
        (command(&["--test-key", "5"]), command(&["--test-key", "6"]), other),
        (command(&["--dry-run"]), command(&[]), other),
        (command(&[]), command(&["--resume"]), other),
        (command(&[]), program(own, &["devices"]), other),
        (command(&[]), program(own, &["history", ".", "--delta", "1e-6"]), other),
        (command(&[]), program(own, &["verify", &plan]), other),
        (command(&[]), program(own, &["--help"]), other),
        (program(own, &["--version"]), command(&[]), other),
        (command(&[]), program(own, &["--plann", &plan]), "rank 1 of 2"),
        (
            command(&[]),
            program(&copy, &["--plan", &plan, "--out", &run]),
            "another build of this program than rank 0",
        ),
    ];
    for (first, second, part) in rows {
        assert_refused(&on_two(&first, &second), &[part]);
        assert!(!bench.path("run").exists());
    }
}

/// A rank that reads for hours must not keep a refusal from the user. Rank 0 is stopped while it reads its share.
#[test]
fn a_refusal_does_not_wait_for_a_rank_that_reads_for_long() {
    let bench = Bench::new(&plan_of("labelled.jsonl", "sequence_classification"));
    let line = |label: &str| format!("{}\n", json!({ "text": "a long day ".repeat(20), "label": label }));
    // Half of it is for each rank, and one of the first records of the second share is refused.
    let half = line("good").repeat(150_000);
    let refused = line("good").repeat(10) + &line("unlisted");
    fs::write(bench.path("labelled.jsonl"), [&*half, &refused, &half].concat()).unwrap();
    fs::write(
        bench.path("tokenizer.json"),
        Tokenizer::bytes(&TOKENIZER.map(str::to_owned)).unwrap().to_json(),
    )
    .unwrap();
    let mut ranks = on_ranks(1, &bench.command("first", &[]));
    let second = bench.command("second", &[]);
    ranks.args([":", "-np", "1"]).arg(second.get_program()).args(second.get_args());
    let ranks = ranks.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It also reads the program's file.
    let program = fs::metadata(env!("CARGO_BIN_EXE_trainer-native")).unwrap().len();
    let read = |process: u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
        text.lines().next()?.strip_prefix("rchar: ")?.parse().ok()
    };
    let first = loop {
        match ranks_of(&bench.path("first"))[..] {
            [first] if read(first).is_some_and(|bytes| bytes > program + (4 << 20)) => break first,
            _ => sleep(Duration::from_millis(1)),
        }
    };
    signal("-STOP", first);
    let output = ended(ranks);
    assert_refused(&output, &["rank 1 of 2", "has a label that training.labels does not list"]);
    assert!(!bench.path("first").exists());
}
