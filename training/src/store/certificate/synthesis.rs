//! The certificate of an evolution or a paraphrase: its promise, and what it rests on. It is a function of its file and the ledger alone.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;

use accountant::{Bounds, DpEvent, NeighboringRelation};
use plan::{CandidateSource, CertifiedEvolution, CertifiedParaphrase, Data, PrivacyUnit};
use serde::Serialize;

use super::markdown::text_of;
use super::{CURRENT, KNOWN_NOISE, guarantee_of_privacy, void_by_known_noise};
use crate::RunError;
use crate::store::Synthesis;
use crate::store::files;
use crate::store::ledger::{FileDigest, LedgerState, Randomness};

/// The guarantee.
const GUARANTEE: &str = "For any two private texts {neighbors}, and for any set of outcomes ({outcomes}), the probability under one text is at \
     most e^ε times the probability under the other, plus δ, with ε = {epsilon} and δ = {delta}.";

/// What the certificate of one way to make records states, and those of others do not.
pub(crate) struct Terms {
    /// The outcomes that the guarantee covers.
    outcomes: &'static str,
    /// Conditions about participation and public inputs.
    assumptions: Vec<&'static str>,
    /// The conditions under which private records are not refused.
    conditions: String,
    /// What is public.
    public: &'static str,
    /// What the ledger has charged when.
    charge: &'static str,
    /// The condition on users, if they are the unit.
    users: Option<String>,
    figures: Figures,
}

/// Figures of the mechanism.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Figures {
    Evolution {
        /// Number of rounds that were charged.
        rounds: u64,
        /// Number of charged rounds whose votes were lost.
        lost_rounds: u64,
        /// Number of candidates that a unit votes for in a round.
        votes: u64,
        /// L2 norm of what a unit adds to the votes of a round, rounded up.
        sensitivity: f64,
        /// σ, standard deviation of the noise on a count, in sensitivities.
        noise_multiplier: f64,
    },
    Paraphrase {
        /// Number of batches of references, each of one text.
        batches: u64,
        /// Number of references of a text in the mean.
        references: u64,
        /// Number by which the sum of their differences is divided.
        divisor: f64,
        /// Largest number of tokens of a text.
        tokens: u64,
        /// Largest difference between a reference's logit and the public one, in nats.
        clip: f64,
        temperature: f64,
        /// Number k of the set of tokens to draw from; 0 for all.
        top_k: u64,
        /// σ of the counts of labels, if there are labels.
        #[serde(skip_serializing_if = "Option::is_none")]
        label_noise_multiplier: Option<f64>,
    },
}

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

impl Terms {
    /// Returns the terms of an evolution.
    pub fn of_evolution(certified: &CertifiedEvolution, ledger: &LedgerState) -> Self {
        let file = &certified.file;
        let (source, compared) = match &file.candidates {
            CandidateSource::Run(_) => (
                "The run that wrote candidates declares its training text public, and the embedding is a public model. No mark says that \
                 private text made them. ε does not cover the text that they were made from.",
                None,
            ),
            CandidateSource::Texts(_) => (
                "The texts from which candidates were taken and the embedding are public, as the file declares. ε does not cover them.",
                Some(
                    "at most 1 in 1,000 records of it or of the public texts have half of their runs of 13 words (20 characters in scripts without \
                     blanks) in the other text or, from 8 words on, are equal to a record of it; at most a quarter of all runs and at most half of all \
                     records are in both texts, so private records of fewer than 8 words may be among the public texts",
                ),
            ),
        };
        Self {
            outcomes: "noisy votes of all rounds, all candidates and all synthetic records",
            assumptions: vec![
                "All units take part in each round (full participation): ε does not use the number of units or any sampling.",
                source,
            ],
            conditions: conditions(&file.data, !file.labels.is_empty(), compared),
            public: "The candidate texts, the embedding, the labels and the evolution file itself.",
            charge: "Each round is on the ledger before its votes were counted",
            users: users(&file.data),
            figures: Figures::Evolution {
                rounds: ledger.rounds().count() as u64,
                lost_rounds: ledger.rounds().filter(Option::is_none).count() as u64,
                votes: file.votes,
                sensitivity: certified.sensitivity.get(),
                noise_multiplier: certified.mechanism.noise_multiplier(),
            },
        }
    }

