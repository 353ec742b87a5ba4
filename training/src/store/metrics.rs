//! Writes `metrics.jsonl`, and the same figures for TensorBoard. Both contain only released values.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{files, tensorboard};
use crate::RunError;
use crate::disclosure::Released;

/// A line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsLine {
    /// Steps done.
    pub step: u64,
    /// Learning rate of the last step done.
    pub learning_rate: Released<f64>,
    /// Estimate of ‖gradient‖² / ‖noise‖² in the last step done; absent in a run without noise.
    pub gradient_to_noise: Released<Option<f64>>,
    /// Clip norm of the next step, if clipping is adaptive.
    pub l2_clip_norm: Released<Option<f64>>,
    /// Upper bound on ε spent so far; absent in a run without noise, where there is none.
    pub epsilon: Released<Option<f64>>,
    /// Mean negative log-likelihood in nats per token on the public evaluation text.
    pub evaluation_nll: Released<Option<f64>>,
}

impl MetricsLine {
    /// Returns the figures that TensorBoard shows, each with its tag.
    pub(super) fn scalars(&self) -> [(&'static str, Option<f64>); 6] {
        let nll = *self.evaluation_nll.get();
        [
            ("privacy/epsilon_upper", *self.epsilon.get()),
            ("training/learning_rate", Some(*self.learning_rate.get())),
            ("training/gradient_to_noise", *self.gradient_to_noise.get()),
            ("training/l2_clip_norm", *self.l2_clip_norm.get()),
            ("evaluation/nll", nll),
            ("evaluation/perplexity", nll.map(f64::exp)),
        ]
    }
}

/// The two metrics files of a run, open for appending.
#[derive(Debug)]
pub(super) struct Metrics {
    lines: AppendFile,
    events: AppendFile,
}

impl Metrics {
    /// Opens the files of `folder` and drops the lines after `step`, which a resumed run writes
    /// again.
    ///
    /// # Errors
    /// [`RunError::Storage`] if a file cannot be written.
    pub fn open(folder: &Path, step: u64) -> Result<Self, RunError> {
        let path = folder.join(files::METRICS);
        let (mut lines, mut events) = (Vec::new(), tensorboard::preamble());
        for metric in read_metrics(&path).into_iter().filter(|metric| metric.step <= step) {
            lines.extend(json_line(&metric)?);
            events.extend(tensorboard::scalars(metric.step, &metric.scalars()));
        }
        Ok(Self {
            lines: AppendFile::create(path, &lines)?,
            events: AppendFile::create(folder.join(files::TENSORBOARD), &events)?,
        })
    }

    /// Appends a line to both files.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written.
    pub fn append(&mut self, metric: &MetricsLine) -> Result<(), RunError> {
        self.lines.append(&json_line(metric)?)?;
        self.events.append(&tensorboard::scalars(metric.step, &metric.scalars()))
    }

    /// Makes all appended lines durable, before the ledger states the files' digests.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written.
    pub fn sync(&self) -> Result<(), RunError> {
        self.lines.sync().and_then(|()| self.events.sync())
    }
}

#[derive(Debug)]
struct AppendFile {
    path: PathBuf,
    file: File,
}

impl AppendFile {
    fn create(path: PathBuf, bytes: &[u8]) -> Result<Self, RunError> {
        durable::write_atomic(&path, bytes)?;
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(|error| RunError::storage("write", &path, &error))?;
        Ok(Self { path, file })
    }

    fn sync(&self) -> Result<(), RunError> {
        self.file.sync_all().map_err(|error| RunError::storage("write", &self.path, &error))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        self.file.write_all(bytes).map_err(|error| RunError::storage("write", &self.path, &error))
    }
}

/// Returns the whole lines of a metrics file. Empty if there is no such file.
#[must_use]
pub(crate) fn read_metrics(path: &Path) -> Vec<MetricsLine> {
    parse_metrics(&durable::read(path).unwrap_or_default())
}

/// Returns the whole lines of the contents of a metrics file.
#[must_use]
pub fn parse_metrics(contents: &[u8]) -> Vec<MetricsLine> {
    contents.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn json_line(metric: &MetricsLine) -> Result<Vec<u8>, RunError> {
    let mut line = serde_json::to_vec(metric).map_err(|error| RunError::Failed(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(step: u64) -> MetricsLine {
        MetricsLine {
            step,
            learning_rate: Released::from_plan(1e-3),
            gradient_to_noise: Released::from_mechanism(Some(0.5)),
            l2_clip_norm: Released::from_mechanism(None),
            epsilon: Released::from_plan(Some(1.5)),
            evaluation_nll: Released::from_public_text(None),
        }
    }

    #[test]
    fn reopening_drops_lines_after_the_checkpoint_and_torn_ones() {
        let folder = tempfile::tempdir().unwrap();
        let mut metrics = Metrics::open(folder.path(), 0).unwrap();
        for step in [10, 20, 30] {
            metrics.append(&metric(step)).unwrap();
        }
        let path = folder.path().join("metrics.jsonl");
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{{\"step\":2")).unwrap();
        Metrics::open(folder.path(), 20).unwrap().append(&metric(30)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
    }
}
