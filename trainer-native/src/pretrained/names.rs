//! Which tensor of a checkpoint is which parameter.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::nn::ParamSpec;
use crate::tensor_file::NamedTensor;

/// What a checkpoint of the network alone, without its head, leaves off each name.
const PREFIXES: [&str; 3] = ["transformer.", "bert.", "model."];

/// Ends of names that hold no weight: masks, positions and frequencies that follow from the configuration.
const BUFFERS: [&str; 6] = [
    "attn.bias",
    "attn.masked_bias",
    "embeddings.position_ids",
    "rotary_emb.inv_freq",
    "embeddings.token_type_ids",
    "embed_scale",
];

/// Names under which a tied table is written a second time.
const COPIES: [&str; 5] = [
    "lm_head.weight",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
];

/// Parts that a checkpoint may have and a model of this program does without.
const UNUSED_PARTS: [&str; 2] = ["bert.pooler.", "cls.seq_relationship."];

/// The tensor of each parameter, in the order of the parameters, and the names of those that no parameter uses.
pub(super) fn assign(
    tensors: &BTreeMap<String, NamedTensor>,
    specs: &[ParamSpec],
    config: &Value,
) -> Result<(Vec<NamedTensor>, Vec<String>), String> {
    let mut found: BTreeMap<&str, &NamedTensor> = BTreeMap::new();
    let (mut left, mut ignored) = (Vec::new(), Vec::new());
    for (name, tensor) in tensors {
        match specs.iter().find(|spec| is_named(&spec.name, name)) {
            Some(spec) if found.insert(&spec.name, tensor).is_some() => {
                return Err(format!("{} is there under two names", spec.name));
            }
            Some(_) => {}
            None => left.push((name, tensor)),
        }
    }
    for (name, tensor) in left {
        let buffer = BUFFERS.iter().any(|end| name.ends_with(end));
        let copy = COPIES.contains(&name.as_str());
        let unused = UNUSED_PARTS.iter().any(|part| name.starts_with(part));
        if copy && !found.values().any(|used| used.shape == tensor.shape && used.data == tensor.data) {
            return Err(format!("tensor {name} differs from the table that the model ties it to"));
        }
        if !buffer && !copy && !unused {
            return Err(format!("tensor {name} is not one of a {} model's", config["model_type"]));
        }
        ignored.push(name.clone());
    }
    let take = |spec: &ParamSpec| match found.get(spec.name.as_str()) {
        Some(tensor) => fitted(tensor, spec),
        None => Err(format!("tensor {} is missing", spec.name)),
    };
    Ok((specs.iter().map(take).collect::<Result<_, _>>()?, ignored))
}

fn is_named(ours: &str, theirs: &str) -> bool {
    ours == theirs || PREFIXES.iter().any(|prefix| ours.strip_prefix(prefix) == Some(theirs))
}

/// The tensor under the parameter's name; of a table of positions as many as the model has.
fn fitted(tensor: &NamedTensor, spec: &ParamSpec) -> Result<NamedTensor, String> {
    let positions = ["wpe.weight", "position_embeddings.weight"].iter().any(|end| spec.name.ends_with(end));
    let longer = positions
        && tensor.shape.len() == 2
        && tensor.shape[1] == spec.shape[1]
        && tensor.shape[0] > spec.shape[0];
    if !longer && tensor.shape != spec.shape || tensor.data.len() != tensor.shape.iter().product::<usize>() {
        return Err(format!(
            "tensor {} has shape {:?} in the checkpoint and {:?} in the plan's model",
            spec.name, tensor.shape, spec.shape
        ));
    }
    Ok(NamedTensor {
        name: spec.name.clone(),
        shape: spec.shape.clone(),
        data: tensor.data[..spec.len()].to_vec(),
    })
}
