//! What the files of synthetic records share: the private records and the guarantee.

use accountant::{Delta, NeighboringRelation};
use mechanisms::{PrivacyUnit, is_field_name};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::messages::refuse;
use crate::{Data, PlanError, Visibility};

/// The privacy guarantee of synthetic records. The noise follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticPrivacy {
    /// The privacy unit.
    pub unit: PrivacyUnit,
    /// The neighboring relation.
    pub relation: NeighboringRelation,
    /// Probability that the guarantee fails. Must be smaller than 1 / units.
    pub delta: f64,
    /// Upper limit on ε at `delta`, for all that the file does.
    pub epsilon: f64,
}

/// Reads the text of a file, whose fields `allowed` lists.
pub(super) fn parse<T: DeserializeOwned>(what: &str, text: &str, allowed: &str) -> Result<T, PlanError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text)
        .map_err(|error| PlanError::field(what, error.to_string(), allowed, "correct the text at this place"))
}

/// Refuses a number outside of its range, NaN included.
pub(super) fn check_range<T: PartialOrd + std::fmt::Display>(
    field: &str,
    given: T,
    least: T,
    most: T,
) -> Result<(), PlanError> {
    if given >= least && given <= most {
        return Ok(());
    }
    refuse(field, given.to_string(), &format!("{least} to {most}"), "change it")
}

/// What a file says of the private records.
pub(super) struct PrivateRecords<'a> {
    pub name: &'a str,
    pub data: &'a Data,
    pub labels: &'a [String],
    pub privacy: &'a SyntheticPrivacy,
}

impl PrivateRecords<'_> {
    /// # Errors
    /// [`PlanError::Field`] for a value out of range, or a field that does not fit the others.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_data()?;
        self.check_labels()?;
        let SyntheticPrivacy { delta, epsilon, .. } = *self.privacy;
        check_range("privacy.epsilon", epsilon, 1e-6, 1e4)?;
        let units = self.data.units;
        if Delta::new(delta).is_ok() && units > 0 && delta * (units as f64) < 1.0 {
            return Ok(());
        }
        let fix = "such as 1 / (10 · units)";
        refuse("privacy.delta", delta.to_string(), "above 0 and below 1 / data.units", fix)
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
            let fix = "remove it: public records need no noise";
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
}
