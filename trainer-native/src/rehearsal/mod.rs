//! A rehearsal: a plan is carried out on public text with the noise that it will have on the private text, at several
//! learning rates and then at several clip norms. Both are thus chosen without looking at private text. If batch sizes
//! are named, the gradients at each of them are compared with their noise.
//!
//! Every trial draws the same batches and the same noise, from a known key: trials differ only by their settings, and
//! no certificate of a trial claims a guarantee.

mod batches;

use std::fmt;
use std::path::{Path, PathBuf};

use accountant::budget;
use batches::{BatchTrial, Shown};
use chart::{Chart, Scale, Scene, Series};
use plan::{CertifiedPlan, Device, Initial, NoiseMultipliers, PlanFile, Source, Tokenizer};
use serde::Serialize;

use crate::init::Reading;
use durable::FolderLock;
use training::progress::note;
use training::run::{self, shell_word};
use training::store::files;
use training::verify::{CertifiedText, check_unwritten};
use training::{RunError, data, stop};

/// The key of all trials.
const KEY: u64 = 1;

/// The request of the user.
#[derive(Clone, Debug)]
pub(crate) struct RehearsalRequest {
    pub plan: PathBuf,
    pub public: Vec<PathBuf>,
    /// Whether the public text may have phrases of the private text.
    pub accept_equal_phrases: bool,
    /// Learning rates to try, in any order; the default ones if empty. The same holds for the clip norms.
    pub learning_rates: Vec<f64>,
    pub clip_norms: Vec<f64>,
    /// Batch sizes at which gradients are compared with their noise; none if empty.
    pub batch_sizes: Vec<u64>,
    pub out: Option<PathBuf>,
    pub write: Option<PathBuf>,
    pub device: Option<Device>,
}

/// The result of a rehearsal.
#[derive(Debug, Serialize)]
pub(crate) struct Rehearsal {
    /// Number of units of the public text.
    units: u64,
    noise_multiplier: f64,
    steps: u64,
    trials: Vec<Trial>,
    chosen: Trial,
    /// Runs with the chosen settings at the batch sizes that the user names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    batches: Vec<BatchTrial>,
    /// Open questions about the choice, one sentence each.
    remarks: Vec<String>,
    /// The plan with the chosen settings.
    plan: PathBuf,
    chart: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_chart: Option<PathBuf>,
}

/// A run on public text.
#[derive(Clone, Debug, Serialize)]
struct Trial {
    learning_rate: f64,
    l2_clip_norm: f64,
    /// Mean negative log-likelihood of a prediction on the evaluation text, in nats; absent if it is not finite.
    loss: Option<f64>,
    run: PathBuf,
}

/// Carries out a rehearsal, or continues one.
///
/// # Errors
/// [`RunError::Refused`] for a plan or settings that cannot be rehearsed, before anything is written; as [`run::run`] for a trial.
pub(crate) fn rehearse(request: &RehearsalRequest) -> Result<Rehearsal, RunError> {
    let certified = CertifiedText::read(&request.plan)?.plan;
    let file = certified.plan().file();
    check(&certified, request)?;
    let is_compared = compare(&certified, request)?;
    let write = request.write.clone().unwrap_or_else(|| beside(&request.plan));
    check_new(&write)?;
    let folder =
        request.out.clone().unwrap_or_else(|| Path::new("runs").join(format!("{}-rehearsal", file.name)));
    let on_public = on_public_text(&certified, request)?;
    let batches = batches::plans(&certified, request)?;
    durable::create_folder(&folder)?;
    let _locks = [FolderLock::of_file(&write)?, FolderLock::take(&folder)?];
    // Another process may have written the plan before it released the lock.
    check_new(&write)?;
    let (units, noise) = (on_public.data.units, certified.phases()[0].noise_multiplier());
    let mut trials = Vec::new();
    let (rate, norm) = (file.training.learning_rate.peak, file.training.l2_clip_norm);
    let run_trial = |learning_rate: f64, l2_clip_norm: f64| {
        let mut file = on_public.clone();
        set(&mut file, learning_rate, l2_clip_norm);
        let name = format!("learning-rate-{learning_rate}-clip-norm-{l2_clip_norm}");
        trial(file, &name, &folder, request)
    };
    for learning_rate in around(&request.learning_rates, rate) {
        trials.push(run_trial(learning_rate, norm)?);
    }
    let rate = best(&trials)?.learning_rate;
    for norm in around(&request.clip_norms, norm).into_iter().filter(|tried| *tried != norm) {
        trials.push(run_trial(rate, norm)?);
    }
    let chosen = best(&trials)?.clone();
    let batches = batches::carry_out(batches, &chosen, &folder, request)?;
    let mut found = file.clone();
    set(&mut found, chosen.learning_rate, chosen.l2_clip_norm);
    durable::write_public(&write, format!("{}\n", found.text()).as_bytes())?;
    let chart = draw(&chart(&trials, &chosen), folder.join("rehearsal.svg"))?;
    let batch_chart = match &batches[..] {
        [] => None,
        batches => Some(draw(&batches::chart(batches), folder.join("gradient-to-noise.svg"))?),
    };
    let mut remarks = remarks(&trials, &chosen, file, &on_public);
    if !is_compared {
        remarks.push(NOT_COMPARED.to_owned());
    }
    let steps = certified.total_steps();
    Ok(Rehearsal {
        units,
        noise_multiplier: noise,
        steps,
        trials,
        chosen,
        batches,
        remarks,
        plan: write,
        chart,
        batch_chart,
    })
}

