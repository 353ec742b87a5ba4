//! A paraphrase of private records: a public model writes each text by several of them at once (InvisibleInk).
//!
//! For each token of a text, the model gives logits after a public prompt and after the prompt of each reference. The differences are
//! clipped, averaged and added to the public logits, and the exponential mechanism draws a token. No model is trained.
//!
//! | file | content |
//! |---|---|
//! | `references` | the private records, one of each unit, in batches; counts of their labels |
//! | `draw` | the texts of a batch, token by token |
//!
//! # Interruptions
//! The texts of all batches are charged at once, and each batch is on the ledger before a token is drawn by it. A batch whose text was lost
//! is not drawn by again. Which units are in a batch follows from a key that the folder keeps until the end, so that a process that resumes
//! has the same batches.
//!
//! # References
//! Vinod, Pillutla & Thakurta 2025, <https://arxiv.org/abs/2507.02974>.

mod draw;
mod references;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use mechanisms::{OsRng, PrivacyRng, Purpose, TestRng};
use plan::{CertifiedParaphrase, Objective};
use serde::{Deserialize, Serialize};

use self::draw::Draw;
use self::references::References;
use crate::infer::{ModelTask, RunModel, with_model};
use crate::plan_file::read_paraphrase;
use crate::progress::{DIGITS, note};
use crate::run::shell_word;
use crate::store::certificate::SynthesisCertificate;
use crate::store::ledger::{Entry, PublicStage, Randomness};
use crate::store::mirror::state_folder;
use crate::store::{OpenSynthesis, SynthesisStore, files, next_batches};
use crate::synthetic::SynthesisRequest;
use crate::synthetic::inputs::{PrivateSource, public_writer};
use crate::synthetic::records::Written;
use crate::verify::synthesis::{SynthesisSummary, verify_synthesis};
use crate::{RunError, stop};
use network::nn::Kernels;

/// Paraphrases private records, or resumes it.
///
/// # Errors
/// [`RunError`]. The file, and what it names, is refused before anything is written.
pub fn paraphrase(request: &SynthesisRequest) -> Result<SynthesisSummary, RunError> {
    carry_out(request, state_folder().as_deref())
}

/// Carries out a paraphrase, whose ledger's positions this computer records in the folder `state`.
fn carry_out(request: &SynthesisRequest, state: Option<&Path>) -> Result<SynthesisSummary, RunError> {
    let paraphrase = Paraphrase::read(request, state)?;
    stop::listen()?;
    match request.test_key {
        Some(key) => paraphrase.carry_out(&TestRng::from_seed(key)),
        None => paraphrase.carry_out(&OsRng::new().map_err(|error| RunError::Failed(error.to_string()))?),
    }
}

struct Paraphrase<'a> {
    request: &'a SynthesisRequest,
    certified: CertifiedParaphrase,
    /// The file, byte for byte.
    bytes: Vec<u8>,
    /// The folder that paths in the file are relative to.
    base: PathBuf,
    folder: PathBuf,
    state: Option<&'a Path>,
}

/// What a process that resumes needs: as private as the text until the end, because the key says which units are in a batch.
#[derive(Serialize, Deserialize)]
struct Progress {
    key: String,
    /// The texts that were drawn, each with its batch.
    texts: Vec<(u64, String)>,
}

impl<'a> Paraphrase<'a> {
    /// Reads and certifies the file.
    fn read(request: &'a SynthesisRequest, state: Option<&'a Path>) -> Result<Self, RunError> {
        let (certified, bytes) = read_paraphrase(&request.file)?;
        let base = request.file.parent().map(Path::to_owned).unwrap_or_default();
        let folder = request.out.clone().unwrap_or_else(|| Path::new("runs").join(&certified.file.name));
        Ok(Self { request, certified, bytes, base, folder, state })
    }

    fn carry_out(&self, rng: &dyn PrivacyRng) -> Result<SynthesisSummary, RunError> {
        let generator = self.base.join(&self.certified.file.generator);
        let stages = public_writer("generator", &generator, &[Objective::CausalLm, Objective::TextToText])?;
        with_model(&generator, self.request.device, Writing { paraphrase: self, stages, rng })?;
        verify_synthesis(&self.folder)
    }

    /// Begins or resumes, and writes all texts.
    fn write<B: Kernels>(
        &self,
        model: &RunModel<B>,
        stages: &[PublicStage],
        rng: &dyn PrivacyRng,
    ) -> Result<(), RunError> {
        let Self { request, certified, folder, state, .. } = self;
        let file = &certified.file;
        let draw = Draw::new(model, certified)?;
        let source = PrivateSource {
            data: &file.data,
            labels: &file.labels,
            unit: file.privacy.unit,
            base: &self.base,
        };
        let units = source.read(&[], stages)?;
        let mut store = SynthesisStore::open(&OpenSynthesis {
            folder,
            certified,
            bytes: &self.bytes,
            units: &units,
            public_stages: stages.to_vec(),
            randomness: Randomness::of(request.test_key),
            device: request.device,
            resume: request.resume,
            state: *state,
        })?;
        if store.ledger().completed().is_none() {
            self.announce();
            let mut progress = self.progress(&store, rng)?;
            let references = References::new(units, &progress.key)?;
            self.draw(&draw, &references, &mut store, &mut progress, rng)?;
            store.complete(self.records(&store, progress).as_bytes())?;
        }
        SynthesisCertificate::derive(certified, store.ledger())?.write(folder)?;
        self.written().finish(folder)?;
        store.finish()
    }

