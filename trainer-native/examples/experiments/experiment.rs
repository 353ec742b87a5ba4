//! A row of the table: one or more runs, of which the last one's scores count, each repeated with other seeds.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use accountant::Bounds;
use evaluation::memorization::{MemorizationOptions, Row, memorization};
use plan::Device;
use serde_json::{Value, json};
use training::run::{Request, run};
use training::store::metrics::parse_metrics;

use super::common::Outcome;
use super::vocabulary::Vocabulary;

/// Beginning of a table, with the heads of the columns before the results.
pub fn head(columns: &[&str; 3]) -> String {
    format!(
        "| {} | ε | here | seeds | seconds | direction |\n|---|---|---|---|---|---|---|---|\n",
        columns.join(" | ")
    )
}

/// One row of the table.
pub struct Experiment {
    /// The paper, or the text.
    pub group: &'static str,
    pub setting: String,
    /// What the paper reports for the setting that this one reduces, or what an earlier version of this program reached.
    pub reported: String,
    /// The figure that this is, and the row of the same paper to which the paper compares it.
    pub comparison: Option<Comparison>,
    /// The plans in their order, such as pretraining and fine-tuning. Rows may share the first ones. Each has a name of its own.
    pub plans: Vec<Value>,
    /// A vocabulary that is released apart from the plans.
    pub vocabulary: Option<Vocabulary>,
    /// What is shown beside the scores of the last run.
    pub further: Further,
    /// Records that a later plan trains with.
    pub synthesis: Option<Synthesis>,
}

/// Figures of a run beside its scores.
#[derive(Clone, Copy)]
pub enum Further {
    None,
    /// The norm of the weights, and those of gradients beside their noise.
    Norms,
    /// How much of the training text the model writes on, in repeated records and in others; and of other text.
    Memory {
        train: &'static str,
        valid: &'static str,
    },
}

/// A published figure beside that of another row.
pub struct Comparison {
    pub figure: f64,
    /// Setting and published figure of the other row.
    pub beside: (String, f64),
}

/// The first score of a row that is done, with each seed.
pub struct Done {
    group: &'static str,
    setting: String,
    values: Vec<f64>,
}

/// Records drawn from a run, in a file beside the plans.
pub struct Synthesis {
    /// Name of the plan whose run draws them.
    pub of: &'static str,
    pub records: u64,
    pub out: &'static str,
}

/// What one run came to, or all runs of a row with one seed.
struct Finished {
    epsilon: Option<Bounds>,
    seconds: f64,
    is_public: bool,
    scores: Vec<Score>,
}

/// A figure of an evaluation.
#[derive(Clone)]
struct Score {
    name: String,
    value: f64,
    decimals: usize,
    unit: &'static str,
}

impl Experiment {
    pub fn new(
        group: &'static str,
        setting: impl Into<String>,
        reported: impl Into<String>,
        plans: Vec<Value>,
    ) -> Self {
        Self {
            group,
            setting: setting.into(),
            reported: reported.into(),
            comparison: None,
            plans,
            vocabulary: None,
            further: Further::None,
            synthesis: None,
        }
    }

    /// The same, published as `figure` beside `other` of the row of another setting.
    pub fn published(self, figure: f64, beside: (impl Into<String>, f64)) -> Self {
        let beside = (beside.0.into(), beside.1);
        Self { comparison: Some(Comparison { figure, beside }), ..self }
    }

    /// Two steps of each run, with the smallest models.
    pub fn reduce(&mut self) {
        if let Some(vocabulary) = &mut self.vocabulary {
            vocabulary.noise_multiplier = 0.5;
        }
        if let Some(synthesis) = &mut self.synthesis {
            synthesis.records = 40;
        }
        for plan in &mut self.plans {
            let training = json!({ "steps": 2, "expected_batch_size": 16, "batch_schedule": null, "learning_rate": null });
            let model = json!({ "d_model": 16, "d_ff": 32, "heads": 2, "layers": 1 });
            merge(plan, json!({ "training": training, "model": model }));
            merge(plan, json!({ "training": { "learning_rate": { "peak": 1e-3 } } }));
            if plan["training"]["warm_start"].is_object() {
                merge(plan, json!({ "training": { "warm_start": { "steps": 2 } } }));
            }
            if plan["model"]["family"] == "feed_forward" {
                merge(plan, json!({ "model": { "hidden": [32], "heads": 1 } }));
            }
        }
    }

