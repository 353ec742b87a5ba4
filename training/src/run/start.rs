//! Reads the weights that a run starts from, and adds rows for the tokens by which released words extend their
//! vocabulary.

use std::collections::BTreeSet;
use std::path::Path;

use network::model::{ModelError, Network};
use network::pretrained::{Assigned, FIELD, PretrainedCheckpoint};
use network::tensor_file::{NamedTensor, StoredValues};
use tokenizer::Tokenizer;

use crate::infer::generation_config;
use crate::store::files;
use crate::{RunError, vocabulary};

/// Weights to start from that fit a plan's model.
pub(super) struct Start {
    /// Weights in the order of the model's parameters, without a head for labels that the checkpoint lacks.
    pub weights: Vec<NamedTensor<StoredValues>>,
    /// Number of tokens of the checkpoint's table; never below the tokenizer's.
    pub vocab_size: usize,
    /// Digest of the checkpoint.
    pub sha256: String,
    /// Names of tensors in the checkpoint that the model has no use for.
    pub ignored: Vec<String>,
    /// Says which settings of the tokenizer are not applied, if any.
    pub unapplied: Option<String>,
    /// The checkpoint's settings of generation.
    pub generation: serde_json::Value,
    /// How `sentence-transformers` makes an embedding with the checkpoint; see [`PretrainedCheckpoint::embedding`].
    pub embedding: Option<[serde_json::Value; 2]>,
}

/// Reads the checkpoint that a plan starts from, if it names one, and compares it with the plan's model and tokenizer.
///
/// # Errors
/// [`RunError::Refused`] with what differs, before anything is written.
pub(super) fn prepare(plan: &plan::Plan, base: &Path) -> Result<Option<Start>, RunError> {
    let (plan::Initial::Checkpoint(path), Some(public)) = (&plan.model().initial, plan.tokenizer().file())
    else {
        return Ok(None);
    };
    let folder = base.join(path);
    let checkpoint = PretrainedCheckpoint::read(&folder)?;
    let tokenizer = vocabulary::read_file(&base.join(public))?;
    let own = folder.join(files::TOKENIZER);
    if own.exists() && durable::read(&own)? != durable::read(&base.join(public))? {
        let own = vocabulary::read_file(&own)?;
        if own.to_json() != tokenizer.to_json() {
            let what = format!(
                "its {} is not the tokenizer that the plan names; name the checkpoint's own",
                files::TOKENIZER
            );
            return Err(RunError::Refused(format!("{FIELD}: {}: {what}", folder.display())));
        }
    }
    let vocab_size = checkpoint.vocab_size(tokenizer.vocab_size())?;
    for (role, own) in [("eos", tokenizer.eos_id()), ("bos", tokenizer.bos_id())] {
        if let Some(own) = own {
            checkpoint.check_role(role, own, |id| tokenizer.is_special(id))?;
        }
    }
    let network = Network::new(plan.model(), plan.training(), vocab_size)
        .map_err(|error| RunError::Refused(error.to_string()))?;
    network.selection(plan.model()).map_err(|error| RunError::Refused(error.to_string()))?;
    let Assigned { weights, ignored, .. } =
        checkpoint.stored_weights(&network.specs(), &network.hf_config())?;
    let sha256 = checkpoint.sha256().to_owned();
    let generation = generation_config::of_checkpoint(&checkpoint)?;
    let (unapplied, embedding) = (tokenizer.unapplied_settings(), checkpoint.embedding()?);
    Ok(Some(Start { weights, vocab_size, sha256, ignored, unapplied, generation, embedding }))
}

impl Start {
    /// Adds a row to every table of tokens for each token that `tokenizer` has beyond the plan's
    /// public file: the mean of the rows of the tokens into which the file cuts its text. Only
    /// released words and public weights are used, so this costs no privacy.
    ///
    /// # Errors
    /// [`RunError`] if the public file cannot be read again.
    pub(crate) fn extend(
        &mut self,
        plan: &plan::Plan,
        base: &Path,
        tokenizer: &Tokenizer,
    ) -> Result<(), RunError> {
        let plan::Tokenizer::Extend(settings) = plan.tokenizer() else { return Ok(()) };
        let public = vocabulary::read_file(&base.join(&settings.path))?;
        let tables = tables(plan, self.vocab_size).map_err(|error| RunError::Refused(error.to_string()))?;
        let vocab_size = self.vocab_size.max(tokenizer.vocab_size());
        let added = public.vocab_size()..tokenizer.vocab_size();
        let parts: Vec<Vec<u32>> =
            added.clone().map(|id| public.encode(&tokenizer.decode(&[id as u32]))).collect();
        for tensor in self.weights.iter_mut().filter(|tensor| tables.contains(&tensor.name)) {
            let mut table = tensor.data.to_f32();
            let width = table.len() / self.vocab_size;
            let rows: Vec<Vec<f32>> = parts.iter().map(|ids| mean(&table, ids, width)).collect();
            table.resize(vocab_size * width, 0.0);
            // Marian's bias of the logits is a single row, with one element per token.
            let axis = tensor.shape.iter().position(|size| *size == self.vocab_size);
            tensor.shape[axis.unwrap_or(0)] = vocab_size;
            table[added.start * width..added.end * width].copy_from_slice(&rows.concat());
            tensor.data = table.into();
        }
        self.vocab_size = vocab_size;
        Ok(())
    }
}

/// Returns the names of the parameters with one row per token, which grow with the vocabulary.
fn tables(plan: &plan::Plan, vocab_size: usize) -> Result<BTreeSet<String>, ModelError> {
    let specs = |size| Network::new(plan.model(), plan.training(), size).map(|network| network.specs());
    let (before, after) = (specs(vocab_size)?, specs(vocab_size + 1)?);
    let grows = before.iter().zip(after.iter()).filter(|(before, after)| before.shape != after.shape);
    Ok(grows.map(|(before, _)| before.name.clone()).collect())
}

/// Returns the mean of these rows, or of all rows if there are none.
fn mean(table: &[f32], ids: &[u32], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f64; width];
    let rows = table.len() / width;
    let chosen: Vec<usize> =
        if ids.is_empty() { (0..rows).collect() } else { ids.iter().map(|id| *id as usize).collect() };
    for row in &chosen {
        let values = &table[row * width..(row + 1) * width];
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    sum.into_iter().map(|sum| (sum / chosen.len() as f64) as f32).collect()
}
