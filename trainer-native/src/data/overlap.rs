//! Refuses public text that is private training text: its figures are published without noise.
//!
//! The comparison sees the private text, so its outcome depends on it. It is a condition of the guarantee, stated on the
//! certificate: the guarantee compares training texts that pass it. A refusal is for the owner of the text alone.

use std::path::Path;

use dp_tokenizer::corpus::{self, Source};
use dp_tokenizer::identity::{Key, Passage, SKETCH, Sharing, Sketch, compare, strings_of_json};
use dp_tokenizer::tokens::TokenDataset;
use tokenizer::Tokenizer;

use super::texts::refused;
use super::{Answer, LabelledRecord, PublicText, Units};
use crate::{RunError, durable};

/// What `field` may name.
const ALLOWED: &str = "allowed: public text other than that of training, since its figures are published without noise; fix: \
                       remove what the texts share, or name other text";

/// Refuses public files that are named twice, or that are training files under whatever name. `field` names them.
pub(super) fn check_files(training: Option<&Source>, public: &Source, field: &str) -> Result<(), RunError> {
    corpus::check_distinct(public).map_err(|error| refused(field, &error))?;
    match training.and_then(|training| corpus::common_file(training, public)) {
        None => Ok(()),
        Some((training, public)) => Err(refused(
            field,
            &format!("{} is the training text {}; {ALLOWED}", public.display(), training.display()),
        )),
    }
}

