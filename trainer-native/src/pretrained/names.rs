//! Which tensor of a checkpoint is which parameter.

use std::collections::BTreeMap;

use crate::model::HuggingFace;
use crate::nn::ParamSpec;
use crate::tensor_file::NamedTensor;

/// The tensor of each parameter, in the order of the parameters, and the names of those that no parameter uses.
pub(super) fn assign(
    family: &HuggingFace,
    tensors: &BTreeMap<String, NamedTensor>,
    specs: &[ParamSpec],
) -> Result<(Vec<NamedTensor>, Vec<String>), String> {
    let is_named =
        |ours: &str, theirs: &str| ours == theirs || ours.strip_prefix(family.prefix) == Some(theirs);
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
        let buffer = family.buffers.iter().any(|end| name.ends_with(end));
        let copy = family.copies.contains(&name.as_str());
        let unused = family.unused.iter().any(|part| name.starts_with(part));
        if copy && !found.values().any(|used| used.shape == tensor.shape && used.data == tensor.data) {
            return Err(format!("tensor {name} differs from the table that the model ties it to"));
        }
        if !buffer && !copy && !unused {
            return Err(format!("tensor {name} is not one of a {:?} model's", family.model_type));
        }
        ignored.push(name.clone());
    }
    let take = |spec: &ParamSpec| match found.get(spec.name.as_str()) {
        Some(tensor) => fitted(tensor, spec, family.position_table == Some(&spec.name)),
        None => Err(format!("tensor {} is missing", spec.name)),
    };
    Ok((specs.iter().map(take).collect::<Result<_, _>>()?, ignored))
}

/// The tensor under the parameter's name; of a table of positions, as many as the model has.
fn fitted(tensor: &NamedTensor, spec: &ParamSpec, positions: bool) -> Result<NamedTensor, String> {
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
