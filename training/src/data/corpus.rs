//! Reads units of text from the plan's data section, and checks them against what the plan
//! declares.

use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{self, LineFiles, Source};
use dp_tokenizer::tokens::TokenDataset;
use dp_tokenizer::unit::PrivacyUnit;
use mechanisms::Words;

use super::kept::Kept;
use super::labelled::Check;
use super::text_index::read_text;
use super::unit_text::{each_text, refused};
use super::{LabelledFields, LabelledRecords, PublicText, Texts, UnitText, Units, overlap};
use crate::disclosure::Private;
use crate::progress::{note, reading};
use crate::ranks::Ranks;
use crate::{RunError, stop};
use durable::{hex, sha256_hex};

/// Message of the progress bar while the training text is read.
const READING: &str = "reading the training text";

/// Reads the plan's training text. With `in_files`, text stays in its files if each of their records can be read alone. All ranks call
/// this together.
///
/// # Errors
/// [`RunError::Refused`] on all ranks if the text cannot be read or is named twice, or if sampling depends on
/// the number of units and the text has another number than the plan declares.
pub fn read_units(plan: &plan::Plan, base: &Path, in_files: bool, ranks: &Ranks) -> Result<Units, RunError> {
    read_checked(plan, base, in_files, ranks, &|_, _| Ok(()))
}

/// Reads the plan's training text as [`read_units`] does, and passes each record with labels or messages to `check`.
pub(crate) fn read_checked(
    plan: &plan::Plan,
    base: &Path,
    in_files: bool,
    ranks: &Ranks,
    check: Check<'_>,
) -> Result<Units, RunError> {
    let (source, unit) = (training_source(plan, base), unit_of_text(plan));
    if let Some(path) = plan.data().token_file() {
        let data = ranks.agree(open_tokens(plan, unit, path, base, ranks.is_first()))?;
        ranks.agree(check_count(plan, data.units()))?;
        return Ok(Units { texts: Texts::none(), tokens: Some(Private::new(data)), labelled: None });
    }
    overlap::check_distinct(&source, "data.source", ranks)?;
    let files = LineFiles::of(&source).filter(|_| in_files);
    ranks.check_same(
        &[u8::from(files.is_some())],
        "data.source: it is not there, or is another file than that of rank 0",
    )?;
    if ranks.are_several() && files.is_none() && matches!(source, Source::Files(_)) {
        note(
            "data.source: each rank reads all of the text into its memory, because it is compressed; to let a rank read its own share \
             alone, decompress the files",
        );
    }
    // Ranks read their shares side by side.
    let shares = if files.is_some() { ranks.count() as u64 } else { 1 };
    let _shown = reading(READING, &source, shares);
    let (texts, labelled, count) = if plan.training().objective.reads_fields() {
        let fields = LabelledFields::of(plan);
        let divided = match files {
            Some(_) => LabelledRecords::in_files(fields.clone(), source.clone(), unit, check, ranks)?,
            None => None,
        };
        let (records, count) = match divided {
            Some(divided) => divided,
            None => ranks.agree(LabelledRecords::open(&fields, source, unit, check))?,
        };
        (Texts::none(), Some(records), count)
    } else if let Some(files) = files {
        let text = read_text(files, unit, ranks)?;
        let count = text.units();
        (Texts::InFiles(Box::new(Private::new(text))), None, count)
    } else {
        let (texts, count) = ranks.agree(read_texts(&source, unit, "data.source"))?;
        (Texts::Kept(Private::new(texts)), None, count)
    };
    ranks.agree(check_count(plan, count))?;
    Ok(Units { texts, tokens: None, labelled })
}

/// The size of a text that a single process keeps in memory, in bytes. A larger one stays in its files: in memory, a record takes up to
/// 270 bytes more than its text.
const MAX_KEPT: u64 = 32 << 20;

/// Whether the plan's training text is so large that a single process leaves it in its files.
pub(crate) fn is_large(plan: &plan::Plan, base: &Path) -> bool {
    text_bytes(plan, base).is_some_and(|bytes| bytes > MAX_KEPT)
}

