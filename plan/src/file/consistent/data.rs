//! Checks the training text, its units and the evaluation text.

use std::collections::BTreeSet;

use accountant::NeighboringRelation;
use mechanisms::MAX_ITEMS_PER_UNIT;

use crate::file::data::is_token_file;
use crate::messages::{refuse, shown};
use crate::{
    Data, Format, Objective, PlanError, PlanFile, PrivacyUnit, Source, Tokenizer, TokenizerModel,
    TrainedTokenizer, Visibility, Words,
};

/// Accepts text whose source, unit and tokenizer fit one another.
pub(super) fn check(file: &PlanFile) -> Result<(), PlanError> {
    check_source(&file.data.source, "data.source")?;
    check_names(file)?;
    check_tokens(file)?;
    check_unit(file)?;
    check_release(file)
}

fn check_source(source: &Source, path: &str) -> Result<(), PlanError> {
    let paths = paths(source);
    if paths.iter().any(|one| one.trim().is_empty() || one.contains('\0')) {
        return refuse(path, "an empty path", "the path of a file", "name the file, from the plan's folder");
    }
    let distinct: BTreeSet<&&str> = paths.iter().collect();
    if distinct.len() == paths.len() {
        return Ok(());
    }
    let allowed = "each file once";
    refuse(path, "the same file twice", allowed, "remove one: its records would count as two units")
}

/// Refuses long names of fields. A plan is published with these names, and a name of more than a few words may be a
/// cell of the text.
fn check_names(file: &PlanFile) -> Result<(), PlanError> {
    let data = &file.data;
    let evaluated = file.evaluation.as_ref().and_then(|evaluation| evaluation.text_field.as_ref());
    let fields = [
        ("data.text_field", Some(&data.text_field)),
        ("data.second_text_field", data.second_text_field.as_ref()),
        ("data.label_field", data.label_field.as_ref()),
        ("data.target_field", data.target_field.as_ref()),
        ("data.user_field", data.user_field.as_ref()),
        ("data.owners_field", data.owners_field.as_ref()),
        ("evaluation.text_field", evaluated),
    ];
    let columns = data.columns.iter().flatten().filter(|name| !name.is_empty());
    let columns = columns.map(|name| ("data.columns", name));
    let mut named = fields.into_iter().filter_map(|(path, name)| Some((path, name?))).chain(columns);
    match named.find(|(_, name)| !mechanisms::is_field_name(name)) {
        None => Ok(()),
        Some((path, name)) => refuse(
            path,
            format!("a name of {} characters", name.chars().count()),
            "at most 64 characters and eight words, without line ends",
            "give the name of a field; data.columns names those of a table without a header line",
        ),
    }
}

fn paths(source: &Source) -> Vec<&str> {
    match source {
        Source::Embedded { .. } => Vec::new(),
        Source::Path(path) => vec![path],
        Source::Paths(paths) => paths.iter().map(String::as_str).collect(),
    }
}

/// Checks that a token file stands for the whole training text, under the public tokenizer that encoded it. Evaluation
/// text is not read from one.
fn check_tokens(file: &PlanFile) -> Result<(), PlanError> {
    let holds_one = |source, format| format == Format::Auto && paths(source).into_iter().any(is_token_file);
    let format = file.data.format;
    if let Some(evaluation) = &file.evaluation
        && holds_one(&evaluation.source, evaluation.format.unwrap_or(format))
    {
        return refuse("evaluation.source", "a .tokens file", "text", "name the text it was made from");
    }
    let is_text = |source: &Source| !matches!(source, Source::Embedded { .. });
    let has_encoding = !file.data.encoding.is_utf8();
    if has_encoding && (!is_text(&file.data.source) || file.data.token_file().is_some()) {
        return refuse(
            "data.encoding",
            shown(&file.data.encoding.name().into()),
            "nothing with this source, which has no encoding",
            "remove it",
        );
    }
    match (file.data.token_file(), &file.tokenizer) {
        (None, _) if holds_one(&file.data.source, format) => refuse(
            "data.source",
            "a .tokens file in a list",
            "{\"path\": …}, one .tokens file alone",
            "encode all of the text into one",
        ),
        (Some(_), Tokenizer::Train(_) | Tokenizer::Extend(_) | Tokenizer::Bytes) => refuse(
            "tokenizer",
            "not \"public\", though data.source is a .tokens file",
            "{\"public\": {\"path\": …}}, the file it was encoded with",
            "name that file, or give the text itself as data.source",
        ),
        _ => Ok(()),
    }
}