/// Draws a chart, if it has at least one point.
fn draw(chart: &Chart, path: PathBuf) -> Result<PathBuf, RunError> {
    if let Some(scene) = Scene::new(chart) {
        durable::write_public(&path, scene.svg(chart).as_bytes())?;
    }
    Ok(path)
}

fn check_new(write: &Path) -> Result<(), RunError> {
    match write.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) => Err(RunError::Refused(format!(
            "{}: the file exists; name a new one with --write",
            write.display()
        ))),
    }
}

fn check(certified: &CertifiedPlan, request: &RehearsalRequest) -> Result<(), RunError> {
    let plan = request.plan.display();
    if certified.plan().is_public() || certified.phases().is_empty() {
        return Err(RunError::Refused(format!(
            "{plan}: its text is public; allowed: a plan for private text. Change its settings freely: nothing is charged"
        )));
    }
    if certified.plan().file().evaluation.is_none() {
        return Err(RunError::Refused(format!(
            "{plan}: evaluation is missing, so trials cannot be compared; name public text that is in no training text: \
             \"evaluation\": {{\"source\": {{\"path\": \"public.txt\"}}, \"every\": 50}}"
        )));
    }
    for (option, values) in
        [("--learning-rate", &request.learning_rates), ("--clip-norm", &request.clip_norms)]
    {
        if let Some(value) = values.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
            return Err(RunError::Refused(format!(
                "{option}: {value}; allowed: numbers above 0, separated by commas"
            )));
        }
    }
    Ok(())
}

/// The note that is shown if the private text is elsewhere.
const NOT_COMPARED: &str = "The plan's training text is not on this machine, so the public text was not compared with it: that they share \
                            no text is for you to know.";

/// Refuses public text that shares text with the plan's private one, because the certificate says
/// that its figures were chosen without looking at the private text. Returns whether the private
/// text is available for the comparison.
fn compare(certified: &CertifiedPlan, request: &RehearsalRequest) -> Result<bool, RunError> {
    check_unwritten(&request.public, "--public")?;
    let base = request.plan.parent().unwrap_or(Path::new(""));
    let source = &certified.plan().data().source;
    let paths: &[String] = match source {
        Source::Path(path) => std::slice::from_ref(path),
        Source::Paths(paths) => paths,
        Source::Embedded { .. } => &[],
    };
    if paths.iter().any(|path| !base.join(path).exists()) {
        return Ok(false);
    }
    let compared = data::Compared::option("--public", request.accept_equal_phrases);
    data::check_other_text(certified.plan(), base, &request.public, compared)?;
    Ok(true)
}

/// Returns `NAME-rehearsed.json` in the plan's folder, where the plan's paths stay valid.
fn beside(plan: &Path) -> PathBuf {
    let stem = plan.file_stem().unwrap_or_default().to_string_lossy();
    plan.with_file_name(format!("{stem}-rehearsed.json"))
}

