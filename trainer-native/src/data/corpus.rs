//! From the plan's data section to units of text, checked against what the plan declares.

use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{self, Record, Source};
use dp_tokenizer::tokens::TokenDataset;
use dp_tokenizer::unit::{Piece, PrivacyUnit, UnitAssigner};

use super::{LabelledFields, LabelledRecord};
use crate::RunError;
use crate::disclosure::Private;
use crate::durable::{self, hex, sha256_hex};

/// A stretch of a unit's text, with its place in the record that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitText {
    /// The unit and its text.
    pub piece: Piece,
    /// Whether the record begins here.
    pub begins_record: bool,
    /// Whether the record ends here.
    pub ends_record: bool,
}

/// The training text, cut into privacy units.
#[derive(Debug)]
pub(crate) struct Units {
    /// Texts in the corpus's order; none where the plan names a token file.
    pub texts: Private<Vec<UnitText>>,
    /// The token file, where the plan names one.
    pub tokens: Option<Private<TokenDataset>>,
    /// Records with labels or targets, where the objective reads these.
    pub labelled: Option<Private<Vec<LabelledRecord>>>,
}

/// Share by which the actual number of units may differ from the declared one before the run is refused.
const TOLERATED_DIFFERENCE: f64 = 0.1;

/// Reads the plan's training text and compares its number of units with the declared number.
///
/// # Errors
/// [`RunError::Refused`] if the text cannot be read, or if the numbers differ by more than 10 % (by any, where sampling
/// depends on the number of units). This message is the only one that shows a true count. It says that the count is not
/// private, and nothing has been written or released by then.
pub(crate) fn read_units(plan: &plan::Plan, base: &Path) -> Result<Units, RunError> {
    let unit = plan.privacy().unit;
    if plan.training().objective.reads_fields() {
        let source = training_source(plan, base);
        let (records, count) = LabelledFields::of(plan).read(source, unit, "data.source")?;
        check_count(plan, count)?;
        let labelled = Some(Private::new(records));
        return Ok(Units { texts: Private::new(Vec::new()), tokens: None, labelled });
    }
    let (texts, tokens, count) = match plan.data().token_file() {
        Some(path) => {
            let data = open_tokens(plan, unit, path, base)?;
            let count = data.units();
            (Vec::new(), Some(Private::new(data)), count)
        }
        None => {
            let (texts, count) = read_texts(&training_source(plan, base), unit, "data.source")?;
            (texts, None, count)
        }
    };
    check_count(plan, count)?;
    Ok(Units { texts: Private::new(texts), tokens, labelled: None })
}

fn check_count(plan: &plan::Plan, count: u64) -> Result<(), RunError> {
    let declared = plan.data().units;
    let exact = plan.privacy().sampling.needs_exact_units() && !plan.is_public();
    let tolerated = if exact { 0.0 } else { TOLERATED_DIFFERENCE * declared as f64 };
    if (count as f64 - declared as f64).abs() <= tolerated {
        return Ok(());
    }
    let allowed = if exact {
        "exactly this number, since privacy.sampling depends on it and privacy.relation makes it public; fix: set data.units \
         to it"
    } else {
        "within 10 %; fix: set data.units to a public round figure near it"
    };
    Err(RunError::Refused(format!(
        "data.units: {declared} is declared, but the text has {count} units (this count is NOT PRIVATE: it is shown to \
         you alone, do not publish it); allowed: {allowed}"
    )))
}

/// The plan's training text. The text of a record holds all that the model reads or writes, as the vocabulary needs it.
pub(crate) fn training_source(plan: &plan::Plan, base: &Path) -> Source {
    let (data, objective) = (plan.data(), plan.training().objective);
    let mut source = source(&data.source, data, base);
    if let Source::Files(files) = &mut source {
        files.appended.extend(data.second_text_field.clone());
        if objective == plan::Objective::TextToText {
            files.appended.push(data.target_field().to_owned());
        }
        if objective == plan::Objective::TokenClassification {
            files.further.push(data.text_field.clone());
        }
    }
    source
}

