//! Describes the plan's model that fits a checkpoint, from its `config.json`.

use std::path::Path;

use durable::FileError;
use plan::{Family, Initial};
use serde_json::{Map, Value, json};

use super::config::{check, field, not_taken, same};
use super::folder::{config_of, what_it_is};
use super::{CONFIG_FILE_NAME, refused};
use crate::model::{Backbone, FieldType, HuggingFace, Network};

/// Largest number of tokens of a plan's window.
const LONGEST_CONTEXT: u64 = 131_072;
/// Sizes that every plan gives.
const REQUIRED: [&str; 5] = ["context", "d_ff", "d_model", "heads", "layers"];
/// Number of tokens of a window, for a model without a limit whose file states none.
const USUAL_CONTEXT: u64 = 512;

/// Returns the model of a plan that starts from the checkpoint in a folder. Of the tensors, it reads only the names.
///
/// # Errors
/// [`FileError::Refused`] with the field of `config.json` that no family here supports.
pub fn describe(folder: &Path) -> Result<plan::Model, FileError> {
    let wrong = |what: String| refused("describe", folder, &what);
    let path = folder.join(CONFIG_FILE_NAME);
    if !path.is_file() {
        let missing =
            || format!("there is no {CONFIG_FILE_NAME}; name the folder of a checkpoint of transformers");
        return Err(wrong(what_it_is(folder).unwrap_or_else(missing)));
    }
    let config = config_of(folder, &durable::read(&path)?).map_err(wrong)?;
    let model = of_config(&config).map_err(wrong)?;
    let initial = Initial::Checkpoint(folder.display().to_string());
    Ok(plan::Model { initial, ..model })
}

/// Returns the rate at which a checkpoint's `config.json` drops outputs of each part in training; 0 if it states none.
///
/// # Errors
/// [`FileError`] if the folder holds no readable `config.json`.
pub fn dropout(folder: &Path) -> Result<f64, FileError> {
    const NAMES: [&str; 6] =
        ["resid_pdrop", "resid_dropout", "hidden_dropout_prob", "hidden_dropout", "dropout_rate", "dropout"];
    let wrong = |what: String| refused("describe", folder, &what);
    let config = config_of(folder, &durable::read(&folder.join(CONFIG_FILE_NAME))?).map_err(wrong)?;
    let rate = NAMES.iter().find_map(|name| config[*name].as_f64());
    Ok(rate.filter(|rate| (0.0..1.0).contains(rate)).unwrap_or(0.0))
}

fn of_config(config: &Value) -> Result<plan::Model, String> {
    let known = || Family::all().filter(|family| family.is_in_transformers());
    let hugging_face = |family: &Family| Backbone::hugging_face(*family);
    let is_of = |family: &Family| {
        let theirs = hugging_face(family);
        let is_gated = || field(theirs, config, "feed_forward_proj") == "gated-gelu";
        field(theirs, config, "model_type") == theirs.model_type
            && match family {
                Family::T5 => !is_gated(),
                Family::T5V1_1 => is_gated(),
                _ => true,
            }
    };
    match known().find(is_of) {
        Some(family) => fitted(family, config, false).or_else(|_| fitted(family, config, true)),
        None => {
            let mut types: Vec<&str> = known().map(|family| hugging_face(&family).model_type).collect();
            types.dedup();
            Err(format!(
                "config.json has model_type = {}; allowed: {}",
                config["model_type"],
                types.join(", ")
            ))
        }
    }
}

