//! Finds the stages that a plan builds on.

use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::Source;
use plan::{Initial, MadeFrom, Plan, Tokenizer};

use super::check::check_same_units;
use super::proof::Proof;
use crate::RunError;
use crate::data::{evaluation_source, training_source};
use crate::store::files;
use crate::store::ledger::{LedgerState, Parent};
use crate::store::lineage::Lineage;
use crate::vocabulary;
use durable::{sha256_hex, sha256_of};

/// A file that a plan names.
struct Reference {
    /// The field that declares what the file was made from.
    field: &'static str,
    declared: MadeFrom,
    folder: PathBuf,
    /// The path, if the file is a tokenizer.
    tokenizer: Option<PathBuf>,
    /// Whether the stage made the training text.
    is_text: bool,
}

/// The plan's field of the origin of the training text.
const TEXT: &str = "data.made_from";
/// That of a tokenizer to extend, which is always public.
const EXTENDED: &str = "tokenizer.extend.path";
/// That of tokenizers whose pieces stand for words that were not released, which are public too.
const PRIOR: &str = "tokenizer.train.prior";

/// Finds the stages behind the plan's checkpoint and tokenizer, whose paths start at `base`.
///
/// # Errors
/// [`RunError::Refused`] if the plan does not declare what they were made from, or declares it
/// wrongly; [`RunError::Verification`] if a stage is not what it claims to be.
pub(super) fn lineage(plan: &Plan, base: &Path) -> Result<Lineage, RunError> {
    let mut lineage = Lineage::default();
    if let Initial::Checkpoint(path) = &plan.model().initial {
        let reference = Reference {
            field: "model.checkpoint_made_from",
            declared: plan.model().made_from(),
            folder: base.join(path),
            tokenizer: None,
            is_text: false,
        };
        reference.add(plan, &mut lineage)?;
    }
    let tokenizer = plan.tokenizer();
    for path in tokenizer.file().into_iter().chain(tokenizer.prior().iter().map(String::as_str)) {
        let path = base.join(path);
        let reference = Reference {
            field: match tokenizer {
                Tokenizer::Extend(_) => EXTENDED,
                Tokenizer::Train(_) => PRIOR,
                Tokenizer::Public(_) | Tokenizer::Bytes => "tokenizer.public.made_from",
            },
            declared: tokenizer.made_from(),
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            tokenizer: Some(path),
            is_text: false,
        };
        reference.add(plan, &mut lineage)?;
    }
    let training =
        WrittenText { field: TEXT, declared: plan.data().made_from(), source: training_source(plan, base) };
    training.add_writers(plan, &mut lineage)?;
    lineage.mark_same_public_text();
    if let (Some(evaluation), Some(source)) = (plan.evaluation(), evaluation_source(plan, base)) {
        let text = WrittenText { field: "evaluation.made_from", declared: evaluation.made_from(), source };
        text.add_writers(plan, &mut lineage)?;
    }
    Ok(lineage)
}

/// Refuses text that the model of a private run wrote, if the caller cannot account for the cost of
/// that run. `option` of the command line names the text.
///
/// # Errors
/// [`RunError::Refused`]; [`RunError::Verification`] if the run is not what it claims.
pub fn check_unwritten(texts: &[PathBuf], option: &str) -> Result<(), RunError> {
    for folder in files::proofs_of_texts(texts) {
        let proof = Proof::find(&folder)?;
        if proof.is_some_and(|proof| !proof.is_public || !proof.parents.is_empty()) {
            return Err(RunError::Refused(format!(
                "{option}: the model of a private run wrote this text ({} has its ledger), so that figures on it are figures on the \
                 text of that run; allowed: public text that no such run wrote",
                folder.display()
            )));
        }
    }
    Ok(())
}

/// Text that a plan names, which earlier runs may have written.
struct WrittenText {
    /// The field that declares what the text was made from.
    field: &'static str,
    declared: MadeFrom,
    source: Source,
}

impl WrittenText {
    /// Adds the runs whose models wrote files of the text, by the proofs that `synthesize` left
    /// beside these files.
    fn add_writers(self, plan: &Plan, lineage: &mut Lineage) -> Result<(), RunError> {
        let Self { field, declared, source } = self;
        let files = match source {
            Source::Files(files) => files.paths,
            _ => Vec::new(),
        };
        let proofs = files::proofs_of_texts(&files);
        if proofs.is_empty() && declared != MadeFrom::PublicText {
            return Err(RunError::Refused(format!(
                "{field}: declared \"{}\", but no file of this text has the folder (.proof) beside it that says what the run which \
                 wrote it cost; fix: remove the declaration, or put the folder back beside the records",
                declared.name()
            )));
        }
        let is_text = field == TEXT && are_records(&files)?;
        for folder in proofs {
            Reference { field, declared, folder, tokenizer: None, is_text }.add(plan, lineage)?;
        }
        Ok(())
    }
}

/// Returns whether each file has the bytes that the ledger of an evolution or a paraphrase names. Such records come from public text and
/// from mechanisms that the ledger charges, and are no person's.
fn are_records(texts: &[PathBuf]) -> Result<bool, RunError> {
    for text in texts {
        let proof = files::proof_of_text(text);
        if files::synthesis_in(&proof).is_none() {
            return Ok(false);
        }
        let sha256 = sha256_of(text)?;
        if !LedgerState::read(&proof)?.files().iter().any(|file| file.sha256 == sha256) {
            return Ok(false);
        }
    }
    Ok(!texts.is_empty())
}

