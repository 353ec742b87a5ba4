//! The end of a run: model files, completion line, certificate.

use serde::Serialize;
use serde_json::json;

use super::prepare::Prepared;
use super::request::Job;
use crate::RunError;
use crate::infer::Evaluation;
use crate::nn::Kernels;
use crate::objective::{Generation, end_of_text};
use crate::progress::note;
use crate::ranks::Ranks;
use crate::store::ledger::LedgerState;
use crate::store::{BestWeights, FinishedModel, RunStore, certificate};
use crate::summary::Summary;
use crate::tensor_file::{NumberFormat, model_file};
use crate::train::TrainError;
use crate::verify::verify_run;

/// Writes the finished model and the certificate. `evaluation` is the last step's. The model is that of the last step, or the
/// best one if the plan keeps it.
pub(super) fn finish<B: Kernels>(
    job: &Job,
    run: &mut Prepared<B>,
    evaluation: Option<Evaluation>,
    store: &mut RunStore<'_>,
) -> Result<Summary, RunError> {
    let evaluation = match store.best()? {
        Some(BestWeights { step, weights, .. }) => {
            note(&format!("the model is that of step {step}, the best on the public evaluation text"));
            let unfit = |error: TrainError| RunError::Verification(error.to_string());
            run.trainer.load_weights(weights).map_err(unfit)?;
            None
        }
        None => evaluation,
    };
    // A run that crashed after its last step resumes without a step, so without an evaluation.
    let evaluation =
        evaluation.map_or_else(|| run.evaluate(&Ranks::alone()), |evaluation| Ok(Some(evaluation)))?;
    let evaluation = evaluation.map(|figures| run.with_scores(figures)).transpose()?;
    let evaluation = evaluation.as_ref().map(pretty_json).transpose()?;
    let model = FinishedModel { evaluation, ..model(job, run, store.ledger())? };
    store.complete(store.steps_done(), model)?;
    verified(store)
}

/// Verifies the finished run as anybody can, before what could repair it is removed.
pub(super) fn verified(store: &mut RunStore<'_>) -> Result<Summary, RunError> {
    let summary = verify_run(store.path())?;
    store.remove_checkpoint()?;
    Ok(summary)
}

/// The model as `transformers` loads it, marked with what it promises.
pub(super) fn model<B: Kernels>(
    job: &Job,
    run: &Prepared<B>,
    ledger: &LedgerState,
) -> Result<FinishedModel, RunError> {
    let privacy = certificate::mark(&job.plan, ledger);
    let mut config = run.trainer.hf_config();
    let eos = end_of_text(&run.tokenizer)?;
    config["eos_token_id"] = json!(eos);
    config["pad_token_id"] = json!(run.tokenizer.pad_id());
    match run.data.objective.generation() {
        Generation::Continuation | Generation::Answer => config["bos_token_id"] = json!(eos),
        Generation::FromDecoder { start, first } => {
            config["decoder_start_token_id"] = json!(start);
            if let Some(first) = first {
                config["bos_token_id"] = json!(first);
                config["forced_bos_token_id"] = json!(first);
            }
        }
        Generation::None => {}
    }
    config["privacy"] = json!(privacy);
    Ok(FinishedModel {
        weights: model_file(&run.trainer.weights(), NumberFormat::F32, &privacy)?,
        config: pretty_json(&config)?,
        tokenizer_config: run.tokenizer.to_config_json(),
        evaluation: None,
    })
}

fn pretty_json(value: &impl Serialize) -> Result<String, RunError> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| RunError::Failed(error.to_string()))?;
    text.push('\n');
    Ok(text)
}
