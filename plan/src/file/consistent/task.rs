//! Checks labels, and the fields of the data that a task reads.

use std::collections::BTreeSet;

use crate::messages::{refuse, shown};
use crate::{Answers, Format, Objective, PlanError, PlanFile, PrivacyUnit, Source, Tokenizer};

/// Accepts labels and fields that the objective reads, and data that can hold them.
pub(super) fn check(file: &PlanFile) -> Result<(), PlanError> {
    check_fields(file)?;
    check_labels(file)?;
    check_chat(file)?;
    if let Some(answers) = &file.training.answers {
        check_answers(answers)?;
    }
    if let Some(histogram) = &file.data.label_histogram {
        check_names("data.label_histogram.labels", &histogram.labels)?;
    }
    if file.training.objective.reads_fields() { check_data(file) } else { Ok(()) }
}

/// Refuses fields that the objective does not read: they would have no effect.
fn check_fields(file: &PlanFile) -> Result<(), PlanError> {
    use Objective::{
        Chat, MaskedLmNextSentence, MultiLabelClassification, PrefixLm, SequenceClassification, TextToText,
        TokenClassification,
    };
    let (data, objective) = (&file.data, file.training.objective);
    let is_any = |objectives: &[Objective]| objectives.contains(&objective);
    let classifies = is_any(&[SequenceClassification, MultiLabelClassification]);
    let (tags, of_texts) = (objective == TokenClassification, classifies || objective == TextToText);
    let fields = [
        (
            "data.text_prefix",
            data.text_prefix.is_some(),
            of_texts,
            "classification of texts or \"text_to_text\"",
        ),
        (
            "data.second_text_field",
            data.second_text_field.is_some(),
            of_texts,
            "classification of texts or \"text_to_text\"",
        ),
        ("data.label_field", data.label_field.is_some(), classifies || tags, "classification"),
        ("data.target_field", data.target_field.is_some(), objective == TextToText, "\"text_to_text\""),
        (
            "data.label_histogram",
            data.label_histogram.is_some(),
            objective == TextToText,
            "\"text_to_text\" from a label to its text",
        ),
        ("training.answers", file.training.answers.is_some(), objective == TextToText, "\"text_to_text\""),
        (
            "training.prefix_split",
            file.training.prefix_split.is_some(),
            objective == PrefixLm,
            "\"prefix_lm\"",
        ),
        (
            "training.sentence_split",
            file.training.sentence_split.is_some(),
            objective == MaskedLmNextSentence,
            "\"masked_lm_next_sentence\"",
        ),
        ("training.chat", file.training.chat.is_some(), objective == Chat, "\"chat\""),
        ("training.labels", file.training.labels.is_some(), classifies || tags, "classification"),
    ];
    match fields.into_iter().find(|(_, given, read, _)| *given && !read) {
        None if file.training.label_smoothing > 0.0 && objective == MultiLabelClassification => refuse(
            "training.label_smoothing",
            format!("{} with independent labels", file.training.label_smoothing),
            "0 with this training.objective",
            "remove it",
        ),
        None => Ok(()),
        Some((path, _, _, reader)) => {
            let allowed = format!("nothing: only {reader} reads it");
            refuse(path, "given", &allowed, "remove it, or choose that training.objective")
        }
    }
}

/// Checks that labels differ, or that numbers are multiples of a number above 0.
fn check_answers(answers: &Answers) -> Result<(), PlanError> {
    let path = "training.answers.labels";
    match answers {
        Answers::Labels(labels) if labels.len() < 2 => {
            refuse(path, format!("{} labels", labels.len()), "at least 2", "add the missing ones")
        }
        Answers::Labels(labels) => check_names(path, labels),
        Answers::Numbers(_) => Ok(()),
    }
}

/// Checks that conversations have an existing tokenizer, which has their template and its special tokens.
fn check_chat(file: &PlanFile) -> Result<(), PlanError> {
    if let Some(date) = file.training.chat().date.filter(|date| !is_date(date)) {
        let given = shown(&date.as_str().into());
        return refuse("training.chat.date", given, "a day as \"2026-01-31\"", "write year, month and day");
    }
    let has_template = matches!(file.tokenizer, Tokenizer::Public(_));
    if has_template || file.training.objective != Objective::Chat {
        return Ok(());
    }
    let allowed = "{\"public\": {\"path\": …}} with a chat template beside it";
    refuse(
        "tokenizer",
        "not \"public\", though training.objective is \"chat\"",
        allowed,
        "name a checkpoint's tokenizer",
    )
}

