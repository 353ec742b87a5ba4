//! The certificate of a sweep: its promise and its findings. It is a function of the sweep's files
//! alone, which [`super::verify`] rebuilds byte for byte.

use std::fmt;
use std::path::{Path, PathBuf};

use accountant::{Bounds, DpEvent, NeighboringRelation};
use plan::{CertifiedSweep, NoiseMultipliers, PrivacyUnit, SweepTrials};
use serde::Serialize;
use serde_json::{Map, Value};

use super::all::in_words;
use super::charge::SweepCharge;
use super::input::SweepInput;
use crate::RunError;
use crate::progress::DIGITS;
use crate::store::ledger::{Randomness, Search};
use crate::store::{certificate, files};
use crate::verify::listing;

/// The certificate of a finished sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SweepCertificate {
    /// Version of the certificate's format.
    pub sweep_certificate_version: u32,
    /// Name of the plan.
    pub name: String,
    /// Whether the sweep is private.
    pub private: bool,
    /// The guarantee in a sentence.
    pub statement: String,
    /// Certified bounds on the ε of the whole sweep.
    pub epsilon: Bounds,
    /// The ε that the sweep was allowed.
    pub epsilon_limit: f64,
    /// Failure probability.
    pub delta: f64,
    /// The privacy unit.
    pub unit: PrivacyUnit,
    /// The neighbouring relation.
    pub relation: NeighboringRelation,
    /// Description of what is published, and of how it was found.
    pub search: String,
    /// The noise multipliers of the vocabulary and of every trial.
    pub noise_multipliers: NoiseMultipliers,
    /// Event of the whole sweep.
    pub event: DpEvent,
    /// Results of the sweep.
    pub findings: SweepFindings,
    /// Version of the accountant that computed ε.
    pub accountant_version: String,
    /// Method of the accountant.
    pub accountant_method: String,
    /// SHA-256 of `sweep.json`.
    pub sweep_sha256: String,
    /// SHA-256 of `plan.json`.
    pub plan_sha256: String,
    /// SHA-256 of `charge.json`, which the ledger of every trial names.
    pub charge_sha256: String,
    /// SHA-256 of the vocabulary that the sweep released for all trials, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary_sha256: Option<String>,
}

/// Results of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepFindings {
    /// Every setting with all of its runs.
    All(Vec<SettingFindings>),
    /// The best trial.
    Best {
        /// The settings that a trial could have.
        candidates: Vec<Map<String, Value>>,
        /// The best trial; absent if there was no trial.
        best: Option<BestTrial>,
    },
}

/// The runs of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SettingFindings {
    /// The fields that vary.
    pub values: Map<String, Value>,
    /// Runs of the setting.
    pub runs: Vec<RunFindings>,
    /// Mean perplexity per token or label on the public evaluation text; absent if a run has none.
    pub mean: Option<f64>,
    /// Sample standard deviation of the mean perplexity's values; absent for a single run.
    pub standard_deviation: Option<f64>,
}

/// A published run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RunFindings {
    /// The run's folder inside that of the sweep.
    pub folder: String,
    /// Perplexity per token on the public evaluation text, if it has a finite one.
    pub perplexity: Option<f64>,
    /// Digest of the last line of the run's ledger.
    pub ledger_sha256: String,
}

/// The published trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct BestTrial {
    /// Setting of the trial.
    pub values: Map<String, Value>,
    /// The run.
    pub run: RunFindings,
}

impl SettingFindings {
    pub fn new(values: Map<String, Value>, runs: Vec<RunFindings>) -> Self {
        let scores: Option<Vec<f64>> = runs.iter().map(|run| run.perplexity).collect();
        let scores = scores.unwrap_or_default();
        let count = scores.len() as f64;
        let mean = (count > 0.0).then(|| scores.iter().sum::<f64>() / count);
        let standard_deviation = mean.filter(|_| count > 1.0).map(|mean| {
            let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
            (squares / (count - 1.0)).sqrt()
        });
        Self { values, runs, mean, standard_deviation }
    }
}

impl SweepCertificate {
    /// Creates the certificate of a charge and of its trials' results.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a figure has no JSON form.
    pub fn new(
        input: &SweepInput,
        certified: &CertifiedSweep,
        charge: &SweepCharge,
        search: &Search,
        findings: SweepFindings,
    ) -> Result<Self, RunError> {
        let private = charge.randomness == Randomness::OperatingSystem;
        let setting = certified.settings.first();
        let statement = setting.map(|setting| {
            let epsilon = Some(certified.epsilon);
            let sentence = certificate::guarantee(&certificate::CURRENT, &setting.plan, epsilon);
            if private { sentence } else { certificate::void_by_known_noise(&sentence) }
        });
        Ok(Self {
            sweep_certificate_version: 1,
            name: input.base.name().to_owned(),
            private,
            statement: statement.unwrap_or_default(),
            epsilon: certified.epsilon,
            epsilon_limit: input.file.epsilon,
            delta: charge.delta,
            unit: input.base.privacy().unit,
            relation: charge.relation,
            search: search_in_words(certified),
            noise_multipliers: charge.noise_multipliers,
            event: charge.event.clone(),
            findings,
            accountant_version: charge.accountant_version.clone(),
            accountant_method: charge.accountant_method.clone(),
            sweep_sha256: charge.sweep_sha256.clone(),
            plan_sha256: charge.plan_sha256.clone(),
            charge_sha256: search.sweep_sha256.clone(),
            vocabulary_sha256: search.vocabulary_sha256.clone(),
        })
    }

