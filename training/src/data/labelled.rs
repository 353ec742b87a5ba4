//! Reads records with an answer to be predicted: labels, tags or another text.

use std::collections::HashMap;
use std::sync::Arc;

use dp_tokenizer::corpus::{self, CorpusError, Files, LineFiles, Position, Record, Source};
use dp_tokenizer::identity::{Passage, Reading};
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};
use mechanisms::{PrivacyRng, Purpose};
use plan::Objective;

use super::digest::checksum;
use super::kept::Kept;
use super::unit_text::{CHANGED, by_unit, each_wanted, refused};
use super::{Answer, DrawnUnit, LabelledRecord};
use crate::RunError;
use crate::disclosure::Private;
use network::Example;

/// The fields of a record that are read, and how they are read.
#[derive(Clone, Debug)]
pub(crate) struct LabelledFields {
    pub objective: Objective,
    pub data: plan::Data,
    /// The index of each label.
    pub labels: HashMap<String, u32>,
    /// The field that lists the labels.
    pub labels_field: &'static str,
    /// The kind of the texts to be written, if each is a label or a number.
    pub written: Option<plan::Answers>,
    /// Whether the records have labels or targets. Otherwise the model predicts these.
    pub answers: bool,
    /// Whether the text is declared public, so that a message may quote a label.
    pub public: bool,
}

impl LabelledFields {
    /// Returns the fields of a plan's training text.
    pub fn of(plan: &plan::Plan) -> Self {
        Self {
            objective: plan.training().objective,
            data: plan.data().clone(),
            labels: plan.training().labels().iter().cloned().zip(0..).collect(),
            labels_field: "training.labels",
            written: plan.training().answers.clone(),
            answers: true,
            public: plan.is_public(),
        }
    }

    /// Returns the names of the fields beside the text, in the order in which [`Self::record`]
    /// takes their values.
    fn further(&self) -> Vec<String> {
        let (data, mut names) = (&self.data, Vec::new());
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
        let opened = corpus::open(&self.source(source));
        let opened = opened.map_err(|error| RunError::Refused(format!("{field}: {error}")))?;
        let mut records = Vec::new();
        let opened = opened.map(|record| Ok((Position::default(), record?)));
        let mut kept = Kept::default();
        let units = self.each(opened, unit, field, |_, record: LabelledRecord| {
            kept.add(record.bytes(), size_of::<LabelledRecord>(), field)?;
            records.push(record);
            Ok(())
        })?;
        Ok((records, units))
    }

    /// Returns the source with these fields.
    fn source(&self, source: Source) -> Source {
        match source {
            Source::Files(files) => {
                Source::Files(Files { further: self.further(), appended: Vec::new(), ..files })
            }
            other => other,
        }
    }

    /// Calls `take` with every record, and returns the number of units.
    fn each(
        &self,
        records: impl Iterator<Item = Result<(Position, Record), CorpusError>>,
        unit: PrivacyUnit,
        field: &str,
        mut take: impl FnMut(Position, LabelledRecord) -> Result<(), RunError>,
    ) -> Result<u64, RunError> {
        let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("{field}: {error}"));
        let mut assigner = UnitAssigner::new(unit).map_err(|error| refused(&error))?;
        for (number, record) in (1_u64..).zip(records) {
            let (position, mut record) = record.map_err(|error| refused(&error))?;
            let (text, further) = (std::mem::take(&mut record.text), std::mem::take(&mut record.further));
            let pieces = assigner.assign(record).map_err(|error| refused(&error))?;
            let unit = pieces.first().map_or(0, |piece| piece.unit);
            let labelled = self.record(unit, text, further);
            take(position, labelled.map_err(|what| refused(&format!("record {number} {what}")))?)?;
        }
        Ok(assigner.units())
    }

    fn record(&self, unit: u64, text: String, further: Vec<Vec<String>>) -> Result<LabelledRecord, String> {
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
            // There is no answer field: the answers are to be predicted, or are among the messages of the text.
            _ if !reads_answer => Answer::Labels(Vec::new()),
            Objective::TextToText => Answer::Text(self.written(given.join(" "))?),
            Objective::MultiLabelClassification => {
                let each = given.iter().flat_map(|value| value.split(',')).map(str::trim);
                let labels = each.filter(|label| !label.is_empty()).map(|label| self.label(label));
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
                Answer::Labels(given.iter().map(|tag| self.label(tag)).collect::<Result<_, _>>()?)
            }
            _ => match given.as_slice() {
                [label] => Answer::Labels(vec![self.label(label.trim())?]),
                many => return Err(format!("has {} labels in {name:?}; allowed: one", many.len())),
            },
        };
        Ok(LabelledRecord { unit, text, words, second: second.map(|text| text.join(" ")), answer })
    }

    /// Returns the text to be written: a label as it is listed, or a number rounded as the plan says.
    fn written(&self, given: String) -> Result<String, String> {
        match &self.written {
            None => Ok(given),
            Some(plan::Answers::Labels(labels)) => {
                let label = labels.iter().find(|label| *label == given.trim()).cloned();
                label.ok_or_else(|| self.unlisted(&given, "training.answers.labels", labels.len()))
            }
            Some(plan::Answers::Numbers(step)) => {
                let number = given.trim().parse().ok().filter(|number: &f64| number.is_finite());
                let quoted = self.quoted(&given);
                number.map(|number| rounded(number, *step)).ok_or_else(|| {
                    format!(
                        "has a target{quoted} that is no number; give a number, or remove training.answers"
                    )
                })
            }
        }
    }

    fn label(&self, label: &str) -> Result<u32, String> {
        let found = self.labels.get(label).copied();
        found.ok_or_else(|| self.unlisted(label, self.labels_field, self.labels.len()))
    }

    fn unlisted(&self, label: &str, field: &str, count: usize) -> String {
        format!(
            "has a label{} that {field} does not list; allowed: the {count} listed ones; fix: add it to {field}, or correct the \
             record",
            self.quoted(label)
        )
    }

    /// Returns a value of a record for a message, if the text is public.
    fn quoted(&self, value: &str) -> String {
        if self.public { format!(" {value:?}") } else { String::new() }
    }
}

