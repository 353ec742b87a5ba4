//! Generated text, its scores, and memorization, as a user sees them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{Bench, stderr, tiny};
use serde_json::{Value, json};

fn trainer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Asserts that the command fails with one line and exit code 2.
fn refused(arguments: &[&str], words: &str) {
    let output = trainer(arguments);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{arguments:?}: {message}");
    assert!(message.contains(words), "{arguments:?}: {message}");
}

fn write(bench: &Bench, name: &str, text: &str) -> String {
    fs::write(bench.path(name), text).unwrap();
    bench.path(name).to_str().unwrap().to_owned()
}

/// Reads the files of a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn prompts_of_a_file_are_continued_one_line_each_whatever_the_batch() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "5"]);
    let run = bench.path("run").to_str().unwrap().to_owned();
    let prompts = write(&bench, "prompts.txt", "Patient seen\n\nMr\n");
    let nested =
        write(&bench, "prompts.jsonl", "{\"a\": {\"b\": \"Patient seen\"}}\n{\"a\": {\"b\": \"\"}}\n");
    let generate = |options: &[&str]| {
        stdout(&trainer(&[&["generate", &run, "--tokens", "12", "--seed", "3"][..], options].concat()))
    };
    let sampled = generate(&["--prompts", &prompts, "--top-k", "9", "--top-p", "0.95"]);
    let lines: Vec<Value> = sampled.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = lines.iter().map(|line| line["prompt"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Patient seen", "", "Mr"]);
    assert!(lines.iter().all(|line| line["text"].is_string()));
    let one_by_one = generate(&["--prompts", &prompts, "--top-k", "9", "--top-p", "0.95", "--batch", "1"]);
    assert_eq!(sampled, one_by_one);
    let best = generate(&["--prompts", &nested, "--field", "a.b", "--beams", "3", "--no-repeat-ngram", "2"]);
    assert_eq!(best.lines().count(), 2);
    let out = bench.path("out.jsonl");
    generate(&["--prompts", &nested, "--field", "a.b", "--temperature", "0", "--out", out.to_str().unwrap()]);
    let greedy: Value =
        serde_json::from_str(fs::read_to_string(&out).unwrap().lines().next().unwrap()).unwrap();
    let alone = generate(&["--prompt", "Patient seen", "--temperature", "0"]);
    assert_eq!(format!("Patient seen{}\n", greedy["text"].as_str().unwrap()), alone);
}

#[test]
fn options_that_do_not_fit_are_refused_in_one_line() {
    let bench = Bench::new(&tiny());
    let empty = write(&bench, "empty.txt", "");
    let lines = write(&bench, "lines.jsonl", "{\"text\": \"a\"}\n{\"other\": 1}\n");
    let latin = bench.path("latin.txt").to_str().unwrap().to_owned();
    fs::write(&latin, b"caf\xe9\n").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["--temperature", "nan"], "--temperature"),
        (&["--top-k", "0"], "--top-k"),
        (&["--top-p", "1.5"], "--top-p"),
        (&["--top-p", "0"], "--top-p"),
        (&["--temperature", "0", "--top-k", "4"], "--temperature"),
        (&["--min-p", "2"], "--min-p"),
        (&["--repetition-penalty", "0"], "--repetition-penalty"),
        (&["--stop", ""], "--stop"),
        (&["--beams", "2", "--stop", "x"], "--stop"),
        (&["--beams", "0"], "--beams"),
        (&["--beams", "2", "--temperature", "0.5"], "--temperature"),
        (&["--beams", "2", "--length-penalty", "inf"], "--length-penalty"),
        (&["--length-penalty", "-1"], "--beams"),
        (&["--early-stopping", "true"], "--beams"),
        (&["--tokens", "4", "--min-tokens", "5"], "--min-tokens"),
        (&["--batch", "0"], "--batch"),
        (&["--prompt", "a", "--prompts", "b"], "--prompt"),
        (&["--prompts", &empty], "no line"),
        (&["--prompts", &lines], "line 2"),
        (&["--prompts", &latin], "UTF-8"),
        (&["--prompts", "absent.txt"], "absent.txt"),
    ];
    for (options, words) in cases {
        refused(&[&["generate", "run"][..], options].concat(), words);
    }
}

