//! Reads records with an answer to be predicted: labels, tags or another text.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dp_tokenizer::corpus::{self, CorpusError, Files, LineFiles, Record, Source};
use dp_tokenizer::identity::{Passage, Reading};
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};
use mechanisms::{PrivacyRng, Purpose};
use plan::Objective;

use super::digest::{ContentDigest, sha256_of_record};
use super::divided::{Divided, Item};
use super::kept::Kept;
use super::unit_text::{Stretch, by_unit, each_wanted, refused};
use super::{Answer, DrawnUnit, LabelledRecord, own};
use crate::RunError;
use crate::disclosure::Private;
use crate::ranks::{Ranks, Share};
use network::Example;

/// Refuses a record, which has this number, by what the plan needs of it.
pub(crate) type Check<'a> = &'a dyn Fn(u64, &LabelledRecord) -> Result<(), RunError>;

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
        let mut kept = Kept::default();
        let units = self.each(opened, unit, field, |record: LabelledRecord| {
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
        records: impl Iterator<Item = Result<Record, CorpusError>>,
        unit: PrivacyUnit,
        field: &str,
        mut take: impl FnMut(LabelledRecord) -> Result<(), RunError>,
    ) -> Result<u64, RunError> {
        let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("{field}: {error}"));
        let mut assigner = UnitAssigner::new(unit).map_err(|error| refused(&error))?;
        for (number, record) in (1_u64..).zip(records) {
            let mut record = record.map_err(|error| refused(&error))?;
            let (text, further) = (std::mem::take(&mut record.text), std::mem::take(&mut record.further));
            let pieces = assigner.assign(record).map_err(|error| refused(&error))?;
            let unit = pieces.first().map_or(0, |piece| piece.unit);
            let labelled = self.record(unit, text, further);
            take(labelled.map_err(|what| refused(&format!("record {number} {what}")))?)?;
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

/// Files of labelled records, of which each rank reads its own share.
pub struct LabelledFiles {
    records: Divided,
    fields: LabelledFields,
}

impl std::fmt::Debug for LabelledFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LabelledFiles(…)")
    }
}

impl LabelledRecords {
    /// Reads the records of a plan's training text into memory, and counts their units.
    ///
    /// # Errors
    /// As [`LabelledFields::read`], and those of `check`.
    pub(crate) fn open(
        fields: &LabelledFields,
        source: Source,
        unit: PrivacyUnit,
        check: Check<'_>,
    ) -> Result<(Self, u64), RunError> {
        let (records, units) = fields.read(source, unit, FIELD)?;
        (1..).zip(&records).try_for_each(|(number, record)| check(number, record))?;
        Ok((Self::Kept(Private::new(records)), units))
    }

    /// Reads this rank's share of the records of a plan's training text, which stay in their files, and counts the units of all ranks;
    /// `None` if a record cannot be read alone. All ranks call this together.
    ///
    /// # Errors
    /// As [`Self::open`], on all ranks.
    pub(crate) fn in_files(
        fields: LabelledFields,
        source: Source,
        unit: PrivacyUnit,
        check: Check<'_>,
        ranks: &Ranks,
    ) -> Result<Option<(Self, u64)>, RunError> {
        let Some(files) = LineFiles::of(&fields.source(source)) else { return Ok(None) };
        let item = |number: u64, record: Record| {
            let labelled = fields.record(0, record.text, record.further);
            let labelled = labelled.map_err(|what| refused(FIELD, &format!("record {number} {what}")))?;
            check(number, &labelled)?;
            Ok(vec![Item { sha256: sha256_of_record(&labelled) }])
        };
        let records = Divided::read(files, unit, ranks, item)?;
        let units = records.units();
        Ok(Some((Self::InFiles(Box::new(LabelledFiles { records, fields })), units)))
    }

