//! The certificate of an evolution or a paraphrase: its promise, and what it rests on. It is a function of its file and the ledger alone.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;

use accountant::{Bounds, DpEvent, NeighboringRelation};
use plan::PrivacyUnit;
use serde::Serialize;

use super::markdown::text_of;
use super::{CURRENT, KNOWN_NOISE, guarantee_of_privacy, void_by_known_noise};
use crate::RunError;
use crate::store::certified::{Figures, Synthesis};
use crate::store::files;
use crate::store::ledger::{FileDigest, LedgerState, Randomness};

/// The guarantee.
const GUARANTEE: &str = "For any two private texts {neighbors}, and for any set of outcomes ({outcomes}), the probability under one text is at \
     most e^ε times the probability under the other, plus δ, with ε = {epsilon} and δ = {delta}.";

/// The certificate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SynthesisCertificate {
    /// Version of the certificate's format, under the name of its kind.
    #[serde(flatten)]
    version: BTreeMap<String, u32>,
    /// Name in the file.
    name: String,
    /// Whether the records are private.
    pub private: bool,
    /// The guarantee in a sentence.
    statement: String,
    /// Certified bounds on the ε of all that was released.
    pub epsilon: Bounds,
    /// The ε that was allowed.
    pub epsilon_limit: f64,
    /// Failure probability.
    pub delta: f64,
    /// The privacy unit.
    unit: PrivacyUnit,
    /// The neighboring relation.
    relation: NeighboringRelation,
    #[serde(flatten)]
    figures: Figures,
    /// Event of all that was charged.
    event: DpEvent,
    /// Conditions of the guarantee that this program cannot check.
    assumptions: Vec<String>,
    /// Limits of the guarantee.
    not_protected: Vec<String>,
    /// Version of the accountant that computed ε.
    accountant_version: String,
    /// Method of the accountant.
    accountant_method: String,
    /// SHA-256 of the file, under the name of its kind.
    #[serde(flatten)]
    file_sha256: BTreeMap<String, String>,
    /// SHA-256 of the ledger's last line.
    ledger_sha256: String,
    /// The files that were written.
    files: Vec<FileDigest>,
    #[serde(skip)]
    a_noun: &'static str,
    #[serde(skip)]
    charge: &'static str,
    #[serde(skip)]
    file: &'static str,
}

impl SynthesisCertificate {
    /// Derives the certificate from the file and its ledger.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the accountant has no certified answer.
    pub fn derive(certified: &dyn Synthesis, ledger: &LedgerState) -> Result<Self, RunError> {
        let (kind, privacy, header) = (certified.kind(), certified.privacy(), ledger.header());
        let event = DpEvent::Composed { events: ledger.charges().events().collect() };
        let epsilon = accountant::epsilon(&event, certified.delta(), privacy.relation)
            .map_err(|error| RunError::Failed(format!("accountant: {error}")))?;
        let private = header.randomness == Randomness::OperatingSystem;
        let terms = certified.terms(ledger);
        let sentence =
            guarantee_of_privacy(&GUARANTEE.replace("{outcomes}", terms.outcomes), privacy, epsilon);
        Ok(Self {
            version: BTreeMap::from([(format!("{}_certificate_version", kind.noun), 1)]),
            name: certified.name().to_owned(),
            private,
            statement: if private { sentence } else { void_by_known_noise(&sentence) },
            epsilon,
            epsilon_limit: privacy.epsilon,
            delta: privacy.delta,
            unit: privacy.unit,
            relation: privacy.relation,
            event,
            assumptions: terms.all_assumptions(ledger),
            not_protected: not_protected(privacy.unit, terms.public),
            figures: terms.figures,
            accountant_version: header.accountant_version.clone(),
            accountant_method: header.accountant_method.clone(),
            file_sha256: BTreeMap::from([(format!("{}_sha256", kind.noun), header.plan_file_sha256.clone())]),
            ledger_sha256: ledger.position().sha256,
            files: ledger.files().to_vec(),
            a_noun: kind.a_noun,
            charge: terms.charge,
            file: kind.file,
        })
    }

    /// Returns the certificate for programs.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a figure has no JSON form.
    pub fn to_json(&self) -> Result<String, RunError> {
        Ok(durable::pretty_json(self)?)
    }

    /// Writes the certificate of finished records. The JSON file comes last, because it marks the folder as finished.
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

fn not_protected(unit: PrivacyUnit, public: &str) -> Vec<String> {
    let of_unit = match unit {
        PrivacyUnit::Record => CURRENT.records,
        PrivacyUnit::User => CURRENT.users,
        PrivacyUnit::Words(_) => CURRENT.words,
        PrivacyUnit::Owner => CURRENT.owners,
    };
    let list =
        [of_unit, CURRENT.population, public, CURRENT.side_channels, CURRENT.other_releases, CURRENT.copies];
    list.map(str::to_owned).to_vec()
}

fn write_all(out: &mut String, c: &SynthesisCertificate) -> fmt::Result {
    writeln!(out, "# Privacy certificate of {}: {}\n", c.a_noun, c.name)?;
    if !c.private {
        let noun = c.a_noun.split(' ').next_back().unwrap_or_default();
        writeln!(out, "> **NOT PRIVATE.** This {noun} protects nobody: {KNOWN_NOISE}.\n")?;
    }
    writeln!(out, "{}\n\n| | |\n|---|---|", c.statement)?;
    writeln!(out, "| ε spent | between {} and **{}** |", c.epsilon.lower, c.epsilon.upper)?;
    writeln!(out, "| ε allowed | {} |\n| δ | {} |", c.epsilon_limit, c.delta)?;
    for (name, figure) in c.figures.rows() {
        writeln!(out, "| {name} | {figure} |")?;
    }
    let event = serde_json::to_string(&c.event).map_err(|_| fmt::Error)?;
    writeln!(out, "\n## Charge\n\n{}: `{event}`\n", c.charge)?;
    for (title, list) in [("Conditions", &c.assumptions), ("Not protected", &c.not_protected)] {
        writeln!(out, "## {title}\n")?;
        for item in list {
            writeln!(out, "- {item}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "## Digests (SHA-256)\n\n| what | digest |\n|---|---|")?;
    let sha256 = c.file_sha256.values().next().map_or("", String::as_str);
    writeln!(out, "| {} | `{sha256}` |", c.file)?;
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
