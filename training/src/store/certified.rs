//! Ways to make synthetic records of private ones: the lines that their ledgers may have, and the terms of their certificates.

use accountant::{Bounds, Delta};
use plan::{CandidateSource, CertifiedEvolution, CertifiedParaphrase, Data, SyntheticPrivacy};
use serde::Serialize;

use super::certificate::CURRENT;
use super::files;
use super::ledger::{Entry, LedgerState};

/// A way to make synthetic records of private ones without training, as its file describes it.
pub(crate) trait Synthesis {
    /// Returns what it is called.
    fn kind(&self) -> &'static Kind;
    /// Returns the name in the file.
    fn name(&self) -> &str;
    /// Returns the guarantee that the file asks for.
    fn privacy(&self) -> &SyntheticPrivacy;
    /// Returns the certified bounds on ε.
    fn epsilon(&self) -> Bounds;
    /// Returns the δ of the guarantee.
    fn delta(&self) -> Delta;
    /// Returns whether a line may stand in the whole ledger: neither its header, nor that of a process that resumed.
    fn admits(&self, entry: &Entry, ledger: &LedgerState) -> bool;
    /// Returns the line that an unfinished last line may have been, if what it announced is spent: a disk may report unfinished writes as
    /// done.
    fn announced(&self, ledger: &LedgerState) -> Option<Entry>;
    /// Returns what its certificate states.
    fn terms(&self, ledger: &LedgerState) -> Terms;
}

/// What a way to make synthetic records is called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its noun.
    pub noun: &'static str,
    /// The noun with its article.
    pub a_noun: &'static str,
    /// Its command.
    pub command: &'static str,
    /// Its file.
    pub file: &'static str,
}

static EVOLUTION: Kind =
    Kind { noun: "evolution", a_noun: "an evolution", command: "evolve", file: files::EVOLUTION };
static PARAPHRASE: Kind =
    Kind { noun: "paraphrase", a_noun: "a paraphrase", command: "paraphrase", file: files::PARAPHRASE };

/// Number of batches that one line of the ledger announces.
const BATCHES_AT_ONCE: u64 = 32;

impl Synthesis for CertifiedEvolution {
    fn kind(&self) -> &'static Kind {
        &EVOLUTION
    }

    fn name(&self) -> &str {
        &self.file.name
    }

    fn privacy(&self) -> &SyntheticPrivacy {
        &self.file.privacy
    }

    fn epsilon(&self) -> Bounds {
        self.epsilon
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn admits(&self, entry: &Entry, ledger: &LedgerState) -> bool {
        let file = &self.file;
        match entry {
            Entry::Votes { round, event } => *round < file.rounds && *event == self.round_event(),
            Entry::VoteCounts { counts } => {
                counts.len() as u64 == file.population / file.groups() * file.groups()
            }
            Entry::Completed { .. } => ledger.rounds().count() as u64 == file.rounds,
            _ => false,
        }
    }

    fn announced(&self, ledger: &LedgerState) -> Option<Entry> {
        let is_open = matches!(ledger.last(), Some(Entry::Votes { .. }));
        let round = ledger.rounds().count() as u64;
        (!is_open && round < self.file.rounds).then(|| Entry::Votes { round, event: self.round_event() })
    }

    fn terms(&self, ledger: &LedgerState) -> Terms {
        Terms::of_evolution(self, ledger)
    }
}

impl Synthesis for CertifiedParaphrase {
    fn kind(&self) -> &'static Kind {
        &PARAPHRASE
    }

    fn name(&self) -> &str {
        &self.file.name
    }

    fn privacy(&self) -> &SyntheticPrivacy {
        &self.file.privacy
    }

    fn epsilon(&self) -> Bounds {
        self.epsilon
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn admits(&self, entry: &Entry, ledger: &LedgerState) -> bool {
        let file = &self.file;
        match entry {
            Entry::LabelHistogram { event } => self.labels_event().as_ref() == Some(event),
            Entry::LabelCounts { counts } => counts.len() == file.labels.len(),
            Entry::Texts { event } => *event == self.texts_event(),
            Entry::Batches { first, count } => {
                *count > 0 && first.checked_add(*count).is_some_and(|end| end <= file.records)
            }
            Entry::Completed { .. } => ledger.batches() == file.records,
            _ => false,
        }
    }

    fn announced(&self, ledger: &LedgerState) -> Option<Entry> {
        if let Some(event) = self.labels_event()
            && ledger.label_histogram().is_none()
        {
            return Some(Entry::LabelHistogram { event });
        }
        // The unfinished line holds the counts of labels.
        if matches!(ledger.last(), Some(Entry::LabelHistogram { .. })) {
            return None;
        }
        if ledger.texts().is_none() {
            return Some(Entry::Texts { event: self.texts_event() });
        }
        next_batches(self, ledger)
    }

    fn terms(&self, ledger: &LedgerState) -> Terms {
        Terms::of_paraphrase(self, ledger)
    }
}

/// Returns the line that announces the next batches of a paraphrase; none after the last one.
pub(crate) fn next_batches(paraphrase: &CertifiedParaphrase, ledger: &LedgerState) -> Option<Entry> {
    let first = ledger.batches();
    let count = paraphrase.file.records.saturating_sub(first).min(BATCHES_AT_ONCE);
    (count > 0).then_some(Entry::Batches { first, count })
}

/// What the certificate of one way to make records states, and those of others do not.
pub(crate) struct Terms {
    /// The outcomes that the guarantee covers.
    pub outcomes: &'static str,
    /// Conditions about participation and public inputs.
    assumptions: Vec<&'static str>,
    /// The conditions under which private records are not refused.
    conditions: String,
    /// What is public.
    pub public: &'static str,
    /// What the ledger has charged when.
    pub charge: &'static str,
    /// The condition on users, if they are the unit.
    users: Option<String>,
    pub figures: Figures,
}

/// Figures of the mechanism.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Figures {
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

impl Terms {
    /// Returns the terms of an evolution.
    fn of_evolution(certified: &CertifiedEvolution, ledger: &LedgerState) -> Self {
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
    fn of_paraphrase(certified: &CertifiedParaphrase, ledger: &LedgerState) -> Self {
        let file = &certified.file;
        Self {
            outcomes: "noisy counts of labels if there are labels, the tokens of all texts and where each text ends, and all synthetic records",
            assumptions: vec![
                "Each unit is in at most one batch of references, which follows from a hash of its number with a secret key and, if there are \
                 labels, from its own label. To an attacker, this hash (SHA-256) is as good as true randomness. One text is written by a batch, \
                 so ε covers the tokens of one text and does not use the number of units.",
                "The run that writes declares its training text public. No mark says that private text made it. ε does not cover the text that it \
                 was made from.",
            ],
            conditions: conditions(&file.data, !file.labels.is_empty(), None),
            public: "The model that writes, the prompts, the labels and the paraphrase file itself.",
            charge: "The tokens of a text are charged for all batches at once, before the first token was drawn. Each batch is on the ledger \
                     before a token was drawn by it, and no batch writes two texts",
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

    /// Returns the conditions of the guarantee that this program cannot check.
    pub fn all_assumptions(&self, ledger: &LedgerState) -> Vec<String> {
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
    pub fn rows(&self) -> Vec<(&'static str, String)> {
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