#[test]
fn scores_are_printed_with_their_signatures() {
    let bench = Bench::new(&tiny());
    let hypotheses = write(&bench, "hypotheses.txt", "the cat sat on the mat .\n\n");
    let references = write(&bench, "references.txt", "the cat sat on a mat .\nempty\n");
    let printed = stdout(&trainer(&["score", &hypotheses, &references, "--metric", "bleu,chrf,chrf++"]));
    // Oracle: sacreBLEU 2.6.0.
    let expected = "\
BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 42.38 85.7/66.7/40.0/25.0 (BP = 0.867 ratio = 0.875 hyp_len = 7 ref_len = 8)
chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 62.54
chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0 = 64.87
";
    assert_eq!(printed, expected);
    let one = write(&bench, "one.txt", "a\n");
    refused(&["score", &hypotheses, &one], "has 2 lines");
}

/// A sentence of random words.
fn sentence(at: u64) -> String {
    const WORDS: [&str; 16] = [
        "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "knoll",
        "larch", "marsh", "north", "otter", "pearl",
    ];
    let mut state = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(state >> 60) as usize]
    };
    (0..7).map(word).collect::<Vec<_>>().join(" ")
}

/// The figures of the private text stay out of the run folder, and only the model without privacy
/// knows the duplicated text.
#[test]
fn a_model_without_privacy_memorizes_duplicated_text_and_a_private_one_does_not() {
    let lines = |range: std::ops::Range<u64>| range.map(|at| sentence(at) + "\n").collect::<String>();
    let mut plan = tiny();
    let train = lines(0..4).repeat(30) + &lines(4..34);
    plan["data"] = json!({ "source": { "path": "train.txt" }, "units": 150 });
    plan.as_object_mut().unwrap().remove("evaluation");
    plan["model"] =
        json!({ "family": "gpt2", "d_model": 48, "layers": 2, "heads": 2, "d_ff": 96, "context": 32 });
    plan["training"]["steps"] = json!(300);
    plan["training"]["learning_rate"]["peak"] = json!(5e-3);
    let bench = Bench::new(&plan);
    let train = write(&bench, "train.txt", &train);
    let valid = write(&bench, "valid.txt", &(lines(0..3) + &lines(60..80)));
    let measure = |name: &str, options: &[&str]| -> (Vec<Value>, f64) {
        bench.model(name, options);
        let run = bench.path(name);
        let before = contents(&run);
        let arguments = ["memorization", run.to_str().unwrap(), "--train", &train, "--valid", &valid];
        let asked = ["--prefix", "14", "--continuation", "12", "--examples", "20"];
        let printed = stdout(&trainer(&[&arguments[..], &asked].concat()));
        assert!(printed.starts_with("NOT PRIVATE: may not be published."), "{printed}");
        let json = stdout(&trainer(&[&arguments[..], &asked, &["--beams", "2", "--json"]].concat()));
        assert_eq!(contents(&run), before, "nothing is written to the run folder");
        let figures: Value = serde_json::from_str(&json).unwrap();
        assert!(figures["warning"].as_str().unwrap().starts_with("NOT PRIVATE"));
        let area = figures["membership"]["area_under_curve"].as_f64().unwrap();
        (figures["rows"].as_array().unwrap().clone(), area)
    };
    let exact = |row: &Value| row["figures"]["exact_match"].as_f64().unwrap();
    let (public, area) = measure("public", &["--non-private", "--test-key", "5"]);
    let names: Vec<&str> = public.iter().step_by(2).map(|row| row["split"].as_str().unwrap()).collect();
    assert_eq!(names, ["train, duplicated", "train, unique", "validation, in train", "validation, unique"]);
    let examples: Vec<u64> =
        public.iter().step_by(2).map(|row| row["figures"]["examples"].as_u64().unwrap()).collect();
    assert_eq!(examples, [20, 20, 3, 20]);
    // The model continues duplicated text word for word, in training and in validation text,
    // greedily and with beams. Other text it does not.
    for row in [0, 1, 4, 5] {
        assert!(exact(&public[row]) > 0.8, "{}", public[row]);
    }
    assert!(exact(&public[2]) < 0.6 && exact(&public[6]) < 0.1, "{} {}", public[2], public[6]);
    let (private, private_area) = measure("private", &["--test-key", "5"]);
    for row in private {
        assert!(exact(&row) == 0.0, "{row}");
    }
    // The loss tells members from others. Three of 23 others are copies of members.
    assert!(area > 0.8 && private_area < area - 0.05, "{area} {private_area}");
    let run = bench.path("public").to_str().unwrap().to_owned();
    let with = |options: &[&str], words: &str| {
        refused(
            &[&["memorization", &run, "--train", &train, "--valid", &valid][..], options].concat(),
            words,
        );
    };
    with(&["--prefix", "40", "--continuation", "12"], "at most 32 together");
    with(&["--similarity", "0"], "--similarity");
    with(&["--examples", "0"], "--examples");
}

