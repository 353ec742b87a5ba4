//! A corpus that several processes count, part by part.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod common;
use common::{path, run, succeed, text};

/// Writes three parts. Each user has text in all of them.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let parts = (1..=3).map(|part| {
        let line = |n: usize| {
            let words: String = (0..1 + (n * part) % 30).map(|at| format!(" w{}", n * at % 97)).collect();
            format!("{{\"who\":\"user {}\",\"text\":\"{words}\"}}\n", n % 41)
        };
        let file = folder.join(format!("{part}.jsonl"));
        fs::write(&file, (0..700).map(line).collect::<String>()).unwrap();
        file
    });
    parts.collect()
}

/// The options of each unit, and those that only the reading of text needs.
const UNITS: [(&str, &[&str]); 3] = [("user", &["--user-field", "who"]), ("record", &[]), ("words:5", &[])];

const RELEASE: [&str; 8] = ["--epsilon", "8", "--delta", "1e-3", "--units", "900", "--test-key", "5"];

/// Counts all parts by processes that run at the same time.
fn count(parts: &[PathBuf], unit: &str, of_text: &[&str]) -> Vec<String> {
    let number = parts.len();
    let started: Vec<_> = (1..)
        .zip(parts)
        .map(|(part, file)| {
            let out = file.with_extension("run");
            let shard = format!("{part}/{number}");
            let mut counting = Command::new(env!("CARGO_BIN_EXE_dp-tokenizer"));
            counting.args(["count", "--input", path(file), "--unit", unit, "--shard", &shard, "--overwrite"]);
            counting.args(of_text).args(["--out", path(&out)]).stdout(Stdio::null());
            (counting.spawn().unwrap(), path(&out).to_owned())
        })
        .collect();
    started
        .into_iter()
        .map(|(mut counting, out)| {
            assert!(counting.wait().unwrap().success());
            out
        })
        .collect()
}

#[test]
fn a_vocabulary_of_parts_that_processes_count_at_once_is_that_of_one_process_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let parts = parts(folder.path());
    let files: Vec<&str> = parts.iter().map(|part| path(part)).collect();
    for (unit, of_text) in UNITS {
        let (one, many) = (folder.path().join("one"), folder.path().join("many"));
        let train = |from: &[&str], out: &Path| {
            let common = ["--unit", unit, "--vocab-size", "600", "--overwrite", "--out", path(out)];
            succeed(&[&["train"], from, &common, &RELEASE].concat(), "");
        };
        train(&[&["--input"], files.as_slice(), of_text].concat(), &one);
        let runs = count(&parts, unit, of_text);
        // The files are named in another order than that of the parts.
        train(&["--runs", &runs[2], &runs[0], &runs[1]], &many);
        for name in ["tokenizer.json", "tokenizer_config.json", "privacy.json"] {
            assert!(
                fs::read(one.join(name)).unwrap() == fs::read(many.join(name)).unwrap(),
                "{unit}: {name}"
            );
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&runs[0]).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "its owner alone can read it");
        }
    }
}

#[test]
fn public_parts_give_the_counts_of_the_whole_text() {
    let folder = tempfile::tempdir().unwrap();
    let parts = parts(folder.path());
    let files: Vec<&str> = parts.iter().map(|part| path(part)).collect();
    let runs = count(&parts, "user", &["--user-field", "who"]);
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let trained = |from: &[&str]| {
        let out = folder.path().join("public");
        let common = ["--public", "--vocab-size", "600", "--overwrite", "--out", path(&out)];
        succeed(&[&["train"], from, &common].concat(), "");
        fs::read(out.join("tokenizer.json")).unwrap()
    };
    assert!(
        trained(&[&["--input"], files.as_slice()].concat())
            == trained(&[&["--runs"], runs.as_slice()].concat())
    );
}

