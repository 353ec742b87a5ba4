//! Networks for tests: small ones, and those of the models in `tests/vectors`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use network::model::Network;

/// The network of a plan's model. Sizes that `model` does not give are small.
pub(crate) fn network(model: &Value, objective: &str, vocab_size: usize) -> Network {
    let mut sizes = json!({ "d_model": 8, "layers": 2, "heads": 2, "d_ff": 12, "context": 14 });
    sizes.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    let mut training = json!({
        "objective": objective, "expected_batch_size": 4, "steps": 3, "l2_clip_norm": 1.0,
        "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
    });
    if objective.ends_with("classification") {
        training["labels"] = json!(["LABEL_0", "LABEL_1", "LABEL_2"]);
    }
    let (model, training) =
        (serde_json::from_value(sizes).unwrap(), serde_json::from_value(training).unwrap());
    Network::new(&model, &training, vocab_size).unwrap()
}

/// The folder of a model that another library wrote, and a network of its shape.
pub(crate) fn vectors(name: &str) -> (PathBuf, Network) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let models: Value = serde_json::from_slice(&std::fs::read(folder.join("models.json")).unwrap()).unwrap();
    let model = &models[name];
    let vocab_size = model["vocab_size"].as_u64().unwrap() as usize;
    (folder.join(name), network(&model["model"], model["objective"].as_str().unwrap(), vocab_size))
}
