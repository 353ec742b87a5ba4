//! The certificate of a run: its promise, the parties that it protects against, and its conditions.
//! It is a function of the plan and the ledger alone.
//!
//! It depends on no clock and no machine, so [`crate::verify`] can rebuild it byte for byte.

#[cfg(test)]
mod condition_tests;
pub(crate) mod markdown;
mod statements;
mod synthesis;
#[cfg(test)]
mod tests;
mod wording;

pub use statements::mark;
pub(crate) use statements::{
    DECLARED_PUBLIC, KNOWN_NOISE, distribution, guarantee, guarantee_of_privacy, not_private_by_itself,
    void_by_known_noise,
};
pub(crate) use synthesis::SynthesisCertificate;
pub(crate) use wording::{CURRENT, Wording};

use accountant::{Bounds, DpEvent, NeighboringRelation};
use plan::{CertifiedPlan, Phase, PrivacyUnit};
use serde::Serialize;

use super::accounting::{allowed, check_same_plan, spent};
use super::ledger::{Charges, Computation, FileDigest, LedgerState, Parent, Randomness, Search, spent_by};
use crate::RunError;
use crate::progress::DIGITS;
use crate::ranks::Placement;

/// The certificate of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// Version of the certificate's format.
    pub certificate_version: u32,
    /// Name of the plan.
    pub name: String,
    /// The run's unique name.
    pub id: String,
    /// Whether the run is private.
    pub private: bool,
    /// Whether the plan declares the training text public.
    pub public_data: bool,
    /// The reasons why the run is not private; empty if it is.
    pub not_private_because: Vec<String>,
    /// The unit that is protected, from whom, and how well, in two sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The guarantee.
    pub guarantee: Guarantee,
    /// The search in which the run is a trial. ε is that of the whole search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// The mechanisms that provide the guarantee.
    pub mechanisms: Mechanisms,
    /// The stages that the run builds on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_stages: Vec<EarlierStage>,
    /// The charges that the ledger records.
    pub ledger: LedgerSummary,
    /// The accountant that computed ε.
    pub accountant: Accountant,
    /// Digests of the plan and of the files.
    pub hashes: Hashes,
    /// Conditions of the guarantee that this program cannot check or does not meet.
    pub assumptions: Vec<String>,
    /// Limits of the guarantee.
    pub not_protected: Vec<String>,
    /// The sentences of this certificate's version.
    #[serde(skip)]
    wording: &'static Wording,
}

/// The guarantee in figures and words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guarantee {
    /// Certified bounds on the ε spent by the run, tokenizer and training together; absent in a run without noise.
    pub epsilon: Option<Bounds>,
    /// Certified bounds on the ε that the plan allows, spare steps included; absent in a run without noise.
    pub planned_epsilon: Option<Bounds>,
    /// Failure probability.
    pub delta: f64,
    /// The privacy unit.
    pub unit: PrivacyUnit,
    /// The neighbouring relation.
    pub relation: NeighboringRelation,
    /// The guarantee in a sentence.
    pub statement: String,
}

/// The mechanisms in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mechanisms {
    /// The sampling scheme.
    pub sampling: plan::Sampling,
    /// N, the number of units that the plan declares.
    pub declared_units: u64,
    /// C, the L2 norm to which a unit's gradient was clipped; its initial value where clipping was adaptive.
    pub l2_clip_norm: f64,
    /// The clipping method.
    pub clipping: plan::Clipping,
    /// Largest number of a unit's windows or records whose gradients were averaged before the mean was clipped; absent for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views_per_unit: Option<u32>,
    /// Phases of training.
    pub phases: Vec<PhaseSummary>,
    /// Steps that crashes may burn, charged in the plan.
    pub spare_steps: u64,
    /// The event of the vocabulary release, if it is private.
    pub vocabulary_release: Option<DpEvent>,
    /// The event of the release of label counts, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_histogram: Option<DpEvent>,
    /// The source of randomness.
    pub randomness: Randomness,
    /// The way in which steps were computed.
    pub computation: Computation,
    /// The devices that computed the steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<plan::Device>,
    /// The ranks that computed the steps, if there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) placements: Vec<Option<Placement>>,
}

/// A phase of training in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSummary {
    /// T, steps planned.
    pub steps: u64,
    /// q, the probability with which a unit joins a step.
    pub sampling_probability: f64,
    /// σ, noise standard deviation in units of the clip norm; with correlated noise, in units of the clip norm times the L2 norm of
    /// `correlation`.
    pub noise_multiplier: f64,
    /// The diagonals c₀, c₁, … of the matrix that correlates the noise of steps; none where it is independent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub correlation: Vec<f64>,
    /// The constant by which each noisy sum was divided.
    pub divisor: u64,
}