#[test]
fn parts_that_are_not_one_whole_corpus_are_refused_and_nothing_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let parts = parts(folder.path());
    let runs = count(&parts, "user", &["--user-field", "who"]);
    let [one, two, three] = [0, 1, 2].map(|at: usize| runs[at].as_str());
    let other = |name: &str, arguments: &[&str]| {
        let out = folder.path().join(name);
        succeed(
            &[&["count", "--out", path(&out), "--user-field", "who", "--unit", "user"], arguments].concat(),
            "",
        );
        path(&out).to_owned()
    };
    let copy = folder.path().join("copy.run");
    fs::copy(one, &copy).unwrap();
    let again = other("again.run", &["--shard", "3/3", "--input", path(&parts[0])]);
    // This process has the file of another part beside its own.
    let overlapping = ["--shard", "3/3", "--input", path(&parts[2]), path(&parts[1])];
    let overlapping = other("overlapping.run", &overlapping);
    let foreign =
        other("foreign.run", &["--shard", "3/3", "--input", path(&parts[2]), "--corpus-name", "spring"]);
    let of_four = other("four.run", &["--shard", "3/4", "--input", path(&parts[2])]);
    let as_written =
        other("written.run", &["--shard", "3/3", "--input", path(&parts[2]), "--words", "as-written"]);
    let damaged = folder.path().join("damaged.run");
    let mut bytes = fs::read(three).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    let out = folder.path().join("v");
    let by_record = ["--unit", "record"];
    for (files, more, want) in [
        (&[one, three][..], &[][..], "shard 2 of 3 is missing"),
        (&[one], &[], "shards 2, 3 of 3 are missing"),
        (&[one, two, three, path(&copy)], &[], "it is shard 1/3, as"),
        (&[one, two, &again], &[], "holds as well"),
        (&[one, two, &overlapping], &[], "holds as well"),
        (&[one, two, &foreign], &[], "3 parts of \"spring\""),
        (&[one, two, &of_four], &[], "4 parts of a corpus without a name"),
        (&[one, two, &as_written], &[], "counted as-written, not by-class"),
        (&[one, two, path(&damaged)], &[], "it is damaged"),
        (&[one, two, path(&parts[2])], &[], "not a file that `dp-tokenizer count` wrote"),
        (&[one, two, three], &by_record, "counted by unit user, not record"),
        (&[one, two, three], &["--user-field", "who"], "--user-field has no effect with --runs"),
        (&[one, two, three], &["--input", path(&parts[0])], "cannot be used with"),
    ] {
        let unit: &[&str] = if more == by_record { &[] } else { &["--unit", "user"] };
        let train = ["train", "--epsilon", "8", "--delta", "1e-3", "--out", path(&out), "--runs"];
        let done = run(&[&train, files, unit, more].concat(), "");
        let stderr = text(&done.stderr);
        assert!(done.status.code() == Some(2) && stderr.contains(want), "{want}: {stderr}");
        assert!(stderr.lines().count() == 1 && !out.exists(), "{want}: {stderr}");
    }
}

#[test]
fn a_shard_is_one_of_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let parts = parts(folder.path());
    let out = folder.path().join("x.run");
    for shard in ["0/3", "4/3", "1", "1/0", "a/b", "1/3/3", "+1/3"] {
        let done = run(&["count", "--input", path(&parts[0]), "--shard", shard, "--out", path(&out)], "");
        assert!(done.status.code() == Some(2) && text(&done.stderr).contains("allowed: K/N"), "{shard}");
    }
}

/// The variables of Open MPI, MPICH and Slurm. Oracle: `--shard K/N` on the same file.
#[test]
fn processes_of_a_launcher_count_the_parts_of_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let parts = parts(folder.path());
    let want: Vec<Vec<u8>> =
        count(&parts, "user", &["--user-field", "who"]).iter().map(|run| fs::read(run).unwrap()).collect();
    let file = |name: &str| path(&folder.path().join(name)).to_owned();
    let count = |variables: &[(&str, &str)], input: &str| {
        let mut counting = Command::new(env!("CARGO_BIN_EXE_dp-tokenizer"));
        for name in [
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "PMI_RANK",
            "PMI_SIZE",
            "SLURM_PROCID",
            "SLURM_NTASKS",
        ] {
            counting.env_remove(name);
        }
        counting.args(["count", "--shard", "auto", "--unit", "user", "--user-field", "who", "--overwrite"]);
        counting
            .args(["--input", &file(input), "--out", &file("auto-{}.run")])
            .envs(variables.iter().copied());
        counting.output().unwrap()
    };
    for [rank, size] in [
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        ["PMI_RANK", "PMI_SIZE"],
        ["SLURM_PROCID", "SLURM_NTASKS"],
    ] {
        for (number, want) in ["0", "1", "2"].into_iter().zip(&want) {
            let done = count(&[(rank, number), (size, "3")], "{}.jsonl");
            assert!(done.status.success(), "{}", text(&done.stderr));
            let out = file(&format!("auto-{}.run", number.parse::<u32>().unwrap() + 1));
            assert!(fs::read(&out).unwrap() == *want, "{rank}");
            fs::remove_file(out).unwrap();
        }
    }
    for (variables, input, part) in [
        (&[][..], "{}.jsonl", "no launcher started several processes"),
        // A task of an array, which is the only process of its job.
        (
            &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")],
            "{}.jsonl",
            "no launcher started several processes",
        ),
        (&[("PMI_RANK", "0"), ("PMI_SIZE", "3")], "1.jsonl", "the same file for every part"),
    ] {
        let refused = count(variables, input);
        let message = text(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && message.lines().count() == 1 && message.contains(part),
            "{message}"
        );
    }
}
