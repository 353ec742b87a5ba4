//! The file `evolution.json` as a user wrote it.

use accountant::{Delta, NeighboringRelation};
use mechanisms::{PrivacyUnit, is_field_name};
use serde::Deserialize;

use crate::messages::refuse;
use crate::{Data, PlanError, Visibility};

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
    pub privacy: EvolutionPrivacy,
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

/// The privacy guarantee of an evolution. The noise follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvolutionPrivacy {
    /// The privacy unit.
    pub unit: PrivacyUnit,
    /// The neighboring relation.
    pub relation: NeighboringRelation,
    /// Probability that the guarantee fails. Must be smaller than 1 / units.
    pub delta: f64,
    /// Upper limit on ε at `delta`, for all rounds together.
    pub epsilon: f64,
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
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let file: Self = serde_json::from_str(text).map_err(|error| {
            let allowed = "{\"name\": …, \"data\": …, \"privacy\": {\"unit\", \"relation\", \"delta\", \"epsilon\"}, \"candidates\": {\"run\": \
                           …} or {\"texts\": …}, \"embedding\": …, \"records\": N} and, optionally, labels, rounds, population, votes, \
                           threshold, tokens";
            PlanError::field("evolution", error.to_string(), allowed, "correct the text at this place")
        })?;
        file.check_data()?;
        file.check_labels()?;
        file.check_numbers()?;
        Ok(file)
    }

    /// Returns the number of groups of candidates: one for each label, or a single one without labels.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.labels.len().max(1) as u64
    }

    fn check_data(&self) -> Result<(), PlanError> {
        let is_name = !self.name.is_empty()
            && self.name.len() <= 64
            && self.name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && self.name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if !is_name {
            let allowed = "1 to 64 letters, digits, \"-\", \"_\" and \".\", the first a letter or a digit";
            return refuse("name", format!("{:?}", self.name), allowed, "choose another name");
        }
        let data = &self.data;
        let unread = [
            ("data.text_prefix", data.text_prefix.is_some()),
            ("data.second_text_field", data.second_text_field.is_some()),
            ("data.second_text_prefix", data.second_text_prefix.is_some()),
            ("data.target_field", data.target_field.is_some()),
            ("data.label_histogram", data.label_histogram.is_some()),
            ("data.label_separator", data.label_separator.is_some()),
            ("data.made_from", data.made_from.is_some()),
            ("data.owners_field", data.owners_field.is_some()),
            ("privacy.unit", self.privacy.unit == PrivacyUnit::Owner),
            ("data.label_field", data.label_field.is_some() && self.labels.is_empty()),
            ("data.user_field", data.user_field.is_some() != (self.privacy.unit == PrivacyUnit::User)),
        ];
        if let Some((field, _)) = unread.into_iter().find(|(_, is_wrong)| *is_wrong) {
            let allowed = "text_field, label_field where labels are listed, and user_field where the unit is \"user\"; a unit of \
                           records, users or pieces of words";
            return refuse(
                field,
                "given or left out against the rest of the file",
                allowed,
                "add or remove it",
            );
        }
        if data.token_file().is_some() {
            return refuse("data.source", "a .tokens file", "text", "name the text it was made from");
        }
        if data.visibility == Visibility::Public {
            let fix = "remove it: public records need no votes";
            return refuse("data.visibility", "public", "\"private\"", fix);
        }
        let names = [Some(&data.text_field), data.label_field.as_ref(), data.user_field.as_ref()];
        if names.into_iter().flatten().any(|name| !is_field_name(name)) {
            let allowed = "at most 64 characters and eight words, without line ends";
            return refuse("data", "a long name of a field", allowed, "give the name of a field");
        }
        let is_of_words = matches!(self.privacy.unit, PrivacyUnit::Words(_));
        if is_of_words && !self.labels.is_empty() {
            let fix = "use \"record\" or \"user\", or remove the labels";
            return refuse("privacy.unit", "pieces of words with labels", "\"record\" or \"user\"", fix);
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<(), PlanError> {
        let distinct: std::collections::BTreeSet<&String> = self.labels.iter().collect();
        let is_label = |label: &String| !label.trim().is_empty() && label.trim() == label;
        if self.labels.len() <= 10_000
            && distinct.len() == self.labels.len()
            && self.labels.iter().all(is_label)
        {
            return Ok(());
        }
        let allowed = "up to 10,000 different labels, none empty, without blanks around them";
        refuse("labels", "an empty or repeated label, or too many", allowed, "list each label once")
    }

    fn check_numbers(&self) -> Result<(), PlanError> {
        let EvolutionPrivacy { delta, epsilon, .. } = self.privacy;
        if !(1e-6..=1e4).contains(&epsilon) {
            let fix = "state the ε of all rounds together";
            return refuse("privacy.epsilon", epsilon.to_string(), "1e-6 to 1e4", fix);
        }
        let units = self.data.units;
        let is_small = Delta::new(delta).is_ok() && units > 0 && delta * (units as f64) < 1.0;
        if !is_small {
            let fix = "such as 1 / (10 · units)";
            return refuse("privacy.delta", delta.to_string(), "above 0 and below 1 / data.units", fix);
        }
        let of_group = self.population / self.groups();
        let numbers = [
            ("rounds", self.rounds, 1, 1000),
            ("population", self.population, 2 * self.groups(), 1_000_000),
            ("votes", self.votes, 1, of_group.min(1000)),
            ("tokens", self.tokens, 1, 100_000),
            ("records", self.records, 1, 100_000_000),
        ];
        for (field, given, least, most) in numbers {
            if !(least..=most).contains(&given) {
                return refuse(field, given.to_string(), &format!("{least} to {most}"), "change it");
            }
        }
        if self.threshold >= 0.0 && self.threshold <= 100.0 {
            return Ok(());
        }
        refuse("threshold", self.threshold.to_string(), "0 to 100", "2 is the default")
    }
}
