//! Reads the evolution file, and the public things that it names.

use std::path::{Path, PathBuf};

use plan::{CandidateSource, CertifiedEvolution, EvolutionFile, Objective};

use crate::RunError;
use crate::data::{self, Units};
use crate::infer::BertScore;
use crate::plan_file::read_evolution;
use crate::store::ledger::PublicStage;
use crate::synthetic::inputs::{PrivateSource, public_stage, public_writer};
use crate::verify::check_unwritten;

/// A certified evolution file.
pub(super) struct EvolutionInput {
    pub certified: CertifiedEvolution,
    /// The file, byte for byte.
    pub bytes: Vec<u8>,
    /// The folder that paths in the file are relative to.
    base: PathBuf,
    embedding: PathBuf,
}

/// The public texts of an evolution.
pub(super) struct Public {
    /// The different texts of the file from which candidates come; none if a run writes them.
    pub texts: Vec<String>,
    /// The public texts that the candidates and the embedding come from, as far as they are known.
    pub stages: Vec<PublicStage>,
}

impl EvolutionInput {
    /// Reads and certifies an evolution file.
    ///
    /// # Errors
    /// [`RunError::Refused`] with the file, the place in it and a fix; [`RunError::Storage`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let (certified, bytes) = read_evolution(path)?;
        let base = path.parent().map(Path::to_owned).unwrap_or_default();
        let embedding = base.join(&certified.file.embedding);
        Ok(Self { certified, bytes, base, embedding })
    }

    /// Returns the embedding.
    pub fn embedding(&self) -> BertScore<'_> {
        BertScore { folder: &self.embedding, layer: None, named_by: "embedding" }
    }

    /// Returns the folder of the run that writes candidates, if a run writes them.
    pub fn run(&self) -> Option<PathBuf> {
        match &self.certified.file.candidates {
            CandidateSource::Run(run) => Some(self.base.join(run)),
            CandidateSource::Texts(_) => None,
        }
    }

    /// Reads what is public: the texts of candidates, and the stages that made them and the embedding.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a run, a text or an embedding that was made from private text, or of another kind.
    pub fn public(&self) -> Result<Public, RunError> {
        let mut stages = public_stage("embedding", &self.embedding)?.unwrap_or_default();
        // A folder that holds no BERT is refused before anything is charged.
        self.embedding().embeddings_alone(&[String::new()])?;
        let mut texts = Vec::new();
        match &self.certified.file.candidates {
            CandidateSource::Run(run) => {
                let run = self.base.join(run);
                let field = "candidates.run";
                let own = public_writer(field, &run, &[Objective::CausalLm])?;
                stages.extend(own);
            }
            CandidateSource::Texts(path) => {
                let (path, field) = (self.base.join(path), "candidates.texts");
                check_unwritten(std::slice::from_ref(&path), field)?;
                let mut known = std::collections::HashSet::new();
                texts = data::read_records(&path, field)?;
                texts.iter_mut().for_each(|text| *text = text.trim().to_owned());
                texts.retain(|text| !text.is_empty() && known.insert(text.clone()));
                let each = self.certified.file.population / self.certified.file.groups();
                if (texts.len() as u64) < each {
                    return Err(RunError::Refused(format!(
                        "{field}: {} different texts; allowed: at least {each}, the candidates of a label; fix: give more texts, or \
                         lower the population",
                        texts.len()
                    )));
                }
                let name = format!("the candidates of {}", self.certified.file.name);
                stages.push(PublicStage { name, text: data::sketch_of_texts(&texts)?, behind_text: false });
            }
        }
        Ok(Public { texts, stages })
    }

    /// Reads the private records, and compares them with the public texts.
    ///
    /// # Errors
    /// [`RunError::Refused`] if they cannot be read, or a public text shares text with them.
    pub fn records(&self, public: &Public) -> Result<Units, RunError> {
        let EvolutionFile { data, labels, privacy, .. } = &self.certified.file;
        let source = PrivateSource { data, labels, unit: privacy.unit, base: &self.base };
        source.read(&public.texts, &public.stages)
    }
}
