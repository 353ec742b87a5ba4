//! A row of the table: one or more runs, of which the last one's scores count.

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use trainer_native::run::{Request, run};

use super::common::Outcome;
use super::vocabulary::Vocabulary;

/// Beginning of the table.
pub const HEAD: &str = "| paper | setting | published | ε ≤ | here | minutes |\n|---|---|---|---|---|---|\n";

/// One row of the table.
pub struct Experiment {
    pub paper: &'static str,
    pub setting: String,
    /// What the paper reports for the setting that this one reduces.
    pub published: &'static str,
    /// The plans in their order, such as pretraining and fine-tuning. Rows may share the first ones. Each has a name of its own.
    pub plans: Vec<Value>,
    /// A vocabulary that is released apart from the plans.
    pub vocabulary: Option<Vocabulary>,
    /// Whether the norm of the weights is shown.
    pub weight_norm: bool,
}

/// What one run came to.
struct Finished {
    epsilon: Option<f64>,
    minutes: f64,
    is_public: bool,
}

impl Experiment {
    pub fn new(
        paper: &'static str,
        setting: impl Into<String>,
        published: &'static str,
        plans: Vec<Value>,
    ) -> Self {
        Self { paper, setting: setting.into(), published, plans, vocabulary: None, weight_norm: false }
    }

    /// Two steps of each run, with the smallest models.
    pub fn reduce(&mut self) {
        if let Some(vocabulary) = &mut self.vocabulary {
            vocabulary.noise_multiplier = 0.5;
        }
        for plan in &mut self.plans {
            let training = json!({ "steps": 2, "expected_batch_size": 16, "batch_schedule": null, "learning_rate": null });
            let model = json!({ "d_model": 16, "d_ff": 32, "heads": 2, "layers": 1 });
            merge(plan, json!({ "training": training, "model": model }));
            merge(plan, json!({ "training": { "learning_rate": { "peak": 1e-3 } } }));
            if !plan["model"]["hidden"].is_null() {
                merge(plan, json!({ "model": { "hidden": [32], "heads": 1 } }));
            }
        }
    }

    /// Runs or resumes the plans. Returns the row.
    ///
    /// ε is that of all private runs on different texts, so it is the largest of theirs.
    pub fn carry_out(&self, folder: &Path) -> Outcome<String> {
        let mut minutes = 0.0;
        let mut epsilon = self.vocabulary.as_ref().map(|vocabulary| vocabulary.write(folder)).transpose()?;
        let mut is_public = epsilon.is_none();
        for plan in &self.plans {
            let finished = carry_out(plan, folder)?;
            minutes += finished.minutes;
            is_public &= finished.is_public;
            epsilon = epsilon.into_iter().chain(finished.epsilon).reduce(f64::max);
        }
        let last = folder.join(name_of(self.plans.last().ok_or("a row without a run")?)?);
        let figures: Value = serde_json::from_slice(&fs::read(last.join("evaluation.json"))?)?;
        let mut result = scores(&figures);
        if self.weight_norm {
            result.push(format!("norm of the weights {:.1}", weight_norm(&last.join("model.safetensors"))?));
        }
        let epsilon = match epsilon {
            Some(epsilon) => format!("{:.3}", (epsilon * 1e3).ceil() / 1e3),
            None if is_public => "∞".to_owned(),
            None => return Err("a private run without ε".into()),
        };
        let Self { paper, setting, published, .. } = self;
        let result = result.join(", ");
        Ok(format!("| {paper} | {setting} | {published} | {epsilon} | {result} | {minutes:.1} |\n"))
    }
}

/// Changes the fields of `plan` to those of `changes`, in objects within objects too. `null` takes a field away.
pub fn merge(plan: &mut Value, changes: Value) {
    match (plan, changes) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    fields.remove(&name);
                } else {
                    merge(fields.entry(name).or_insert_with(|| json!({})), change);
                }
            }
        }
        (plan, change) => *plan = change,
    }
}

/// `plan` with these changes.
pub fn changed(plan: &Value, changes: Value) -> Value {
    let mut plan = plan.clone();
    merge(&mut plan, changes);
    plan
}

