//! Refuses public text that is also private training text, because figures of public text are
//! published without noise.
//!
//! The comparison sees the private text, so its outcome depends on it. The certificate states this
//! as a condition: the guarantee compares training texts that pass the comparison. Only the owner
//! of the text sees a refusal.

use std::path::Path;

use dp_tokenizer::corpus::{self, Source};
use dp_tokenizer::identity::{
    EqualPhrases, Key, Passage, Read, Reading, SKETCH, Share, Sharing, Sketch, compare_shares,
    strings_of_json,
};
use dp_tokenizer::tokens::TokenDataset;
use tokenizer::Tokenizer;

use super::unit_text::refused;
use super::{Answer, LabelledRecord, PublicText, Units};
use crate::RunError;
use crate::ranks::Ranks;

/// The plan's field that names the evaluation text.
pub(crate) const EVALUATION: &str = "evaluation.source";

/// The part of a message that says what `field` may name.
const ALLOWED: &str = "allowed: public text other than that of training, since its figures are published without noise; fix: \
                       remove what the texts share, or name other text";

/// A public text that is compared with the training text.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The field of the plan, or the option, that names the text.
    pub field: &'a str,
    /// Whether the text may have phrases of the training text.
    pub phrases: EqualPhrases,
    /// The field or the option that accepts such phrases.
    pub accepts: &'a str,
}

impl<'a> Compared<'a> {
    /// Describes a text that an option of the command line names. `accepts` says whether `--accept-equal-phrases` is
    /// given.
    #[must_use]
    pub fn option(field: &'a str, accepts: bool) -> Self {
        Self { field, phrases: phrases(accepts), accepts: "--accept-equal-phrases" }
    }

    /// Describes the plan's evaluation text.
    pub(crate) fn evaluation(plan: &plan::Plan) -> Self {
        let accepts = plan.evaluation().is_some_and(|evaluation| evaluation.accept_equal_phrases);
        Self {
            field: EVALUATION,
            phrases: phrases(accepts),
            accepts: "\"accept_equal_phrases\": true in evaluation",
        }
    }

    fn refused(&self, sharing: Sharing) -> RunError {
        let accept = match sharing {
            Sharing::Phrases(_) => format!(
                "; if the texts are parts of one corpus, whose short records repeat by chance, {} accepts them",
                self.accepts
            ),
            _ => String::new(),
        };
        refused(self.field, &format!("it shares text with the training text: {sharing}; {ALLOWED}{accept}"))
    }
}

fn phrases(accepts: bool) -> EqualPhrases {
    if accepts { EqualPhrases::Accepted } else { EqualPhrases::Refused }
}

/// Refuses a text that is named twice. `field` names it. All ranks call this together, with the same text, and each reads its share
/// of the paths.
///
/// # Errors
/// [`RunError::Refused`] on all ranks.
pub(super) fn check_distinct(source: &Source, field: &str, ranks: &Ranks) -> Result<(), RunError> {
    let key = shared_key(ranks)?;
    let distinct =
        corpus::check_distinct_shares(source, &key, share(ranks), &mut |own| exchange(ranks, &own));
    ranks.agree(distinct.map_err(|error| refused(field, &error)))
}

/// Refuses public files that are named twice, or that are training files under whatever name. `field` names them. All ranks call this
/// together.
///
/// # Errors
/// [`RunError::Refused`] on all ranks.
pub(super) fn check_files(
    training: Option<&Source>,
    public: &Source,
    field: &str,
    ranks: &Ranks,
) -> Result<(), RunError> {
    check_distinct(public, field, ranks)?;
    let common = training.and_then(|training| corpus::common_file(training, public));
    ranks.agree(match common {
        None => Ok(()),
        Some((training, public)) => Err(refused(
            field,
            &format!("{} is the training text {}; {ALLOWED}", public.display(), training.display()),
        )),
    })
}

/// Refuses public text that shares records, or runs of words, with private training text. All ranks
/// call this together, with the same texts, and each reads its share of the records.
///
/// # Errors
/// [`RunError::Refused`] on all ranks.
pub(crate) fn check_records(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
    public: &PublicText,
    of_public: Compared<'_>,
    ranks: &Ranks,
) -> Result<(), RunError> {
    if plan.is_public() {
        return Ok(());
    }
    let tokenizer = ranks.agree(tokenizer_of_tokens(plan, base, units))?;
    let is_chat = plan.training().objective == plan::Objective::Chat;
    let read_public = |reading: &mut Reading<'_>| {
        each_public(public, tokenizer.as_ref(), is_chat, reading);
        Ok(())
    };
    let read_private = |reading: &mut Reading<'_>| units.each_passage(tokenizer.as_ref(), is_chat, reading);
    check_pair(&read_public, &read_private, of_public, ranks)
}

