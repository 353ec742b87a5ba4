//! Records with what is to be predicted of them: labels, tags or another text.

use std::collections::HashMap;

use dp_tokenizer::corpus::{self, Files, Source};
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};
use mechanisms::{PrivacyRng, Purpose};
use plan::Objective;

use crate::RunError;
use crate::data::Example;
use crate::disclosure::Private;
use crate::ranks::Share;

/// A record of a plan whose objective reads more than its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelledRecord {
    /// Index of the unit that it belongs to.
    pub unit: u64,
    /// The text; of words with tags the words, joined by blanks.
    pub text: String,
    /// The words, if each has a tag.
    pub words: Vec<String>,
    /// The second text of a pair.
    pub second: Option<String>,
    /// What is to be predicted. Empty in a record to be labelled.
    pub answer: Answer,
}

/// What is to be predicted of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Indices of labels: the one of the text, those that it has, or one a word.
    Labels(Vec<u32>),
    /// The text to be written.
    Text(String),
}

/// Which fields of a record are read, and how.
#[derive(Clone, Debug)]
pub(crate) struct LabelledFields<'a> {
    pub objective: Objective,
    pub data: &'a plan::Data,
    pub labels: &'a [String],
    /// Whether the records have labels or targets; else they are to be predicted.
    pub answers: bool,
    /// Whether the text is declared public, so that a message may quote a label.
    pub public: bool,
}

impl<'a> LabelledFields<'a> {
    /// Those of a plan's training text.
    pub fn of(plan: &'a plan::Plan) -> Self {
        Self {
            objective: plan.training().objective,
            data: plan.data(),
            labels: plan.training().labels(),
            answers: true,
            public: plan.is_public(),
        }
    }

    /// Names of the fields beside the text, in the order in which [`Self::record`] takes their values.
    fn further(&self) -> Vec<String> {
        let (data, mut names) = (self.data, Vec::new());
        if self.objective == Objective::TokenClassification {
            names.push(data.text_field.clone());
        }
        names.extend(data.second_text_field.clone());
        if self.answers && self.objective != Objective::Chat {
            let answer = if self.objective.has_labels() { data.label_field() } else { data.target_field() };
            names.push(answer.to_owned());
        }
        names
    }

