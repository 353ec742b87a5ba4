//! Networks for tests: small ones, and those of the models in this folder, which `transformers` wrote. The tests of several crates
//! include this file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use network::model::Network;
use network::pretrained::describe;

/// Returns a path in this folder.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../network/tests/vectors")).join(name)
}

/// Builds the network of a plan's model. Sizes that `model` does not give are small.
pub(crate) fn network(model: &Value, objective: &str, vocab_size: usize) -> Network {
    let mut sizes = json!({ "d_model": 8, "layers": 2, "heads": 2, "d_ff": 12, "context": 14 });
    sizes.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    Network::new(&serde_json::from_value(sizes).unwrap(), &training(objective), vocab_size).unwrap()
}

/// Returns the training part of a plan.
pub(crate) fn training(objective: &str) -> plan::Training {
    let mut training = json!({
        "objective": objective, "expected_batch_size": 4, "steps": 3, "l2_clip_norm": 1.0,
        "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
    });
    if objective.ends_with("classification") {
        training["labels"] = json!(["LABEL_0", "LABEL_1", "LABEL_2"]);
    }
    serde_json::from_value(training).unwrap()
}

/// Returns the folder of a model that another library wrote, and a network of its shape.
pub(crate) fn vectors(name: &str) -> (PathBuf, Network) {
    let folder = path("");
    let models: Value = serde_json::from_slice(&std::fs::read(folder.join("models.json")).unwrap()).unwrap();
    let model = &models[name];
    let vocab_size = model["vocab_size"].as_u64().unwrap() as usize;
    (folder.join(name), network(&model["model"], model["objective"].as_str().unwrap(), vocab_size))
}

/// A checkpoint in `rms_decoders`: its folder, the model that `describe` finds in it, and the network of this model.
pub(crate) struct Described {
    pub folder: PathBuf,
    pub name: String,
    pub model: plan::Model,
    pub network: Network,
    /// Figures that `transformers` computes with it (rms_decoders/make.py).
    pub expected: Value,
}

/// Returns all checkpoints in `rms_decoders`.
pub(crate) fn rms_decoders() -> Vec<Described> {
    let folders = std::fs::read_dir(path("rms_decoders")).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let described = |folder: PathBuf| {
        let model = describe(&folder).unwrap();
        let network = Network::new(&model, &training("causal_lm"), 29).unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
        Described { folder, name, model, network, expected }
    };
    folders.into_iter().map(described).collect()
}