/// Returns the multiple of `step` that is closest to a number, with as many decimals as the step.
fn rounded(number: f64, step: f64) -> String {
    let decimals = step.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    format!("{:.decimals$}", (number / step).round() * step)
}

/// The labelled records of the training text.
#[derive(Debug)]
pub enum LabelledRecords {
    /// Records in memory, in the corpus's order.
    Kept(Private<Vec<LabelledRecord>>),
    /// Records in files, which are read again whenever they are needed.
    InFiles(Box<LabelledFiles>),
}

/// Files of labelled records.
#[derive(Debug)]
pub struct LabelledFiles {
    files: LineFiles,
    fields: LabelledFields,
    unit: PrivacyUnit,
}

impl LabelledRecords {
    /// Reads the records of a plan's training text, and counts their units. With `in_files`, they
    /// stay in their files if each record can be read alone.
    ///
    /// # Errors
    /// As [`LabelledFields::read`].
    pub(crate) fn open(
        fields: LabelledFields,
        source: Source,
        unit: PrivacyUnit,
        in_files: bool,
    ) -> Result<(Self, u64), RunError> {
        match LineFiles::of(&fields.source(source.clone())).filter(|_| in_files) {
            Some(files) => {
                let files = LabelledFiles { files, fields, unit };
                let units = files.each(|_, _| Ok(()))?;
                Ok((Self::InFiles(Box::new(files)), units))
            }
            None => {
                let (records, units) = fields.read(source, unit, FIELD)?;
                Ok((Self::Kept(Private::new(records)), units))
            }
        }
    }