    /// Reads the records of `source`, which is the plan's field `field`, and counts their units.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the source cannot be read, or a record lacks what the objective needs. The message shows
    /// the record's number and, of public text, its label.
    pub fn read(
        &self,
        source: Source,
        unit: PrivacyUnit,
        field: &str,
    ) -> Result<(Vec<LabelledRecord>, u64), RunError> {
        let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("{field}: {error}"));
        let source = match source {
            Source::Files(files) => {
                Source::Files(Files { further: self.further(), appended: Vec::new(), ..files })
            }
            other => other,
        };
        let ids: HashMap<&str, u32> =
            (0..).zip(self.labels).map(|(id, label)| (label.as_str(), id)).collect();
        let mut assigner = UnitAssigner::new(unit).map_err(|error| refused(&error))?;
        let mut records = Vec::new();
        for (number, record) in (1_u64..).zip(corpus::open(&source).map_err(|error| refused(&error))?) {
            let mut record = record.map_err(|error| refused(&error))?;
            let (text, further) = (std::mem::take(&mut record.text), std::mem::take(&mut record.further));
            let pieces = assigner.assign(record).map_err(|error| refused(&error))?;
            let unit = pieces.first().map_or(0, |piece| piece.unit);
            let labelled = self.record(unit, text, further, &ids);
            let labelled = labelled.map_err(|what| refused(&format!("record {number} {what}")))?;
            records.push(labelled);
        }
        Ok((records, assigner.units()))
    }

    fn record(
        &self,
        unit: u64,
        text: String,
        further: Vec<Vec<String>>,
        ids: &HashMap<&str, u32>,
    ) -> Result<LabelledRecord, String> {
        let mut fields = further.into_iter();
        let mut next = || {
            fields.next().ok_or("is plain text, without fields; give the data as JSON Lines, CSV, TSV or IOB")
        };
        let words = if self.objective == Objective::TokenClassification { next()? } else { Vec::new() };
        let second = self.data.second_text_field.as_ref().map(|_| next()).transpose()?;
        let reads_answer = self.answers && self.objective != Objective::Chat;
        let given = if reads_answer { next()? } else { Vec::new() };
        let name = self.data.label_field();
        let answer = match self.objective {
            // It is within the text: messages.
            _ if !reads_answer => Answer::Labels(Vec::new()),
            Objective::TextToText => Answer::Text(given.join(" ")),
            Objective::MultiLabelClassification => {
                let each = given.iter().flat_map(|value| value.split(',')).map(str::trim);
                let labels = each.filter(|label| !label.is_empty()).map(|label| self.label(label, ids));
                Answer::Labels(labels.collect::<Result<_, _>>()?)
            }
            Objective::TokenClassification => {
                if given.len() != words.len() {
                    return Err(format!(
                        "has {} words and {} tags in {name:?}; give one tag a word",
                        words.len(),
                        given.len()
                    ));
                }
                Answer::Labels(given.iter().map(|tag| self.label(tag, ids)).collect::<Result<_, _>>()?)
            }
            _ => match given.as_slice() {
                [label] => Answer::Labels(vec![self.label(label.trim(), ids)?]),
                many => return Err(format!("has {} labels in {name:?}; allowed: one", many.len())),
            },
        };
        Ok(LabelledRecord { unit, text, words, second: second.map(|text| text.join(" ")), answer })
    }

    fn label(&self, label: &str, ids: &HashMap<&str, u32>) -> Result<u32, String> {
        ids.get(label).copied().ok_or_else(|| {
            let quoted = if self.public { format!(" {label:?}") } else { String::new() };
            format!(
                "has a label{quoted} that training.labels does not list; allowed: the {} listed ones; fix: add it to \
                 training.labels, or correct the record",
                self.labels.len()
            )
        })
    }
}

/// The examples of labelled records, by unit.
pub(crate) struct LabelledSet {
    examples: Vec<Example>,
    /// Where each unit's examples begin; one more entry than units.
    starts: Vec<usize>,
}

impl LabelledSet {
    /// One example a record. Records come in any order of units.
    pub fn new(records: &[LabelledRecord], example: impl Fn(&LabelledRecord) -> Example) -> Self {
        let mut order: Vec<&LabelledRecord> = records.iter().collect();
        order.sort_by_key(|record| record.unit);
        let (mut examples, mut starts, mut unit) = (Vec::new(), Vec::new(), None);
        for record in order {
            if unit != Some(record.unit) {
                unit = Some(record.unit);
                starts.push(examples.len());
            }
            examples.push(example(record));
        }
        starts.push(examples.len());
        Self { examples, starts }
    }

    /// Number of units. Private where the text is.
    pub fn units(&self) -> usize {
        self.starts.len() - 1
    }

    /// One example of each sampled unit, chosen uniformly among the unit's own; of these, the examples in a rank's share of
    /// the lot.
    pub fn sample(
        &self,
        units: &Private<Vec<u64>>,
        step: u64,
        share: Share,
        rng: &impl PrivacyRng,
    ) -> Private<Vec<Example>> {
        let mut choices = rng.stream(Purpose::Window, step, 0);
        let chosen = |&unit: &u64| {
            let [begin, end] = [unit, unit + 1].map(|unit| self.starts[unit as usize]);
            (unit, begin + choices.below((end - begin) as u64) as usize)
        };
        let example = |(unit, at): (u64, usize)| {
            let dropout_seed = rng.stream(Purpose::Masking, step, unit as u32).next_u64();
            Example { dropout_seed, ..self.examples[at].clone() }
        };
        let lot = units.for_mechanism().iter().map(chosen).enumerate();
        let own = lot.filter(|(place, _)| share.has(*place)).map(|(_, chosen)| example(chosen));
        Private::new(own.collect())
    }
}