/// Opens a token file that holds the plan's units under the plan's tokenizer.
fn open_tokens(
    plan: &plan::Plan,
    unit: PrivacyUnit,
    name: &str,
    base: &Path,
) -> Result<TokenDataset, RunError> {
    let refused = |what: String| RunError::Refused(format!("data.source: {what}"));
    let data = TokenDataset::open(&base.join(name)).map_err(|error| refused(error.to_string()))?;
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

/// Public text to evaluate a model on.
#[derive(Debug)]
pub(crate) enum PublicText {
    /// Text to predict.
    Texts(Vec<UnitText>),
    /// Records with labels or targets.
    Labelled(Vec<LabelledRecord>),
}

/// Reads the plan's evaluation text, which the plan declares public. Records stay whole, whatever the privacy unit.
///
/// # Errors
/// [`RunError::Refused`] if the text cannot be read.
pub(crate) fn read_evaluation(plan: &plan::Plan, base: &Path) -> Result<Option<PublicText>, RunError> {
    let Some(evaluation) = plan.evaluation() else { return Ok(None) };
    let data = plan::Data {
        format: evaluation.format.unwrap_or(plan.data().format),
        text_field: evaluation.text_field.clone().unwrap_or_else(|| plan.data().text_field.clone()),
        user_field: None,
        ..plan.data().clone()
    };
    let source = source(&evaluation.source, &data, base);
    read_public(plan, source, "evaluation.source").map(Some)
}

/// Reads a public file like evaluation text. If the plan's objective reads fields, they have the names of the plan.
///
/// # Errors
/// [`RunError::Refused`] if it cannot be read.
pub(crate) fn read_public_file(plan: &plan::Plan, path: &Path) -> Result<PublicText, RunError> {
    let files = Source::files([path.to_owned()]);
    let source = if plan.training().objective.reads_fields() { public_file(plan, path) } else { files };
    read_public(plan, source, "--text")
}

/// A file with the fields of the plan's training text. Its format follows from its name.
pub(crate) fn public_file(plan: &plan::Plan, path: &Path) -> Source {
    let data = plan::Data { format: plan::Format::Auto, user_field: None, ..plan.data().clone() };
    source(&plan::Source::Path(path.to_string_lossy().into_owned()), &data, Path::new(""))
}

fn read_public(plan: &plan::Plan, source: Source, field: &str) -> Result<PublicText, RunError> {
    if plan.training().objective.reads_fields() {
        let fields = LabelledFields { public: true, ..LabelledFields::of(plan) };
        return Ok(PublicText::Labelled(fields.read(source, PrivacyUnit::Record, field)?.0));
    }
    Ok(PublicText::Texts(read_texts(&source, PrivacyUnit::Record, field)?.0))
}

fn source(source: &plan::Source, data: &plan::Data, base: &Path) -> Source {
    let paths: Vec<PathBuf> = match source {
        plan::Source::Embedded { records, seed } => {
            return Source::Embedded { records: *records, seed: *seed };
        }
        plan::Source::Path(path) => vec![base.join(path)],
        plan::Source::Paths(paths) => paths.iter().map(|path| base.join(path)).collect(),
    };
    Source::Files(corpus::Files {
        format: match data.format {
            plan::Format::Auto => corpus::Format::Auto,
            plan::Format::Text => corpus::Format::Text,
            plan::Format::Jsonl => corpus::Format::JsonLines,
            plan::Format::Csv => corpus::Format::Csv,
            plan::Format::Tsv => corpus::Format::Tsv,
            plan::Format::Iob => corpus::Format::Iob,
        },
        text_field: data.text_field.clone(),
        user_field: data.user_field.clone(),
        columns: data.columns.clone(),
        bad_utf8: corpus::BadUtf8::Refuse,
        ..corpus::Files::of(paths)
    })
}

fn read_texts(source: &Source, unit: PrivacyUnit, field: &str) -> Result<(Vec<UnitText>, u64), RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("{field}: {error}"));
    let mut assigner = UnitAssigner::new(unit).map_err(|error| refused(&error))?;
    let mut texts = Vec::new();
    for record in corpus::open(source).map_err(|error| refused(&error))? {
        let record: Record = record.map_err(|error| refused(&error))?;
        let pieces = assigner.assign(record).map_err(|error| refused(&error))?;
        let last = pieces.len().saturating_sub(1);
        texts.extend(pieces.into_iter().enumerate().map(|(index, piece)| UnitText {
            piece,
            begins_record: index == 0,
            ends_record: index == last,
        }));
    }
    Ok((texts, assigner.units()))
}