/// A stage that the run builds on, in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EarlierStage {
    /// Name of the stage's plan.
    pub name: String,
    /// The stage's unique name; absent if the stage used public text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// SHA-256 of the stage's ledger or statement.
    pub sha256: String,
    /// Relation of the stage's text to that of this run, as the plan declares it.
    pub made_from: plan::MadeFrom,
    /// Privacy unit of the stage.
    pub unit: PrivacyUnit,
    /// Neighbouring relation of the stage.
    pub relation: NeighboringRelation,
    /// Certified bounds on the ε of this stage alone at this plan's δ; absent where there is none.
    pub epsilon: Option<Bounds>,
}

impl EarlierStage {
    /// Returns the ε of this stage alone in words.
    pub fn epsilon_in_words(&self) -> String {
        match (self.epsilon, self.made_from) {
            (Some(epsilon), _) => format!("between {} and {}", epsilon.lower, epsilon.upper),
            (None, plan::MadeFrom::PublicText) => "none".to_owned(),
            (None, _) => "NOT PRIVATE".to_owned(),
        }
    }
}

/// The ledger in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LedgerSummary {
    /// Number of lines.
    pub lines: u64,
    /// Digest of the last line, which covers all lines.
    pub sha256: String,
    /// Logical steps whose output is in the model.
    pub steps_done: u64,
    /// Logical steps the plan asked for.
    pub steps_planned: u64,
    /// Reservations of steps, each charged.
    pub reservations: u64,
    /// Reservations whose output was lost in a crash, and steps that an early stop left out.
    pub burned: u64,
    /// Whether the plan may stop training early.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_stop_early: bool,
    /// Number of times that the run was resumed.
    pub resumes: u64,
    /// Charges, by kind.
    pub charges: Charges,
}

/// The accountant that computed ε.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Accountant {
    /// Version of the accountant.
    pub version: String,
    /// Method of the accountant.
    pub method: String,
}

/// SHA-256 digests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hashes {
    /// Digest of the certified plan's canonical JSON.
    pub plan: String,
    /// Digest of the plan file as the user wrote it.
    pub plan_file: String,
    /// Digests of the files of the finished run.
    pub files: Vec<FileDigest>,
}

