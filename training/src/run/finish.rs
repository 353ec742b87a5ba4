//! Ends a run: writes model files, the completion line and the certificate.

use std::path::Path;

use serde_json::{Value, json};

use super::prepare::Prepared;
use super::request::Job;
use super::sentence_transformers;
use crate::RunError;
use crate::infer::{Evaluation, generation_config};
use crate::label_histogram::LabelCount;
use crate::objective::{Generation, Task};
use crate::progress::note;
use crate::ranks::Ranks;
use crate::store::ledger::{LedgerState, RoundedModel};
use crate::store::{BestWeights, ModelFile, RunStore, certificate, files};
use crate::summary::Summary;
use crate::train::TrainerError;
use crate::verify::verify_run;
use durable::pretty_json;
use network::nn::Kernels;
use network::tensor_file::{NumberFormat, PrivacyMark};

/// Writes the finished model and the certificate. The model is that of the last step, or the best one if the plan keeps
/// it. `evaluation` is that of the last step.
pub(super) fn finish<B: Kernels>(
    job: &Job,
    run: &mut Prepared<B>,
    evaluation: Option<Evaluation>,
    store: &mut RunStore<'_>,
) -> Result<Summary, RunError> {
    let evaluation = match store.best()? {
        Some(BestWeights { step, weights, .. }) => {
            note(&format!("the model is that of step {step}, the best on the public evaluation text"));
            let unfit = |error: TrainerError| RunError::Verification(error.to_string());
            run.trainer.load_trained(weights).map_err(unfit)?;
            None
        }
        None => evaluation,
    };
    // A run that crashed after its last step resumes without a step, so without an evaluation.
    let evaluation =
        evaluation.map_or_else(|| run.evaluate(&Ranks::alone()), |evaluation| Ok(Some(evaluation)))?;
    let evaluation = evaluation.map(|figures| run.with_scores(figures)).transpose()?;
    let evaluation = evaluation.as_ref().map(pretty_json).transpose()?;
    let mut model = model(job, run, store.ledger())?;
    model.extend(evaluation.map(|text| ModelFile::text(files::EVALUATION, text)));
    let rounded = rounded(job, run, store.ledger())?;
    store.complete(store.steps_done(), &model, rounded)?;
    verified(store)
}

/// Writes the certificate of a run whose ledger is complete.
pub(super) fn certify_again(store: &mut RunStore<'_>) -> Result<Summary, RunError> {
    store.write_certificate()?;
    verified(store)
}

/// Verifies the finished run as anybody can, before the files that could repair it are removed.
fn verified(store: &mut RunStore<'_>) -> Result<Summary, RunError> {
    let summary = verify_run(store.path())?;
    store.remove_checkpoint()?;
    Ok(summary)
}

/// Returns the files of the model as `transformers` loads it, marked with its promise, and its
/// adapters as PEFT loads them.
pub(super) fn model<'a, B: Kernels>(
    job: &Job,
    run: &'a Prepared<B>,
    ledger: &LedgerState,
) -> Result<Vec<ModelFile<'a>>, RunError> {
    let mark = certificate::mark(&job.plan, ledger);
    let Configuration { model, generation } = Configuration::of(run, &mark)?;
    let mut files = vec![ModelFile::text(files::CONFIG, pretty_json(&model)?)];
    files.extend(tokenizer_files(run)?);
    if let Some(generation) = generation {
        files.push(ModelFile::text(files::GENERATION_CONFIG, pretty_json(&generation)?));
    }
    let histogram = job.plan.plan().data().label_histogram.as_ref();
    if let (Some(histogram), Some(counts)) = (histogram, ledger.label_counts()) {
        let named = histogram.labels.iter().cloned().zip(counts.iter().copied());
        let counts: Vec<LabelCount> = named.map(|(label, count)| LabelCount { label, count }).collect();
        files.push(ModelFile::text(files::LABELS, pretty_json(&counts)?));
    }
    if let Some(config) = super::peft::config(job.plan.plan(), &run.trainer) {
        let mark = mark.clone();
        files.push(ModelFile::text(files::ADAPTER_CONFIG, pretty_json(&config)?));
        let write = move |path: &Path| super::peft::write(&run.trainer, path, &mark);
        files.push(ModelFile { name: files::ADAPTER, write: Box::new(write) });
    }
    files.extend(sentence_transformers::files(job.plan.plan(), run, &mark)?);
    let write = move |path: &Path| run.trainer.write_model(path, &mark);
    files.push(ModelFile { name: files::MODEL, write: Box::new(write) });
    Ok(files)
}

/// Returns the digests of the model in 16 bits, by which an export is verified.
fn rounded<B: Kernels>(
    job: &Job,
    run: &Prepared<B>,
    ledger: &LedgerState,
) -> Result<Vec<RoundedModel>, RunError> {
    let mark = certificate::mark(&job.plan, ledger);
    let Configuration { mut model, .. } = Configuration::of(run, &mark)?;
    let mut rounded = Vec::new();
    for format in [NumberFormat::Bf16, NumberFormat::F16] {
        let Some(model_sha256) = run.trainer.model_sha256(format, &mark)? else { continue };
        format.name_in(&mut model);
        let config_sha256 = durable::sha256_hex(pretty_json(&model)?.as_bytes());
        let dtype = format.of_transformers().to_owned();
        rounded.push(RoundedModel { dtype, config_sha256, model_sha256 });
    }
    Ok(rounded)
}

/// The configuration that `transformers` reads beside a model's weights.
struct Configuration {
    model: Value,
    /// Settings of generation, if the model generates text.
    generation: Option<Value>,
}

impl Configuration {
    fn of<B: Kernels>(run: &Prepared<B>, mark: &PrivacyMark) -> Result<Self, RunError> {
        let mut model = run.trainer.hf_config();
        let objective = &run.data.objective;
        let mut generation = generation_config::of_texts(objective, &run.tokenizer)?;
        generation_config::keep(&mut generation, &run.generation, run.tokenizer.vocab_size());
        let is_id = |(name, _): &(&String, &Value)| name.ends_with("_token_id");
        for (name, id) in generation.as_object().into_iter().flatten().filter(is_id) {
            model[name] = id.clone();
        }
        mark.write_to(&mut model);
        let generates = !matches!(objective.generation(), Generation::None);
        Ok(Self { model, generation: generates.then_some(generation) })
    }
}

/// Returns the tokenizer's settings. A model that tells first from second texts needs their
/// classes, which `transformers` leaves out otherwise. If the model learnt conversations, the
/// settings include the chat template and the tokens that it names. Generation continues prompts of
/// different lengths, so `transformers` must pad them on the left.
fn tokenizer_files<B: Kernels>(run: &Prepared<B>) -> Result<Vec<ModelFile<'static>>, RunError> {
    let mut config: Value = serde_json::from_str(&run.tokenizer.to_config_json())
        .map_err(|error| RunError::Failed(error.to_string()))?;
    if run.trainer.hf_config()["type_vocab_size"].as_u64() > Some(1) {
        config["model_input_names"] = json!(["input_ids", "token_type_ids", "attention_mask"]);
    }
    let Some(template) = run.data.objective.task().and_then(Task::chat_template) else {
        return Ok(vec![ModelFile::text(files::TOKENIZER_CONFIG, pretty_json(&config)?)]);
    };
    for (name, token) in template.special_tokens() {
        config[name.as_str()] = json!(token);
    }
    config["padding_side"] = json!("left");
    Ok(vec![
        ModelFile::text(files::TOKENIZER_CONFIG, pretty_json(&config)?),
        ModelFile::text(files::CHAT_TEMPLATE, template.source().to_owned()),
    ])
}
