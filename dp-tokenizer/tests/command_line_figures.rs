//! Compares what commands print and write for two texts that differ in one record.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const SECRET: &str = "Zebedee";

/// The printed text, and every file with its place masked.
type Outputs = BTreeMap<String, String>;

/// Returns the outputs of all commands on 300 records and perhaps one more. One key draws the same noise, and nothing
/// releases the words of the further record.
fn outputs(further: &str) -> Outputs {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = |at: usize| format!("patient {} was seen {} times with pain\n", at % 7, at % 5);
    std::fs::write(folder.join("notes.txt"), (0..300).map(line).collect::<String>() + further).unwrap();
    let private = "--epsilon 8 --delta 1e-6 --vocab-size 400 --test-key 5";
    let mut all = Outputs::new();
    for arguments in [
        format!("train --input notes.txt {private} --out one").as_str(),
        &format!("train --input notes.txt {private} --out two --method pooled --unit words:8"),
        "count --input notes.txt --shard 1/1 --out part.run",
        &format!("train --runs part.run {private} --out three"),
        "inspect --tokenizer one --json",
        "inspect --tokenizer one",
        "vocab --tokenizer one --json",
        "convert --tokenizer one --out one.model --allow-rare-differences",
        "encode --tokenizer one --input notes.txt --out notes.tokens",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_dp-tokenizer"))
            .args(arguments.split_whitespace())
            .current_dir(folder)
            .output()
            .unwrap();
        let printed =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(folder.to_str().unwrap(), "FOLDER");
        assert!(output.status.success(), "{arguments}: {}", printed(&output.stderr));
        all.insert(format!("{arguments}: stdout"), printed(&output.stdout));
        all.insert(format!("{arguments}: stderr"), printed(&output.stderr));
    }
    std::fs::remove_file(folder.join("notes.txt")).unwrap();
    collect(folder, folder, &mut all);
    all
}

fn collect(top: &Path, folder: &Path, all: &mut Outputs) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(top, &path, all);
        } else {
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            let bytes = std::fs::read(&path).unwrap();
            all.insert(name, bytes.iter().map(|byte| char::from(*byte)).collect());
        }
    }
}

#[test]
fn whatever_the_commands_print_or_write_is_equal_where_the_release_is() {
    let one = outputs("");
    let other = outputs(&format!("{SECRET} {}\n", "qxzv".repeat(40)));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    assert!(one.len() > 25, "{:?}", one.keys());
    for (name, text) in &one {
        // Both files are for their owner alone. The comparison notices that they differ.
        let is_for_owner = ["part.run", "notes.tokens"].contains(&name.as_str());
        assert_eq!(*text != other[name], is_for_owner, "{name}: {text}\n{}", other[name]);
    }
}
