//! The end of a run: the model's files, the completion line, the certificate.

use std::fs;
use std::path::{Path, PathBuf};

use accountant::Bounds;
use dp_tokenizer::Tokenizer;
use plan::CertifiedPlan;
use serde::Serialize;
use serde_json::json;

use super::Training;
use crate::certificate::{Certificate, JSON_FILE_NAME, MARKDOWN_FILE_NAME};
use crate::checkpoint::{self, MODEL_FILE_NAME, NumberFormat};
use crate::durable::{self, sha256_hex};
use crate::eval::Evaluation;
use crate::folder::RunFolder;
use crate::ledger::{Entry, FileDigest};
use crate::nn::Kernels;
use crate::objective::Writing;
use crate::pretrained::CONFIG_FILE_NAME;
use crate::{RunError, certificate, telemetry, vocabulary};

const TOKENIZER_CONFIG_FILE_NAME: &str = "tokenizer_config.json";
const EVALUATION_FILE_NAME: &str = "evaluation.json";

/// What a finished run amounts to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The run folder.
    pub run: PathBuf,
    /// Whether it protects anybody.
    pub private: bool,
    /// Whether the training text was public.
    pub public_data: bool,
    /// ε spent; absent without noise.
    pub epsilon: Option<Bounds>,
    /// Failure probability.
    pub delta: f64,
    /// Logical steps whose result is in the model.
    pub steps_done: u64,
    /// Logical steps the plan asked for.
    pub steps_planned: u64,
    /// Held-out figures, if the plan has evaluation text.
    pub evaluation: Option<Evaluation>,
}

/// Writes the model's files, closes the ledger and writes the certificate.
pub(super) fn finish<B: Kernels>(
    training: Training<'_, B>,
    tokenizer: &Tokenizer,
) -> Result<Summary, RunError> {
    let Training { job, mut folder, engine, objective, evaluation, end, measured, .. } = training;
    let path = folder.path.clone();
    let mut config = engine.hf_config();
    let eos = vocabulary::end_of_text(tokenizer)?;
    config["eos_token_id"] = json!(eos);
    config["pad_token_id"] = json!(tokenizer.pad_id());
    match objective.writing() {
        Writing::Continues => config["bos_token_id"] = json!(eos),
        Writing::Answers { start } => config["decoder_start_token_id"] = json!(start),
        Writing::FillsMasks => {}
    }
    let privacy = certificate::mark(&job.plan, folder.ledger.record().header());
    config["privacy"] = json!(privacy);
    let model = checkpoint::model_file(&engine.weights(), NumberFormat::F32, &privacy)?;
    durable::write_atomic(&path.join(MODEL_FILE_NAME), &model)?;
    durable::write_atomic(&path.join(CONFIG_FILE_NAME), pretty(&config)?.as_bytes())?;
    durable::write_atomic(&path.join(TOKENIZER_CONFIG_FILE_NAME), tokenizer.to_config_json().as_bytes())?;
    let mut names = vec![
        MODEL_FILE_NAME,
        CONFIG_FILE_NAME,
        vocabulary::FILE_NAME,
        TOKENIZER_CONFIG_FILE_NAME,
        telemetry::FILE_NAME,
        telemetry::tensorboard::FILE_NAME,
    ];
    if let Some(held_out) = evaluation {
        let figures = match measured {
            Some((step, figures)) if step == end => figures,
            _ => held_out.measure(&engine)?,
        };
        durable::write_atomic(&path.join(EVALUATION_FILE_NAME), pretty(&figures)?.as_bytes())?;
        names.push(EVALUATION_FILE_NAME);
    }
    let files = names.into_iter().map(|name| digest(&path, name)).collect::<Result<_, _>>()?;
    folder.ledger.append(Entry::Completed { steps_done: end, files })?;
    certify(&job.plan, &folder)
}

/// Writes the certificate of a run whose ledger is closed, and gives its summary.
pub(super) fn certify(plan: &CertifiedPlan, folder: &RunFolder) -> Result<Summary, RunError> {
    let certificate = Certificate::derive(plan, folder.ledger.record())?;
    durable::write_atomic(&folder.path.join(JSON_FILE_NAME), certificate.to_json()?.as_bytes())?;
    durable::write_atomic(&folder.path.join(MARKDOWN_FILE_NAME), certificate.to_markdown().as_bytes())?;
    // The model is out and the ledger closed: nothing is left to go on from.
    let _ = fs::remove_file(folder.path.join(checkpoint::FILE_NAME));
    Ok(summary(&folder.path, &certificate))
}

/// The summary of a run folder with this certificate.
pub(crate) fn summary(path: &Path, certificate: &Certificate) -> Summary {
    Summary {
        run: path.to_owned(),
        private: certificate.private,
        public_data: certificate.public_data,
        epsilon: certificate.guarantee.epsilon,
        delta: certificate.guarantee.delta,
        steps_done: certificate.ledger.steps_done,
        steps_planned: certificate.ledger.steps_planned,
        evaluation: read_evaluation_file(path),
    }
}

/// The held-out figures of a run folder, if it has any.
pub(crate) fn read_evaluation_file(folder: &Path) -> Option<Evaluation> {
    serde_json::from_slice(&fs::read(folder.join(EVALUATION_FILE_NAME)).ok()?).ok()
}

fn digest(folder: &Path, name: &str) -> Result<FileDigest, RunError> {
    Ok(FileDigest { name: name.to_owned(), sha256: sha256_hex(&durable::read(&folder.join(name))?) })
}

fn pretty(value: &impl Serialize) -> Result<String, RunError> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| RunError::Failed(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, delta, steps_done, steps_planned, .. } = self;
        if !self.private {
            writeln!(f, "NOT PRIVATE: this run protects nobody")?;
        }
        write!(f, "{}: {steps_done} of {steps_planned} steps", run.display())?;
        match self.epsilon {
            Some(Bounds { lower, upper }) => writeln!(f, ", ε between {lower} and {upper} at δ = {delta}")?,
            None if self.public_data => writeln!(f, " on public text: nothing private was used")?,
            None => writeln!(f, ", no bound on ε")?,
        }
        if let Some(evaluation) = &self.evaluation {
            writeln!(f, "held-out {evaluation}")?;
        }
        write!(f, "certificate: {}", run.join(MARKDOWN_FILE_NAME).display())
    }
}