/// Refuses public text that shares records, or runs of words, with private training text. `field` names the public text.
pub(super) fn check_records(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
    public: &PublicText,
    field: &str,
) -> Result<(), RunError> {
    if plan.is_public() {
        return Ok(());
    }
    let tokenizer = tokenizer_of_tokens(plan, base, units)?;
    let is_chat = plan.training().objective == plan::Objective::Chat;
    let key = Key::random().map_err(|error| RunError::Failed(error.to_string()))?;
    let read_public = |take: &mut dyn FnMut(Passage<'_>)| {
        each_public(public, tokenizer.as_ref(), is_chat, take);
        Ok(())
    };
    let read_private =
        |take: &mut dyn FnMut(Passage<'_>)| each_private(units, tokenizer.as_ref(), is_chat, take);
    compare(&key, &read_public, &read_private)?.check().map_err(|sharing| refused(field, &shared(sharing)))
}

/// A sketch of a text that the plan declares public.
pub(crate) fn public_sketch(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
) -> Result<Option<Sketch>, RunError> {
    if plan.is_public() { sketch(plan, base, units).map(Some) } else { Ok(None) }
}

/// Refuses private text that an earlier stage called public: that stage used it without noise. `earlier` has the names and the texts
/// of these.
pub(crate) fn check_earlier(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
    earlier: &[(&str, &Sketch)],
) -> Result<(), RunError> {
    if plan.is_public() || earlier.is_empty() {
        return Ok(());
    }
    let own = sketch(plan, base, units)?;
    let same = |(_, text): &&(&str, &Sketch)| Sketch::first_pair(&[(*text).clone(), own.clone()]).is_some();
    match earlier.iter().find(same) {
        None => Ok(()),
        Some((name, _)) => Err(refused(
            "data.source",
            &format!(
                "half of this text or more is in the text of {name}, which was declared public and used without noise, and this plan \
                 builds on that stage; allowed: other text, or a checkpoint and a tokenizer that were made without this text"
            ),
        )),
    }
}

fn sketch(plan: &plan::Plan, base: &Path, units: &Units) -> Result<Sketch, RunError> {
    let tokenizer = tokenizer_of_tokens(plan, base, units)?;
    let is_chat = plan.training().objective == plan::Objective::Chat;
    let read = |take: &mut dyn FnMut(Passage<'_>)| each_private(units, tokenizer.as_ref(), is_chat, take);
    Sketch::new(SKETCH).read(&Key::public(), &read)
}

/// The tokenizer of a token file, where the training text is one.
fn tokenizer_of_tokens(plan: &plan::Plan, base: &Path, units: &Units) -> Result<Option<Tokenizer>, RunError> {
    match (&units.tokens, plan.tokenizer()) {
        (Some(_), plan::Tokenizer::Public(public)) => read_tokenizer(&base.join(&public.path)).map(Some),
        _ => Ok(None),
    }
}

/// Refuses records that are declared public, which `option` names, and share text with private ones.
pub(crate) fn check_apart(option: &str, public: &[&str], private: &[String]) -> Result<(), RunError> {
    let key = Key::random().map_err(|error| RunError::Failed(error.to_string()))?;
    let each = |texts: &mut dyn Iterator<Item = &str>, take: &mut dyn FnMut(Passage<'_>)| {
        texts.for_each(|text| take(Passage::record(text)));
        Ok::<(), RunError>(())
    };
    let read_public = |take: &mut dyn FnMut(Passage<'_>)| each(&mut public.iter().copied(), take);
    let read_private =
        |take: &mut dyn FnMut(Passage<'_>)| each(&mut private.iter().map(String::as_str), take);
    compare(&key, &read_public, &read_private)?.check().map_err(|sharing| refused(option, &shared(sharing)))
}

fn shared(sharing: Sharing) -> String {
    format!("it shares text with the training text: {sharing}; {ALLOWED}")
}

fn read_tokenizer(path: &Path) -> Result<Tokenizer, RunError> {
    let text = String::from_utf8_lossy(&durable::read(path)?).into_owned();
    Tokenizer::from_json(&text).map_err(|error| RunError::Refused(format!("{}: {error}", path.display())))
}

/// The passages of public text. Beside a token file they are encoded and decoded, since the file has no text but that of its
/// tokens.
fn each_public(
    public: &PublicText,
    tokenizer: Option<&Tokenizer>,
    is_chat: bool,
    take: &mut dyn FnMut(Passage<'_>),
) {
    let mut whole = |text: &str| match tokenizer {
        None => take(Passage::record(text)),
        Some(tokenizer) => take(Passage::record(&tokenizer.decode(&tokenizer.encode(text)))),
    };
    match public {
        PublicText::Texts(texts) => texts.iter().for_each(|text| whole(&text.piece.text)),
        PublicText::Labelled(records) => {
            records.iter().for_each(|record| whole(&text_of(record, is_chat)));
        }
    }
}

fn each_private(
    units: &Units,
    tokenizer: Option<&Tokenizer>,
    is_chat: bool,
    take: &mut dyn FnMut(Passage<'_>),
) -> Result<(), RunError> {
    units.texts.for_each(|text| {
        take(Passage { text: &text.piece.text, ends_record: text.ends_record });
    })?;
    if let Some(records) = &units.labelled {
        records.for_each(|record| take(Passage::record(&text_of(record, is_chat))))?;
    }
    match (&units.tokens, tokenizer) {
        (Some(tokens), Some(tokenizer)) => each_decoded(tokens.for_mechanism(), tokenizer, take),
        _ => Ok(()),
    }
}

/// The text of a record, whatever its label: what is read and what is to be written, in an order that swapping a pair does not
/// change. A conversation is its messages, whatever their JSON.
fn text_of(record: &LabelledRecord, is_chat: bool) -> String {
    if is_chat {
        return strings_of_json(&record.text);
    }
    let target = match &record.answer {
        Answer::Text(target) => Some(target),
        Answer::Labels(_) => None,
    };
    let mut parts: Vec<&str> = [Some(&record.text), record.second.as_ref(), target]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    parts.sort_by_cached_key(|part| part.trim().to_lowercase());
    parts.join("\n")
}

fn each_decoded(
    tokens: &TokenDataset,
    tokenizer: &Tokenizer,
    take: &mut dyn FnMut(Passage<'_>),
) -> Result<(), RunError> {
    let mut ids = Vec::new();
    for part in (0..tokens.parts()).filter_map(|number| tokens.part(number)) {
        tokens.read(part.tokens, &mut ids).map_err(|error| refused("data.source", &error))?;
        take(Passage { text: &tokenizer.decode(&ids), ends_record: false });
        // Pieces of a record end at white space, which a tokenizer may drop.
        take(Passage { text: " ", ends_record: part.ends_record });
    }
    Ok(())
}
