//! The run folder. During a run `RunStore` is its only writer, and one process at a time owns it.
//!
//! | file | written by | when |
//! |---|---|---|
//! | `plan.json` | `RunStore::open` | once, before the ledger begins |
//! | `ledger.jsonl` | [`ledger`] | a line before each computation that spends ε |
//! | `.corpus-digest`, private | `corpus` | once, before the ledger begins; removed at the end |
//! | a file outside the folder | `mirror` | a line for each of the ledger's, before what it announces |
//! | `tokenizer.json` | `RunStore::save_tokenizer` | after its release was charged and the ledger names it |
//! | `metrics.jsonl` and the TensorBoard file | [`metrics`] | after an evaluation |
//! | `checkpoint.safetensors` | `checkpoint` | every few steps, replaced in one rename |
//! | `best.safetensors`, `snapshots/` | `kept` | after an evaluation, or every few steps, if the plan asks for it |
//! | model files | `RunStore::complete` | at the end, before the ledger's completion line |
//! | `certificate.json`, `certificate.md` | [`certificate`] | after the completion line |

pub(crate) mod accounting;
mod canaries;
pub mod certificate;
mod certified;
mod charging;
mod checkpoint;
mod corpus;
pub mod covered;
pub mod files;
mod kept;
pub mod ledger;
pub mod lineage;
pub mod metrics;
pub(crate) mod mirror;
mod open;
mod synthesis;
mod tensorboard;
#[cfg(test)]
mod tests;
mod tokenizer;
mod torn_line;

use std::fs;
use std::path::{Path, PathBuf};

use accountant::{Bounds, DpEvent};
use mechanisms::RandomnessSource;
use plan::CertifiedPlan;

pub use canaries::read_canaries;
pub(crate) use certified::{Synthesis, next_batches};
pub(crate) use corpus::forget as forget_corpus;
pub(crate) use kept::BestWeights;
pub(crate) use open::{OpenRun, Resume, RunMode};
pub(crate) use synthesis::{OpenSynthesis, SynthesisStore};
pub(crate) use torn_line::spent_by_stopped;

use self::certificate::Certificate;
use self::charging::ChargeSchedule;
use self::checkpoint::Checkpoint;
use self::ledger::{Entry, FileDigest, Ledger, LedgerState, RoundedModel};
use self::metrics::{Metrics, MetricsLine};
use self::tokenizer::UnsavedTokenizer;
use self::torn_line::result_lost;
use crate::RunError;
use crate::data::{Canaries, Planting};
use durable::FolderLock;
use network::tensor_file::{NamedTensor, Values};

/// A run folder that this process owns.
pub(crate) struct RunStore<'a> {
    plan: &'a CertifiedPlan,
    path: PathBuf,
    ledger: Ledger,
    schedule: ChargeSchedule,
    steps_done: u64,
    saved_state: Option<Vec<NamedTensor>>,
    metrics: Option<Metrics>,
    /// The tokenizer's file while a release is in progress, with space for its result.
    unsaved_tokenizer: Option<UnsavedTokenizer>,
    _lock: FolderLock,
}

/// Writes a file to a path.
type Write<'a> = dyn Fn(&Path) -> Result<(), RunError> + 'a;

/// A file of a finished model, beside its tokenizer.
pub(crate) struct ModelFile<'a> {
    /// Name of the file in the folder.
    pub name: &'static str,
    /// Writes the file to a path.
    pub write: Box<Write<'a>>,
}

impl ModelFile<'_> {
    /// Creates a file of text.
    pub fn text(name: &'static str, text: String) -> Self {
        Self { name, write: Box::new(move |path| Ok(durable::write_atomic(path, text.as_bytes())?)) }
    }

    fn write_to(&self, folder: &Path) -> Result<(), RunError> {
        let path = folder.join(self.name);
        path.parent().map_or(Ok(()), durable::create_folder)?;
        (self.write)(&path)
    }
}