/// Returns the model of this family that has the given configuration. With `states_all`, it lists its layers and states
/// settings even where they are usual for the family.
fn fitted(family: Family, config: &Value, states_all: bool) -> Result<plan::Model, String> {
    let theirs = Backbone::hugging_face(family);
    let mut fields = sizes(theirs, config)?;
    fields.insert("family".to_owned(), json!(family.name()));
    let mut given = Map::new();
    for own in theirs.config_fields {
        let value = field(theirs, config, own.name);
        if !own.field_type.accepts(&value) {
            return Err(not_taken(own, &value, config));
        }
        let may_be_usual = matches!(
            own.field_type,
            FieldType::LayerTypes | FieldType::RotatingLayers | FieldType::FlagOrNull
        );
        let is_left_out = may_be_usual && !states_all;
        if !is_left_out && !same(&own.usual(), &value) {
            given.insert(own.name.to_owned(), value);
        }
    }
    fields.insert("config".to_owned(), Value::Object(given));
    let model = plan::Model::parse(&Value::Object(fields))
        .map_err(|error| format!("{CONFIG_FILE_NAME} as the plan's model: {error}"))?;
    let vocab_size = config["vocab_size"].as_u64().and_then(|size| usize::try_from(size).ok());
    let vocab_size = vocab_size.ok_or("config.json has no vocab_size")?;
    let training = json!({
        "objective": family.objectives().first(), "expected_batch_size": 1, "steps": 1, "l2_clip_norm": 1.0,
        "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
    });
    let training = serde_json::from_value(training).map_err(|error| error.to_string())?;
    let network = Network::new(&model, &training, vocab_size).map_err(|error| error.to_string())?;
    check(theirs, &network.hf_config(), config).map(|()| model)
}

