//! Weights that a run keeps beside its checkpoint: the best ones so far, and snapshots. The ledger
//! pays for all of these releases.

use super::checkpoint::Checkpoint;
use super::metrics::{MetricsLine, read_metrics};
use super::{ModelFile, RunStore, accounting, files};
use crate::RunError;
use network::tensor_file::NamedTensor;

/// The best weights so far, by public evaluation text.
pub(crate) struct BestWeights {
    /// Number of steps done when the weights were evaluated.
    pub step: u64,
    /// Mean negative log-likelihood of the public evaluation text.
    pub nll: f64,
    /// The trained weights, under Hugging Face names.
    pub weights: Vec<NamedTensor>,
}

/// Name of the evaluation's tensor: the bits of a double, in parts of 16 bits, which f32 holds
/// exactly.
const NLL: &str = "evaluation.nll";

impl RunStore<'_> {
    /// Replaces the best weights so far.
    ///
    /// # Errors
    /// [`RunError::Storage`] if they cannot be written; the old ones then stay.
    pub fn keep_best(&self, best: BestWeights) -> Result<(), RunError> {
        let BestWeights { step, nll, weights: mut state } = best;
        let data = [48, 32, 16, 0].map(|shift| (nll.to_bits() >> shift & 0xFFFF) as f32).to_vec();
        state.push(NamedTensor { name: NLL.to_owned(), shape: vec![4], data });
        let ledger = self.ledger().position();
        Checkpoint { steps_done: step, ledger, state }.write_as(&self.path, files::BEST)
    }

    /// Reads the best weights so far, if any were kept.
    ///
    /// # Errors
    /// [`RunError::Verification`] if they are not as they were written.
    pub fn best(&self) -> Result<Option<BestWeights>, RunError> {
        let Some(Checkpoint { steps_done: step, ledger, state }) =
            Checkpoint::read_as(&self.path, files::BEST)?
        else {
            return Ok(None);
        };
        let (nll, weights): (Vec<_>, Vec<_>) = state.into_iter().partition(|tensor| tensor.name == NLL);
        let bits = nll.iter().flat_map(|tensor| &tensor.data).fold(0, |bits, part| bits << 16 | *part as u64);
        if self.ledger().continues(&ledger) {
            return Ok(Some(BestWeights { step, nll: f64::from_bits(bits), weights }));
        }
        Err(RunError::Verification(format!(
            "{} is not of this run; remove it, or put the run's own back",
            self.path.join(files::BEST).display()
        )))
    }

    /// Returns the metrics up to the checkpoint that this process resumed from.
    pub fn metrics(&self) -> Vec<MetricsLine> {
        read_metrics(&self.path.join(files::METRICS))
    }

    /// Writes the model after `steps_done` steps to a separate folder, with the tokenizer.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written.
    pub(crate) fn write_snapshot(&self, steps_done: u64, model: &[ModelFile<'_>]) -> Result<(), RunError> {
        let folder = self.path.join(files::SNAPSHOTS).join(steps_done.to_string());
        model.iter().try_for_each(|file| file.write_to(&folder))?;
        durable::copy(&self.path.join(files::TOKENIZER), &folder.join(files::TOKENIZER))?;
        super::settle(&folder);
        Ok(())
    }

    /// Returns the names of the files of all snapshots of the first `steps_done` steps. `model` are
    /// the files of a model.
    pub(super) fn snapshots(&self, steps_done: u64, model: &[ModelFile<'_>]) -> Vec<String> {
        let names = || model.iter().map(|file| file.name).chain([files::TOKENIZER]);
        let Some(every) = self.plan.plan().performance().snapshot_every.filter(|every| *every > 0) else {
            return Vec::new();
        };
        let steps = (1..=steps_done / every).map(|snapshot| snapshot * every);
        let of_snapshot =
            |steps: u64| names().map(move |name| format!("{}/{steps}/{name}", files::SNAPSHOTS));
        steps.flat_map(of_snapshot).filter(|name| self.path.join(name).is_file()).collect()
    }

    /// Charges the steps that an early stop leaves out. The time of the stop depends on released
    /// weights, so the run can only claim the ε of all the steps that it could have taken.
    ///
    /// # Errors
    /// As [`RunStore::charge_step`].
    pub(crate) fn charge_steps_left_out(&mut self) -> Result<(), RunError> {
        if !self.is_protected() {
            return Ok(());
        }
        let first = self.ledger().steps_reserved();
        for step in first..accounting::affordable_end(self.plan, self.ledger(), first)? {
            self.charge_step(step)?;
        }
        Ok(())
    }
}