/// Returns whether a text has the form of a date, such as 2026-01-31. Whether its month has that day is checked when
/// the date is read.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |at: usize, digits: usize, allowed: std::ops::RangeInclusive<u32>| {
        let part = parts
            .get(at)
            .filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()));
        part.and_then(|part| part.parse().ok()).is_some_and(|number| allowed.contains(&number))
    };
    parts.len() == 3 && number(0, 4, 1..=9999) && number(1, 2, 1..=12) && number(2, 2, 1..=31)
}

fn check_labels(file: &PlanFile) -> Result<(), PlanError> {
    let objective = file.training.objective;
    if !objective.has_labels() {
        return Ok(());
    }
    let path = "training.labels";
    let Some(labels) = &file.training.labels else {
        let fix = "add the list of all labels: it is public knowledge, and never read from the data";
        return refuse(path, "missing", "the labels that the model may predict", fix);
    };
    let least = if objective == Objective::MultiLabelClassification { 1 } else { 2 };
    if labels.len() < least {
        return refuse(path, format!("{} labels", labels.len()), "at least 2", "add the missing ones");
    }
    if let (true, Some(place)) = (
        objective == Objective::MultiLabelClassification,
        labels.iter().position(|label| label.contains(',')),
    ) {
        let given = shown(&labels[place].as_str().into());
        let allowed = "names without commas, which separate the labels of a text";
        return refuse(&format!("{path}[{place}]"), given, allowed, "rename it in the plan and in the data");
    }
    check_names(path, labels)
}

/// Accepts names that differ, without blanks around them.
fn check_names(path: &str, labels: &[String]) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    for (place, label) in labels.iter().enumerate() {
        let at = format!("{path}[{place}]");
        if label.is_empty() || label.trim() != label {
            let allowed = "a name without blanks around it";
            return refuse(&at, shown(&label.as_str().into()), allowed, "write the label as in the data");
        }
        if !seen.insert(label) {
            let allowed = "each label once";
            return refuse(&at, shown(&label.as_str().into()), allowed, "remove one of the two");
        }
    }
    Ok(())
}

fn check_data(file: &PlanFile) -> Result<(), PlanError> {
    let (data, objective) = (&file.data, file.training.objective);
    if let PrivacyUnit::Words(_) = file.privacy.unit {
        let fix = "choose one of these: a label belongs to a whole record";
        return refuse("privacy.unit", "words", "\"record\" or \"user\" with this objective", fix);
    }
    let of_evaluation = file.evaluation.as_ref().map(|evaluation| &evaluation.source);
    for (path, source) in [("data.source", Some(&data.source)), ("evaluation.source", of_evaluation)] {
        if let Some(Source::Embedded { .. }) = source {
            let allowed = "files whose records have the fields that training.objective reads";
            return refuse(path, "\"embedded\" notes, which have none", allowed, "name files");
        }
    }
    if data.token_file().is_some() {
        let allowed = "files whose records have the fields that training.objective reads";
        return refuse("data.source", "a .tokens file, which has none", allowed, "give the text itself");
    }
    let given = match data.format {
        Format::Text => "\"text\", whose records have no fields",
        Format::Iob if objective != Objective::TokenClassification => {
            "\"iob\", whose records have tags for words"
        }
        _ => return check_distinct(file),
    };
    let allowed = "\"jsonl\", \"json\", \"csv\", \"tsv\", \"parquet\" or, for tags, \"iob\"";
    refuse("data.format", given, allowed, "give the data in one of these")
}

fn check_distinct(file: &PlanFile) -> Result<(), PlanError> {
    let data = &file.data;
    if data.second_text_prefix.is_some() && data.second_text_field.is_none() {
        let allowed = "nothing without data.second_text_field";
        return refuse("data.second_text_prefix", "given", allowed, "remove it, or name that field");
    }
    let fields = [
        ("data.second_text_field", data.second_text_field.as_deref()),
        ("data.label_field", file.training.objective.has_labels().then(|| data.label_field())),
        (
            "data.target_field",
            (file.training.objective == Objective::TextToText).then(|| data.target_field()),
        ),
    ];
    match fields.into_iter().find(|(_, name)| *name == Some(data.text_field.as_str())) {
        None => Ok(()),
        Some((path, _)) => {
            let allowed = "a field other than data.text_field";
            refuse(path, shown(&data.text_field.as_str().into()), allowed, "name the field")
        }
    }
}
