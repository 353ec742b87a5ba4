//! A stage that a run builds on.

use accountant::{DpEvent, NeighboringRelation};
use plan::{MadeFrom, PrivacyUnit};
use serde::{Deserialize, Serialize};

use super::Charges;

/// A stage that a run builds on: an earlier run, or a vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    /// Name of the stage's plan, or `vocabulary` for a vocabulary.
    pub name: String,
    /// The unique name of the stage, from its ledger's header or its `privacy.json`. Absent if the
    /// stage used public text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// SHA-256 of the last line of the stage's ledger, or of its `privacy.json`.
    pub sha256: String,
    /// Relation of the stage's text to the text of this run.
    pub made_from: MadeFrom,
    /// Privacy unit of the stage.
    pub unit: PrivacyUnit,
    /// Neighbouring relation of the stage.
    pub relation: NeighboringRelation,
    /// The reasons why the stage is not private; empty if it is.
    pub not_private_because: Vec<String>,
    /// Charges of the stage itself, without those of the stages that it builds on. A trial of a search is charged for
    /// the whole search.
    pub charges: Charges,
    /// Digest of the search in which the stage is a trial, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

impl Parent {
    /// Returns the id of the stage, or the digest of its ledger if it has none.
    pub fn identity(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.sha256)
    }

    /// Returns the name of the folder of the stage's proof, within `parents/`.
    pub fn folder(&self) -> String {
        self.sha256.chars().take(16).collect()
    }

    /// Returns the stage with the relation of its text to that of a run which declares `declared`
    /// about the stage between them.
    pub fn made_from_through(&self, declared: MadeFrom, between_is_public: bool) -> MadeFrom {
        match declared {
            MadeFrom::SameUnits if !between_is_public => self.made_from,
            declared => declared,
        }
    }
}

/// Returns the events of the stages on the same units, in the form in which a plan composes them.
pub(crate) fn events_on_same_units(parents: &[Parent]) -> Vec<DpEvent> {
    spent_by(parents.iter().filter(|parent| parent.made_from == MadeFrom::SameUnits))
}

/// Returns the events that stages spent together. Trials of one search were charged together, so
/// they count once.
pub(crate) fn spent_by<'a>(stages: impl IntoIterator<Item = &'a Parent>) -> Vec<DpEvent> {
    let (mut searches, mut events) = (Vec::new(), Vec::new());
    for stage in stages {
        if let Some(search) = &stage.search {
            if searches.contains(&search) {
                continue;
            }
            searches.push(search);
        }
        events.extend(stage.charges.events());
    }
    events
}