    /// Runs or resumes the plans once in each folder. Returns the row, with means and standard deviations, and adds it to those that
    /// are done.
    pub fn carry_out(&self, folders: &[PathBuf], done: &mut Vec<Done>) -> Outcome<String> {
        let once = folders.iter().map(|folder| self.carry_out_once(folder));
        let all: Vec<Finished> = once.collect::<Outcome<_>>()?;
        let first = all.first().ok_or("no seed")?;
        let result = (0..first.scores.len()).map(|index| {
            let values: Vec<f64> = all.iter().filter_map(|one| Some(one.scores.get(index)?.value)).collect();
            first.scores[index].over(&values)
        });
        let result: Vec<String> = result.collect();
        let epsilon = match all.iter().filter_map(|one| one.epsilon).reduce(larger) {
            Some(epsilon) => shown(epsilon),
            None if first.is_public => "∞".to_owned(),
            None => return Err("a private run without ε".into()),
        };
        let seconds: f64 = all.iter().map(|one| one.seconds).sum();
        let (Self { group, setting, reported, .. }, result) = (self, result.join(", "));
        let values = all.iter().filter_map(|one| Some(one.scores.first()?.value)).collect();
        let own = Done { group, setting: setting.clone(), values };
        let direction = match &self.comparison {
            Some(comparison) => comparison.direction(&own, done)?,
            None => "–".to_owned(),
        };
        done.push(own);
        Ok(format!(
            "| {group} | {setting} | {reported} | {epsilon} | {result} | {} | {seconds:.0} | {direction} |\n",
            folders.len()
        ))
    }

    /// ε is that of all private runs on different texts, so it is the largest of theirs.
    fn carry_out_once(&self, folder: &Path) -> Outcome<Finished> {
        let vocabulary = self.vocabulary.as_ref().map(|vocabulary| vocabulary.write(folder)).transpose()?;
        let is_public = vocabulary.is_none();
        let mut all = Finished { epsilon: vocabulary, seconds: 0.0, is_public, scores: Vec::new() };
        for plan in &self.plans {
            let finished = carry_out(plan, folder)?;
            if let Some(synthesis) = self.synthesis.as_ref().filter(|synthesis| plan["name"] == synthesis.of)
            {
                synthesis.carry_out(folder)?;
            }
            all.seconds += finished.seconds;
            all.is_public &= finished.is_public;
            all.epsilon = all.epsilon.into_iter().chain(finished.epsilon).reduce(larger);
            all.scores = finished.scores;
        }
        let last = self.plans.last().ok_or("a row without a run")?;
        let figures = self.further.of(folder, name_of(last)?)?;
        // How much is remembered comes first; rows are compared by their first figure.
        match self.further {
            Further::Memory { .. } => all.scores.splice(0..0, figures).for_each(drop),
            Further::Norms | Further::None => all.scores.extend(figures),
        }
        Ok(all)
    }
}

impl Further {
    fn of(self, folder: &Path, run: &str) -> Outcome<Vec<Score>> {
        let run = folder.join(run);
        match self {
            Self::None => Ok(Vec::new()),
            Self::Norms => Ok(vec![
                Score::new("norm of the weights", weight_norm(&run.join("model.safetensors"))?, 1),
                Score::new("gradient / noise", gradient_to_noise(&run.join("metrics.jsonl"))?, 3),
            ]),
            Self::Memory { train, valid } => {
                let options = MemorizationOptions {
                    train: &folder.join(train),
                    valid: &folder.join(valid),
                    prefix: None,
                    continuation: None,
                    examples: 200,
                    similarity: 0.8,
                    beams: None,
                    references: &[],
                };
                let figures = memorization(&run, Device::Cpu, &options)?;
                Ok(figures.rows.iter().map(memory_of_split).collect::<Outcome<Vec<_>>>()?.concat())
            }
        }
    }
}