/// Some texts are easy for any model. The loss tells members of the training text only in
/// comparison with a model of other texts.
#[test]
fn reference_models_tell_easy_texts_from_members() {
    let text = |from: u64| -> String {
        let easy =
            |at| format!("amber amber amber amber amber {}\n", sentence(at).split_once(' ').unwrap().0);
        let hard = |at| sentence(at) + "\n";
        (from..from + 40).map(|at| if at % 2 == 0 { easy(at) } else { hard(at) }).collect()
    };
    let plan_of = |file: &str| {
        let mut plan = tiny();
        plan["data"] = json!({ "source": { "path": file }, "units": 40 });
        plan.as_object_mut().unwrap().remove("evaluation");
        plan["model"] =
            json!({ "family": "gpt2", "d_model": 48, "layers": 2, "heads": 2, "d_ff": 96, "context": 32 });
        plan["training"]["steps"] = json!(400);
        plan["training"]["learning_rate"]["peak"] = json!(5e-3);
        plan
    };
    let bench = Bench::new(&plan_of("train.txt"));
    let other = Bench::new(&plan_of("other.txt"));
    let [train, valid] =
        [("train.txt", 0), ("valid.txt", 100)].map(|(name, from)| write(&bench, name, &text(from)));
    write(&other, "other.txt", &text(200));
    bench.model("run", &["--non-private", "--test-key", "5"]);
    other.model("run", &["--non-private", "--test-key", "5"]);
    let [run, reference] = [&bench, &other].map(|bench| bench.path("run").to_str().unwrap().to_owned());
    let asked = ["memorization", &run, "--train", &train, "--valid", &valid, "--prefix", "4", "--json"];
    let found: Value =
        serde_json::from_str(&stdout(&trainer(&[&asked[..], &["--reference", &reference]].concat())))
            .unwrap();
    let area = |name: &str| found[name]["area_under_curve"].as_f64().unwrap();
    let (by_loss, calibrated) = (area("membership"), area("calibrated_membership"));
    assert!(calibrated > by_loss + 0.05 && calibrated > 0.75, "{by_loss} {calibrated}");
    let mut shorter = plan_of("other.txt");
    shorter["model"]["context"] = json!(16);
    std::fs::write(other.path("plan.json"), shorter.to_string()).unwrap();
    other.model("shorter", &["--non-private", "--test-key", "5"]);
    let shorter = other.path("shorter").to_str().unwrap().to_owned();
    refused(&[&asked[..8], &["--reference", &shorter]].concat(), "--reference");
}