/// Returns the values that the user names, or a third of the plan's, the plan's, and three times
/// it, without duplicates.
fn around(named: &[f64], planned: f64) -> Vec<f64> {
    let mut values = match named {
        [] => vec![planned / 3.0, planned, 3.0 * planned],
        named => named.to_vec(),
    };
    values.iter_mut().filter(|value| **value != planned).for_each(|value| *value = rounded(*value));
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Rounds to three significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

fn set(file: &mut PlanFile, learning_rate: f64, l2_clip_norm: f64) {
    file.training.learning_rate.peak = learning_rate;
    file.training.l2_clip_norm = l2_clip_norm;
}

/// Returns the plan with the public text in place of the private one, and the same noise on the same batches.
fn on_public_text(certified: &CertifiedPlan, request: &RehearsalRequest) -> Result<PlanFile, RunError> {
    let mut file = certified.plan().file().clone();
    if file.privacy.sampling.examples_per_unit().is_some() {
        return Err(RunError::Refused(
            "privacy.sampling: \"poisson_of_examples\" declares the number of examples of the private text, which public text does not \
             have; rehearse a copy of the plan with \"poisson\""
                .to_owned(),
        ));
    }
    let base = request.plan.parent().map(Path::to_owned).unwrap_or_default();
    make_absolute(&mut file, &base)?;
    let texts = request.public.iter().map(|path| absolute(path)).collect::<Result<Vec<_>, _>>()?;
    let reading = Reading {
        paths: &request.public,
        columns: file.data.columns.as_deref(),
        encoding: plan::Encoding::Utf8,
        text: Some(&file.data.text_field),
        text_is_json: file.training.objective == plan::Objective::Chat,
        text_is_list: file.training.objective == plan::Objective::TokenClassification,
        user: file.data.user_field.as_deref(),
        label: None,
    };
    let counts = reading.count()?;
    file.data.source = match <[String; 1]>::try_from(texts) {
        Ok([text]) => Source::Path(text),
        Err(texts) => Source::Paths(texts),
    };
    file.data.format = plan::Format::Auto;
    file.data.encoding = plan::Encoding::Utf8;
    file.data.made_from = None;
    file.data.units = counts.units(file.privacy.unit).max(1);
    file.name = format!("{}-rehearsal", file.name);
    let privacy = &mut file.privacy;
    privacy.epsilon = None;
    privacy.delta = privacy.delta.min(budget::default_delta(file.data.units));
    privacy.noise_multipliers = Some(NoiseMultipliers {
        tokenizer: certified.tokenizer_release().map(|release| release.noise_multiplier),
        training: certified.phases()[0].noise_multiplier(),
    });
    let largest = file.training.phases().iter().map(|phase| phase.expected_batch_size).max().unwrap_or(0);
    if largest > file.data.units {
        return Err(RunError::Refused(format!(
            "--public: the text has {} units, but a batch has {largest}; name more public text",
            file.data.units
        )));
    }
    Ok(file)
}

/// Makes the paths of a plan independent of its folder.
fn make_absolute(file: &mut PlanFile, base: &Path) -> Result<(), RunError> {
    let mut paths: Vec<&mut String> = Vec::new();
    match file.evaluation.as_mut().map(|evaluation| &mut evaluation.source) {
        Some(Source::Path(path)) => paths.push(path),
        Some(Source::Paths(several)) => paths.extend(several),
        Some(Source::Embedded { .. }) | None => {}
    }
    match &mut file.tokenizer {
        Tokenizer::Public(public) => paths.push(&mut public.path),
        Tokenizer::Extend(extended) => paths.push(&mut extended.path),
        Tokenizer::Train(trained) => paths.extend(&mut trained.prior),
        Tokenizer::Bytes => {}
    }
    if let Initial::Checkpoint(path) = &mut file.model.initial {
        paths.push(path);
    }
    for path in paths {
        *path = absolute(&base.join(&path))?;
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<String, RunError> {
    let found = std::path::absolute(path).map_err(|error| RunError::storage("find", path, &error))?;
    found.into_os_string().into_string().map_err(|name| {
        RunError::Refused(format!(
            "{}: the path is not UTF-8, which a plan cannot name; rename it",
            name.display()
        ))
    })
}

/// Runs a trial, or reads the figures of one that has run.
fn trial(file: PlanFile, name: &str, folder: &Path, request: &RehearsalRequest) -> Result<Trial, RunError> {
    let (learning_rate, l2_clip_norm) = (file.training.learning_rate.peak, file.training.l2_clip_norm);
    if stop::requested() {
        return Err(interrupted(request));
    }
    let batch = file.training.phases().first().map_or(0, |phase| phase.expected_batch_size);
    note(&format!("learning rate {learning_rate}, clip norm {l2_clip_norm}, batches of {batch}"));
    let (run_folder, plan) = (folder.join(name), folder.join(format!("{name}.json")));
    durable::write_atomic(&plan, file.text().as_bytes())?;
    let ran = run::run(&run::Request {
        out: Some(run_folder.clone()),
        resume: run_folder.join(files::LEDGER).exists(),
        device: request.device,
        test_key: Some(KEY),
        ..run::Request::new(plan)
    });
    let summary = ran.map_err(|error| match error {
        RunError::Interrupted { .. } => interrupted(request),
        other => other,
    })?;
    let loss = summary.evaluation.map(|figures| figures.nll()).filter(|loss| loss.is_finite());
    Ok(Trial { learning_rate, l2_clip_norm, loss, run: run_folder })
}

/// Returns the error of an interrupted trial. A trial names the command that resumes a run, but the original command
/// continues the rehearsal.
fn interrupted(request: &RehearsalRequest) -> RunError {
    fn list<T: ToString>(option: &str, values: &[T]) -> String {
        match values {
            [] => String::new(),
            values => format!(" {option} {}", values.iter().map(T::to_string).collect::<Vec<_>>().join(",")),
        }
    }
    let file = |option: &str, path: &Option<PathBuf>| {
        path.as_ref().map(|path| format!(" {option} {}", shell_word(path))).unwrap_or_default()
    };
    let public: Vec<String> = request.public.iter().map(|path| shell_word(path)).collect();
    RunError::Interrupted {
        resume: format!(
            "trainer-native rehearse --plan {} --public {}{}{}{}{}{}{}",
            shell_word(&request.plan),
            public.join(" "),
            if request.accept_equal_phrases { " --accept-equal-phrases" } else { "" },
            list("--learning-rate", &request.learning_rates),
            list("--clip-norm", &request.clip_norms),
            list("--batch-size", &request.batch_sizes),
            file("--out", &request.out),
            file("--write", &request.write),
        ),
    }
}

/// Returns the trial with the smallest loss.
fn best(trials: &[Trial]) -> Result<&Trial, RunError> {
    let finite = trials.iter().filter_map(|trial| Some((trial.loss?, trial)));
    finite.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, trial)| trial).ok_or_else(|| {
        RunError::Failed(
            "no trial ended with a finite loss; try smaller learning rates with --learning-rate".to_owned(),
        )
    })
}

/// Returns the open questions about the choice.
fn remarks(trials: &[Trial], chosen: &Trial, file: &PlanFile, on_public: &PlanFile) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut at_edge = |name: &str, option: &str, value: f64, tried: Vec<f64>| {
        let (least, most) = tried.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
        if least < most && (value == least || value == most) {
            let end = if value == most { "largest" } else { "smallest" };
            remarks.push(format!(
                "The {name} is the {end} that was tried; a better one may lie beyond ({option})."
            ));
        }
    };
    let rates = trials.iter().map(|trial| trial.learning_rate).collect();
    at_edge("learning rate", "--learning-rate", chosen.learning_rate, rates);
    let norms = trials.iter().map(|trial| trial.l2_clip_norm).collect();
    at_edge("clip norm", "--clip-norm", chosen.l2_clip_norm, norms);
    let (planned, rehearsed) = (file.epochs(), on_public.epochs());
    if rehearsed > 2.0 * planned {
        remarks.push(format!(
            "A trial passes {rehearsed:.1} times over the public text, the plan {planned:.1} times over the private one: more public \
             text would be nearer to it."
        ));
    }
    remarks
}