/// A plan for the text at `path`, whose units are its records, with the fields of `rest`.
pub fn on_text(path: &str, units: usize, rest: Value) -> Value {
    let plan = json!({
        "version": 1,
        "data": { "source": { "path": path }, "units": units },
        "privacy": { "unit": "record", "relation": "add_or_remove_one", "sampling": "poisson" },
        "evaluation": { "every": 1000 }
    });
    changed(&plan, rest)
}

/// `plan` on text that is declared public: without ε and noise.
pub fn public(plan: &Value) -> Value {
    let without = json!({ "epsilon": null, "noise_multipliers": null, "tokenizer_share": null });
    changed(plan, json!({ "data": { "visibility": "public" }, "privacy": without }))
}

/// `plan` beginning with the weights and the tokenizer of another run, whose text has no unit in common with its own.
pub fn from_checkpoint(plan: &Value, of: &Value) -> Value {
    let name = of["name"].as_str().unwrap_or_default();
    let made_from = if of["data"]["visibility"] == "public" { Value::Null } else { json!("disjoint_units") };
    let tokenizer = json!({ "train": null, "public": { "path": format!("{name}/tokenizer.json"), "made_from": made_from } });
    let model = json!({ "initial": { "checkpoint": name }, "checkpoint_made_from": made_from });
    changed(plan, json!({ "tokenizer": tokenizer, "model": model }))
}

/// Prints a table.
pub fn print(table: &str) -> Outcome {
    Ok(writeln!(stdout(), "{table}")?)
}

fn name_of(plan: &Value) -> Outcome<&str> {
    Ok(plan["name"].as_str().ok_or("a plan without a name")?)
}

/// Runs or resumes a plan in the folder of its name.
fn carry_out(plan: &Value, folder: &Path) -> Outcome<Finished> {
    let name = name_of(plan)?;
    let (path, out) = (folder.join(format!("{name}.json")), folder.join(name));
    fs::write(&path, serde_json::to_string_pretty(plan)?)?;
    let record = folder.join(format!("{name}.minutes"));
    let before: f64 = fs::read_to_string(&record).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let is_finished = out.join("certificate.json").exists();
    let start = Instant::now();
    let resume = out.join("ledger.jsonl").exists();
    let summary = run(&Request { resume, out: Some(out), ..Request::new(path) })?;
    let minutes = if is_finished { before } else { before + start.elapsed().as_secs_f64() / 60.0 };
    fs::write(&record, minutes.to_string())?;
    let is_public = plan["data"]["visibility"] == "public";
    let epsilon = summary.epsilon.map(|bounds| bounds.upper).filter(|_| !is_public);
    Ok(Finished { epsilon, minutes, is_public })
}

/// The figures of an evaluation, in words.
fn scores(figures: &Value) -> Vec<String> {
    let percent = |name: &str| figures[name].as_f64().map(|share| 100.0 * share);
    let mut words: Vec<String> = Vec::new();
    for score in figures["scores"].as_array().into_iter().flatten() {
        let (name, value) = (score["name"].as_str(), score["score"].as_f64());
        words.extend(name.zip(value).map(|(name, value)| format!("{name} {value:.2}")));
    }
    if figures["types"].is_array() {
        words.extend(percent("f1").map(|f1| format!("F1 of entities {f1:.1} %")));
        return words;
    }
    words.extend(percent("accuracy").map(|accuracy| format!("accuracy {accuracy:.1} %")));
    words.extend(percent("majority_accuracy").map(|guess| format!("most frequent label {guess:.1} %")));
    words.extend(figures["perplexity"].as_f64().map(|perplexity| format!("perplexity {perplexity:.1}")));
    words
}

/// Euclidean norm of all tensors of a safetensors file of f32.
fn weight_norm(path: &Path) -> Outcome<f64> {
    let bytes = fs::read(path)?;
    let (length, rest) = bytes.split_first_chunk().ok_or("a file without a header")?;
    let weights = rest.get(u64::from_le_bytes(*length) as usize..).ok_or("a header beyond the file")?;
    let square = |bytes: &[u8; 4]| f64::from(f32::from_le_bytes(*bytes)).powi(2);
    Ok(weights.as_chunks().0.iter().map(square).sum::<f64>().sqrt())
}