impl Reference {
    fn add(&self, plan: &Plan, lineage: &mut Lineage) -> Result<(), RunError> {
        let refused =
            |what: String| RunError::Refused(format!("{}: {}: {what}", self.field, self.folder.display()));
        let Some(mut proof) = self.proof()? else {
            return match self.declared {
                MadeFrom::PublicText => Ok(()),
                declared => Err(refused(format!(
                    "declared \"{}\", but no ledger and no {} there says what it cost; allowed: \"public_text\", or the \
                     folder that the run wrote; fix: remove the declaration, or give that folder",
                    declared.name(),
                    files::PRIVACY
                ))),
            };
        };
        lineage.add_public(&proof.public_stages, self.is_text);
        if !self.counts(&proof).map_err(refused)? {
            return Ok(());
        }
        self.insert(plan, &proof, lineage).map_err(refused)?;
        for parent in &proof.parents {
            if let Some(earlier) = proof.earlier.take(parent) {
                lineage.carry(parent, earlier.files);
            }
        }
        lineage.carry(&proof.stage, proof.files);
        Ok(())
    }

    /// Returns the proof of the stage that made the file, if its folder names one.
    fn proof(&self) -> Result<Option<Proof>, RunError> {
        let Some(proof) = Proof::find(&self.folder)? else {
            self.tokenizer.as_deref().map_or(Ok(()), |path| self.check_unmarked(path))?;
            return Ok(None);
        };
        if proof.is_only_spent {
            return Err(RunError::Refused(format!(
                "{}: {}: the {} there is of a release that wrote no tokenizer; allowed: a folder whose files it names",
                self.field,
                self.folder.display(),
                files::PRIVACY
            )));
        }
        let Some(tokenizer) = &self.tokenizer else { return Ok(Some(proof)) };
        if proof.tokenizer.is_none() || proof.tokenizer == Some(sha256_hex(&durable::read(tokenizer)?)) {
            return Ok(Some(proof));
        }
        // A run's folder may hold another tokenizer. The folder with the statement of a private
        // vocabulary may not, because it could be that vocabulary in another format.
        if proof.ledger.is_none() && !proof.is_public {
            return Err(RunError::Refused(format!(
                "{}: {}: the {} beside it is of private text and names another file; allowed: the tokenizer.json that it names, \
                 or a folder without that statement for a tokenizer of another origin",
                self.field,
                tokenizer.display(),
                files::PRIVACY
            )));
        }
        self.check_unmarked(tokenizer).map(|()| None)
    }

    /// Refuses a tokenizer whose mark says that a private stage made it, if no file beside it
    /// proves the cost of that stage.
    fn check_unmarked(&self, tokenizer: &Path) -> Result<(), RunError> {
        // A file that cannot be read is refused when it is used.
        let Ok(read) = vocabulary::read_file(tokenizer) else { return Ok(()) };
        let Some(mark) = read.mark() else { return Ok(()) };
        let id = mark.id().unwrap_or("without id");
        Err(RunError::Refused(format!(
            "{}: {}: its mark says that a private stage ({id}) made it, but no {} or ledger of that stage stands beside it; allowed: \
             the folder that the stage wrote, whose cost can be read; fix: name the file there",
            self.field,
            tokenizer.display(),
            files::PRIVACY
        )))
    }

    /// Returns whether the stage joins the lineage. A public stage does not, and a private one must be declared.
    fn counts(&self, proof: &Proof) -> Result<bool, String> {
        let is_private = match &self.tokenizer {
            Some(_) => proof.has_private_tokenizer,
            None => !proof.is_public || !proof.parents.is_empty(),
        };
        match (is_private, self.declared) {
            (false, MadeFrom::PublicText) => Ok(false),
            // The stage is private although its tokenizer is not, so the declaration is about the stage.
            (false, _) if !proof.is_public => Ok(true),
            (false, declared) => Err(format!(
                "declared \"{}\", but it was made from public text; allowed: \"public_text\"; fix: remove the declaration",
                declared.name()
            )),
            (true, _) if self.field == EXTENDED => {
                Err("it was made from private text; allowed: a tokenizer of public text, \
                 to which released words are added; fix: name another file"
                    .to_owned())
            }
            (true, _) if self.field == PRIOR => Err(
                "it was made from private text; allowed: a tokenizer of public text; fix: name another file"
                    .to_owned(),
            ),
            (true, MadeFrom::PublicText) => {
                let (how, allowed) = if proof.is_not_private() {
                    (
                        " in a run that is NOT PRIVATE",
                        "\"disjoint_units\", if the two texts have no unit in common",
                    )
                } else {
                    ("", "\"same_units\" or \"disjoint_units\"")
                };
                Err(format!(
                    "it was made from private text{how}; allowed: {allowed}; fix: declare how that text relates to \
                     data.source, or use a public file"
                ))
            }
            (true, MadeFrom::SameUnits | MadeFrom::DisjointUnits) => Ok(true),
        }
    }

    fn insert(&self, plan: &Plan, proof: &Proof, lineage: &mut Lineage) -> Result<(), String> {
        let made_from = if proof.is_public { MadeFrom::PublicText } else { self.declared };
        let own = Parent { made_from, ..proof.stage.clone() };
        let before = proof.parents.iter().map(|parent| {
            let made_from = parent.made_from_through(self.declared, proof.is_public);
            Parent { made_from, ..parent.clone() }
        });
        for parent in before.chain([own]) {
            if parent.made_from == MadeFrom::SameUnits {
                check_same_units(plan, &parent)?;
            }
            lineage.insert(parent)?;
        }
        Ok(())
    }
}

impl Proof {
    fn is_not_private(&self) -> bool {
        let all = self.parents.iter().chain([&self.stage]);
        all.into_iter().any(|stage| !stage.not_private_because.is_empty())
    }
}