/// Returns the plan's sizes, by their names in a plan.
fn sizes(family: &HuggingFace, config: &Value) -> Result<Map<String, Value>, String> {
    let mut sizes = Map::new();
    for (name, of_plan) in family.plan_fields {
        let Some(of_plan) = of_plan.strip_prefix("model.") else { continue };
        let value = field(family, config, name);
        match of_plan {
            "family" => continue,
            "untied" if value == true => continue,
            "untied" => _ = sizes.insert(of_plan.to_owned(), json!(true)),
            // The family lacks this size, or the plan must state it.
            _ if value.is_null() && !REQUIRED.contains(&of_plan) => {}
            _ if value.is_null() => return Err(format!("config.json has no {name}")),
            "context" => {
                let usable = |length: u64| length.saturating_sub(family.first_position).min(LONGEST_CONTEXT);
                let context = value.as_u64().map_or(value, |length| json!(usable(length)));
                sizes.insert(of_plan.to_owned(), context);
            }
            _ => _ = sizes.entry(of_plan).or_insert(value),
        }
    }
    let usual = || json!(config["n_positions"].as_u64().unwrap_or(USUAL_CONTEXT));
    sizes.entry("context").or_insert_with(usual);
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors;

    fn read(path: &Path) -> Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    /// Oracles: configurations as their authors published them, and the sizes that the model cards state.
    #[test]
    fn published_configurations_are_described_with_their_number_of_parameters() {
        let published = read(&vectors::path("rms_decoders/published.json"));
        for (name, published) in published.as_object().unwrap() {
            let model = of_config(&published["config"]).unwrap();
            assert_eq!(json!(model.config), published["model_config"], "{name}");
            let vocab_size = published["config"]["vocab_size"].as_u64().unwrap() as usize;
            let model = serde_json::to_value(&model).unwrap();
            let network = vectors::network(&model, "causal_lm", vocab_size);
            let parameters: u64 = network.specs().iter().map(|spec| spec.len() as u64).sum();
            assert_eq!(json!(parameters), published["parameters"], "{name}");
        }
    }

    #[test]
    fn checkpoints_of_other_families_are_described_too() {
        let models = read(&vectors::path("models.json"));
        let names = [
            "gpt2_tiny",
            "gemma_tiny",
            "llama_tiny",
            "t5_v1_1_tiny",
            "bert_tiny",
            "roberta_tiny",
            "distilbert_tiny",
            "gpt_neox_tiny",
            "gpt_neox_tied_tiny",
            "phi_tiny",
            "stablelm_tiny",
            "stablelm_parallel_tiny",
            "gptj_tiny",
            "electra_tiny",
            "opt_tiny",
            "gpt_neo_tiny",
            "bart_tiny",
            "mbart_tiny",
            "marian_tiny",
            "modernbert_tiny",
        ];
        for name in names {
            let model = serde_json::to_value(describe(&vectors::path(name)).unwrap()).unwrap();
            for (field, value) in models[name]["model"].as_object().unwrap() {
                // T5's context has no limit, and its file states another number.
                if (name, field.as_str()) != ("t5_v1_1_tiny", "context") {
                    assert_eq!(&model[field], value, "{name} {field}");
                }
            }
        }
    }

    fn refusal(name: &str, change: impl Fn(&mut Value)) -> String {
        let mut config = read(&vectors::path("rms_decoders").join(name).join(CONFIG_FILE_NAME));
        change(&mut config);
        let message = of_config(&config).unwrap_err();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    #[test]
    fn what_no_family_here_computes_is_refused_by_name() {
        let longrope = json!({ "rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0] });
        let truncated = json!({ "rope_type": "yarn", "factor": 2.0, "truncate": false });
        let scaled = |kind: &str| json!({ "rope_type": kind, "factor": 2.0, "rope_theta": 1e4 });
        let cases: [(&str, &str, Value, &str); 15] = [
            ("llama3", "model_type", json!("cohere"), "model_type = \"cohere\"; allowed: gpt2, gemma"),
            ("llama3", "hidden_act", json!("relu"), "hidden_act = \"relu\""),
            ("gemma2", "hidden_activation", json!("gelu"), "hidden_activation = \"gelu\""),
            ("llama3", "rope_parameters", scaled("proportional"), "proportional"),
            ("llama3", "rope_scaling", scaled("dynamic"), "dynamic"),
            ("qwen3", "rope_scaling", truncated, "truncate\":false"),
            ("phi3", "rope_parameters", longrope.clone(), "longrope"),
            ("phi3", "rope_scaling", longrope, "longrope"),
            ("phi3", "rope_scaling", scaled("linear"), "linear"),
            ("phi3", "partial_rotary_factor", json!(0.75), "partial_rotary_factor = 0.75; allowed: 1.0"),
            ("gemma3", "attn_logit_softcapping", json!(50.0), "attn_logit_softcapping = 50.0; allowed: null"),
            ("gemma3", "use_bidirectional_attention", json!(true), "use_bidirectional_attention = true"),
            (
                "qwen2_window",
                "layer_types",
                json!(["full_attention", "linear_attention"]),
                "linear_attention",
            ),
            ("mistral", "layer_types", json!(["full_attention", "sliding_attention"]), "layer_types"),
            ("llama3", "intermediate_size", Value::Null, "no intermediate_size"),
        ];
        for (name, field, value, words) in cases {
            let message = refusal(name, |config| config[field] = value.clone());
            assert!(message.contains(words), "{name} {field}: {message}");
        }
        let local = refusal("gemma3", |config| {
            config["rope_parameters"]["sliding_attention"] = scaled("linear");
        });
        assert!(local.contains("sliding_attention"), "{local}");
        let message = describe(&vectors::path("scores")).unwrap_err().to_string();
        assert!(message.contains("there is no config.json"), "{message}");
    }

    /// The refusal of a plan that lacks a field of the checkpoint says what to write.
    #[test]
    fn a_field_that_the_plan_lacks_is_named_with_what_to_write() {
        for case in vectors::rms_decoders() {
            // A window and the layers that have it are only given together.
            let together =
                |name: &str| case.name == "qwen2_window" && ["layer_types", "sliding_window"].contains(&name);
            for name in case.model.config.keys().filter(|name| !together(name)) {
                let mut plain = case.model.clone();
                plain.config.remove(name);
                let config = read(&case.folder.join(CONFIG_FILE_NAME));
                let network = vectors::network(&serde_json::to_value(&plain).unwrap(), "causal_lm", 29);
                let theirs = Backbone::hugging_face(case.model.family);
                let message = check(theirs, &network.hf_config(), &config).unwrap_err();
                let hint =
                    format!("write {name:?}: {} in the plan's model.config", field(theirs, &config, name));
                assert!(message.contains(&hint), "{} {name}: {message}", case.name);
            }
        }
    }
}
