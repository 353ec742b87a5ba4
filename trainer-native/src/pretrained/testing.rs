//! Checkpoints for tests, as `transformers` wrote them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use network::model::Network;

/// A checkpoint in `tests/vectors/rms_decoders`: its folder, the model that `describe` returns for
/// it, and the network of that model.
pub(crate) struct Described {
    pub folder: PathBuf,
    pub name: String,
    pub model: plan::Model,
    pub network: Network,
    /// Results of `transformers` for this model (tests/vectors/rms_decoders/make.py).
    pub expected: Value,
}

/// Returns all checkpoints in `tests/vectors/rms_decoders`.
pub(crate) fn rms_decoders() -> Vec<Described> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/rms_decoders");
    let folders = std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let described = |folder: PathBuf| {
        let model = super::describe(&folder).unwrap();
        let training = json!({
            "objective": "causal_lm", "expected_batch_size": 4, "steps": 3, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
        });
        let network = Network::new(&model, &serde_json::from_value(training).unwrap(), 29).unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
        Described { folder, name, model, network, expected }
    };
    folders.into_iter().map(described).collect()
}
