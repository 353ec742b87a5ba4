//! Whether a checkpoint's `config.json` describes the plan's model.

use serde_json::Value;

use crate::model::HuggingFace;

/// Fields of any family that say nothing about what the model computes without dropout.
const IRRELEVANT: [&str; 13] = [
    "architectures",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "id2label",
    "initializer_range",
    "label2id",
    "pad_token_id",
    "problem_type",
    "torch_dtype",
    "transformers_version",
    "use_cache",
    "vocab_size",
];

/// Accepts a checkpoint's configuration that describes the model of ours; else says what differs, with both values.
pub(super) fn check(family: &HuggingFace, ours: &Value, theirs: &Value) -> Result<(), String> {
    let Some(fields) = ours.as_object() else { return Err("the model has no configuration".to_owned()) };
    let relevant = |name: &str| !IRRELEVANT.contains(&name) && !family.irrelevant.contains(&name);
    for (name, our) in fields.iter().filter(|(name, _)| relevant(name)) {
        let their = field(family, theirs, name);
        let fits = match Some(name.as_str()) == family.positions {
            // Positions beyond the plan's context are not used.
            true => their.as_u64() >= our.as_u64(),
            false => same(our, &their),
        };
        if !fits {
            return Err(differs(family, name, our, &their));
        }
    }
    for (name, only) in family.fixed {
        let only = parsed(only);
        if theirs.get(*name).is_some_and(|their| !their.is_null() && *their != only) {
            return Err(format!("config.json has {name} = {}; allowed: {only}", theirs[*name]));
        }
    }
    Ok(())
}

/// Accepts labels of a checkpoint's own head that are those of ours in the same order, or have no names.
pub(super) fn check_labels(ours: &Value, theirs: &Value) -> Result<(), String> {
    let Some(labels) = theirs["id2label"].as_object() else { return Ok(()) };
    let unnamed = labels.iter().all(|(id, label)| label.as_str() == Some(&format!("LABEL_{id}")));
    if unnamed || theirs["id2label"] == ours["id2label"] {
        return Ok(());
    }
    let names: Vec<&str> = (0..labels.len()).filter_map(|id| labels.get(&id.to_string())?.as_str()).collect();
    Err(format!(
        "its head predicts the labels {names:?}, which are not the plan's training.labels; write them in this order, or give \
         a checkpoint without such a head"
    ))
}

/// A field of a checkpoint's configuration, as `transformers` would understand it.
fn field(family: &HuggingFace, config: &Value, name: &str) -> Value {
    if let Some(value) = (family.read)(config, name) {
        return value;
    }
    if !config[name].is_null() {
        return config[name].clone();
    }
    let default =
        family.defaults.iter().chain(HuggingFace::COMMON_DEFAULTS).find(|(field, _)| *field == name);
    default.map(|(_, value)| parsed(value)).unwrap_or_default()
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours.as_f64(), theirs.as_f64()) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => ours == theirs,
    }
}

fn differs(family: &HuggingFace, name: &str, ours: &Value, theirs: &Value) -> String {
    let of_plan = family.plan_fields.iter().find(|(field, _)| *field == name);
    let of_plan = of_plan.map_or("model.family", |(_, of_plan)| of_plan);
    format!(
        "config.json has {name} = {theirs}, but the plan's {of_plan} makes it {ours}; set {of_plan} to fit the checkpoint, \
         or give another checkpoint"
    )
}