fn check_pair(
    public: Read<'_, RunError>,
    private: Read<'_, RunError>,
    of_public: Compared<'_>,
    ranks: &Ranks,
) -> Result<(), RunError> {
    let key = shared_key(ranks)?;
    let mut exchange_or_fail = |own| ranks.agree(own).map(|own: Vec<u64>| exchange(ranks, &own));
    let overlap = compare_shares(&key, share(ranks), public, private, &mut exchange_or_fail)?;
    ranks.agree(overlap.check(of_public.phrases).map_err(|sharing| of_public.refused(sharing)))
}

/// Exchanges numbers among ranks. Returns those of every rank, by rank.
fn exchange(ranks: &Ranks, own: &[u64]) -> Vec<Vec<u64>> {
    let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
    let number = |eight: &[u8]| eight.try_into().map_or(0, u64::from_le_bytes);
    ranks.exchange(&bytes).iter().map(|bytes| bytes.chunks_exact(8).map(number).collect()).collect()
}

/// Draws a random key, the same on all ranks.
fn shared_key(ranks: &Ranks) -> Result<Key, RunError> {
    let mut own = [0; 2];
    let drawn = Key::shared(|words| own = *words).map_err(|error| RunError::Failed(error.to_string()));
    ranks.agree(drawn)?;
    Ok(Key::new(ranks.of_first(own)?))
}

/// Returns the share of the records that a rank reads, on as many threads as it has.
fn share(ranks: &Ranks) -> Share {
    let threads = (Share::whole().threads / ranks.on_this_host() as u64).max(1);
    Share { process: ranks.rank() as u64, processes: ranks.count() as u64, threads }
}

/// Returns a sketch of the training text if the plan declares it public. Such a plan has one rank.
pub(crate) fn public_sketch(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
) -> Result<Option<Sketch>, RunError> {
    if plan.is_public() { sketch(plan, base, units, &Ranks::alone()).map(Some) } else { Ok(None) }
}

/// Refuses private text that an earlier stage called public: that stage used it without noise.
/// `earlier` holds the names and the texts of these stages. All ranks call this together, with the
/// same text.
///
/// # Errors
/// [`RunError::Refused`] on all ranks.
pub(crate) fn check_earlier(
    plan: &plan::Plan,
    base: &Path,
    units: &Units,
    earlier: &[(&str, &Sketch)],
    ranks: &Ranks,
) -> Result<(), RunError> {
    if plan.is_public() || !ranks.any(!earlier.is_empty()) {
        return Ok(());
    }
    let own = sketch(plan, base, units, ranks)?;
    ranks.agree(check_unused(&own, earlier))
}

/// Refuses private text that an earlier stage called public, by its sketch.
fn check_unused(own: &Sketch, earlier: &[(&str, &Sketch)]) -> Result<(), RunError> {
    let same = |(_, text): &&(&str, &Sketch)| Sketch::first_pair(&[(*text).clone(), own.clone()]).is_some();
    earlier.iter().find(same).map_or(Ok(()), |(name, _)| {
        Err(refused(
            "data.source",
            &format!(
                "half of this text or more is in the text of {name}, which was declared public and used without noise, and this plan \
                 builds on that stage; allowed: other text, or a checkpoint and a tokenizer that were made without this text"
            ),
        ))
    })
}

