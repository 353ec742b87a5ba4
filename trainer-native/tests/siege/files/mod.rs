//! Files that a folder holds beside those of its run.

mod put_back;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::common::{self, Bench, stderr, tiny};

fn trainer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainer-native")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn verified(folder: &Path) -> (String, Value) {
    let folder = folder.to_str().unwrap();
    let text = stdout(&trainer(&["verify", folder]));
    let json = stdout(&trainer(&["verify", folder, "--json"]));
    (text, serde_json::from_str(&json).unwrap())
}

/// A finished run with two snapshots and no evaluation.
fn without_evaluation() -> Bench {
    let mut plan = tiny();
    plan.as_object_mut().unwrap().remove("evaluation");
    plan["training"]["steps"] = json!(6);
    plan["performance"] = json!({ "snapshot_every": 2 });
    let bench = Bench::new(&plan);
    bench.model("run", &["--test-key", "5"]);
    bench
}

/// No step of the run wrote these figures: the report, the card, the list of runs and the
/// verification do not show them.
#[test]
fn no_command_believes_a_file_that_the_ledger_does_not_name() {
    let bench = without_evaluation();
    let run = bench.path("run");
    let before = verified(&run);
    assert_eq!(before.1["not_covered"], json!([]), "a run covers all of its own files, snapshots too");
    let other = Bench::new(&tiny());
    other.model("run", &["--test-key", "5"]);
    let forged = std::fs::read_to_string(other.path("run/evaluation.json")).unwrap();
    let labels = "[{\"label\":\"forged\",\"count\":90}]";
    let files = [
        ("audit.json", "{}"),
        ("canaries.json", "{\"planting\":10,\"seed\":1}"),
        ("evaluation.json", forged.as_str()),
        ("labels.json", labels),
        ("parents/x/plan.json", "{}"),
        ("snapshots/2/README.md", "forged"),
        ("snapshots/3/config.json", "{}"),
    ];
    for (name, text) in files {
        let path = run.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let (text, json) = verified(&run);
    for (name, _) in files {
        assert!(
            text.contains(&format!("not covered by any digest: {name}\n")) || text.ends_with(name),
            "{text}"
        );
    }
    assert_eq!(json["not_covered"], json!(files.map(|(name, _)| name)));
    assert_eq!(json["evaluation"], Value::Null);
    assert!(!text.contains("held-out"), "{text}");
    let folder = run.to_str().unwrap();
    let report = bench.path("report.html");
    stdout(&trainer(&["report", folder, "--out", report.to_str().unwrap()]));
    assert!(!std::fs::read_to_string(report).unwrap().contains("Held-out"));
    let out = bench.path("out");
    stdout(&trainer(&["export", folder, "--out", out.to_str().unwrap()]));
    assert!(!std::fs::read_to_string(out.join("README.md")).unwrap().contains("held-out"));
    let runs = stdout(&trainer(&["runs", bench.folder.path().to_str().unwrap()]));
    assert!(!runs.contains("loss"), "{runs}");
    let synthetic = bench.path("s.jsonl");
    let drawn = trainer(&["synthesize", folder, "--count", "1", "--out", synthetic.to_str().unwrap()]);
    assert!(!stderr(&drawn).contains("forged"), "labels were believed");
    // An altered snapshot is refused, and a removed one is ignored.
    let snapshot = run.join("snapshots/4/config.json");
    let whole = std::fs::read(&snapshot).unwrap();
    std::fs::write(&snapshot, "{}").unwrap();
    let refused = trainer(&["verify", folder]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("snapshots/4/config.json"), "{}", stderr(&refused));
    std::fs::write(&snapshot, whole).unwrap();
    std::fs::remove_dir_all(run.join("snapshots")).unwrap();
    verified(&run);
}

/// Files that would change the model's output are refused wherever it is loaded.
#[test]
fn no_model_is_loaded_with_a_file_that_the_run_did_not_write() {
    let bench = without_evaluation();
    let run = bench.path("run");
    let folder = run.to_str().unwrap();
    std::fs::write(bench.path("public.txt"), "The patient slept.\n").unwrap();
    let text = bench.path("public.txt");
    let out = bench.path("out");
    let commands: [&[&str]; 3] = [
        &["generate", folder, "--tokens", "3"],
        &["eval", folder, "--text", text.to_str().unwrap()],
        &["export", folder, "--out", out.to_str().unwrap()],
    ];
    for name in ["chat_template.jinja", "model.safetensors.index.json", "adapter/adapter_config.json"] {
        let path = run.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{}").unwrap();
        for command in commands {
            let refused = trainer(command);
            assert_eq!(refused.status.code(), Some(1), "{command:?} {name}");
            assert!(stderr(&refused).contains(name) && stderr(&refused).contains("not a file of the run"));
        }
        assert!(verified(&run).0.contains(name));
        std::fs::remove_file(path).unwrap();
    }
    for command in commands {
        stdout(&trainer(command));
    }
    // A tokenizer's settings are the run's too.
    std::fs::write(run.join("tokenizer_config.json"), "{}").unwrap();
    assert_eq!(trainer(commands[0]).status.code(), Some(1));
}

/// An attack that `export.json` once made possible: weights of another model under a digest of its
/// own.
#[test]
fn an_export_has_the_weights_of_the_run_in_a_format_that_its_first_line_names() {
    let bench = without_evaluation();
    let run = bench.path("run");
    let exported = |dtype: &str| {
        let out = bench.path(dtype);
        let arguments = ["export", run.to_str().unwrap(), "--dtype", dtype, "--out", out.to_str().unwrap()];
        stdout(&trainer(&arguments));
        out
    };
    for (dtype, name) in [("f32", "float32"), ("bf16", "bfloat16"), ("f16", "float16")] {
        let (text, json) = verified(&exported(dtype));
        let first = text.lines().next().unwrap();
        assert_eq!(first.contains(name), dtype != "f32", "{first}");
        assert_eq!((&json["weights"], &json["not_covered"]), (&json!(name), &json!([])), "{text}");
    }
    let digest = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        <sha2::Sha256 as sha2::Digest>::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let refused = |folder: &Path, name: &str| {
        let names = ["model.safetensors", "config.json", "tokenizer.json"];
        let files: Vec<Value> =
            names.iter().map(|name| json!({ "name": name, "sha256": digest(&folder.join(name)) })).collect();
        let export = json!({ "format": 1, "dtype": "bfloat16", "files": files });
        std::fs::write(folder.join("export.json"), export.to_string()).unwrap();
        let refused = trainer(&["verify", folder.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(1), "{name}");
        assert!(stderr(&refused).contains(name), "{}", stderr(&refused));
    };
    let other =
        Bench::new(&serde_json::from_slice(&std::fs::read(bench.path("plan.json")).unwrap()).unwrap());
    other.model("run", &["--test-key", "6"]);
    for (folder, name) in [(bench.path("f32"), "model.safetensors"), (bench.path("bf16"), "tokenizer.json")] {
        std::fs::copy(other.path("run").join("model.safetensors"), folder.join("model.safetensors")).unwrap();
        refused(&folder, "model.safetensors");
        std::fs::remove_dir_all(&folder).unwrap();
        let dtype = folder.file_name().unwrap().to_str().unwrap().to_owned();
        exported(&dtype);
        std::fs::write(folder.join(name), "{}").unwrap();
        refused(&folder, name);
    }
    // The weights of one format under the configuration of another.
    std::fs::copy(run.join("config.json"), bench.path("f16/config.json")).unwrap();
    refused(&bench.path("f16"), "model.safetensors");
}

/// The card of an export follows from the run. Other files beside it do not.
#[test]
fn what_is_altered_or_added_in_an_export_is_named() {
    let (bench, run) = common::finished_run();
    let out = bench.path("out");
    stdout(&trainer(&["export", run.to_str().unwrap(), "--out", out.to_str().unwrap()]));
    assert_eq!(verified(&out).1["not_covered"], json!([]));
    let card = out.join("README.md");
    let text = std::fs::read_to_string(&card).unwrap().replace("epsilon", "").replace('ε', "0 =");
    std::fs::write(card, text).unwrap();
    for name in ["model.gguf", "report.html", "evil\u{1b}[2K.txt"] {
        std::fs::write(out.join(name), "x").unwrap();
    }
    let (text, json) = verified(&out);
    assert_eq!(json["not_covered"], json!(["README.md", "evil\u{1b}[2K.txt", "model.gguf", "report.html"]));
    assert!(text.contains("not covered by any digest: README.md") && !text.contains('\u{1b}'), "{text}");
    // A certificate with another ε in a list of runs.
    let path = run.join("certificate.json");
    let original = std::fs::read_to_string(&path).unwrap();
    let mut certificate: Value = serde_json::from_str(&original).unwrap();
    certificate["guarantee"]["epsilon"] = json!({ "lower": 0.0, "upper": 0.001 });
    std::fs::write(&path, certificate.to_string()).unwrap();
    let folder = bench.folder.path().to_str().unwrap().to_owned();
    let runs = stdout(&trainer(&["runs", &folder]));
    let line = runs.lines().find(|line| line.starts_with("run")).unwrap();
    assert!(!line.contains("ε") && line.contains("not verified"), "{runs}");
    std::fs::write(&path, original).unwrap();
    let runs = stdout(&trainer(&["runs", &folder]));
    assert!(runs.lines().any(|line| line.starts_with("run") && line.contains("ε ≤")), "{runs}");
}
