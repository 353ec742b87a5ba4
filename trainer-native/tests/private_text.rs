//! Tests of what a run refuses to do with private text: evaluate on it, count it twice, or show how
//! much of it there is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::Write;

use common::{Bench, stderr, tiny};
use serde_json::{Value, json};

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|n| format!("note {n} says that the patient {n} is a secret of ours\n")).collect()
}

/// A tiny plan on `train.txt`, with this evaluation source.
fn bench(evaluation: Value) -> Bench {
    let mut plan = tiny();
    plan["data"]["source"] = json!({ "path": "train.txt" });
    plan["training"]["steps"] = json!(6);
    plan["evaluation"] = json!({ "source": evaluation, "every": 6 });
    let bench = Bench::new(&plan);
    fs::write(bench.path("train.txt"), lines(0..300)).unwrap();
    bench
}

fn refused(bench: &Bench, words: &str) {
    let output = bench.run("run", &["--test-key", "1"]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains(words) && !message.contains("secret"), "{message}");
    assert!(!bench.path("run").exists(), "{words}: left files");
}

/// TRUST 1: figures on evaluation text are published without noise. The training text is refused
/// under any name and in any form, before anything is written.
#[cfg(unix)]
#[test]
fn the_training_text_is_no_evaluation_text_under_any_name() {
    let named = |name: &str, make: &dyn Fn(&Bench)| {
        let bench = bench(json!({ "path": name }));
        make(&bench);
        refused(&bench, "evaluation.source");
    };
    named("./train.txt", &|_| ());
    named("sub/../train.txt", &|bench| fs::create_dir(bench.path("sub")).unwrap());
    named("link.txt", &|bench| std::os::unix::fs::symlink("train.txt", bench.path("link.txt")).unwrap());
    named("hard.txt", &|bench| fs::hard_link(bench.path("train.txt"), bench.path("hard.txt")).unwrap());
    named("copy.txt", &|bench| fs::write(bench.path("copy.txt"), lines(0..300)).unwrap());
    named("train.txt.gz", &|bench| {
        let file = fs::File::create(bench.path("train.txt.gz")).unwrap();
        let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        gz.write_all(lines(0..300).as_bytes()).unwrap();
        gz.finish().unwrap();
    });
    let absolute = bench(json!({ "path": "held_out.txt" }));
    let mut plan: Value = serde_json::from_slice(&fs::read(absolute.path("plan.json")).unwrap()).unwrap();
    plan["evaluation"]["source"] = json!({ "path": absolute.path("train.txt") });
    fs::write(absolute.path("plan.json"), plan.to_string()).unwrap();
    refused(&absolute, "evaluation.source");
}

/// TRUST 1: other text that contains a record of the training text, or most of its short records,
/// is refused too. Short records that two texts share by chance are accepted.
#[test]
fn evaluation_text_with_records_of_the_training_text_is_refused() {
    let with = |evaluation: String, training: &str| {
        let bench = bench(json!({ "path": "held_out.txt" }));
        fs::write(bench.path("train.txt"), lines(0..290) + training).unwrap();
        fs::write(bench.path("held_out.txt"), evaluation).unwrap();
        bench
    };
    refused(&with(lines(1000..1010) + &lines(17..18), ""), "shares text");
    refused(&with(lines(17..18).replace(' ', "  "), ""), "shares text");
    let short = "thank you\nyes\nno\nhello\nbye\n";
    refused(&with(short.to_owned(), short), "shares text");
    let apart = with(lines(1000..1010) + short, short);
    assert!(apart.run("run", &["--test-key", "1"]).status.success());
}

/// TRUST 4: a file that is named twice would double every unit.
#[cfg(unix)]
#[test]
fn a_file_named_twice_is_refused() {
    let bench = bench(json!({ "embedded": { "records": 20, "seed": 8 } }));
    let mut plan: Value = serde_json::from_slice(&fs::read(bench.path("plan.json")).unwrap()).unwrap();
    plan["data"]["units"] = json!(600);
    std::os::unix::fs::symlink("train.txt", bench.path("link.txt")).unwrap();
    for twice in ["./train.txt", "link.txt"] {
        plan["data"]["source"] = json!({ "paths": ["train.txt", twice] });
        fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        refused(&bench, "the same text");
    }
    // Labelled records, too.
    plan["training"]["objective"] = json!("sequence_classification");
    plan["training"]["labels"] = json!(["a", "b"]);
    plan["data"]["source"] = json!({ "paths": ["labelled.jsonl", "./labelled.jsonl"] });
    plan.as_object_mut().unwrap().remove("evaluation");
    fs::write(bench.path("labelled.jsonl"), "{\"text\":\"one\",\"label\":\"a\"}\n").unwrap();
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    refused(&bench, "the same text");
}

/// TRUST 9: with Poisson sampling and with balls in bins, the number of units is private. The run
/// continues with any number, and neither the screen nor a file shows it.
#[test]
fn the_actual_number_of_units_neither_stops_a_run_nor_is_shown() {
    for sampling in ["poisson", "balls_in_bins"] {
        let mut plan = tiny();
        plan["data"] = json!({ "source": { "path": "train.txt" }, "units": 300 });
        plan["privacy"]["sampling"] = json!(sampling);
        plan["training"]["steps"] = json!(6);
        plan["privacy"]["spare_steps"] = json!(0);
        let bench = Bench::new(&plan);
        for (out, units) in [("few", 1), ("many", 1237)] {
            fs::write(bench.path("train.txt"), lines(0..units)).unwrap();
            let output = bench.run(out, &[]);
            assert!(output.status.success(), "{sampling} {units}: {}", stderr(&output));
            assert!(!stderr(&output).contains("1237"));
            for file in ["certificate.md", "certificate.json", "ledger.jsonl", "metrics.jsonl"] {
                let text = fs::read_to_string(bench.path(out).join(file)).unwrap();
                assert!(!text.contains(" 1237") && !text.contains(":1237"), "{file}");
            }
            let certificate = fs::read_to_string(bench.path(out).join("certificate.md")).unwrap();
            assert!(certificate.contains("whatever the actual number of units is"), "{certificate}");
        }
    }
}
