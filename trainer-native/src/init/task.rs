//! What a model of a text can learn, by the fields of its records.

use clap::ValueEnum;
use plan::Family;

use super::look::Fields;

/// What the model is to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Write texts like those of the records
    LanguageModel,
    /// Continue conversations: lists of messages
    Chat,
    /// Predict the label of a text
    Classification,
    /// Predict which of the labels a text has, any number
    MultiLabel,
    /// Predict the tag of each word
    Tags,
    /// Write a second text after reading the first
    TextToText,
    /// Write texts with a given label, for synthetic records
    Synthesis,
}

impl Task {
    /// Returns its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Says what it does, as `--help` says.
    pub fn description(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// Returns whether the plan lists labels.
    pub fn has_labels(self) -> bool {
        self.classifies() || matches!(self, Self::Tags | Self::Synthesis)
    }

    /// Returns whether a text gets labels.
    pub fn classifies(self) -> bool {
        matches!(self, Self::Classification | Self::MultiLabel)
    }

    /// Returns the tasks that the fields allow, and the reason if there is only one. `labels` says whether the command line has labels, and `family`
    /// is that of its checkpoint.
    pub fn candidates(fields: &Fields, labels: bool, family: Option<Family>) -> (Vec<Self>, String) {
        let mut tasks = Vec::new();
        let why = if fields.has_tags {
            tasks.push(Self::Tags);
            "the file has a tag for each word".to_owned()
        } else if let Some(messages) = &fields.messages {
            tasks.push(Self::Chat);
            format!("{messages:?} holds lists of messages with roles")
        } else {
            "its records have no labels, messages or pairs of texts by usual names".to_owned()
        };
        if fields.words_and_tags.is_some() {
            tasks.push(Self::Tags);
        }
        if fields.pair.is_some() {
            tasks.push(Self::TextToText);
        }
        let with_labels = match family {
            Some(family) if family.can_pool() => &[Self::Classification, Self::MultiLabel][..],
            Some(_) => &[Self::Synthesis],
            None => &[Self::Classification, Self::MultiLabel, Self::Synthesis],
        };
        if !fields.has_tags && labels {
            // Who names labels without more to say means one of a text.
            let one = family.is_some_and(Family::can_pool);
            tasks = if one { vec![Self::Classification] } else { with_labels.to_vec() };
            return (tasks, "--labels names labels, and the checkpoint is an encoder".to_owned());
        }
        if fields.label.is_some() {
            tasks.extend(with_labels);
        }
        if fields.has_texts() && !fields.has_tags {
            tasks.push(Self::LanguageModel);
        }
        (tasks, why)
    }
}
