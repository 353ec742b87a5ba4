//! The stages that a run builds on, and the files in `parents/` that prove them.

use std::path::{Path, PathBuf};

use accountant::DpEvent;
use dp_tokenizer::identity::Sketch;

use super::files;
use super::ledger::{Parent, PublicStage, events_on_same_units};
use crate::RunError;

/// The stages that a run builds on, with the files that prove them.
#[derive(Default)]
pub struct Lineage {
    parents: Vec<Parent>,
    public_stages: Vec<PublicStage>,
    proofs: Vec<CarriedFile>,
}

/// A file that a run folder carries below `parents/`.
struct CarriedFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// A file of a stage's proof.
pub(crate) struct ProofFile {
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

impl Lineage {
    /// Returns the stages, as the ledger names them.
    pub fn parents(&self) -> &[Parent] {
        &self.parents
    }

    /// Returns all earlier stages that called their text public.
    pub(crate) fn public_stages(&self) -> &[PublicStage] {
        &self.public_stages
    }

    /// Adds stages that called their text public. `behind_text` says whether the training text was made from it.
    pub(crate) fn add_public(&mut self, stages: &[PublicStage], behind_text: bool) {
        for PublicStage { name, text, .. } in stages {
            let is_known = |known: &&mut PublicStage| (&known.name, &known.text) == (name, text);
            match self.public_stages.iter_mut().find(is_known) {
                Some(known) => known.behind_text |= behind_text,
                None => {
                    self.public_stages.push(PublicStage {
                        name: name.clone(),
                        text: text.clone(),
                        behind_text,
                    });
                }
            }
        }
    }

    /// Marks stages whose public text is half that of a stage behind the training text: what was made from one was made from the other.
    pub(crate) fn mark_same_public_text(&mut self) {
        let behind: Vec<_> = self.public_stages.iter().filter(|stage| stage.behind_text).cloned().collect();
        for stage in &mut self.public_stages {
            let is_same =
                |other: &PublicStage| Sketch::first_pair(&[other.text.clone(), stage.text.clone()]).is_some();
            stage.behind_text |= behind.iter().any(is_same);
        }
    }

    /// Returns the events that were spent on the units of the run's text.
    pub fn events(&self) -> Vec<DpEvent> {
        events_on_same_units(&self.parents)
    }

    /// Adds a stage.
    ///
    /// # Errors
    /// A sentence, if the stage is already present with another relation.
    pub fn insert(&mut self, parent: Parent) -> Result<(), String> {
        match self.parents.iter().find(|known| known.sha256 == parent.sha256) {
            None => self.parents.push(parent),
            Some(known) if *known == parent => {}
            Some(known) => {
                return Err(format!(
                    "{} is declared both \"{}\" and \"{}\"; allowed: one of them; fix: change one declaration",
                    parent.name,
                    known.made_from.name(),
                    parent.made_from.name()
                ));
            }
        }
        Ok(())
    }

    /// Adds the files that prove a stage.
    pub(crate) fn carry(&mut self, stage: &Parent, files: Vec<ProofFile>) {
        let folder = PathBuf::from(stage.folder());
        let carried = |file: ProofFile| CarriedFile { path: folder.join(file.name), bytes: file.bytes };
        self.proofs.extend(files.into_iter().map(carried));
    }

    /// Writes the proofs into a run folder.
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        for CarriedFile { path, bytes } in &self.proofs {
            write_below(&folder.join(files::PARENTS), path, bytes)?;
        }
        Ok(())
    }
}

/// Copies the proofs of earlier stages from one folder of a run to another.
pub fn copy_proofs(from: &Path, to: &Path) -> Result<(), RunError> {
    let Ok(listing) = std::fs::read_dir(from.join(files::PARENTS)) else { return Ok(()) };
    for stage in listing.flatten() {
        let unreadable = |error| RunError::storage("read", &stage.path(), &error);
        for file in std::fs::read_dir(stage.path()).map_err(unreadable)?.flatten() {
            let path = PathBuf::from(stage.file_name()).join(file.file_name());
            write_below(&to.join(files::PARENTS), &path, &durable::read(&file.path())?)?;
        }
    }
    Ok(())
}

/// Writes the proof of a run beside text that its model wrote, before the text is there. Runs that train or evaluate on
/// the text find the proof.
///
/// # Errors
/// [`RunError::Storage`] if a file of the run cannot be read, or one of the proof cannot be written.
pub fn prove_text(run: &Path, text: &Path) -> Result<(), RunError> {
    let folder = files::proof_of_text(text);
    durable::create_folder(&folder)?;
    let plan = files::synthesis_in(run).unwrap_or(files::PLAN);
    for name in [plan, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN] {
        durable::write_atomic(&folder.join(name), &durable::read(&run.join(name))?)?;
    }
    copy_proofs(run, &folder)
}

fn write_below(parents: &Path, path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let path = parents.join(path);
    let folder = path.parent().unwrap_or(parents);
    durable::create_folder(folder)?;
    Ok(durable::write_atomic(&path, bytes)?)
}