/// Checks the kind of words that a vocabulary releases. A model that cuts text at punctuation would cut words as
/// written.
fn check_words(file: &PlanFile, trained: &TrainedTokenizer) -> Result<(), PlanError> {
    let keeps_punctuation = matches!(trained.model, TokenizerModel::Unigram | TokenizerModel::Char);
    if trained.words == Words::PairsByLabel {
        check_words_by_label(file)?;
    }
    let pairs = if trained.words == Words::Pairs { "pairs" } else { "pairs_by_label" };
    if trained.words.has_pairs() && file.training.warm_start.is_none() {
        return refuse(
            "tokenizer.train.words",
            format!("\"{pairs}\" without training.warm_start, which alone uses them"),
            "\"by_class\" or \"as_written\"",
            "remove it, or add training.warm_start",
        );
    }
    if trained.words == Words::ByClass
        || trained.words.has_pairs()
        || (keeps_punctuation && trained.words == Words::AsWritten)
    {
        return Ok(());
    }
    if trained.words == Words::Runs {
        return refuse(
            "tokenizer.train.words",
            "\"runs\", whose tokens reach across blanks",
            "\"by_class\" or \"as_written\"",
            "remove it, or train such a vocabulary with dp-tokenizer",
        );
    }
    refuse(
        "tokenizer.train.words",
        "\"as_written\" with a model that cuts text at punctuation",
        "\"by_class\" with bpe and wordpiece; \"as_written\" with unigram and char",
        "remove it, or set tokenizer.train.model to \"unigram\"",
    )
}

/// Checks that the model learns from words of a public prior.
fn check_prior(trained: &TrainedTokenizer) -> Result<(), PlanError> {
    if trained.prior.is_empty() || trained.model == TokenizerModel::Unigram {
        return Ok(());
    }
    refuse(
        "tokenizer.train.prior",
        "given with a model that does not learn from it",
        "with tokenizer.train.model \"unigram\"",
        "remove it, or set tokenizer.train.model to \"unigram\"",
    )
}

/// Checks that words can be counted by label: a record is one listed label and one text.
fn check_words_by_label(file: &PlanFile) -> Result<(), PlanError> {
    let labels = file.labels_of_words();
    let given = if labels.is_empty() {
        "\"pairs_by_label\" with records that do not have one listed label each"
    } else if file.data.second_text_field.is_some() {
        "\"pairs_by_label\" with data.second_text_field, so that records have more than a label and a text"
    } else if labels.iter().any(|label| label.contains(['\n', '\r'])) {
        "\"pairs_by_label\" with a label of several lines"
    } else {
        return Ok(());
    };
    refuse(
        "tokenizer.train.words",
        given,
        "\"pairs_by_label\" with training.objective \"sequence_classification\", or with \"text_to_text\" and data.label_histogram; \
         labels of one line",
        "choose \"by_class\" and remove training.warm_start",
    )
}

/// Checks that a release fits the privacy unit: those of the papers count the words of units of N words.
fn check_release(file: &PlanFile) -> Result<(), PlanError> {
    if let Tokenizer::Train(trained) = &file.tokenizer {
        check_words(file, trained)?;
        check_prior(trained)?;
    }
    let Some((release, _)) = file.tokenizer.release() else { return Ok(()) };
    let is_words = matches!(file.privacy.unit, PrivacyUnit::Words(1..=MAX_ITEMS_PER_UNIT));
    if is_words || !release.is_of_paper() || file.data.visibility == Visibility::Public {
        return Ok(());
    }
    let (name, is_new) = (release.name(), matches!(file.tokenizer, Tokenizer::Train(_)));
    refuse(
        if is_new { "tokenizer.train.release" } else { "tokenizer.extend.release" },
        format!("\"{name}\" with privacy.unit \"{}\"", file.privacy.unit),
        &format!(
            "with this unit, any other method; \"{name}\" with {{\"words\": N}}, N from 1 to {MAX_ITEMS_PER_UNIT}"
        ),
        "choose \"pooled\", or set privacy.unit to {\"words\": 256}",
    )
}