/// The figures of one split; those that Ponomareva et al. add for repeated records only for these.
fn memory_of_split(row: &Row) -> Outcome<Vec<Score>> {
    let figures = &serde_json::to_value(row)?["figures"];
    let Some(exact) = figures["exact_match"].as_f64() else { return Ok(Vec::new()) };
    let name = |figure: &str| format!("{figure} {}", row.split);
    let exact = Score::percent(&name("EM"), exact);
    let further = figures["token_accuracy"].as_f64().zip(figures["median_edit_distance"].as_f64());
    Ok(match further.filter(|_| row.split == "train, duplicated") {
        Some((accuracy, distance)) => {
            vec![exact, Score::percent(&name("TA"), accuracy), Score::new(name("MED"), distance, 1)]
        }
        None => vec![exact],
    })
}

/// The bounds of the run that spent more.
fn larger(one: Bounds, other: Bounds) -> Bounds {
    if one.upper < other.upper { other } else { one }
}

/// Rounded outward: the upper bound, and the lower one where it differs.
fn shown(Bounds { lower, upper }: Bounds) -> String {
    let (lower, upper) = ((lower * 1e3).floor() / 1e3, (upper * 1e3).ceil() / 1e3);
    if upper - lower > 0.0015 { format!("{lower:.3} to {upper:.3}") } else { format!("{upper:.3}") }
}

impl Comparison {
    /// In words: which of two rows is higher, and whether the paper has it so.
    fn direction(&self, own: &Done, done: &[Done]) -> Outcome<String> {
        let (setting, published) = &self.beside;
        let other = done.iter().find(|row| row.group == own.group && row.setting == *setting);
        let other = other.ok_or_else(|| format!("{}: no row \"{setting}\" before it", own.setting))?;
        // Runs with one seed have their first stages in common, so they are compared pair by pair.
        let changes: Vec<f64> =
            own.values.iter().zip(&other.values).map(|(own, other)| own - other).collect();
        let (change, variance) = mean_and_variance(&changes);
        let expected = self.figure - published;
        let way = match change {
            0.0 => "equal to",
            change if change > 0.0 => "above",
            _ => "below",
        };
        let verdict = if change * expected > 0.0 { "as published" } else { "unlike published" };
        let is_small = variance.is_some_and(|variance| change.abs() < 2.0 * variance.sqrt());
        let doubt = if is_small { ", within two standard errors" } else { "" };
        Ok(format!("{way} \"{setting}\", {verdict}{doubt}"))
    }
}

/// The mean, and the variance of the mean where there are several values.
fn mean_and_variance(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| square / (count - 1.0) / count))
}

impl Synthesis {
    /// Draws the records, unless they were drawn before.
    fn carry_out(&self, folder: &Path) -> Outcome {
        let out = folder.join(self.out);
        if !out.exists() {
            evaluation::synthesis::draw(&folder.join(self.of), self.records, &out)?;
        }
        Ok(())
    }
}

impl Score {
    fn new(name: impl Into<String>, value: f64, decimals: usize) -> Self {
        Self { name: name.into(), value, decimals, unit: "" }
    }

    fn percent(name: &str, share: f64) -> Self {
        Self { unit: " %", ..Self::new(name, 100.0 * share, 1) }
    }

    /// Its name, and the mean of these values with their standard deviation.
    fn over(&self, values: &[f64]) -> String {
        let Self { name, decimals, unit, .. } = self;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if values.len() > 1 {
            format!(" ± {:.decimals$}", (square / (count - 1.0)).sqrt())
        } else {
            String::new()
        };
        format!("{name} {mean:.decimals$}{deviation}{unit}")
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
        "evaluation": { "every": 1000, "accept_equal_phrases": true },
        "performance": { "group_by_length": true }
    });
    changed(&plan, rest)
}

/// `plan` on text that is declared public: without ε and noise, and without a start from released words.
pub fn public(plan: &Value) -> Value {
    let without = json!({ "epsilon": null, "noise_multipliers": null, "tokenizer_share": null });
    let public = changed(plan, json!({ "data": { "visibility": "public" }, "privacy": without }));
    if plan["training"]["warm_start"].is_null() {
        return public;
    }
    let start = json!({ "training": { "warm_start": null }, "tokenizer": { "train": { "words": null } } });
    changed(&public, start)
}

