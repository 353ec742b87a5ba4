//! The certificate of an evolution: its promise, and what it rests on. It is a function of the evolution file and the ledger alone.

use std::fmt::{self, Write};
use std::path::Path;

use accountant::{Bounds, DpEvent, NeighboringRelation};
use plan::{CandidateSource, CertifiedEvolution, PrivacyUnit};
use serde::Serialize;

use super::markdown::text_of;
use super::{CURRENT, KNOWN_NOISE, guarantee_of_privacy, void_by_known_noise};
use crate::RunError;
use crate::store::files;
use crate::store::ledger::{FileDigest, LedgerState, Randomness};

/// The guarantee of an evolution.
const GUARANTEE: &str = "For any two private texts {neighbors}, and for any set of outcomes (noisy votes of all rounds, all candidates and all synthetic \
     records), the probability under one text is at most e^ε times the probability under the other, plus δ, with ε = {epsilon} and δ = \
     {delta}.";

/// The certificate of an evolution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EvolutionCertificate {
    /// Version of the certificate's format.
    pub evolution_certificate_version: u32,
    /// Name of the evolution.
    pub name: String,
    /// Whether the evolution is private.
    pub private: bool,
    /// The guarantee in a sentence.
    pub statement: String,
    /// Certified bounds on the ε of all rounds.
    pub epsilon: Bounds,
    /// The ε that the evolution was allowed.
    pub epsilon_limit: f64,
    /// Failure probability.
    pub delta: f64,
    /// The privacy unit.
    pub unit: PrivacyUnit,
    /// The neighboring relation.
    pub relation: NeighboringRelation,
    /// Number of rounds that were charged.
    pub rounds: u64,
    /// Number of charged rounds whose votes were lost.
    pub lost_rounds: u64,
    /// Number of candidates that a unit votes for in a round.
    pub votes: u64,
    /// L2 norm of what a unit adds to the votes of a round, rounded up.
    pub sensitivity: f64,
    /// σ, standard deviation of the noise on a count, in sensitivities.
    pub noise_multiplier: f64,
    /// Event of all charged rounds.
    pub event: DpEvent,
    /// Conditions of the guarantee that this program cannot check.
    pub assumptions: Vec<String>,
    /// Limits of the guarantee.
    pub not_protected: Vec<String>,
    /// Version of the accountant that computed ε.
    pub accountant_version: String,
    /// Method of the accountant.
    pub accountant_method: String,
    /// SHA-256 of `evolution.json`.
    pub evolution_sha256: String,
    /// SHA-256 of the ledger's last line.
    pub ledger_sha256: String,
    /// The files that the evolution wrote.
    pub files: Vec<FileDigest>,
}

/// Returns the event of the rounds that a ledger has charged.
fn charged(ledger: &LedgerState) -> DpEvent {
    DpEvent::Composed { events: ledger.charges().events().collect() }
}

impl EvolutionCertificate {
    /// Derives the certificate from the evolution and its ledger.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the accountant has no certified answer.
    pub fn derive(certified: &CertifiedEvolution, ledger: &LedgerState) -> Result<Self, RunError> {
        let (file, header) = (&certified.file, ledger.header());
        let event = charged(ledger);
        let epsilon = accountant::epsilon(&event, certified.delta, file.privacy.relation)
            .map_err(|error| RunError::Failed(format!("accountant: {error}")))?;
        let private = header.randomness == Randomness::OperatingSystem;
        let sentence = guarantee_of_privacy(GUARANTEE, &file.privacy, epsilon);
        Ok(Self {
            evolution_certificate_version: 1,
            name: file.name.clone(),
            private,
            statement: if private { sentence } else { void_by_known_noise(&sentence) },
            epsilon,
            epsilon_limit: file.privacy.epsilon,
            delta: file.privacy.delta,
            unit: file.privacy.unit,
            relation: file.privacy.relation,
            rounds: ledger.rounds().count() as u64,
            lost_rounds: ledger.rounds().filter(Option::is_none).count() as u64,
            votes: file.votes,
            sensitivity: certified.sensitivity.get(),
            noise_multiplier: certified.mechanism.noise_multiplier(),
            event,
            assumptions: assumptions(certified, ledger),
            not_protected: not_protected(file.privacy.unit),
            accountant_version: header.accountant_version.clone(),
            accountant_method: header.accountant_method.clone(),
            evolution_sha256: header.plan_file_sha256.clone(),
            ledger_sha256: ledger.position().sha256,
            files: ledger.files().to_vec(),
        })
    }

    /// Returns the certificate for programs.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a figure has no JSON form.
    pub fn to_json(&self) -> Result<String, RunError> {
        Ok(durable::pretty_json(self)?)
    }

    /// Writes the certificate of a finished evolution. The JSON file comes last, because it marks the folder as finished.
    ///
    /// # Errors
    /// [`RunError::Storage`].
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        let write = |name: &str, text: &str| durable::write_atomic(&folder.join(name), text.as_bytes());
        write(files::CERTIFICATE_MARKDOWN, &self.to_markdown())?;
        Ok(write(files::CERTIFICATE_JSON, &self.to_json()?)?)
    }

    /// Returns the certificate for readers.
    pub fn to_markdown(&self) -> String {
        text_of(|out| write_all(out, self))
    }
}