/// Returns the number of bytes in the files of the plan's training text, if it can be read from there record by record.
#[must_use]
pub fn text_bytes(plan: &plan::Plan, base: &Path) -> Option<u64> {
    if plan.data().token_file().is_some() {
        return None;
    }
    let files = LineFiles::of(&training_source(plan, base))?;
    files.sizes().ok().map(|sizes| sizes.iter().sum())
}

/// Compares the number of units with the declared one if the mechanism depends on it. In that case
/// the relation makes the number public, so the message may state it. Otherwise the number is
/// private: sampling probabilities follow from the plan alone, and neither the outcome of a run nor
/// any message depends on the actual number.
fn check_count(plan: &plan::Plan, count: u64) -> Result<(), RunError> {
    let declared = plan.data().units;
    if plan.privacy().unit == PrivacyUnit::Owner {
        return check_owned_records(plan, count);
    }
    if !plan.privacy().sampling.needs_exact_units() || count == declared {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "data.units: {declared} is declared, but the text has {count} units; allowed: exactly this number, since \
         privacy.sampling \"{}\" depends on it (privacy.relation makes it public); fix: set data.units to it",
        plan.privacy().sampling.name()
    )))
}

/// Reads private records that no run trains on: texts or, with labels, records with one label each.
///
/// # Errors
/// [`RunError::Refused`] if they cannot be read, a file is named twice, or a record has a label that the file does not list.
pub(crate) fn read_private(
    data: &plan::Data,
    labels: &[String],
    unit: PrivacyUnit,
    base: &Path,
) -> Result<Units, RunError> {
    let objective = match labels {
        [] => plan::Objective::CausalLm,
        _ => plan::Objective::SequenceClassification,
    };
    let source = source_of(objective, &data.source, data, base);
    overlap::check_distinct(&source, "data.source", &Ranks::alone())?;
    let _shown = reading(READING, &source, 1);
    if labels.is_empty() {
        let (texts, _) = read_texts(&source, unit, "data.source")?;
        return Ok(Units { texts: Texts::Kept(Private::new(texts)), tokens: None, labelled: None });
    }
    let fields = LabelledFields {
        objective,
        data: data.clone(),
        labels: labels.iter().cloned().zip(0..).collect(),
        labels_field: "labels",
        written: None,
        answers: true,
        public: false,
    };
    let (records, _) = LabelledRecords::open(&fields, source, unit, &|_, _| Ok(()))?;
    Ok(Units { texts: Texts::none(), tokens: None, labelled: Some(records) })
}

/// Compares the number of records that the bound on their owners leaves with the declared one. It follows from who owns which record,
/// which is public, so the message may state it.
fn check_owned_records(plan: &plan::Plan, count: u64) -> Result<(), RunError> {
    let declared = plan.population();
    if count == declared {
        return Ok(());
    }
    let most = plan.privacy().sampling.examples_per_unit().unwrap_or(0);
    Err(RunError::Refused(format!(
        "privacy.sampling.poisson_of_examples.examples: {declared} is declared, but {count} records remain where no owner has more than {most}; \
         allowed: exactly this number, which follows from who owns which record (privacy.relation makes it public); fix: set examples to it"
    )))
}

/// Returns the unit into which text is divided: a record stands for itself where it has several owners.
fn unit_of_text(plan: &plan::Plan) -> PrivacyUnit {
    match plan.privacy().unit {
        PrivacyUnit::Owner => PrivacyUnit::Record,
        unit => unit,
    }
}

/// Returns the bound on the records of each owner, if records have several owners.
fn owners(plan: &plan::Plan, data: &plan::Data) -> Option<corpus::Owners> {
    let most_records = plan.privacy().sampling.examples_per_unit()?;
    data.owners_field.clone().map(|field| corpus::Owners { field, most_records })
}

/// Returns the source of the plan's training text.
pub(crate) fn training_source(plan: &plan::Plan, base: &Path) -> Source {
    source(plan, &plan.data().source, plan.data(), base)
}

/// Returns the source of the plan's training text as its vocabulary counts it. Where words are counted beside their class, the class is the
/// first line of a record.
pub(crate) fn vocabulary_source(plan: &plan::Plan, base: &Path) -> Source {
    let by_label = plan.tokenizer().release().is_some_and(|(_, words)| words == Words::PairsByLabel);
    match training_source(plan, base) {
        Source::Files(files) if by_label && plan.training().objective.has_labels() => {
            let label = plan.data().label_field().to_owned();
            Source::Files(corpus::Files {
                appended: vec![files.text_field],
                // A class may be a number.
                further: vec![label.clone()],
                text_field: label,
                ..files
            })
        }
        source => source,
    }
}