    /// Calls `take` with every record in the corpus's order.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read.
    pub(crate) fn for_each(&self, mut take: impl FnMut(&LabelledRecord)) -> Result<(), RunError> {
        match self {
            Self::Kept(records) => records.for_mechanism().iter().for_each(take),
            Self::InFiles(files) => {
                files.each(|_, record| {
                    take(&record);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Reads the passages of the records. Each thread reads its own records; others stay unread in their files.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read.
    pub(crate) fn each_passage(
        &self,
        reading: &mut Reading<'_>,
        text: impl Fn(&LabelledRecord) -> String,
    ) -> Result<(), RunError> {
        let files = match self {
            Self::Kept(records) => {
                for record in records.for_mechanism() {
                    if reading.wants() {
                        reading.take(Passage::record(&text(record)));
                    } else {
                        reading.pass_over();
                    }
                }
                return Ok(());
            }
            Self::InFiles(files) => files,
        };
        each_wanted(&files.files, reading, |record| {
            let labelled = files.fields.record(0, record.text, record.further);
            labelled.map(|record| text(&record)).map_err(|what| refused(FIELD, &format!("a record {what}")))
        })
    }
}

impl LabelledFiles {
    fn each(
        &self,
        take: impl FnMut(Position, LabelledRecord) -> Result<(), RunError>,
    ) -> Result<u64, RunError> {
        let records = self.files.records().map_err(|error| RunError::Refused(format!("{FIELD}: {error}")))?;
        self.fields.each(records, self.unit, FIELD, take)
    }

    /// Reads a record of a unit.
    fn read(&self, place: &Place, unit: u64) -> Result<LabelledRecord, RunError> {
        let failed = |error: &dyn std::fmt::Display| RunError::Failed(format!("{FIELD}: {error}"));
        let Record { text, further, .. } = self.files.read(place.record).map_err(|error| failed(&error))?;
        let record = self.fields.record(unit, text, further).ok();
        let same = record.filter(|record| checksum(record) == place.checksum);
        same.ok_or_else(|| failed(&CHANGED))
    }
}

/// The plan's field that names the training text.
const FIELD: &str = "data.source";

/// The place of a labelled record in its file.
#[derive(Clone, Copy)]
struct Place {
    record: Position,
    /// Checksum of the record, which shows whether the file was changed.
    checksum: u32,
}

/// The examples of labelled records, by unit.
pub(crate) struct LabelledSet {
    examples: Examples,
    /// Index of each unit's first example, and the number of all examples at the end.
    starts: Vec<usize>,
}

enum Examples {
    Kept(Vec<Example>),
    /// The examples are made when they are sampled.
    InFiles(Box<LabelledFiles>, Vec<Place>, Box<dyn Fn(&LabelledRecord) -> Example>),
}

impl LabelledSet {
    /// Makes one example of each record. Records may come in any order of units.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read.
    pub fn new(
        records: LabelledRecords,
        example: impl Fn(&LabelledRecord) -> Example + 'static,
    ) -> Result<Self, RunError> {
        match records {
            LabelledRecords::Kept(records) => {
                let records = records.for_mechanism();
                let (order, starts) = by_unit(records.iter().map(|record| record.unit).collect());
                let examples = order.into_iter().map(|place| example(&records[place])).collect();
                Ok(Self { examples: Examples::Kept(examples), starts })
            }
            LabelledRecords::InFiles(files) => {
                let (mut units, mut places) = (Vec::new(), Vec::new());
                files.each(|position, record| {
                    units.push(record.unit);
                    places.push(Place { record: position, checksum: checksum(&record) });
                    Ok(())
                })?;
                let (order, starts) = by_unit(units);
                let places = order.into_iter().map(|place| places[place]).collect();
                Ok(Self { examples: Examples::InFiles(files, places, Box::new(example)), starts })
            }
        }
    }

    /// Returns the example at a place, which belongs to a unit.
    fn example(&self, place: usize, unit: u64) -> Result<Example, RunError> {
        match &self.examples {
            Examples::Kept(examples) => Ok(examples[place].clone()),
            Examples::InFiles(files, places, example) => {
                files.read(&places[place], unit).map(|record| example(&record))
            }
        }
    }

    /// Gives each example in memory its features, as `compute` returns them in the order of the examples. They stay in
    /// memory with the examples and are as private. Examples that stay in their files get none.
    ///
    /// # Errors
    /// Those of `compute`.
    pub fn add_features(
        &mut self,
        compute: impl FnOnce(&[Example]) -> Result<Vec<Arc<[f32]>>, RunError>,
    ) -> Result<(), RunError> {
        let Examples::Kept(examples) = &mut self.examples else { return Ok(()) };
        let features = compute(examples)?;
        for (example, features) in examples.iter_mut().zip(features) {
            example.features = Some(features);
        }
        Ok(())
    }

    /// Returns the number of units, which is private if the text is private.
    pub fn units(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of examples of a unit.
    pub fn examples_of(&self, unit: usize) -> usize {
        self.starts[unit + 1] - self.starts[unit]
    }

    /// Returns the examples of the drawn units.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a file can no longer be read or was changed.
    pub fn read(
        &self,
        drawn: &Private<Vec<DrawnUnit>>,
        step: u64,
        rng: &impl PrivacyRng,
    ) -> Result<Private<Vec<Example>>, RunError> {
        let example = |DrawnUnit { unit, index, places }: &DrawnUnit| {
            let mut seeds = rng.stream(Purpose::Masking, step, *index as u32);
            let first = self.starts[*unit as usize];
            let view = |place| {
                let dropout_seed = seeds.next_u64();
                Ok(Example { dropout_seed, ..self.example(first + place, *unit)? })
            };
            places.iter().copied().map(view).collect::<Result<Vec<_>, RunError>>().map(Example::of_views)
        };
        drawn.for_mechanism().iter().map(example).collect::<Result<_, _>>().map(Private::new)
    }
}
