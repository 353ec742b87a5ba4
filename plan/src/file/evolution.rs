//! The file `evolution.json` as a user wrote it.

use serde::Deserialize;

use super::synthetic::{self, PrivateRecords, SyntheticPrivacy, check_range};
use crate::{Data, PlanError};

/// An `evolution.json`: private records vote on public candidate texts, and the candidates that get votes are varied for the next
/// vote (Private Evolution, Xie et al. 2024, <https://arxiv.org/abs/2403.01749>, Algorithm 1).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvolutionFile {
    /// A name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The private records. They are read as for a plan; `label_field` is read if there are labels.
    pub data: Data,
    /// All labels, declared public. Each record votes among the candidates of its own label. Without labels, all records vote on all
    /// candidates.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The privacy guarantee.
    pub privacy: SyntheticPrivacy,
    /// Where candidates come from. It must be public.
    pub candidates: CandidateSource,
    /// The folder of a BERT whose mean hidden states are the embedding. It must be public.
    pub embedding: String,
    /// Number of votes, one after another.
    #[serde(default = "rounds")]
    pub rounds: u64,
    /// Number of candidates of a round, for all labels together.
    #[serde(default = "population")]
    pub population: u64,
    /// Number of candidates that a unit votes for in a round: the nearest ones.
    #[serde(default = "votes")]
    pub votes: u64,
    /// Number of standard deviations of the noise that is subtracted from each noisy count. A count that is then not above 0 counts as 0.
    #[serde(default = "threshold")]
    pub threshold: f64,
    /// Largest number of tokens that a run writes after the words that are kept.
    #[serde(default = "tokens")]
    pub tokens: u64,
    /// Number of synthetic records to write.
    pub records: u64,
}

/// Where candidates come from. Paths are relative to the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateSource {
    /// The folder of a finished run on public text that continues texts. Candidates are drawn from its model, and varied by writing them
    /// again after a random number of their words.
    Run(String),
    /// A file of public texts. Candidates are drawn from it, and varied by taking the text of the file with the nearest embedding.
    Texts(String),
}

fn rounds() -> u64 {
    5
}

fn population() -> u64 {
    2000
}

fn votes() -> u64 {
    1
}

fn tokens() -> u64 {
    64
}

fn threshold() -> f64 {
    2.0
}

impl EvolutionFile {
    /// Reads the text of an `evolution.json`.
    ///
    /// # Errors
    /// [`PlanError::Field`] for text that is not JSON, for an unknown, missing or misshapen field, and for a value out of range.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let allowed = "{\"name\": …, \"data\": …, \"privacy\": {\"unit\", \"relation\", \"delta\", \"epsilon\"}, \"candidates\": {\"run\": \
                       …} or {\"texts\": …}, \"embedding\": …, \"records\": N} and, optionally, labels, rounds, population, votes, \
                       threshold, tokens";
        let file: Self = synthetic::parse("evolution", text, allowed)?;
        let Self { name, data, labels, privacy, .. } = &file;
        PrivateRecords { name, data, labels, privacy }.check()?;
        file.check_numbers()?;
        Ok(file)
    }

    /// Returns the number of groups of candidates: one for each label, or a single one without labels.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.labels.len().max(1) as u64
    }

    fn check_numbers(&self) -> Result<(), PlanError> {
        let of_group = self.population / self.groups();
        let numbers = [
            ("rounds", self.rounds, 1, 1000),
            ("population", self.population, 2 * self.groups(), 1_000_000),
            ("votes", self.votes, 1, of_group.min(1000)),
            ("tokens", self.tokens, 1, 100_000),
            ("records", self.records, 1, 100_000_000),
        ];
        for (field, given, least, most) in numbers {
            check_range(field, given, least, most)?;
        }
        check_range("threshold", self.threshold, 0.0, 100.0)
    }
}