fn chart(trials: &[Trial], chosen: &Trial) -> Chart {
    let mut norms: Vec<f64> = trials.iter().map(|trial| trial.l2_clip_norm).collect();
    norms.sort_by(f64::total_cmp);
    norms.dedup();
    let series = norms.into_iter().map(|norm| Series {
        name: format!("clip norm {norm}"),
        points: (trials.iter().filter(|trial| trial.l2_clip_norm == norm))
            .filter_map(|trial| Some((trial.learning_rate, trial.loss?)))
            .collect(),
    });
    Chart {
        title: "Loss on the evaluation text after training on public text with the plan's noise".to_owned(),
        x_label: "learning rate".to_owned(),
        y_label: "nats a prediction".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        series: series.collect(),
        highlight: chosen.loss.map(|loss| (chosen.learning_rate, loss)),
    }
}

impl fmt::Display for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            units,
            noise_multiplier,
            steps,
            trials,
            chosen,
            batches,
            remarks,
            plan,
            chart,
            batch_chart,
        } = self;
        writeln!(
            f,
            "public text of {units} units, {steps} steps with noise multiplier {noise_multiplier:.4}, as planned"
        )?;
        writeln!(f, "{:>14}{:>12}{:>24}", "learning rate", "clip norm", "loss, nats a prediction")?;
        for trial in trials {
            let loss = trial.loss.map_or_else(|| "not finite".to_owned(), |loss| format!("{loss:.4}"));
            let best = trial.run == chosen.run;
            writeln!(
                f,
                "{:>14}{:>12}{loss:>24}{}",
                trial.learning_rate,
                trial.l2_clip_norm,
                if best { "  ← chosen" } else { "" }
            )?;
        }
        write!(f, "{}", Shown(batches))?;
        for remark in remarks {
            writeln!(f, "{remark}")?;
        }
        write!(f, "plan with the chosen settings: {}; chart: {}", plan.display(), chart.display())?;
        match batch_chart {
            Some(chart) => write!(f, "; of batch sizes: {}", chart.display()),
            None => Ok(()),
        }
    }
}