    /// Returns the digest of the records.
    pub(super) fn digest(&self) -> ContentDigest {
        match self {
            Self::Kept(records) => {
                let mut digest = ContentDigest::default();
                for record in records.for_mechanism() {
                    digest.push(sha256_of_record(record));
                    digest.push_unit(record.unit);
                }
                digest
            }
            Self::InFiles(files) => files.records.digest(),
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
                let refused = |error: CorpusError| refused(FIELD, &error);
                let records = files.records.files().records().map_err(refused)?;
                let records = records.map(|record| record.map(|(_, record)| record));
                files.fields.each(records, files.records.unit(), FIELD, |record| {
                    take(&record);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Passes one record of each unit to `take`: the one that `choose` picks by the number of the unit and the number of its records. Each
    /// rank reads its own share of records in files; the first rank alone takes those in memory. All ranks call this together.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file can no longer be read.
    pub(crate) fn for_one_of_each_unit(
        &self,
        ranks: &Ranks,
        choose: impl Fn(u64, u64) -> u64,
        mut take: impl FnMut(&LabelledRecord),
    ) -> Result<(), RunError> {
        match self {
            Self::Kept(_) if !ranks.is_first() => Ok(()),
            Self::Kept(records) => {
                let mut by_unit: BTreeMap<u64, Vec<&LabelledRecord>> = BTreeMap::new();
                for record in records.for_mechanism() {
                    by_unit.entry(record.unit).or_default().push(record);
                }
                by_unit.iter().for_each(|(&unit, own)| take(own[choose(unit, own.len() as u64) as usize]));
                Ok(())
            }
            Self::InFiles(files) => files.records.for_one_of_each_unit(choose, |record| {
                let labelled = files.fields.record(0, record.text, record.further);
                take(&labelled.map_err(|what| refused(FIELD, &format!("a record {what}")))?);
                Ok(())
            }),
        }
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
        each_wanted(files.records.files(), reading, |record| {
            let labelled = files.fields.record(0, record.text, record.further);
            labelled.map(|record| text(&record)).map_err(|what| refused(FIELD, &format!("a record {what}")))
        })
    }
}

impl LabelledFiles {
    /// Reads a record of a unit, in this rank's share.
    fn read(&self, number: u64, unit: u64) -> Result<LabelledRecord, RunError> {
        let (Record { text, further, .. }, _) = self.records.record(number as usize)?;
        let record = self.fields.record(unit, text, further);
        let sha256 = record.as_ref().map_or([0; 32], sha256_of_record);
        self.records.check(number as usize, &Item { sha256 })?;
        record.map_err(|what| RunError::Failed(format!("{FIELD}: a record {what}")))
    }
}

/// The plan's field that names the training text.
const FIELD: &str = "data.source";

/// The examples of labelled records, by unit.
pub(crate) enum LabelledSet {
    /// Examples in memory.
    Kept {
        /// Examples, unit by unit.
        examples: Vec<Example>,
        /// Index of each unit's first example, and the number of all examples at the end.
        starts: Vec<usize>,
    },
    /// Records in their files, of which examples are made when they are sampled.
    InFiles(Box<SetInFiles>),
}

/// Records in their files, and how examples are made of them.
pub(crate) struct SetInFiles {
    files: LabelledFiles,
    /// The records of the units that were asked for.
    found: HashMap<u64, Vec<Stretch>>,
    example: Box<dyn Fn(&LabelledRecord) -> Example>,
}

impl LabelledSet {
    /// Makes one example of each record. Records may come in any order of units.
    pub fn new(records: LabelledRecords, example: impl Fn(&LabelledRecord) -> Example + 'static) -> Self {
        match records {
            LabelledRecords::Kept(records) => {
                let records = records.for_mechanism();
                let (order, starts) = by_unit(records.iter().map(|record| record.unit).collect());
                let examples = order.into_iter().map(|place| example(&records[place])).collect();
                Self::Kept { examples, starts }
            }
            LabelledRecords::InFiles(files) => {
                let (files, found, example) = (*files, HashMap::new(), Box::new(example));
                Self::InFiles(Box::new(SetInFiles { files, found, example }))
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
        let Self::Kept { examples, .. } = self else { return Ok(()) };
        let features = compute(examples)?;
        for (example, features) in examples.iter_mut().zip(features) {
            example.features = Some(features);
        }
        Ok(())
    }

    /// Returns the number of units, which is private if the text is private.
    pub fn units(&self) -> usize {
        match self {
            Self::Kept { starts, .. } => starts.len() - 1,
            Self::InFiles(set) => set.files.records.units() as usize,
        }
    }

    /// Finds the records of units, which has to happen before they are counted or read. All ranks call this together, with the same
    /// units, each once.
    ///
    /// # Errors
    /// [`RunError`] on all ranks.
    pub fn measure(&mut self, units: &[u64]) -> Result<(), RunError> {
        if let Self::InFiles(set) = self {
            set.found = set.files.records.find(units, |_| Ok(0))?;
        }
        Ok(())
    }

    /// Returns the number of examples of a unit.
    pub fn examples_of(&self, unit: usize) -> usize {
        match self {
            Self::Kept { starts, .. } => starts[unit + 1] - starts[unit],
            Self::InFiles(set) => set.found.get(&(unit as u64)).map_or(0, Vec::len),
        }
    }

    /// Returns the examples of the units of a lot that are in the rank's share. All ranks call this together, with the same lot, of
    /// which each reads what is in its share of the text.
    ///
    /// # Errors
    /// [`RunError::Failed`] on all ranks if a file can no longer be read or was changed.
    pub fn read_lot(
        &self,
        lot: Private<Vec<DrawnUnit>>,
        share: Share,
        step: u64,
        rng: &dyn PrivacyRng,
    ) -> Result<Private<Vec<Example>>, RunError> {
        let mut received = match self {
            Self::Kept { .. } => Vec::new(),
            Self::InFiles(set) => set.exchange(lot.for_mechanism(), share)?,
        };
        let own = own(lot, share);
        let mut example = |DrawnUnit { unit, index, places }: &DrawnUnit| {
            let mut seeds = rng.stream(Purpose::Masking, step, *index as u32);
            let mut view = |place: usize| {
                let dropout_seed = seeds.next_u64();
                let example = match self {
                    Self::Kept { examples, starts } => examples[starts[*unit as usize] + place].clone(),
                    Self::InFiles(set) => set.receive(*unit, place, &mut received)?,
                };
                Ok(Example { dropout_seed, ..example })
            };
            let views = places.iter().map(|&place| view(place)).collect::<Result<Vec<_>, RunError>>();
            views.map(Example::of_views)
        };
        own.for_mechanism().iter().map(&mut example).collect::<Result<_, _>>().map(Private::new)
    }
}

impl SetInFiles {
    /// Sends the records of a lot that are in this rank's share of the text to the ranks that compute with them, and returns those of
    /// this rank's share of the lot, by the rank that read them.
    fn exchange(
        &self,
        lot: &[DrawnUnit],
        share: Share,
    ) -> Result<Vec<std::vec::IntoIter<LabelledRecord>>, RunError> {
        let records = &self.files.records;
        let ranks = records.ranks();
        let mut to: Vec<Vec<LabelledRecord>> = vec![Vec::new(); ranks.count()];
        let read = lot.iter().enumerate().try_for_each(|(at, drawn)| {
            let stretches = self.found.get(&drawn.unit).map_or(&[][..], Vec::as_slice);
            drawn.places.iter().filter_map(|&place| stretches.get(place)).try_for_each(|stretch| {
                if stretch.rank == ranks.rank() {
                    to[share.rank_of(at)].push(self.files.read(stretch.number, drawn.unit)?);
                }
                Ok(())
            })
        });
        ranks.agree(read)?;
        if !ranks.are_several() {
            return Ok(to.into_iter().map(Vec::into_iter).collect());
        }
        let failed =
            |error: serde_json::Error| RunError::Failed(format!("a record of another rank: {error}"));
        let sent = to.iter().map(serde_json::to_vec).collect::<Result<Vec<_>, _>>();
        let received = ranks.all_to_all(&ranks.agree(sent.map_err(failed))?);
        let read = received.iter().map(|bytes| serde_json::from_slice::<Vec<LabelledRecord>>(bytes));
        Ok(read.collect::<Result<Vec<_>, _>>().map_err(failed)?.into_iter().map(Vec::into_iter).collect())
    }

    /// Makes an example of the next record from the rank that read it.
    fn receive(
        &self,
        unit: u64,
        place: usize,
        received: &mut [std::vec::IntoIter<LabelledRecord>],
    ) -> Result<Example, RunError> {
        let stretch = self.found.get(&unit).and_then(|stretches| stretches.get(place));
        let record = stretch.and_then(|stretch| received.get_mut(stretch.rank)?.next());
        let record = record.ok_or_else(|| {
            RunError::Failed(format!("{FIELD}: a rank sent fewer records than were drawn of its share"))
        })?;
        Ok((self.example)(&record))
    }
}
