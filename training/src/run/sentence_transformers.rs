//! Models as `sentence-transformers` loads them. A classifier of means of hidden states is the body, the mean and a linear layer; no class of
//! `transformers` has such a head. Other models that start from an embedding model make embeddings as it does.
//!
//! # References
//! <https://sbert.net/docs/package_reference/sentence_transformer/models.html>

use std::path::Path;

use network::head::MEAN_CLASSIFIER;
use network::nn::Kernels;
use network::tensor_file::{Formatted, NamedTensor, NumberFormat, PrivacyMark, write_model};
use serde_json::json;

use super::prepare::Prepared;
use crate::RunError;
use crate::store::{ModelFile, files};
use crate::train::Trainer;
use durable::pretty_json;

/// Returns the files beside `config.json` and `model.safetensors` with which `SentenceTransformer(folder).encode(texts)` returns
/// the logits of the labels or, with a head that it does not know, embeddings if the checkpoint gave them.
pub(super) fn files<B: Kernels>(
    plan: &plan::Plan,
    run: &Prepared<B>,
    mark: &PrivacyMark,
) -> Result<Vec<ModelFile<'static>>, RunError> {
    let length = json!({ "max_seq_length": plan.model().context, "do_lower_case": false });
    let length = ModelFile::text(files::MODULES_LENGTH, pretty_json(&length)?);
    let Some(plan::Pooling::Mean) = plan.model().pooling else {
        let Some([modules, pooling]) = &run.embedding else { return Ok(Vec::new()) };
        let modules = ModelFile::text(files::MODULES, pretty_json(modules)?);
        return Ok(vec![modules, length, ModelFile::text(files::MODULES_POOLING, pretty_json(pooling)?)]);
    };
    let (width, labels) = (plan.model().d_model, plan.training().labels().len());
    let module = |(at, (path, class)): (usize, (&str, &str))| json!({ "idx": at, "name": at.to_string(), "path": path, "type": format!("sentence_transformers.models.{class}") });
    let modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")];
    let modules: Vec<_> = modules.into_iter().enumerate().map(module).collect();
    let pooling = json!({
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": false,
        "pooling_mode_mean_tokens": true,
        "pooling_mode_max_tokens": false,
        "pooling_mode_mean_sqrt_len_tokens": false,
    });
    let head = json!({
        "in_features": width,
        "out_features": labels,
        "bias": true,
        "activation_function": "torch.nn.modules.linear.Identity",
    });
    let (tensors, mark) = (head_tensors(&run.trainer), mark.clone());
    let write = move |path: &Path| {
        let views = tensors.iter().map(|tensor| Formatted { tensor, format: NumberFormat::F32 });
        let names = tensors.iter().map(|tensor| tensor.name.as_str());
        Ok(write_model(path, names.zip(views).collect(), &mark)?)
    };
    Ok(vec![
        ModelFile::text(files::MODULES, pretty_json(&modules)?),
        length,
        ModelFile::text(files::MODULES_POOLING, pretty_json(&pooling)?),
        ModelFile::text(files::MODULES_HEAD_CONFIG, pretty_json(&head)?),
        ModelFile { name: files::MODULES_HEAD, write: Box::new(write) },
    ])
}

/// Returns the head under the names of a dense layer of `sentence-transformers`.
fn head_tensors<B: Kernels>(trainer: &Trainer<B>) -> Vec<NamedTensor> {
    let of_head = |tensor: NamedTensor| {
        let part = tensor.name.strip_prefix(MEAN_CLASSIFIER)?;
        Some(NamedTensor { name: format!("linear{part}"), ..tensor })
    };
    trainer.trained().into_iter().filter_map(of_head).collect()
}