/// Checks records with several owners. Which of them are used depends on who owns which record, so that this must be public.
fn check_owners(file: &PlanFile) -> Result<(), PlanError> {
    let (data, privacy) = (&file.data, &file.privacy);
    let Some(owners) = &data.owners_field else {
        return if privacy.unit == PrivacyUnit::Owner {
            let given = "missing, though privacy.unit is \"owner\"";
            refuse(
                "data.owners_field",
                given,
                "the name of a JSON field",
                "name the field that lists a record's owners",
            )
        } else {
            Ok(())
        };
    };
    let read = [Some(&data.text_field), data.second_text_field.as_ref(), data.user_field.as_ref()];
    let of_files = matches!(data.source, Source::Path(_) | Source::Paths(_));
    let (path, given, allowed, fix) = if privacy.unit != PrivacyUnit::Owner {
        let given = format!("given, though privacy.unit is \"{}\"", privacy.unit);
        ("data.owners_field", given, "nothing with this unit", "remove it, or set privacy.unit to \"owner\"")
    } else if read.into_iter().flatten().chain([&data.label_field().to_owned()]).any(|name| name == owners) {
        let given = shown(&owners.as_str().into());
        (
            "data.owners_field",
            given,
            "a field that the plan reads for nothing else",
            "name the field of the owners",
        )
    } else if !of_files || data.format == Format::Text || data.token_file().is_some() {
        let given = "\"owner\" with a text that names no owners".to_owned();
        let allowed = "files of records with a list of owners: JSON lines or JSON";
        ("privacy.unit", given, allowed, "name such files, or choose \"record\"")
    } else if privacy.sampling.examples_per_unit().is_none() {
        let given = format!("\"{}\" with privacy.unit \"owner\"", privacy.sampling.name());
        let allowed = "\"poisson_of_examples\", whose examples_per_unit bounds the records of an owner";
        ("privacy.sampling", given, allowed, "choose it")
    } else if privacy.relation == NeighboringRelation::AddOrRemoveOne {
        let given = "\"add_or_remove_one\" with privacy.unit \"owner\"".to_owned();
        let allowed = "\"zero_out\" or \"replace_one\": without an owner, other records would be within the bound of the other owners";
        ("privacy.relation", given, allowed, "set \"zero_out\": who owns which record is then public")
    } else if file.tokenizer.release().is_some() {
        let given = "learnt from private text with privacy.unit \"owner\"".to_owned();
        let allowed =
            "\"bytes\" or {\"public\": …}: the release of words does not bound what an owner adds to it";
        ("tokenizer", given, allowed, "choose one of these")
    } else if data.label_histogram.is_some() {
        let given = "given with privacy.unit \"owner\"".to_owned();
        (
            "data.label_histogram",
            given,
            "nothing with this unit: an owner would add to several counts",
            "remove it",
        )
    } else {
        return Ok(());
    };
    refuse(path, given, allowed, fix)
}

fn check_unit(file: &PlanFile) -> Result<(), PlanError> {
    check_owners(file)?;
    let Data { source, format, user_field, text_field, units, .. } = &file.data;
    if user_field.as_ref() == Some(text_field) {
        let given = shown(&text_field.as_str().into());
        return refuse(
            "data.user_field",
            given,
            "a field other than data.text_field",
            "name the user's field",
        );
    }
    match (file.privacy.unit, source) {
        (PrivacyUnit::Record, Source::Embedded { records, .. }) if records != units => {
            let given = format!("{units}, though the embedded source has {records} records");
            refuse("data.units", given, "the number of records", &format!("set it to {records}"))
        }
        (PrivacyUnit::User, Source::Path(_) | Source::Paths(_)) if *format == Format::Text => refuse(
            "privacy.unit",
            "\"user\" with data.format \"text\", which names no users",
            "\"record\" or {\"words\": 128}",
            "choose one of these, or give the text as JSON lines with a data.user_field",
        ),
        (PrivacyUnit::User, Source::Path(_) | Source::Paths(_))
            if user_field.is_none() && file.data.token_file().is_none() =>
        {
            refuse(
                "data.user_field",
                "missing, though privacy.unit is \"user\"",
                "the name of a JSON field",
                "name the field that holds a record's user",
            )
        }
        _ => Ok(()),
    }
}

/// Refuses evaluation text that is the private text, because figures on it are published without noise.
pub(super) fn check_evaluation(file: &PlanFile) -> Result<(), PlanError> {
    let Some(evaluation) = &file.evaluation else { return Ok(()) };
    check_source(&evaluation.source, "evaluation.source")?;
    let shares = match (&evaluation.source, &file.data.source) {
        (Source::Embedded { seed: one, .. }, Source::Embedded { seed: other, .. }) => one == other,
        (one, other) => {
            let private: BTreeSet<&str> = paths(other).into_iter().collect();
            paths(one).into_iter().any(|path| private.contains(path))
        }
    };
    if shares {
        return refuse(
            "evaluation.source",
            "the training text",
            "public text other than that of training: its loss is published without noise",
            "name held-out public text (or another seed), or remove evaluation",
        );
    }
    if evaluation.smallest_change.is_some() && evaluation.patience.is_none() && !evaluation.keep_best {
        return refuse(
            "evaluation.smallest_change",
            "given, though nothing depends on the lowest loss",
            "a plan with evaluation.patience or evaluation.keep_best",
            "add one of the two, or remove it",
        );
    }
    if evaluation.beams.is_some() && file.training.objective != Objective::TextToText {
        let allowed = "nothing: only the texts of \"text_to_text\" are searched for";
        return refuse("evaluation.beams", "given", allowed, "remove it, or choose that training.objective");
    }
    Ok(())
}