    /// Reads how far an earlier process came, or draws the key of the batches before anything is charged.
    fn progress(&self, store: &SynthesisStore, rng: &dyn PrivacyRng) -> Result<Progress, RunError> {
        let path = self.folder.join(files::TEXTS);
        if let Some(found) = durable::read_json(&path)? {
            return Ok(found);
        }
        if store.ledger().charges().iter().next().is_some() {
            return Err(RunError::Refused(format!(
                "{}: it is missing or damaged, so nobody knows which records were used; restore it, or begin in another folder with --out \
                 (the ε of the two add up)",
                path.display()
            )));
        }
        let mut stream = rng.stream(Purpose::Tokens, u64::MAX, 0);
        let progress =
            Progress { key: format!("{}{}", stream.next_name(), stream.next_name()), texts: Vec::new() };
        self.save(&progress)?;
        Ok(progress)
    }

    fn save(&self, progress: &Progress) -> Result<(), RunError> {
        let text = serde_json::to_vec(progress).map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(durable::write_atomic(&self.folder.join(files::TEXTS), &text)?)
    }

    /// Releases the counts of labels and draws the texts that are due.
    fn draw<B: Kernels>(
        &self,
        draw: &Draw<'_, B>,
        references: &References,
        store: &mut SynthesisStore,
        progress: &mut Progress,
        rng: &dyn PrivacyRng,
    ) -> Result<(), RunError> {
        let certified = &self.certified;
        if let (Some(event), None) = (certified.labels_event(), store.ledger().label_histogram()) {
            store.append(Entry::LabelHistogram { event })?;
            let counts = references.label_counts(&certified.file, rng)?;
            store.append(Entry::LabelCounts { counts })?;
            note(&format!("released the counts of {} labels", certified.file.labels.len()));
        }
        let texts_by_label = certified.texts_by_label(store.ledger().label_counts());
        let batches = references.batches(&texts_by_label, &progress.key);
        if store.ledger().texts().is_none() {
            store.append(Entry::Texts { event: certified.texts_event() })?;
        }
        while let Some(entry) = next_batches(certified, store.ledger()) {
            self.check_interrupt()?;
            let Entry::Batches { first, count } = entry else { break };
            store.append(entry)?;
            let texts = draw.texts(first..first + count, &batches, rng)?;
            progress.texts.extend((first..).zip(texts));
            self.save(progress)?;
            note(&format!("drew {} of {} texts", first + count, certified.file.records));
        }
        Ok(())
    }

    /// Returns the records in a random order, without empty texts.
    fn records(&self, store: &SynthesisStore, progress: Progress) -> String {
        let texts_by_label = self.certified.texts_by_label(store.ledger().label_counts());
        let ends = ends(&texts_by_label);
        let mut texts = progress.texts;
        texts.retain(|(_, text)| !text.is_empty());
        // Batches are in the order of their labels. The order of released texts needs no secret.
        let mut stream = TestRng::from_seed(0).stream(Purpose::Data, 0, 0);
        for at in (1..texts.len()).rev() {
            texts.swap(at, stream.below(at as u64 + 1) as usize);
        }
        let line = |(batch, text): &(u64, String)| {
            self.written().line(ends.partition_point(|end| end <= batch), text)
        };
        texts.iter().map(line).collect()
    }

    fn written(&self) -> Written<'_> {
        let file = &self.certified.file;
        Written {
            name: &file.name,
            description: "A public model wrote each of these records by several private records at once. Each private record moved the probabilities \
                          of the next token by a bounded amount (InvisibleInk).",
            data: &file.data,
            labels: &file.labels,
        }
    }

    fn announce(&self) {
        if self.request.test_key.is_some() {
            note("NOT PRIVATE: --test-key makes the draws predictable");
        }
        let Self { certified, folder, .. } = self;
        note(&format!(
            "paraphrase in {}: {} texts of up to {} tokens, {} references each in the mean, clip {:.4}, certified ε ≤ {} at δ = {:e}",
            folder.display(),
            certified.file.records,
            certified.file.tokens,
            certified.file.references(),
            certified.mechanism.clip(),
            cli::rounded_up(certified.epsilon.upper, DIGITS),
            certified.delta.get()
        ));
    }

    /// Ends here if the user asked to stop.
    fn check_interrupt(&self) -> Result<(), RunError> {
        if !stop::requested() {
            return Ok(());
        }
        let key = self.request.test_key.map(|key| format!(" --test-key {key}")).unwrap_or_default();
        let (file, folder) = (shell_word(&self.request.file), shell_word(&self.folder));
        Err(RunError::Interrupted {
            resume: format!("trainer-native paraphrase --paraphrase {file} --out {folder} --resume{key}"),
        })
    }
}

/// Returns the first batch after those of each label.
fn ends(texts_by_label: &[u64]) -> Vec<u64> {
    let mut end = 0;
    let after = |texts: &u64| {
        end += texts;
        end
    };
    texts_by_label.iter().map(after).collect()
}

/// Writes all texts with the model of a run.
struct Writing<'a> {
    paraphrase: &'a Paraphrase<'a>,
    stages: Vec<PublicStage>,
    rng: &'a dyn PrivacyRng,
}

impl ModelTask for Writing<'_> {
    type Output = ();

    fn run<B: Kernels>(self, model: &RunModel<B>) -> Result<(), RunError> {
        self.paraphrase.write(model, &self.stages, self.rng)
    }
}