/// Refuses private records that public texts to choose from share, or that are half of a text which an earlier stage called
/// public.
///
/// # Errors
/// [`RunError::Refused`].
pub(crate) fn check_private(
    units: &Units,
    candidates: &[String],
    earlier: &[(&str, &Sketch)],
) -> Result<(), RunError> {
    let ranks = Ranks::alone();
    let read_private = |reading: &mut Reading<'_>| units.each_passage(None, false, reading);
    if !earlier.is_empty() {
        check_unused(&Sketch::new(SKETCH).read(&Key::public(), share(&ranks), &read_private)?, earlier)?;
    }
    if candidates.is_empty() {
        return Ok(());
    }
    let compared = Compared { field: "candidates.texts", phrases: EqualPhrases::Accepted, accepts: "" };
    check_pair(&|reading: &mut Reading<'_>| each_of(candidates, reading), &read_private, compared, &ranks)
}

/// Returns the sketch of public texts, which a stage keeps for the stages after it.
pub(crate) fn sketch_of_texts(texts: &[String]) -> Result<Sketch, RunError> {
    let read = |reading: &mut Reading<'_>| each_of(texts, reading);
    Sketch::new(SKETCH).read(&Key::public(), share(&Ranks::alone()), &read)
}

fn each_of(texts: &[String], reading: &mut Reading<'_>) -> Result<(), RunError> {
    texts.iter().for_each(|text| reading.take(Passage::record(text)));
    Ok(())
}

/// Returns the sketch of the training text, which the ranks read together.
fn sketch(plan: &plan::Plan, base: &Path, units: &Units, ranks: &Ranks) -> Result<Sketch, RunError> {
    let tokenizer = ranks.agree(tokenizer_of_tokens(plan, base, units))?;
    let is_chat = plan.training().objective == plan::Objective::Chat;
    let read = |reading: &mut Reading<'_>| units.each_passage(tokenizer.as_ref(), is_chat, reading);
    let own = ranks.agree(Sketch::new(SKETCH).read(&Key::public(), share(ranks), &read))?;
    let unreadable = |error: serde_json::Error| RunError::Failed(format!("the sketch of a rank: {error}"));
    let sent = ranks.agree(serde_json::to_vec(&own).map_err(unreadable))?;
    let mut whole = Sketch::new(SKETCH);
    for sketch in ranks.exchange(&sent) {
        whole.merge(&ranks.agree(serde_json::from_slice(&sketch).map_err(unreadable))?);
    }
    Ok(whole)
}

/// Reads the tokenizer of a token file, if the training text is one.
fn tokenizer_of_tokens(plan: &plan::Plan, base: &Path, units: &Units) -> Result<Option<Tokenizer>, RunError> {
    match (&units.tokens, plan.tokenizer()) {
        (Some(_), plan::Tokenizer::Public(public)) => read_tokenizer(&base.join(&public.path)).map(Some),
        _ => Ok(None),
    }
}

/// Refuses public records that share text with private ones.
pub fn check_apart(of_public: Compared<'_>, public: &[&str], private: &[String]) -> Result<(), RunError> {
    let read_public = |reading: &mut Reading<'_>| {
        public.iter().for_each(|text| reading.take(Passage::record(text)));
        Ok(())
    };
    let read_private = |reading: &mut Reading<'_>| {
        private.iter().for_each(|text| reading.take(Passage::record(text)));
        Ok(())
    };
    check_pair(&read_public, &read_private, of_public, &Ranks::alone())
}

fn read_tokenizer(path: &Path) -> Result<Tokenizer, RunError> {
    let text = String::from_utf8_lossy(&durable::read(path)?).into_owned();
    Tokenizer::from_json(&text).map_err(|error| RunError::Refused(error.in_file(path)))
}

/// Reads the passages of public text. For comparison with a token file they are encoded and
/// decoded, because the file has no text beyond its tokens.
fn each_public(public: &PublicText, tokenizer: Option<&Tokenizer>, is_chat: bool, reading: &mut Reading<'_>) {
    let mut whole = |text: &dyn Fn() -> String| match tokenizer {
        _ if !reading.wants() => reading.pass_over(),
        None => reading.take(Passage::record(&text())),
        Some(tokenizer) => reading.take(Passage::record(&tokenizer.decode(&tokenizer.encode(&text())))),
    };
    match public {
        PublicText::Texts(texts) => texts.iter().for_each(|text| whole(&|| text.piece.text.clone())),
        PublicText::Labelled(records) => {
            records.iter().for_each(|record| whole(&|| text_of(record, is_chat)));
        }
    }
}

impl Units {
    /// Reads the passages of the training text. Each thread reads its own records.
    fn each_passage(
        &self,
        tokenizer: Option<&Tokenizer>,
        is_chat: bool,
        reading: &mut Reading<'_>,
    ) -> Result<(), RunError> {
        self.texts.each_passage(reading)?;
        if let Some(records) = &self.labelled {
            records.each_passage(reading, |record| text_of(record, is_chat))?;
        }
        match (&self.tokens, tokenizer) {
            (Some(tokens), Some(tokenizer)) => each_decoded(tokens.for_mechanism(), tokenizer, reading),
            _ => Ok(()),
        }
    }
}

/// Returns the text of a record without its label: the input and the target, in an order that does
/// not change if a pair is swapped. The text of a conversation is that of its messages, independent
/// of the JSON form.
pub(crate) fn text_of(record: &LabelledRecord, is_chat: bool) -> String {
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
    reading: &mut Reading<'_>,
) -> Result<(), RunError> {
    let mut ids = Vec::new();
    for part in (0..tokens.parts()).filter_map(|number| tokens.part(number)) {
        if reading.wants() {
            tokens.read(part.tokens, &mut ids).map_err(|error| refused("data.source", &error))?;
            reading.take(Passage { text: &tokenizer.decode(&ids), ends_record: false });
        }
        // Pieces of a record end at white space, which a tokenizer may drop.
        reading.take(Passage { text: " ", ends_record: part.ends_record });
    }
    Ok(())
}

#[cfg(test)]
#[path = "overlap_tests.rs"]
mod tests;