/// Opens a token file that holds the plan's units under the plan's tokenizer. The first rank alone compares the tokens with the file's
/// digest; the ranks compare their digests.
fn open_tokens(
    plan: &plan::Plan,
    unit: PrivacyUnit,
    name: &str,
    base: &Path,
    is_first: bool,
) -> Result<TokenDataset, RunError> {
    let refused = |what: String| RunError::Refused(format!("data.source: {what}"));
    let path = base.join(name);
    let data = if is_first { TokenDataset::open(&path) } else { TokenDataset::open_unread(&path) };
    let data = data.map_err(|error| refused(error.to_string()))?;
    let plan::Tokenizer::Public(public) = plan.tokenizer() else {
        return Err(refused("a token file needs tokenizer {\"public\": …}".to_owned()));
    };
    let path = &public.path;
    let fix = format!("fix: dp-tokenizer encode --tokenizer {path} --unit {unit} --out {name}");
    if data.unit() != unit {
        let found = data.unit();
        return Err(refused(format!("{name} holds units of {found}; allowed: those of privacy.unit; {fix}")));
    }
    let encoded_with = hex(data.tokenizer_sha256());
    let named = sha256_hex(&durable::read(&base.join(path))?);
    if encoded_with == named {
        return Ok(data);
    }
    Err(refused(format!(
        "{name} was encoded with the tokenizer of SHA-256 {}…, but {path} has {}…; allowed: the same tokenizer; {fix}",
        &encoded_with[..12],
        &named[..12]
    )))
}

/// Reads the plan's evaluation text, which the plan declares public. Records stay whole, whatever the privacy unit. The caller compares
/// them with the training text ([`overlap::check_records`]). All ranks call this together, with the same plan.
///
/// # Errors
/// [`RunError::Refused`] on all ranks if the text cannot be read, or is in a file of the training text.
pub(crate) fn read_evaluation(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
    ranks: &Ranks,
) -> Result<Option<PublicText>, RunError> {
    let Some(source) = evaluation_source(plan, base) else { return Ok(None) };
    // The text behind a token file is not available, so its records are compared by their tokens.
    let training = units.tokens.is_none().then(|| training_source(plan, base));
    overlap::check_files(training.as_ref(), &source, overlap::EVALUATION, ranks)?;
    let most = plan.evaluation().and_then(|evaluation| evaluation.records);
    let read = read_public(plan, source, overlap::EVALUATION);
    ranks.agree(read.map(|text| Some(text.first(most))))
}

/// Returns the source of the plan's evaluation text, if it has one.
pub(crate) fn evaluation_source(plan: &plan::Plan, base: &Path) -> Option<Source> {
    let evaluation = plan.evaluation()?;
    let data = plan::Data {
        format: evaluation.format.unwrap_or(plan.data().format),
        encoding: evaluation.encoding,
        text_field: evaluation.text_field.clone().unwrap_or_else(|| plan.data().text_field.clone()),
        user_field: None,
        owners_field: None,
        ..plan.data().clone()
    };
    Some(source(plan, &evaluation.source, &data, base))
}

/// Reads a public file as evaluation text is read. Its fields, if the objective reads any, have the names that the plan
/// gives them.
///
/// # Errors
/// [`RunError::Refused`] if it cannot be read.
pub(crate) fn read_public_file(plan: &plan::Plan, path: &Path) -> Result<PublicText, RunError> {
    let files = Source::files([path.to_owned()]);
    let source = if plan.training().objective.reads_fields() { public_file(plan, path) } else { files };
    read_public(plan, source, "--text")
}

/// Returns the source of a file with the fields of the plan's training text. Its format follows from its name.
pub(crate) fn public_file(plan: &plan::Plan, path: &Path) -> Source {
    let data = plan::Data {
        format: plan::Format::Auto,
        user_field: None,
        owners_field: None,
        ..plan.data().clone()
    };
    source(plan, &plan::Source::Path(path.to_string_lossy().into_owned()), &data, Path::new(""))
}

