//! Checks that a checkpoint's `config.json` describes the plan's model.

use serde_json::Value;

use crate::model::{ConfigField, HuggingFace, rope_malformed, rope_name};

/// Fields of any family that do not affect the model's computation without dropout.
const IRRELEVANT: [&str; 70] = [
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "cls_token_id",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "label2id",
    "length_penalty",
    "mask_token_id",
    "max_length",
    "min_length",
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    // This program's own statement about the privacy of the weights.
    "privacy",
    "privacy_id",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
    "vocab_size",
];

/// Fields for which every family supports a single value, as JSON, unless its own configuration
/// states another.
const FIXED: [(&str, &str); 4] = [
    ("add_cross_attention", "false"),
    ("is_decoder", "false"),
    ("is_encoder_decoder", "false"),
    ("tie_encoder_decoder", "false"),
];

/// Accepts a checkpoint's configuration if it describes our model. Otherwise describes the
/// difference, with both values.
pub(super) fn check(family: &HuggingFace, ours: &Value, theirs: &Value) -> Result<(), String> {
    let Some(fields) = ours.as_object() else { return Err("the model has no configuration".to_owned()) };
    let their = field(family, theirs, "model_type");
    if their != ours["model_type"] {
        return Err(differs(family, "model_type", &ours["model_type"], &their, theirs));
    }
    if let Some(what) = rope_malformed(theirs).or_else(|| (family.contradiction)(theirs)) {
        return Err(format!("config.json has {what}"));
    }
    let relevant = |name: &str| !IRRELEVANT.contains(&name) && !family.irrelevant.contains(&name);
    for (name, our) in fields.iter().filter(|(name, _)| relevant(name)) {
        // What our file says that a model does not use is not read either.
        let our = (family.read)(ours, name).unwrap_or_else(|| our.clone());
        let their = field(family, theirs, name);
        let own = family.config_fields.iter().find(|field| field.name == name);
        if let Some(own) = own.filter(|own| !own.field_type.accepts(&their)) {
            return Err(not_taken(own, &their, theirs));
        }
        let fits = match Some(name.as_str()) == family.positions {
            // Positions beyond the plan's context are not used.
            true => their.as_u64() >= our.as_u64(),
            false => same(&our, &their),
        };
        if !fits {
            return Err(differs(family, name, &our, &their, theirs));
        }
    }
    for own in family.config_fields.iter().filter(|own| !fields.contains_key(own.name)) {
        let their = field(family, theirs, own.name);
        if !same(&own.usual(), &their) {
            return Err(differs(family, own.name, &own.usual(), &their, theirs));
        }
    }
    let fixed = || family.fixed.iter().chain(&FIXED).filter(|(name, _)| !fields.contains_key(*name));
    for (name, only) in fixed() {
        let only = parsed(only);
        let their = field(family, theirs, name);
        if !their.is_null() && !same(&only, &their) {
            return Err(format!("config.json has {} = {their}; allowed: {only}", rope_name(theirs, name)));
        }
    }
    let is_known = |name: &str| {
        let has_base = ["rope_theta", "rotary_emb_base", "global_rope_theta"]
            .iter()
            .any(|base| fields.contains_key(*base));
        let is_read = name == "rope_parameters" && has_base || fixed().any(|(fixed, _)| *fixed == name);
        let is_own = family.config_fields.iter().any(|own| own.name == name);
        is_read || is_own || fields.contains_key(name) || !relevant(name)
    };
    match theirs
        .as_object()
        .and_then(|theirs| theirs.iter().find(|(name, value)| !is_known(name) && says_something(value)))
    {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "config.json has {name} = {value}, which is not known here and may change what the model computes; remove the field \
             if it does not"
        )),
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Accepts labels of a checkpoint's own head that equal ours in the same order, or have no names.
pub(super) fn check_labels(ours: &Value, theirs: &Value) -> Result<(), String> {
    let Some(labels) = theirs["id2label"].as_object() else { return Ok(()) };
    let unnamed = labels.iter().all(|(id, label)| label.as_str() == Some(&format!("LABEL_{id}")));
    if unnamed || theirs["id2label"] == ours["id2label"] {
        return Ok(());
    }
    let names: Vec<&str> = (0..labels.len()).filter_map(|id| labels.get(&id.to_string())?.as_str()).collect();
    Err(format!(
        "its head predicts the labels {names:?} (id2label), which are not the plan's training.labels; write them in this order, or give \
         a checkpoint without such a head"
    ))
}

/// Returns a field of a checkpoint's configuration, as `transformers` would understand it.
pub(super) fn field(family: &HuggingFace, config: &Value, name: &str) -> Value {
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

pub(super) fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(name, our)| theirs.get(name).is_some_and(|their| same(our, their)))
        }
        (Value::String(ours), Value::String(theirs)) => synonym(ours) == synonym(theirs),
        _ => ours == theirs,
    }
}

/// Returns the same name for all names that `transformers` has for an activation.
fn synonym(activation: &str) -> &str {
    match activation {
        "gelu_pytorch_tanh" | "gelu_fast" => "gelu_new",
        "swish" => "silu",
        other => other,
    }
}

/// Returns the refusal of a value of a file that a field of the family does not accept.
pub(super) fn not_taken(field: &ConfigField, value: &Value, config: &Value) -> String {
    let name = rope_name(config, field.name);
    format!("config.json has {name} = {value}; allowed: {}", field.field_type.allowed())
}

/// Returns the refusal of a field with another value in a file than in the plan's model.
fn differs(family: &HuggingFace, name: &str, ours: &Value, theirs: &Value, config: &Value) -> String {
    if family.config_fields.iter().any(|field| field.name == name) {
        return format!(
            "config.json has {} = {theirs}, the plan {ours}; write {name:?}: {theirs} in the plan's model.config, or give \
             another checkpoint",
            rope_name(config, name)
        );
    }
    let of_plan = family.plan_fields.iter().find(|(field, _)| *field == name);
    let of_plan = of_plan.map_or("model.family", |(_, of_plan)| of_plan);
    format!(
        "config.json has {name} = {theirs}, but the plan's {of_plan} makes it {ours}; set {of_plan} to fit the checkpoint, \
         or give another checkpoint"
    )
}