impl RunStore<'_> {
    /// Returns the folder, to read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the ledger as written so far.
    pub fn ledger(&self) -> &LedgerState {
        self.ledger.state()
    }

    /// Returns whether steps clip and add noise.
    pub(crate) fn is_protected(&self) -> bool {
        self.ledger().header().protected
    }

    /// Returns the number of logical steps whose result is in the last checkpoint.
    pub fn steps_done(&self) -> u64 {
        self.steps_done
    }

    /// Takes the state of the checkpoint that this process resumed from. It can be taken once.
    pub(crate) fn take_saved_state(&mut self) -> Option<Vec<NamedTensor>> {
        self.saved_state.take()
    }

    /// Returns bounds on the ε spent so far; `None` in a run without noise.
    pub fn spent(&self) -> Result<Option<Bounds>, RunError> {
        accounting::spent(self.plan, self.ledger())
    }

    /// Returns the step before which this run ends: the plan's last, or an earlier one if crashes used up the spare
    /// steps.
    pub(crate) fn affordable_end(&self) -> Result<u64, RunError> {
        accounting::affordable_end(self.plan, self.ledger(), self.steps_done)
    }

    /// Records the public checkpoint that training begins from. A resumed run must begin from the same one.
    pub(crate) fn record_initial_weights(&mut self, sha256: &str) -> Result<(), RunError> {
        match self.ledger().initial_weights() {
            Some(recorded) if recorded == sha256 => Ok(()),
            Some(_) => Err(RunError::Refused(
                "model.initial: the checkpoint changed since the run began; restore the original checkpoint"
                    .to_owned(),
            )),
            None => self.append(Entry::InitialWeights { sha256: sha256.to_owned() }),
        }
    }

    /// Charges the release of the label counts. It may run once this returns.
    ///
    /// # Errors
    /// [`RunError::Refused`] if an earlier process charged it with a secret key and lost its result.
    pub(crate) fn charge_labels(
        &mut self,
        event: DpEvent,
        randomness: RandomnessSource,
    ) -> Result<(), RunError> {
        match (self.ledger().label_histogram(), randomness) {
            (Some(_), RandomnessSource::OperatingSystem) => Err(result_lost("release of the label counts")),
            // A known key gives the same counts again, so nothing more is released.
            (Some(_), RandomnessSource::Test) => Ok(()),
            (None, _) => self.append(Entry::LabelHistogram { event }),
        }
    }

    /// Records the label counts, which are public from here on.
    pub(crate) fn record_labels(&mut self, counts: Vec<i64>) -> Result<(), RunError> {
        self.append(Entry::LabelCounts { counts })
    }

    /// Returns the canaries of this run: those that it began with, or new ones before the first step. See
    /// [`canaries::obtain`].
    pub fn canaries(
        &mut self,
        wanted: Option<&Planting>,
        rng: &dyn mechanisms::PrivacyRng,
    ) -> Result<Option<Canaries>, RunError> {
        let may_begin = self.ledger().steps_reserved() == 0;
        canaries::obtain(&self.path, wanted, may_begin, rng)
    }

    /// Opens the metrics files and drops what follows the last checkpoint.
    pub(crate) fn begin_metrics(&mut self) -> Result<(), RunError> {
        self.metrics = Some(Metrics::open(&self.path, self.steps_done)?);
        Ok(())
    }

    /// Appends to the metrics files.
    pub(crate) fn append_metric(&mut self, metric: &MetricsLine) -> Result<(), RunError> {
        self.metrics.as_mut().map_or(Ok(()), |metrics| metrics.append(metric))
    }

    /// Charges an attempt of a step. Its line is on the disk when this returns; only then may the step run.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be made durable, [`RunError::Failed`] past the plan's last step.
    pub(crate) fn charge_step(&mut self, step: u64) -> Result<(), RunError> {
        let attempt = self.ledger().attempts_of(step) + 1;
        if !self.is_protected() {
            return self.append(Entry::UnprotectedStep { step, attempt });
        }
        let event = self.schedule.due(self.plan, step);
        let event = event.ok_or_else(|| RunError::Failed(format!("the plan has no step {step}")))?;
        self.append(Entry::Step { step, attempt, event })
    }

    /// Appends a line to the ledger, and updates the schedule as any reader of the ledger would.
    fn append(&mut self, entry: Entry) -> Result<(), RunError> {
        self.ledger.append(entry.clone())?;
        self.schedule.note(self.plan, &entry);
        Ok(())
    }

    /// Replaces the checkpoint. After a crash, the folder holds either the old one or the new one, complete.
    pub(crate) fn write_checkpoint(
        &mut self,
        steps_done: u64,
        state: Vec<NamedTensor<impl Values>>,
    ) -> Result<(), RunError> {
        Checkpoint { steps_done, ledger: self.ledger().position(), state }.write(&self.path)?;
        self.steps_done = steps_done;
        Ok(())
    }

    /// Writes the finished model, closes the ledger and writes the certificate.
    ///
    /// # Errors
    /// [`RunError::Verification`] if another program changed the ledger during the run.
    pub fn complete(
        &mut self,
        steps_done: u64,
        model: &[ModelFile<'_>],
        rounded: Vec<RoundedModel>,
    ) -> Result<(), RunError> {
        self.ledger.check_contents()?;
        if let Some(metrics) = &self.metrics {
            metrics.sync()?;
        }
        model.iter().try_for_each(|file| file.write_to(&self.path))?;
        let canaries = self.ledger().header().canaries.as_ref().map(|_| files::CANARIES);
        let own = [files::TOKENIZER, files::METRICS, files::TENSORBOARD].into_iter().chain(canaries);
        let names = model.iter().map(|file| file.name).chain(own).map(str::to_owned);
        let names = names.chain(self.snapshots(steps_done, model));
        let files = names.map(|name| digest(&self.path, &name)).collect::<Result<_, _>>()?;
        self.append(Entry::Completed { steps_done, files, rounded })?;
        self.write_certificate()
    }

    /// Writes the certificate of a completed run.
    pub fn write_certificate(&mut self) -> Result<(), RunError> {
        let certificate = Certificate::derive(self.plan, self.ledger(), &certificate::CURRENT)?;
        let write = |name: &str, text: String| durable::write_atomic(&self.path.join(name), text.as_bytes());
        write(files::CERTIFICATE_JSON, certificate.to_json()?)?;
        Ok(write(files::CERTIFICATE_MARKDOWN, certificate.to_markdown())?)
    }

    /// Removes the files that only a resumed run needs, once the finished run is verified, and
    /// prepares the folder for publication.
    ///
    /// # Errors
    /// [`RunError::Storage`] if the digest of the text stays.
    pub(crate) fn remove_checkpoint(&mut self) -> Result<(), RunError> {
        for name in [files::CHECKPOINT, files::BEST] {
            let _ = fs::remove_file(self.path.join(name));
        }
        corpus::forget(&self.path)?;
        settle(&self.path);
        Ok(())
    }
}

/// Prepares a finished folder to be published, as [`durable::settle`] does. Notes what the file system refuses.
pub fn settle(folder: &Path) {
    if let Err(error) = durable::settle(folder) {
        crate::progress::note(&format!(
            "{error}; the files keep their times, which tell when they were written"
        ));
    }
}

/// Adds a file to the folder of a finished run, which the certificate does not cover.
pub fn add_to_finished(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, RunError> {
    let path = folder.join(name);
    durable::write_atomic(&path, bytes)?;
    settle(folder);
    Ok(path)
}

fn digest(folder: &Path, name: &str) -> Result<FileDigest, RunError> {
    Ok(FileDigest { name: name.to_owned(), sha256: durable::sha256_of(&folder.join(name))? })
}