/// Refuses files that share text with a plan's private training text. Their fields have the names that the plan gives
/// them.
///
/// # Errors
/// [`RunError::Refused`] if they do, or a text cannot be read.
pub fn check_other_text(
    plan: &plan::Plan,
    base: &Path,
    paths: &[PathBuf],
    of_paths: overlap::Compared<'_>,
) -> Result<(), RunError> {
    let ranks = Ranks::alone();
    let units = read_units(plan, base, true, &ranks)?;
    let data = plan::Data {
        format: plan::Format::Auto,
        user_field: None,
        owners_field: None,
        ..plan.data().clone()
    };
    let names = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let public = source(plan, &plan::Source::Paths(names), &data, Path::new(""));
    let training = units.tokens.is_none().then(|| training_source(plan, base));
    overlap::check_files(training.as_ref(), &public, of_paths.field, &ranks)?;
    overlap::check_records(plan, base, &units, &read_public(plan, public, of_paths.field)?, of_paths, &ranks)
}

fn read_public(plan: &plan::Plan, source: Source, field: &str) -> Result<PublicText, RunError> {
    if plan.training().objective.reads_fields() {
        let fields = LabelledFields { public: true, ..LabelledFields::of(plan) };
        return Ok(PublicText::Labelled(fields.read(source, PrivacyUnit::Record, field)?.0));
    }
    Ok(PublicText::Texts(read_texts(&source, PrivacyUnit::Record, field)?.0))
}

/// Reads the records of a text file, which `option` of the command line names.
///
/// # Errors
/// [`RunError::Refused`] if it cannot be read.
pub fn read_records(path: &Path, option: &str) -> Result<Vec<String>, RunError> {
    let (texts, _) = read_texts(&Source::files([path.to_owned()]), PrivacyUnit::Record, option)?;
    Ok(texts.into_iter().map(|text| text.piece.text).collect())
}

/// Returns a source as the plan reads it. The text of a record holds everything that the model reads or writes, because
/// the vocabulary and the comparison of texts need all of it.
fn source(plan: &plan::Plan, source: &plan::Source, data: &plan::Data, base: &Path) -> Source {
    match source_of(plan.training().objective, source, data, base) {
        Source::Files(files) => Source::Files(corpus::Files { owners: owners(plan, data), ..files }),
        embedded => embedded,
    }
}

/// Returns a source as [`source`] does, of records without several owners.
fn source_of(objective: plan::Objective, source: &plan::Source, data: &plan::Data, base: &Path) -> Source {
    let paths: Vec<PathBuf> = match source {
        plan::Source::Embedded { records, seed } => {
            return Source::Embedded { records: *records, seed: *seed };
        }
        plan::Source::Path(path) => vec![base.join(path)],
        plan::Source::Paths(paths) => paths.iter().map(|path| base.join(path)).collect(),
    };
    let mut appended: Vec<String> = data.second_text_field.clone().into_iter().collect();
    if objective == plan::Objective::TextToText {
        appended.push(data.target_field().to_owned());
    }
    let words = (objective == plan::Objective::TokenClassification).then(|| data.text_field.clone());
    let further = words.into_iter().collect();
    Source::Files(corpus::Files {
        format: data.format,
        encoding: data.encoding,
        text_field: data.text_field.clone(),
        text_is_json: objective == plan::Objective::Chat,
        text_until: data.label_separator,
        user_field: data.user_field.clone(),
        columns: data.columns.clone(),
        appended,
        further,
        bad_utf8: corpus::BadUtf8::Refuse,
        progress: corpus::ReadProgress::stopped_by(stop::flag()),
        ..corpus::Files::of(paths)
    })
}

/// Reads the texts of a source, which `field` names. Also returns the number of their units.
pub(crate) fn read_texts(
    source: &Source,
    unit: PrivacyUnit,
    field: &str,
) -> Result<(Vec<UnitText>, u64), RunError> {
    let mut texts = Vec::new();
    let records = corpus::open(source).map_err(|error| refused(field, &error))?;
    let mut kept = Kept::default();
    let units = each_text(records, unit, field, |text: UnitText| {
        kept.add(text.piece.text.len(), size_of::<UnitText>(), field)?;
        texts.push(text);
        Ok(())
    })?;
    Ok((texts, units))
}
