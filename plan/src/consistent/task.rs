//! Labels, and the fields of the data that a task reads.

use std::collections::BTreeSet;

use super::{Checked, refuse};
use crate::describe::shown;
use crate::{Format, Objective, PlanFile, PrivacyUnit, Source};

/// Accepts labels and fields that the objective reads, and data that can hold them.
pub(super) fn check(file: &PlanFile) -> Checked {
    check_fields(file)?;
    check_labels(file)?;
    if file.training.objective.reads_fields() { check_data(file) } else { Ok(()) }
}

/// A field that the objective does not read would be a promise nobody keeps.
fn check_fields(file: &PlanFile) -> Checked {
    use Objective::{MultiLabelClassification, SequenceClassification, TextToText, TokenClassification};
    let (data, objective) = (&file.data, file.training.objective);
    let is_any = |objectives: &[Objective]| objectives.contains(&objective);
    let classifies = is_any(&[SequenceClassification, MultiLabelClassification]);
    let tags = objective == TokenClassification;
    let fields = [
        ("data.second_text_field", data.second_text_field.is_some(), classifies, "classification of texts"),
        ("data.label_field", data.label_field.is_some(), classifies || tags, "classification"),
        ("data.target_field", data.target_field.is_some(), objective == TextToText, "\"text_to_text\""),
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
            refuse(path, "given".into(), &allowed, "remove it, or choose that training.objective")
        }
    }
}

fn check_labels(file: &PlanFile) -> Checked {
    let objective = file.training.objective;
    if !objective.has_labels() {
        return Ok(());
    }
    let path = "training.labels";
    let Some(labels) = &file.training.labels else {
        let fix = "add the list of all labels: it is public knowledge, and never read from the data";
        return refuse(path, "missing".into(), "the labels that the model may predict", fix);
    };
    let least = if objective == Objective::MultiLabelClassification { 1 } else { 2 };
    if labels.len() < least {
        return refuse(path, format!("{} labels", labels.len()), "at least 2", "add the missing ones");
    }
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
        if objective == Objective::MultiLabelClassification && label.contains(',') {
            let allowed = "names without commas, which separate the labels of a text";
            return refuse(
                &at,
                shown(&label.as_str().into()),
                allowed,
                "rename it in the plan and in the data",
            );
        }
    }
    Ok(())
}

fn check_data(file: &PlanFile) -> Checked {
    let (data, objective) = (&file.data, file.training.objective);
    if let PrivacyUnit::Words(_) = file.privacy.unit {
        let fix = "choose one of these: a label belongs to a whole record";
        return refuse("privacy.unit", "words".into(), "\"record\" or \"user\" with this objective", fix);
    }
    let of_evaluation = file.evaluation.as_ref().map(|evaluation| &evaluation.source);
    for (path, source) in [("data.source", Some(&data.source)), ("evaluation.source", of_evaluation)] {
        if let Some(Source::Embedded { .. }) = source {
            let allowed = "files whose records have the fields that training.objective reads";
            return refuse(path, "\"embedded\" notes, which have none".into(), allowed, "name files");
        }
    }
    if data.token_file().is_some() {
        let allowed = "files whose records have the fields that training.objective reads";
        return refuse(
            "data.source",
            "a .tokens file, which has none".into(),
            allowed,
            "give the text itself",
        );
    }
    let given = match data.format {
        Format::Text => "\"text\", whose records have no fields",
        Format::Iob if objective != Objective::TokenClassification => {
            "\"iob\", whose records have tags for words"
        }
        _ => return check_distinct(file),
    };
    let allowed = "\"jsonl\", \"json\", \"csv\", \"tsv\", \"parquet\" or, for tags, \"iob\"";
    refuse("data.format", given.into(), allowed, "give the data in one of these")
}

fn check_distinct(file: &PlanFile) -> Checked {
    let data = &file.data;
    let fields = [
        ("data.second_text_field", data.second_text_field.as_deref()),
        ("data.label_field", file.training.objective.has_labels().then(|| data.label_field())),
        ("data.target_field", (!file.training.objective.has_labels()).then(|| data.target_field())),
    ];
    match fields.into_iter().find(|(_, name)| *name == Some(data.text_field.as_str())) {
        None => Ok(()),
        Some((path, _)) => {
            let allowed = "a field other than data.text_field";
            refuse(path, shown(&data.text_field.as_str().into()), allowed, "name the field")
        }
    }
}
