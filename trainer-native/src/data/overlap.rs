//! Refuses evaluation text that is training text: its figures are published without noise.
//!
//! The comparison sees the private text, so its outcome depends on it. It is a condition of the guarantee, stated on the
//! certificate: the guarantee compares training texts that pass it. A refusal says nothing about which records are shared.

use std::collections::HashSet;
use std::path::Path;

use dp_tokenizer::Tokenizer;
use dp_tokenizer::corpus::{self, Record, Source};
use dp_tokenizer::tokens::TokenDataset;
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};

use super::{Answer, LabelledRecord, PublicText, Texts, UnitText, Units};
use crate::{RunError, durable};

/// Words from which on a record that both texts have is no coincidence. Shorter ones ("Thank you.") occur in any two texts.
const LONG_RECORD: usize = 8;

/// Refuses an evaluation file that is a training file, under whatever name and in whatever form.
pub(super) fn check_files(training: Option<&Source>, evaluation: &Source) -> Result<(), RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("evaluation.source: {error}"));
    corpus::check_distinct(evaluation).map_err(|error| refused(&error))?;
    let Some(training) = training else { return Ok(()) };
    match corpus::common_text(training, evaluation).map_err(|error| refused(&error))? {
        None => Ok(()),
        Some((training, evaluation)) => Err(refused(&format!(
            "{} is the training text {}; {ALLOWED}",
            evaluation.display(),
            training.display()
        ))),
    }
}

const ALLOWED: &str = "allowed: public text other than that of training, since its figures are published without noise; fix: \
                       name held-out public text, or remove evaluation";

/// Refuses evaluation text that shares a long record, or most of its records, with private training text.
pub(super) fn check_records(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
    evaluation: &PublicText,
) -> Result<(), RunError> {
    if plan.is_public() {
        return Ok(());
    }
    let records: HashSet<String> = match evaluation {
        PublicText::Texts(texts) => texts.iter().map(|text| words(&text.piece.text)).collect(),
        PublicText::Labelled(records) => records.iter().flat_map(words_of).collect(),
    };
    let shared = match (&units.tokens, &units.labelled, evaluation) {
        (_, Some(training), _) => {
            let mut shared = HashSet::new();
            training.for_each(|record| {
                shared.extend(words_of(record).filter(|record| records.contains(record)));
            })?;
            shared
        }
        (None, ..) | (_, _, PublicText::Labelled(_)) => shared_records(&units.texts, &records)?,
        (Some(tokens), None, PublicText::Texts(evaluation)) => {
            let plan::Tokenizer::Public(public) = plan.tokenizer() else { return Ok(()) };
            let tokenizer = read_tokenizer(&base.join(&public.path))?;
            shared_token_records(tokens.for_mechanism(), evaluation, &tokenizer)?
        }
    };
    let has_long_one = shared.iter().any(|record| record.split(' ').count() >= LONG_RECORD);
    if !has_long_one && 2 * shared.len() <= records.len() {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "evaluation.source: it shares records with the training text; allowed: no record of {LONG_RECORD} or more words that \
         the training text has, and at most half of all records; fix: remove the shared records from the evaluation text, \
         name other text, or remove evaluation"
    )))
}

fn read_tokenizer(path: &Path) -> Result<Tokenizer, RunError> {
    let text = String::from_utf8_lossy(&durable::read(path)?).into_owned();
    Tokenizer::from_json(&text).map_err(|error| RunError::Refused(format!("{}: {error}", path.display())))
}

/// The words of a record's texts, whatever its label, and of what is to be written after them.
fn words_of(record: &LabelledRecord) -> impl Iterator<Item = String> {
    let read = words(&format!("{} {}", record.text, record.second.as_deref().unwrap_or_default()));
    let written = match &record.answer {
        Answer::Text(target) => Some(words(target)),
        Answer::Labels(_) => None,
    };
    [Some(read), written].into_iter().flatten()
}

/// White space does not make another record.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The records that the training text has, too.
fn shared_records(training: &Texts, records: &HashSet<String>) -> Result<HashSet<String>, RunError> {
    let (mut shared, mut record) = (HashSet::new(), String::new());
    training.for_each(|text| {
        if text.begins_record {
            record.clear();
        }
        record.push_str(&text.piece.text);
        if text.ends_record
            && let Some(found) = records.get(&words(&record))
        {
            shared.insert(found.clone());
        }
    })?;
    Ok(shared)
}

/// As [`shared_records`] for a token file: records are compared by their tokens.
fn shared_token_records(
    training: &TokenDataset,
    evaluation: &[UnitText],
    tokenizer: &Tokenizer,
) -> Result<HashSet<String>, RunError> {
    let failed = |error: &dyn std::fmt::Display| RunError::Failed(format!("data.source: {error}"));
    let mut encoded = std::collections::HashMap::new();
    for text in evaluation {
        let record = Record::of_text(text.piece.text.clone());
        // A user's record is not divided, so it is encoded as a record.
        let unit = match training.unit() {
            PrivacyUnit::User => PrivacyUnit::Record,
            unit => unit,
        };
        let mut assigner = UnitAssigner::new(unit).map_err(|error| failed(&error))?;
        let pieces = assigner.assign(record).map_err(|error| failed(&error))?;
        let tokens: Vec<u32> = pieces.iter().flat_map(|piece| tokenizer.encode(&piece.text)).collect();
        encoded.insert(tokens, words(&text.piece.text));
    }
    let lengths: HashSet<usize> = encoded.keys().map(Vec::len).collect();
    let (mut shared, mut tokens, mut begin) = (HashSet::new(), Vec::new(), 0);
    for part in (0..training.parts()).filter_map(|number| training.part(number)) {
        if part.begins_record {
            begin = part.tokens.start;
        }
        let record = begin..part.tokens.end;
        // Only a record of a fitting length is read from the disk.
        if part.ends_record && lengths.contains(&((record.end - record.start) as usize)) {
            training.read(record, &mut tokens).map_err(|error| failed(&error))?;
            shared.extend(encoded.get(&tokens).cloned());
        }
    }
    Ok(shared)
}