impl Certificate {
    /// Derives the certificate from a certified plan and a completed ledger.
    ///
    /// # Errors
    /// [`RunError::Verification`] if the ledger is not this plan's, or the run is not finished.
    pub fn derive(
        plan: &CertifiedPlan,
        ledger: &LedgerState,
        wording: &'static Wording,
    ) -> Result<Self, RunError> {
        check_same_plan(plan, ledger)?;
        let Some((steps_done, files)) = ledger.completed() else {
            return Err(RunError::Verification(
                "the ledger has no completion line, so the run is not finished; continue it with --resume"
                    .to_owned(),
            ));
        };
        let header = ledger.header();
        let reasons = statements::not_private_because(plan, ledger);
        let epsilon = spent(plan, ledger)?;
        let planned_epsilon = allowed(plan, header)?;
        Ok(Self {
            certificate_version: 1,
            name: plan.plan().name().to_owned(),
            id: header.id.clone(),
            private: reasons.is_empty(),
            public_data: plan.plan().is_public(),
            summary: statements::summary(wording, plan, ledger, epsilon),
            guarantee: Guarantee {
                statement: statements::statement(wording, plan, ledger, epsilon),
                epsilon,
                planned_epsilon,
                delta: plan.delta().get(),
                unit: plan.plan().privacy().unit,
                relation: header.relation,
            },
            search: header.search.clone(),
            not_private_because: reasons,
            mechanisms: mechanisms(plan, ledger),
            earlier_stages: earlier_stages(plan, ledger)?,
            ledger: ledger_summary(plan, ledger, steps_done),
            accountant: Accountant {
                version: header.accountant_version.clone(),
                method: header.accountant_method.clone(),
            },
            hashes: Hashes {
                plan: header.plan_sha256.clone(),
                plan_file: header.plan_file_sha256.clone(),
                files: files.to_vec(),
            },
            assumptions: statements::assumptions(wording, plan, ledger),
            not_protected: statements::not_protected(wording, plan, ledger),
            wording,
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

    /// Returns the reasons why the run is not private, if any, and the figures of the guarantee.
    /// The cards of models and texts that the run made quote them.
    #[must_use]
    pub fn promise_in_markdown(&self) -> String {
        let reasons = self.not_private_because.iter();
        let mut text: String = reasons.map(|reason| format!("\n**NOT PRIVATE:** {reason}\n")).collect();
        if let Some(epsilon) = self.guarantee.epsilon {
            text.push_str(&format!(
                "\n| | |\n|---|---|\n| ε | at most **{}**; `certificate.json` has all digits |\n| δ | {:e} |\n| unit | {} |\n| neighbouring texts | {} |\n",
                cli::rounded_up(epsilon.upper, DIGITS),
                self.guarantee.delta,
                self.unit_in_words(),
                self.relation_in_words()
            ));
        }
        text
    }

    /// Returns the guarantee for a reader without background, or in full where there is none, with ε in four digits, rounded up.
    #[must_use]
    pub fn promise(&self) -> String {
        let promise = self.summary.as_ref().unwrap_or(&self.guarantee.statement);
        match self.guarantee.epsilon {
            Some(Bounds { upper, .. }) => {
                promise.replace(&upper.to_string(), &cli::rounded_up(upper, DIGITS))
            }
            None => promise.clone(),
        }
    }

    /// Describes the unit in words.
    #[must_use]
    pub fn unit_in_words(&self) -> String {
        statements::unit(self.wording, self.guarantee.unit)
    }

    /// Describes the neighbouring relation in words.
    #[must_use]
    pub fn relation_in_words(&self) -> &'static str {
        match self.guarantee.relation {
            NeighboringRelation::AddOrRemoveOne => "one unit is added or removed",
            NeighboringRelation::ReplaceOne => "one unit is replaced by another",
            NeighboringRelation::ZeroOut => "one unit is replaced by nothing",
        }
    }

    /// Returns the certificate for readers.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }
}

fn mechanisms(plan: &CertifiedPlan, ledger: &LedgerState) -> Mechanisms {
    let settings = plan.plan();
    Mechanisms {
        sampling: settings.privacy().sampling,
        declared_units: settings.data().units,
        l2_clip_norm: settings.training().l2_clip_norm,
        clipping: settings.training().clipping,
        views_per_unit: Some(settings.training().views_per_unit).filter(|views| *views > 1),
        phases: plan
            .phases()
            .iter()
            .map(|phase| PhaseSummary {
                steps: phase.steps,
                sampling_probability: phase.sampling_probability,
                noise_multiplier: phase.noise_multiplier(),
                correlation: correlation(phase),
                divisor: phase.expected_batch_size,
            })
            .collect(),
        spare_steps: settings.privacy().spare_steps,
        vocabulary_release: plan.tokenizer_release().map(|release| release.event.clone()),
        label_histogram: plan.label_histogram_event(),
        randomness: ledger.header().randomness,
        computation: Computation { arithmetic: ledger.arithmetic(), ..ledger.header().computation },
        devices: ledger.devices(),
        placements: ledger.placements(),
    }
}

/// Returns the diagonals of the matrix of a phase with correlated noise; none for independent noise.
fn correlation(phase: &Phase) -> Vec<f64> {
    // The matrix of a certified phase can always be computed.
    let matrix = phase.mechanism.bands().ok().flatten().filter(|matrix| matrix.count() > 1);
    matrix.map(|matrix| matrix.coefficients()).unwrap_or_default()
}

fn earlier_stages(plan: &CertifiedPlan, ledger: &LedgerState) -> Result<Vec<EarlierStage>, RunError> {
    let stage = |parent: &Parent| {
        let is_private =
            parent.made_from != plan::MadeFrom::PublicText && parent.not_private_because.is_empty();
        let bounds = || {
            let event = DpEvent::Composed { events: spent_by([parent]) };
            accountant::epsilon(&event, plan.delta(), parent.relation)
                .map_err(|error| RunError::Failed(format!("accountant: {error}")))
        };
        Ok::<_, RunError>(EarlierStage {
            name: parent.name.clone(),
            id: parent.id.clone(),
            sha256: parent.sha256.clone(),
            made_from: parent.made_from,
            unit: parent.unit,
            relation: parent.relation,
            epsilon: is_private.then(bounds).transpose()?,
        })
    };
    ledger.parents().iter().map(stage).collect()
}

fn ledger_summary(plan: &CertifiedPlan, ledger: &LedgerState, steps_done: u64) -> LedgerSummary {
    let position = ledger.position();
    LedgerSummary {
        lines: position.lines,
        sha256: position.sha256,
        steps_done,
        steps_planned: plan.total_steps(),
        reservations: ledger.reservations(),
        burned: ledger.reservations() - steps_done,
        may_stop_early: plan.plan().evaluation().is_some_and(|text| text.patience.is_some()),
        resumes: ledger.resumes(),
        charges: ledger.charges(),
    }
}