    /// Returns the certificate for programs.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a figure has no JSON form.
    pub fn to_json(&self) -> Result<String, RunError> {
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| RunError::Failed(error.to_string()))?;
        text.push('\n');
        Ok(text)
    }
}

/// Describes what is published, and how it was found.
fn search_in_words(certified: &CertifiedSweep) -> String {
    let settings = certified.settings.len();
    match certified.trials {
        SweepTrials::All(trials) => format!(
            "{settings} settings, each trained {} times with randomness of its own. ε is that of all {} runs together, so all of \
             them may be published.",
            trials.seeds,
            settings as u64 * trials.seeds
        ),
        SweepTrials::Best(count) => format!(
            "The best of a secret number of trials, drawn from {} before the text was read. Each trial drew one of {settings} \
             settings at random. The score is perplexity on the public evaluation text. ε covers the best trial and its score \
             (private selection, Papernot & Steinke 2022, arXiv:2110.03620). It does not cover the number of trials, the other \
             trials or the time that the sweep took.",
            certificate::distribution(count.distribution())
        ),
    }
}

/// The result of a finished sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepSummary {
    /// The folder of the sweep.
    pub sweep: PathBuf,
    /// Whether the sweep is private.
    pub private: bool,
    /// Certified bounds on the ε of the whole sweep.
    pub epsilon: Bounds,
    /// Failure probability.
    pub delta: f64,
    /// Files of the folder for which there is no digest; absent if the folder was not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_covered: Option<Vec<String>>,
    findings: SweepFindings,
}

impl SweepSummary {
    pub(super) fn of(folder: &Path, certificate: SweepCertificate) -> Self {
        Self {
            sweep: folder.to_owned(),
            private: certificate.private,
            epsilon: certificate.epsilon,
            delta: certificate.delta,
            not_covered: None,
            findings: certificate.findings,
        }
    }

    /// Returns every setting with its mean perplexity, or only the best trial's.
    #[must_use]
    pub fn scores(&self) -> Vec<(String, Option<f64>)> {
        match &self.findings {
            SweepFindings::All(settings) => {
                settings.iter().map(|setting| (in_words(&setting.values), setting.mean)).collect()
            }
            SweepFindings::Best { best, .. } => {
                best.iter().map(|best| (in_words(&best.values), best.run.perplexity)).collect()
            }
        }
    }
}

impl fmt::Display for SweepSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sweep, epsilon, delta, .. } = self;
        if !self.private {
            writeln!(f, "NOT PRIVATE: this sweep has no privacy guarantee")?;
        }
        let upper = cli::rounded_up(epsilon.upper, DIGITS);
        writeln!(f, "{}: the whole sweep has ε ≤ {upper} at δ = {delta:e}", sweep.display())?;
        match &self.findings {
            SweepFindings::All(settings) => {
                for setting in settings {
                    let score = score_in_words(setting);
                    writeln!(f, "{}: perplexity per token or label {score}", in_words(&setting.values))?;
                }
            }
            SweepFindings::Best { best: Some(best), .. } => {
                let score = best.run.perplexity.map_or("none".to_owned(), |score| format!("{score:.2}"));
                let values = in_words(&best.values);
                writeln!(
                    f,
                    "best trial, in {}: {values}: perplexity per token or label {score}",
                    sweep.join("best").display()
                )?;
            }
            SweepFindings::Best { best: None, .. } => {
                writeln!(
                    f,
                    "the drawn number of trials was 0, so nothing is released; ε is spent all the same"
                )?;
            }
        }
        write!(f, "certificate: {}", sweep.join(files::CERTIFICATE_MARKDOWN).display())?;
        write!(f, "{}", listing(self.not_covered.as_deref().unwrap_or_default()))
    }
}

/// Describes a setting's score: mean ± standard deviation, as far as there are any.
pub(super) fn score_in_words(setting: &SettingFindings) -> String {
    let runs = setting.runs.len();
    match (setting.mean, setting.standard_deviation) {
        (Some(mean), Some(deviation)) => format!("{mean:.2} ± {deviation:.2} ({runs} runs)"),
        (Some(mean), None) => format!("{mean:.2} (1 run)"),
        (None, _) => "none".to_owned(),
    }
}