/// `plan` beginning with the weights and the tokenizer of another run, whose text has no unit in common with its own.
pub fn from_checkpoint(plan: &Value, of: &Value) -> Value {
    let name = of["name"].as_str().unwrap_or_default();
    let made_from = if of["data"]["visibility"] == "public" { "public_text" } else { "disjoint_units" };
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
    let record = folder.join(format!("{name}.seconds"));
    let before: f64 = fs::read_to_string(&record).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let is_finished = out.join("certificate.json").exists();
    let start = Instant::now();
    let resume = out.join("ledger.jsonl").exists();
    let summary = run(&Request { resume, out: Some(out.clone()), ..Request::new(path) })?;
    let seconds = if is_finished { before } else { before + start.elapsed().as_secs_f64() };
    fs::write(&record, seconds.to_string())?;
    let is_public = plan["data"]["visibility"] == "public";
    let epsilon = summary.epsilon.filter(|_| !is_public);
    let is_hidden = |objective: &str| objective.starts_with("masked_lm") || objective == "span_corruption";
    let is_masked = plan["training"]["objective"].as_str().is_some_and(is_hidden);
    let scores = scores(&serde_json::from_slice(&fs::read(out.join("evaluation.json"))?)?, is_masked);
    Ok(Finished { epsilon, seconds, is_public, scores })
}

fn order_of_sentences(figures: &Value) -> Option<Score> {
    Some(Score::percent("order of sentences", figures["sentences"]["accuracy"].as_f64()?))
}

/// The figures of an evaluation.
fn scores(figures: &Value, is_masked: bool) -> Vec<Score> {
    let share = |field: &str, name: &str| figures[field].as_f64().map(|share| Score::percent(name, share));
    if figures["types"].is_array() {
        return share("f1", "F1 of entities").into_iter().collect();
    }
    let answers = &figures["answers"]["labels"];
    if answers.is_object() {
        let likeliest = answers["likeliest"]["accuracy"].as_f64().unwrap_or(0.0);
        let written = answers["written"]["accuracy"].as_f64().unwrap_or(0.0);
        let majority = answers["majority_accuracy"].as_f64().unwrap_or(0.0);
        return vec![
            Score::percent("accuracy", likeliest),
            Score::percent("of written labels", written),
            Score::percent("most frequent label", majority),
        ];
    }
    let translated = figures["scores"].as_array().into_iter().flatten().filter_map(|score| {
        let (name, value) = (score["name"].as_str()?, score["score"].as_f64()?);
        Some(Score::new(name, value, 2))
    });
    let shares = [share("accuracy", "accuracy"), share("majority_accuracy", "most frequent label")];
    // Of hidden words; of words that are written one after another, the perplexity says more.
    let hidden = is_masked.then(|| [share("token_accuracy", "hidden tokens"), order_of_sentences(figures)]);
    let perplexity = |value: &Value, name: &str| value.as_f64().map(|value| Score::new(name, value, 1));
    let perplexities = [
        perplexity(&figures["perplexity"], "perplexity"),
        perplexity(&figures["best_unigram_perplexity"], "best unigram model"),
        // Vocabularies differ, words do not.
        perplexity(&figures["words"]["perplexity"], "per word"),
    ];
    let shares = shares.into_iter().chain(hidden.into_iter().flatten());
    translated.chain(shares.chain(perplexities).flatten()).collect()
}

/// The root of the mean of the estimates of ‖gradient‖² / ‖noise‖² in a run's evaluations; 0 where it is negative.
fn gradient_to_noise(path: &Path) -> Outcome<f64> {
    let metrics = parse_metrics(&fs::read(path)?);
    let squares: Vec<f64> = metrics.iter().filter_map(|metric| *metric.gradient_to_noise.get()).collect();
    Ok((squares.iter().sum::<f64>() / squares.len().max(1) as f64).max(0.0).sqrt())
}

/// Euclidean norm of all tensors of a safetensors file of f32.
fn weight_norm(path: &Path) -> Outcome<f64> {
    let bytes = fs::read(path)?;
    let (length, rest) = bytes.split_first_chunk().ok_or("a file without a header")?;
    let weights = rest.get(u64::from_le_bytes(*length) as usize..).ok_or("a header beyond the file")?;
    let square = |bytes: &[u8; 4]| f64::from(f32::from_le_bytes(*bytes)).powi(2);
    Ok(weights.as_chunks().0.iter().map(square).sum::<f64>().sqrt())
}