    /// Returns the terms of a paraphrase.
    pub fn of_paraphrase(certified: &CertifiedParaphrase, ledger: &LedgerState) -> Self {
        let file = &certified.file;
        Self {
            outcomes: "noisy counts of labels if there are labels, the tokens of all texts and where each text ends, and all synthetic records",
            assumptions: vec![
                "Each unit is in one batch of references, which follows from a secret key and, if there are labels, from its own label. One text \
                 is written by a batch, so ε covers the tokens of one text and does not use the number of units.",
                "The run that writes declares its training text public. No mark says that private text made it. ε does not cover the text that it \
                 was made from.",
            ],
            conditions: conditions(&file.data, !file.labels.is_empty(), None),
            public: "The model that writes, the prompts, the labels and the paraphrase file itself.",
            charge: "The tokens of a text are charged for all batches at once, before the first token was drawn. Each batch is on the ledger \
                     before a token was drawn by it, and no batch was drawn by twice",
            users: users(&file.data),
            figures: Figures::Paraphrase {
                batches: ledger.batches(),
                references: file.references(),
                divisor: certified.mechanism.divisor(),
                tokens: file.tokens,
                clip: certified.mechanism.clip(),
                temperature: file.temperature,
                top_k: file.top_k,
                label_noise_multiplier: file.label_histogram().map(|labels| labels.noise_multiplier),
            },
        }
    }

    fn all_assumptions(&self, ledger: &LedgerState) -> Vec<String> {
        let mut list: Vec<String> = self.assumptions.iter().map(|text| (*text).to_owned()).collect();
        list.push(CURRENT.hyperparameters.to_owned());
        list.push(CURRENT.randomness.to_owned());
        list.push(CURRENT.refusals.replace("{conditions}", &self.conditions));
        let names: Vec<&str> =
            ledger.header().public_stages.iter().map(|stage| stage.name.as_str()).collect();
        if !names.is_empty() {
            list.push(CURRENT.earlier_public_text.replace("{stages}", &names.join(", ")));
        }
        list.extend(self.users.clone());
        list
    }
}

impl Figures {
    /// Returns the rows of the table for readers.
    fn rows(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Evolution { rounds, lost_rounds, votes, sensitivity, noise_multiplier } => vec![
                ("rounds", format!("{rounds}, of which {lost_rounds} were lost")),
                ("votes of a unit in a round", votes.to_string()),
                ("L2 sensitivity of the votes", sensitivity.to_string()),
                ("noise multiplier, σ", noise_multiplier.to_string()),
                ("noise", CURRENT.exact_noise.to_owned()),
            ],
            Self::Paraphrase {
                batches,
                references,
                divisor,
                tokens,
                clip,
                temperature,
                top_k,
                label_noise_multiplier,
            } => {
                let mut rows = vec![
                    ("batches, of one text each", batches.to_string()),
                    ("references of a text, in the mean", references.to_string()),
                    ("divisor of the sum of differences", divisor.to_string()),
                    ("tokens of a text, at most", tokens.to_string()),
                    ("clip of a reference's logits, in nats", clip.to_string()),
                    ("temperature", temperature.to_string()),
                    ("tokens to draw from (top-k+)", top_k.to_string()),
                    ("draws", "exact: the exponential mechanism in integers".to_owned()),
                ];
                rows.extend(
                    label_noise_multiplier
                        .map(|sigma| ("noise multiplier of the counts of labels, σ", sigma.to_string())),
                );
                rows
            }
        }
    }
}

/// Returns the condition on users, if they are the unit.
fn users(data: &Data) -> Option<String> {
    data.user_field.as_ref().map(|field| CURRENT.user_ids.replace("{field}", &format!("{field:?}")))
}

/// Returns the conditions under which private records are not refused; `compared` is that on their comparison with public texts.
fn conditions(data: &Data, has_labels: bool, compared: Option<&str>) -> String {
    let mut conditions = vec![
        "each record can be read in the given format, is UTF-8, and has the fields that the file names",
        "no file of it is named twice",
    ];
    if has_labels {
        conditions.push("each label is one of those that the file lists");
    }
    if data.user_field.is_some() {
        conditions.push("each record has a user, who is not blank");
    }
    conditions.extend(compared);
    conditions.join("; ")
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