fn assumptions(certified: &CertifiedEvolution, ledger: &LedgerState) -> Vec<String> {
    let file = &certified.file;
    let source = match &file.candidates {
        CandidateSource::Run(_) => {
            "The run that wrote candidates declares its training text public, and the embedding is a public model. No mark says that \
             private text made them. ε does not cover the text that they were made from."
        }
        CandidateSource::Texts(_) => {
            "The texts from which candidates were taken and the embedding are public, as the file declares. ε does not cover them."
        }
    };
    let mut list = vec![
        "All units take part in each round (full participation): ε does not use the number of units or any sampling.".to_owned(),
        source.to_owned(),
        CURRENT.hyperparameters.to_owned(),
        CURRENT.randomness.to_owned(),
        CURRENT.refusals.replace("{conditions}", &conditions(file)),
    ];
    let names: Vec<&str> = ledger.header().public_stages.iter().map(|stage| stage.name.as_str()).collect();
    if !names.is_empty() {
        list.push(CURRENT.earlier_public_text.replace("{stages}", &names.join(", ")));
    }
    list.extend(
        file.data.user_field.as_ref().map(|field| CURRENT.user_ids.replace("{field}", &format!("{field:?}"))),
    );
    list
}

/// Returns the conditions under which private records are not refused.
fn conditions(file: &plan::EvolutionFile) -> String {
    let mut conditions = vec![
        "each record can be read in the given format, is UTF-8, and has the fields that the file names",
        "no file of it is named twice",
    ];
    if !file.labels.is_empty() {
        conditions.push("each label is one of those that the file lists");
    }
    if file.data.user_field.is_some() {
        conditions.push("each record has a user, who is not blank");
    }
    if matches!(file.candidates, CandidateSource::Texts(_)) {
        conditions.push(
            "at most 1 in 1,000 records of it or of the public texts have half of their runs of 13 words (20 characters in scripts without \
             blanks) in the other text or, from 8 words on, are equal to a record of it; at most a quarter of all runs and at most half of all \
             records are in both texts, so private records of fewer than 8 words may be among the public texts",
        );
    }
    conditions.join("; ")
}

fn not_protected(unit: PrivacyUnit) -> Vec<String> {
    let of_unit = match unit {
        PrivacyUnit::Record => CURRENT.records,
        PrivacyUnit::User => CURRENT.users,
        PrivacyUnit::Words(_) => CURRENT.words,
        PrivacyUnit::Owner => CURRENT.owners,
    };
    let list = [
        of_unit,
        CURRENT.population,
        "The candidate texts, the embedding, the labels and the evolution file itself.",
        CURRENT.side_channels,
        CURRENT.other_releases,
        CURRENT.copies,
    ];
    list.map(str::to_owned).to_vec()
}

fn write_all(out: &mut String, c: &EvolutionCertificate) -> fmt::Result {
    writeln!(out, "# Privacy certificate of an evolution: {}\n", c.name)?;
    if !c.private {
        writeln!(out, "> **NOT PRIVATE.** This evolution protects nobody: {KNOWN_NOISE}.\n")?;
    }
    writeln!(out, "{}\n\n| | |\n|---|---|", c.statement)?;
    writeln!(out, "| ε spent | between {} and **{}** |", c.epsilon.lower, c.epsilon.upper)?;
    writeln!(out, "| ε allowed | {} |\n| δ | {} |", c.epsilon_limit, c.delta)?;
    writeln!(out, "| rounds | {}, of which {} were lost |", c.rounds, c.lost_rounds)?;
    writeln!(out, "| votes of a unit in a round | {} |", c.votes)?;
    writeln!(out, "| L2 sensitivity of the votes | {} |", c.sensitivity)?;
    writeln!(out, "| noise multiplier, σ | {} |", c.noise_multiplier)?;
    writeln!(out, "| noise | {} |", CURRENT.exact_noise)?;
    let event = serde_json::to_string(&c.event).map_err(|_| fmt::Error)?;
    writeln!(out, "\n## Charge\n\nEach round is on the ledger before its votes were counted: `{event}`\n")?;
    for (title, list) in [("Conditions", &c.assumptions), ("Not protected", &c.not_protected)] {
        writeln!(out, "## {title}\n")?;
        for item in list {
            writeln!(out, "- {item}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "## Digests (SHA-256)\n\n| what | digest |\n|---|---|")?;
    writeln!(out, "| {} | `{}` |", files::EVOLUTION, c.evolution_sha256)?;
    writeln!(out, "| ledger, last line | `{}` |", c.ledger_sha256)?;
    for file in &c.files {
        writeln!(out, "| {} | `{}` |", file.name, file.sha256)?;
    }
    writeln!(
        out,
        "\nε by accountant {} ({}). Check everything with `trainer-native verify` on this folder.",
        c.accountant_version, c.accountant_method
    )
}
