//! Assigns the tensors of a checkpoint to the parameters of a model.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::head::MEAN_CLASSIFIER;
use crate::model::HuggingFace;
use crate::nn::ParamSpec;
use crate::tensor_file::{NamedTensor, StoredValues};

/// The contents of a checkpoint, assigned to a model.
#[derive(Debug)]
pub struct Assigned<Values = Vec<f32>> {
    /// Weights in the order of the model's parameters, without the drawn ones.
    pub weights: Vec<NamedTensor<Values>>,
    /// Names of parameters of a head for labels that the checkpoint lacks.
    pub drawn: Vec<String>,
    /// Names of tensors that the model has no use for.
    pub ignored: Vec<String>,
}

impl Assigned<StoredValues> {
    /// Converts all values to 32 bits.
    pub(super) fn in_f32(self) -> Assigned {
        let Self { weights, drawn, ignored } = self;
        let wide = |NamedTensor { name, shape, data }: NamedTensor<StoredValues>| NamedTensor {
            name,
            shape,
            data: data.to_f32(),
        };
        Assigned { weights: weights.into_iter().map(wide).collect(), drawn, ignored }
    }
}

/// Assigns a tensor to each parameter. A model that `predicts_labels` does not use a head for
/// tokens, and may have a head that the checkpoint lacks.
pub(super) fn assign(
    family: &HuggingFace,
    tensors: &BTreeMap<String, NamedTensor<StoredValues>>,
    specs: &[ParamSpec],
    predicts_labels: bool,
) -> Result<Assigned<StoredValues>, String> {
    let is_named = |ours: &str, theirs: &str| {
        let theirs = &*current(family, theirs);
        ours == theirs || ours.strip_prefix(family.prefix) == Some(theirs)
    };
    let mut found: BTreeMap<&str, &NamedTensor<StoredValues>> = BTreeMap::new();
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
    if let Some(what) = left.iter().find_map(|(name, _)| wrapper(name)) {
        return Err(what);
    }
    // A file may hold a tied table only under the name of its copy.
    for (_, tensor) in left.iter().filter(|(name, _)| family.copies.contains(&name.as_str())) {
        let lacks = |spec: &&ParamSpec| !found.contains_key(spec.name.as_str()) && spec.shape == tensor.shape;
        let mut lacking = specs.iter().filter(lacks);
        if let (Some(spec), None) = (lacking.next(), lacking.next()) {
            found.insert(&spec.name, tensor);
        }
    }
    for (name, tensor) in left {
        if !found.values().any(|used| std::ptr::eq(*used, tensor)) {
            check_unused(family, name, tensor, &found, predicts_labels)?;
            ignored.push(name.clone());
        }
    }
    let (mut weights, mut drawn) = (Vec::new(), Vec::new());
    for spec in specs {
        let is_positions = family.position_table.is_some_and(|table| spec.name.ends_with(table));
        match found.get(spec.name.as_str()) {
            Some(tensor) => weights.push(fitted(tensor, spec, is_positions)?),
            None if predicts_labels
                && (begins(&spec.name, family.label_heads) || begins(&spec.name, &[MEAN_CLASSIFIER])) =>
            {
                drawn.push(spec.name.clone())
            }
            None => return Err(format!("tensor {} is missing", spec.name)),
        }
    }
    Ok(Assigned { weights, drawn, ignored })
}

/// Refuses a tensor that no parameter takes, unless the model is the same without it.
fn check_unused(
    family: &HuggingFace,
    name: &str,
    tensor: &NamedTensor<StoredValues>,
    found: &BTreeMap<&str, &NamedTensor<StoredValues>>,
    predicts_labels: bool,
) -> Result<(), String> {
    let buffer = family.buffers.iter().any(|end| name.ends_with(end));
    let replaced = predicts_labels && begins(name, family.token_heads);
    if begins(name, &[MEAN_CLASSIFIER]) {
        return Err(format!(
            "tensor {name} is of a head for means of hidden states; add \"pooling\": \"mean\" to the plan's model"
        ));
    }
    let copy = !replaced && family.copies.contains(&name);
    let zeros = family.zeros.contains(&name);
    if zeros && tensor.data.to_f32().iter().any(|value| *value != 0.0) {
        return Err(format!(
            "tensor {name} holds other values than 0, which the model would add to its logits"
        ));
    }
    let equals = |used: &&NamedTensor<StoredValues>| {
        used.shape == tensor.shape && used.data.to_f32() == tensor.data.to_f32()
    };
    if copy && !found.values().any(equals) {
        let hint = match family.plan_fields.iter().any(|(_, of_plan)| *of_plan == "model.untied") {
            true => "; set tie_word_embeddings to false in config.json if it is a head of its own",
            false => "",
        };
        return Err(format!("tensor {name} differs from the table that the model ties it to{hint}"));
    }
    // A checkpoint of the body alone omits the prefix.
    let unused = begins(name, family.unused) || begins(&format!("{}{name}", family.prefix), family.unused);
    if !buffer && !zeros && !copy && !replaced && !unused {
        return Err(format!("tensor {name} is not one of a {:?} model's", family.model_type));
    }
    Ok(())
}

/// Returns advice about a tensor whose name has the prefix of a wrapper around a model.
fn wrapper(name: &str) -> Option<String> {
    let wrappers = [
        ("base_model.model.", "PEFT", "model.merge_and_unload()"),
        ("_module.", "Opacus", "model._module"),
        ("_orig_mod.", "torch.compile", "model._orig_mod"),
        ("module.", "DataParallel", "model.module"),
    ];
    let (prefix, whose, inner) = wrappers.into_iter().find(|wrapper| name.starts_with(wrapper.0))?;
    Some(format!(
        "tensor {name} has the prefix {prefix:?} of {whose}; save the model inside: {inner}.save_pretrained(\"DIR\")"
    ))
}

/// Returns whether a name begins with one of these.
fn begins(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}

/// Returns the present name of a tensor that old files name differently.
fn current<'a>(family: &HuggingFace, name: &'a str) -> Cow<'a, str> {
    let renamed = |(old, new): &(&str, &str)| name.strip_suffix(old).map(|start| format!("{start}{new}"));
    family.renamed.iter().find_map(renamed).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Returns the tensor with the parameter's name. A table of positions is cut to the model's number of positions.
fn fitted(
    tensor: &NamedTensor<StoredValues>,
    spec: &ParamSpec,
    positions: bool,
) -> Result<NamedTensor<StoredValues>, String> {
    if tensor.data.len() != tensor.shape.iter().product::<usize>() {
        return Err(format!(
            "tensor {} holds other numbers than floats of 16, 32 or 64 bits; save the model in one of these formats",
            tensor.name
        ));
    }
    if !tensor.data.is_finite() {
        return Err(format!("tensor {} holds a value that is no finite number", tensor.name));
    }
    let longer = positions
        && tensor.shape.len() == 2
        && tensor.shape[1] == spec.shape[1]
        && tensor.shape[0] > spec.shape[0];
    if !longer && tensor.shape != spec.shape {
        return Err(format!(
            "tensor {} has shape {:?} in the checkpoint and {:?} in the plan's model",
            spec.name, tensor.shape, spec.shape
        ));
    }
    Ok(NamedTensor {
        name: spec.name.clone(),
        shape: spec.shape.clone(),
        data: tensor.data.first(spec.len()),
    })
}
