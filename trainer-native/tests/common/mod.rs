//! A tiny plan, and the program as a user runs it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses its own part and fails by panicking"
)]

pub mod ranks;
pub mod vectors;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A run of the program in a folder of its own.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    /// A folder with `plan.json`.
    pub fn new(plan: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plan.json"), serde_json::to_string_pretty(plan).unwrap()).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command that carries out the plan into `out`.
    pub fn command(&self, out: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        command.arg("--plan").arg(self.path("plan.json")).arg("--out").arg(self.path(out)).args(arguments);
        command.env("XDG_STATE_HOME", self.path("state"));
        // mpirun makes and removes `ompi.HOST.USER` there, and fails if another one does so at that moment.
        command.env("OMPI_MCA_orte_tmpdir_base", self.folder.path());
        command
    }

    pub fn run(&self, out: &str, arguments: &[&str]) -> Output {
        self.command(out, arguments).output().unwrap()
    }

    /// The arguments, with `--resume` if `out` holds a run.
    pub fn resumed<'a>(&self, out: &str, arguments: &[&'a str]) -> Vec<&'a str> {
        let resume = self.path(out).join("ledger.jsonl").exists().then_some("--resume");
        arguments.iter().copied().chain(resume).collect()
    }

    /// Runs to the end and gives the model's bytes.
    pub fn model(&self, out: &str, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(out, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        std::fs::read(self.path(out).join("model.safetensors")).unwrap()
    }
}

/// Checks that a device which the environment variable hides is refused in one line that says what
/// it needs, without a panic and without a folder. The list of devices must say the same.
pub fn refuses_device(device: &str, [variable, value]: [&str; 2], need: &str) {
    let bench = Bench::new(&tiny_with_vocabulary());
    let output = bench.command("run", &["--device", device]).env(variable, value).output().unwrap();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    for part in [&format!("device \"{device}\" cannot be used here"), need, "--device"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("panicked") && !bench.path("run").exists());
    let devices = Command::new(env!("CARGO_BIN_EXE_trainer-native"))
        .arg("devices")
        .env(variable, value)
        .output()
        .unwrap();
    let listing = String::from_utf8(devices.stdout).unwrap();
    assert!(listing.starts_with("cpu") && listing.contains("cannot be used here"), "{listing}");
    assert!(devices.status.success() && devices.stderr.is_empty());
}

/// A run that released its vocabulary and trained to its end, and its folder.
pub fn finished_run() -> (Bench, PathBuf) {
    let bench = Bench::new(&tiny_with_vocabulary());
    bench.model("run", &[]);
    let run = bench.path("run");
    (bench, run)
}

/// Returns all weights of a model file, in the order of their names.
pub fn values(model: &[u8]) -> Vec<f32> {
    let tensors = safetensors::SafeTensors::deserialize(model).unwrap();
    let mut names = tensors.names();
    names.sort_unstable();
    let bytes = names.into_iter().flat_map(|name| tensors.tensor(name).unwrap().data().chunks_exact(4));
    bytes.map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A plan that takes well under a second. It has every stage except the private vocabulary.
pub fn tiny() -> Value {
    serde_json::from_str(include_str!("../../../plan/tests/fixtures/tiny.json")).unwrap()
}

/// The plan on text that it declares public. Its invented notes differ, so that the private ones
/// can be trained on later.
pub fn on_public_text(plan: &Value) -> Value {
    let mut plan = plan.clone();
    if let Some(seed) = plan.pointer_mut("/data/source/embedded/seed") {
        *seed = json!(seed.as_u64().unwrap() + 1000);
    }
    plan["data"]["visibility"] = json!("public");
    let privacy = plan["privacy"].as_object_mut().unwrap();
    privacy.retain(|field, _| !["epsilon", "spare_steps"].contains(&field.as_str()));
    plan
}

/// Returns the plan of [`tiny`] with a private vocabulary.
pub fn tiny_with_vocabulary() -> Value {
    let mut plan = tiny();
    plan["tokenizer"] = json!({ "train": { "model": "unigram", "vocab_size": 420, "release": "sips", "byte_fallback": true } });
    plan["training"]["steps"] = json!(10);
    plan
}

/// A plan of two steps at a tiny rate, which teach nothing, on 4,000 records with a [`labelled_text`] each.
pub fn labelled_words() -> Value {
    let mut plan = tiny_with_vocabulary();
    plan["data"] = json!({ "source": { "path": "train.jsonl" }, "units": 4000 });
    plan["privacy"]["tokenizer_share"] = json!(0.5);
    plan["tokenizer"]["train"]["release"] = json!("pooled");
    plan["tokenizer"]["train"]["vocab_size"] = json!(500);
    for (size, value) in [("d_model", 32), ("d_ff", 64), ("context", 32)] {
        plan["model"][size] = json!(value);
    }
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-5 });
    plan.as_object_mut().unwrap().remove("evaluation");
    plan
}

/// A text with "glad" at even numbers and "mad" at odd ones.
pub fn labelled_text(at: usize) -> String {
    let word = if at.is_multiple_of(2) { "glad" } else { "mad" };
    let end = ["today", "again", "as ever", "and so on"][at / 2 % 4];
    // Enough words to start from, of frequencies as words have them: 1/rank.
    let share = (at as u64 * 2_654_435_761 % (1 << 32)) as f64 / 2_f64.powi(32);
    let rank = 64_f64.powf(share) as usize - 1;
    let syllable = |at: usize| ["ta", "ri", "mon", "el"][at % 4];
    let name = [rank, rank / 4, rank / 16].map(syllable).concat();
    format!("they are {word} {end} {name}")
}

/// The entries of a run's ledger.
pub fn ledger(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("ledger.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"].clone()).collect()
}

/// Reservations of steps in a ledger.
pub fn reservations(run: &Path) -> usize {
    ledger(run).iter().filter(|entry| entry["kind"] == "step").count()
}

/// A tokenizer of whole words with the special tokens of RoBERTa and BART, in this order.
pub fn word_tokenizer(special: &[&str]) -> Value {
    let words = "a no yes the patient seen with pain zero one two";
    let tokens: Vec<&str> = special.iter().copied().chain(words.split(' ')).collect();
    let vocab: serde_json::Map<String, Value> =
        tokens.iter().enumerate().map(|(id, token)| ((*token).to_owned(), json!(id))).collect();
    let added: Vec<Value> = special
        .iter()
        .enumerate()
        .map(|(id, content)| {
            json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
        })
        .collect();
    json!({ "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": { "type": "WhitespaceSplit" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocab, "unk_token": "<unk>" } })
}

/// Special tokens of RoBERTa and BART.
pub const ROBERTA: [&str; 5] = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"];
