//! Every key of every family's `config.json`, changed one at a time: the logits are those of `transformers`, or the key is refused by
//! name. `tests/vectors/make_keys.py` records what `transformers` makes of each change.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{CONFIG_FILE_NAME, PretrainedCheckpoint, describe};
use crate::Example;
use crate::model::{Backbone, Batch, Network, Predictions, Shape};
use crate::nn::Weights;
use crate::tensor::{Flex, FlexDevice, FloatDType, Tensor, to_host_f64};
use crate::vectors;

/// The logits are of order 3, computed in single precision and rounded to six decimals.
const TOLERANCE: f64 = 5e-5;

/// A checkpoint whose configuration is changed.
struct Changed {
    folder: tempfile::TempDir,
    objective: String,
    example: Value,
}

impl Changed {
    fn new(name: &str, example: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(vectors::path(name)).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap();
            if file.to_str().unwrap().starts_with("model") {
                std::fs::copy(&path, folder.path().join(file)).unwrap();
            }
        }
        let models = read(&vectors::path("models.json"));
        let objective = models[name]["objective"].as_str().unwrap_or("causal_lm").to_owned();
        Self { folder, objective, example: example.clone() }
    }

    /// Returns the logits at three rows and three columns, as `make_keys.py` keeps them.
    fn logits(&self, config: &Value) -> Result<Vec<f64>, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let folder = self.folder.path();
        std::fs::write(folder.join(CONFIG_FILE_NAME), config.to_string()).unwrap();
        let model = describe(folder).map_err(|error| said(&error))?;
        let checkpoint = PretrainedCheckpoint::read(folder).map_err(|error| said(&error))?;
        let vocab_size = checkpoint.vocab_size(1).map_err(|error| said(&error))?;
        let network = Network::new(&model, &vectors::training(&self.objective), vocab_size);
        let network = network.map_err(|error| said(&error))?;
        let read =
            checkpoint.weights(&network.specs(), &network.hf_config()).map_err(|error| said(&error))?;
        if let Some(drawn) = read.drawn.first() {
            return Err(format!("tensor {drawn} is drawn"));
        }
        let values =
            read.weights.into_iter().map(|tensor| Tensor::from_data(tensor.data.as_slice(), &FlexDevice));
        let weights = Weights::<Flex>::new(network.specs(), values.collect());
        let list = |field: &str| serde_json::from_value(self.example[field].clone()).unwrap_or_default();
        let example = Example {
            input: list("input"),
            decoder_input: list("decoder_input"),
            positions: list("positions"),
            ..Example::default()
        };
        network.check(std::slice::from_ref(&example)).map_err(|error| said(&error))?;
        let rows = match [&example.positions, &example.decoder_input, &example.input].map(Vec::len) {
            _ if self.objective == "sequence_classification" => 1,
            [0, 0, input] => input,
            [0, decoder, _] => decoder,
            [positions, ..] => positions,
        };
        let shape = match network.shape() {
            // These are more places than training would mask.
            Shape { predictions: Predictions::AtPlaces(_), .. } => {
                Shape { predictions: Predictions::AtPlaces(rows), ..network.shape() }
            }
            shape => shape,
        };
        let batch = Batch::new(&[example], 1, shape, FloatDType::F32, &FlexDevice);
        let logits = to_host_f64(network.logits(&weights, batch));
        let columns = network.outputs();
        let three = |count: usize| [0, count / 2, count - 1];
        let at = |row: usize| three(columns).map(|column| logits[row * columns + column]);
        Ok(three(rows).into_iter().flat_map(at).collect())
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn equals(ours: &[f64], theirs: &[f64]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < TOLERANCE)
}

/// Returns the record beside the checkpoints or, where TRANSFORMERS_PYTHON names a Python with `transformers`, a new
/// one.
fn record() -> Value {
    let Some(python) = std::env::var_os("TRANSFORMERS_PYTHON") else {
        eprintln!("TRANSFORMERS_PYTHON names no Python with transformers: its recorded answers are compared");
        return read(&vectors::path("keys.json"));
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let status = Command::new(python).arg("make_keys.py").arg(&path).current_dir(vectors::path("")).status();
    assert!(status.unwrap().success());
    read(&path)
}

/// Returns whether a message says which key of the file is refused: by its name, by a key inside it, by the field of
/// the plan that it decides, or by the tensor that does not fit it.
fn names(message: &str, key: &str, config: &Value) -> bool {
    let of_plan = Backbone::checkpoints()
        .filter(|family| config["model_type"] == family.model_type)
        .flat_map(|family| family.plan_fields)
        .any(|(name, of_plan)| *name == key && message.contains(of_plan));
    let inside =
        config[key].as_object().is_some_and(|fields| fields.keys().any(|name| message.contains(name)));
    let otherwise = match key {
        "max_position_embeddings" => "longer than the model's context",
        // With another type, the refusal may name any key that the other family states differently.
        "model_type" => "config.json has",
        // The share of a head, in GPT-NeoX.
        "rope_parameters" => "rotary_pct",
        _ => ": tensor ",
    };
    message.contains(key) || inside || of_plan || message.contains(": tensor ") || message.contains(otherwise)
}

/// Oracle: `transformers`. What it refuses itself, such as `null` for a number, has no logits, and may be read or refused.
#[test]
fn each_key_of_each_configuration_has_the_effect_that_it_has_in_transformers_or_is_refused_by_name() {
    let record = record();
    let (mut wrong, mut counts) = (Vec::new(), [0; 4]);
    for (name, model) in record["models"].as_object().unwrap() {
        let changed = Changed::new(name, &model["example"]);
        let usual: Vec<f64> = serde_json::from_value(model["logits"].clone()).unwrap();
        let ours = changed.logits(&model["config"]).unwrap();
        assert!(equals(&ours, &usual), "{name}: {ours:?} {usual:?}");
        let mut last = "";
        for change in model["changes"].as_array().unwrap() {
            let (key, outcome, value) = (change[0].as_str().unwrap(), &change[1], change.get(2));
            counts[0] += usize::from(key != last);
            last = key;
            let mut config = model["config"].clone();
            match value {
                Some(value) => config[key] = value.clone(),
                None => drop(config.as_object_mut().unwrap().remove(key)),
            }
            let theirs: Option<Vec<f64>> = match outcome.as_str() {
                Some("same") => Some(usual.clone()),
                Some(_) => None,
                None => Some(serde_json::from_value(outcome.clone()).unwrap()),
            };
            let what = || format!("{name}: {key} = {value:?}, transformers: {outcome}");
            match (changed.logits(&config), theirs) {
                (Ok(ours), Some(theirs)) if equals(&ours, &theirs) => counts[1] += 1,
                (_, None) => counts[2] += 1,
                (Ok(ours), Some(_)) => wrong.push(format!("{}: {ours:?}", what())),
                (Err(message), _) if names(&message, key, &config) => counts[3] += 1,
                (Err(message), _) => wrong.push(format!("{}: {message}", what())),
            }
        }
    }
    let [keys, equal, refused_there, refused] = counts;
    eprintln!(
        "{} models, {keys} keys: {equal} changes with equal logits, {refused} refused here by name, {refused_there} refused by transformers",
        record["models"].as_object().unwrap().len()
    );
    assert!(wrong.is_empty(), "{} changes:\n{}", wrong.len(), wrong.join("\n"));
    assert!(equal > 4_000 && refused > 4_000, "{equal} {refused}");
}
