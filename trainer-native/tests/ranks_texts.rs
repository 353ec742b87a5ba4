//! The comparison of texts on several ranks. It needs `mpirun`; `cargo xtask setup` installs it.
#![cfg(feature = "mpi")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::ops::Range;

use common::ranks::{messages, on_ranks};
use common::{Bench, stderr, tiny};
use serde_json::json;

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
