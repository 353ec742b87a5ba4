//! Models that other libraries wrote, in `network/tests/vectors`, and networks of the same shape.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use network::tensor_file::NamedTensor;
use serde_json::{Value, json};

#[path = "../../../network/tests/vectors/mod.rs"]
mod recorded;

#[allow(unused_imports, reason = "each test binary uses its own part")]
pub(crate) use recorded::{network, path as vectors, training};

pub fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The tensors of a safetensors file of 32-bit floats.
pub fn tensors(path: &Path) -> Vec<NamedTensor> {
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = |(name, view): (String, safetensors::tensor::TensorView<'_>)| NamedTensor {
        name,
        shape: view.shape().to_vec(),
        data: view.data().chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect(),
    };
    file.tensors().into_iter().map(tensor).collect()
}

/// A model's part of a plan, its objective and its vocabulary, as `models.json` has them.
pub fn planned(name: &str) -> (Value, String, usize) {
    let mut planned = read_json(&vectors("models.json"))[name].take();
    let objective = planned["objective"].as_str().unwrap().to_owned();
    let vocab_size = planned["vocab_size"].as_u64().unwrap() as usize;
    (planned["model"].take(), objective, vocab_size)
}

/// Checks that a network has the tensors of a model that `transformers` wrote, except for `absent`.
pub fn check_tensors(name: &str, network: &network::model::Network, absent: &[&str]) {
    let mut ours: Vec<_> =
        network.specs().iter().map(|spec| (spec.name.clone(), spec.shape.clone())).collect();
    let theirs = tensors(&vectors(name).join("model.safetensors")).into_iter();
    let theirs = theirs.filter(|tensor| !absent.contains(&tensor.name.as_str()));
    let mut theirs: Vec<_> = theirs.map(|tensor| (tensor.name, tensor.shape)).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs, "{name}");
}

/// Returns the output of check_written.py for a folder and these examples. It shows that
/// `transformers` finds each of its weights, and no other.
pub fn read_by_transformers(python: &OsStr, folder: &Path, examples: &Value) -> Value {
    let mut child = Command::new(python)
        .arg(vectors("check_written.py"))
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(examples.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&read["missing"], &read["unexpected"]), (&json!([]), &json!([])), "{folder:?}");
    read
}
