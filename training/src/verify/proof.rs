//! The verified facts of one stage, and the stages that a ledger names.

use std::collections::HashMap;
use std::path::Path;

use accountant::{DpEvent, NeighboringRelation};
use dp_tokenizer::identity::Sketch;
use plan::{CertifiedPlan, MadeFrom, PrivacyUnit};
use serde::Deserialize;
use serde_json::Value;

use super::{Coverage, VerifiedRun, synthesis};
use crate::RunError;
use crate::store::certificate;
use crate::store::ledger::{Charges, FileDigest, LedgerState, Parent, PublicStage, RoundedModel};
use crate::store::lineage::ProofFile;
use crate::store::{covered, files};
use durable::sha256_hex;
use network::tensor_file::PrivacyMark;

/// The facts that a stage proves about itself.
pub(crate) struct Proof {
    /// The stage itself. Its relation to another text is declared by the plan of that text.
    pub stage: Parent,
    /// Whether the stage's own text is public.
    pub is_public: bool,
    /// Whether the stage is a release that was charged and wrote no tokenizer.
    pub is_only_spent: bool,
    /// Whether the stage's tokenizer comes from private text.
    pub has_private_tokenizer: bool,
    /// SHA-256 of the stage's tokenizer.
    pub tokenizer: Option<String>,
    /// Digests under which a ledger names the stage's weights: those of the run, and of an export in 16 bits.
    pub weights: Vec<String>,
    /// The stages up to this one that called their text public.
    pub public_stages: Vec<PublicStage>,
    /// The stages that this stage builds on, with their relation to its own text.
    pub parents: Vec<Parent>,
    /// The proofs of `parents`; none for a stage that was read as a parent itself.
    pub earlier: EarlierProofs,
    /// The files that prove the facts.
    pub files: Vec<ProofFile>,
    /// The files that the ledger of the run names, if the stage is a run.
    written: Vec<FileDigest>,
    /// The ledger, if the stage is a run.
    pub ledger: Option<LedgerState>,
    /// The event of the training, if the stage is a run.
    pub training_event: Option<DpEvent>,
}

/// Reads the files in a folder. Leaves out those that do not exist.
fn read_files(folder: &Path, names: &[&'static str]) -> Result<Vec<ProofFile>, RunError> {
    let existing = names.iter().filter(|name| folder.join(name).exists());
    existing.map(|name| Ok(ProofFile { name, bytes: durable::read(&folder.join(name))? })).collect()
}

impl Proof {
    /// Returns the verified stage that made the files of a folder, or [`None`] if nothing in the
    /// folder names one.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a folder that bears a mark of a run without its ledger; as
    /// [`VerifiedRun::read_proof`].
    pub fn find(folder: &Path) -> Result<Option<Self>, RunError> {
        if folder.join(files::LEDGER).exists() || folder.join(files::PRIVACY).exists() {
            let proof = Self::read(folder)?;
            proof.check_files(folder)?;
            return Ok(Some(proof));
        }
        match mark(folder) {
            None => Ok(None),
            Some(mark) => Err(RunError::Refused(format!(
                "{}: {mark}, but the plan, ledger and certificate that prove it are missing; allowed: a folder that has them; \
                 fix: give the run folder, or one that `trainer-native export` wrote",
                folder.display()
            ))),
        }
    }

    /// Reads and verifies the proof in a folder, and those of the stages before it.
    fn read(folder: &Path) -> Result<Self, RunError> {
        if !folder.join(files::LEDGER).exists() {
            return Self::of_vocabulary(folder);
        }
        let ledger = LedgerState::read(folder)?;
        let earlier = EarlierProofs::read(&ledger, &folder.join(files::PARENTS))?;
        let proof = Self::of_run(folder, ledger, &earlier)?;
        Ok(Self { earlier, ..proof })
    }

    /// Verifies the run in a folder by its ledger, after the stages that it builds on.
    fn of_run(folder: &Path, ledger: LedgerState, earlier: &EarlierProofs) -> Result<Self, RunError> {
        if let Some(file) = files::synthesis_in(folder) {
            let stage = synthesis::stage_of_finished(folder, &ledger)?;
            let files = read_files(folder, &synthesis::proof(file))?;
            return Ok(Self { files, ..Self::of_synthesis(stage, ledger) });
        }
        let VerifiedRun { plan, ledger, certificate, .. } = VerifiedRun::of_ledger(folder, ledger, earlier)?;
        let digest = |name: &str| certificate.hashes.files.iter().find(|file| file.name == name);
        let digests = [files::CONFIG, files::MODEL].map(|name| digest(name).map(|file| file.sha256.as_str()));
        let of_export = |rounded: &RoundedModel| {
            weights_digest([Some(&*rounded.config_sha256), Some(&*rounded.model_sha256)])
        };
        let weights = weights_digest(digests).into_iter();
        let weights = weights.chain(ledger.rounded().iter().filter_map(of_export)).collect();
        let charges = ledger.charges();
        let files = read_files(
            folder,
            &[files::PLAN, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN],
        )?;
        Ok(Self { weights, files, ..Self::of_ledger(&plan, ledger, charges) })
    }

    /// Returns the proof that follows from the plan and the ledger of a run that spent `charges`.
    pub(super) fn of_ledger(plan: &CertifiedPlan, ledger: LedgerState, charges: Charges) -> Self {
        let is_public = plan.plan().is_public();
        let parents = ledger.parents().to_vec();
        let header = ledger.header();
        let search = header.search.as_ref();
        let mut not_private_because = certificate::not_private_by_itself(plan, &ledger);
        if is_public {
            // Public text needs no protection.
            not_private_because.clear();
        }
        Self {
            stage: Parent {
                name: plan.plan().name().to_owned(),
                id: Some(header.id.clone()),
                sha256: ledger.position().sha256,
                made_from: MadeFrom::PublicText,
                unit: plan.plan().privacy().unit,
                relation: header.relation,
                not_private_because,
                charges: match search {
                    Some(search) => Charges::of(&search.event),
                    None => charges,
                },
                search: search.map(|search| search.sweep_sha256.clone()),
            },
            is_public,
            is_only_spent: false,
            has_private_tokenizer: !parents.is_empty()
                || (ledger.release().is_some() && !is_public)
                || search.is_some_and(|search| search.vocabulary_sha256.is_some()),
            tokenizer: ledger.tokenizer().map(str::to_owned),
            weights: Vec::new(),
            public_stages: ledger.header().public_stages.clone(),
            parents,
            earlier: EarlierProofs::default(),
            files: Vec::new(),
            written: ledger.files().to_vec(),
            ledger: Some(ledger),
            training_event: Some(plan.training_event()),
        }
    }

    /// Returns the proof of an evolution or a paraphrase.
    pub(super) fn of_synthesis(stage: Parent, ledger: LedgerState) -> Self {
        Self {
            training_event: Some(DpEvent::Composed { events: stage.charges.events().collect() }),
            stage,
            is_public: false,
            is_only_spent: false,
            has_private_tokenizer: false,
            tokenizer: None,
            weights: Vec::new(),
            public_stages: ledger.header().public_stages.clone(),
            parents: Vec::new(),
            earlier: EarlierProofs::default(),
            files: Vec::new(),
            written: Vec::new(),
            ledger: Some(ledger),
        }
    }

    fn of_vocabulary(folder: &Path) -> Result<Self, RunError> {
        let proof = Self::of_statement(&folder.join(files::PRIVACY))?;
        if proof.is_only_spent && folder.join(files::TOKENIZER).exists() {
            return Err(RunError::Refused(format!(
                "{}: it does not name the tokenizer beside it; train the vocabulary again",
                folder.join(files::PRIVACY).display()
            )));
        }
        Ok(proof)
    }

    /// Reads the proof that follows from the statement of a vocabulary's release.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a statement that this version does not understand.
    pub(crate) fn of_statement(path: &Path) -> Result<Self, RunError> {
        let refused = |what: &str| RunError::Refused(format!("{}: {what}", path.display()));
        let bytes = durable::read(path)?;
        let statement: Statement = serde_json::from_slice(&bytes)
            .map_err(|_| refused("it is not a statement of this version; train the vocabulary again"))?;
        let (version, method) = (accountant::VERSION, accountant::METHOD);
        let by = statement.accountant.as_ref();
        if by.is_some_and(|by| by.version != version || by.method != method) {
            return Err(refused("another version of the accountant wrote it; train the vocabulary again"));
        }
        let is_public = !statement.private && statement.event.is_none();
        let (charges, unit, relation) = match (statement.event, statement.unit, statement.relation) {
            (Some(event), Some(unit), Some(relation)) => {
                let unit = unit.parse().map_err(|_| refused("its unit is none that this program knows"))?;
                (Charges::of(&event), unit, relation)
            }
            _ if is_public => (Charges::default(), PrivacyUnit::Record, NeighboringRelation::AddOrRemoveOne),
            _ => return Err(refused("it states no event; train the vocabulary again")),
        };
        // A release that ended before its tokenizer was written is charged.
        let is_only_spent = statement.tokenizer_sha256.is_none() && !is_public;
        if statement.id.is_none() && !is_public {
            return Err(refused(
                "it has no id, so another release could pass for the same one; train the vocabulary again",
            ));
        }
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let public_stages = statement.text.into_iter().map(|text| PublicStage {
            name: format!("the vocabulary in {name}"),
            text,
            behind_text: false,
        });
        Ok(Self {
            stage: Parent {
                name: if is_only_spent { "vocabulary (spent, no tokenizer written)" } else { "vocabulary" }
                    .to_owned(),
                id: statement.id,
                sha256: sha256_hex(&bytes),
                made_from: MadeFrom::PublicText,
                unit,
                relation,
                not_private_because: (!statement.private && !is_public)
                    .then(|| format!("the vocabulary in {name}: {}", statement.reason))
                    .into_iter()
                    .collect(),
                charges,
                search: None,
            },
            is_public,
            is_only_spent,
            has_private_tokenizer: !is_public,
            tokenizer: statement.tokenizer_sha256,
            weights: Vec::new(),
            public_stages: public_stages.collect(),
            parents: Vec::new(),
            earlier: EarlierProofs::default(),
            files: vec![ProofFile { name: files::PRIVACY, bytes }],
            written: Vec::new(),
            ledger: None,
            training_event: None,
        })
    }

    /// Checks that the files of the folder are those that the proof names.
    fn check_files(&self, folder: &Path) -> Result<(), RunError> {
        let altered = |name: &str| {
            Err(RunError::Verification(format!(
                "{} is not the file that the run wrote; restore it, or take it from another folder",
                folder.join(name).display()
            )))
        };
        let tokenizer = folder.join(files::TOKENIZER);
        if tokenizer.exists()
            && let Some(stated) = &self.tokenizer
            && durable::sha256_of(&tokenizer)? != *stated
        {
            return altered(files::TOKENIZER);
        }
        if !self.written.is_empty() {
            covered::check_nothing_added(folder, &self.written)?;
        }
        let [config, model] = [files::CONFIG, files::MODEL].map(|name| folder.join(name));
        if !model.exists() || self.weights.is_empty() {
            return Ok(());
        }
        let (config, model) = (durable::sha256_of(&config)?, durable::sha256_of(&model)?);
        match weights_digest([Some(config.as_str()), Some(model.as_str())]) {
            Some(digest) if self.weights.contains(&digest) => Ok(()),
            _ => altered(files::MODEL),
        }
    }
}

/// The proofs of a ledger's stages, each with the declared relation of its text to the plan's.
#[derive(Default)]
pub(crate) struct EarlierProofs(HashMap<String, Proof>);

impl EarlierProofs {
    /// Verifies every stage that a ledger names, from its proof in `parents`, once.
    ///
    /// Ledgers name all stages before them, so that one with fewer names comes first, and no stage is verified by way of another.
    ///
    /// # Errors
    /// [`RunError::Verification`] for a proof that is missing, or is not what the ledger states.
    pub fn read(ledger: &LedgerState, parents: &Path) -> Result<Self, RunError> {
        let mut found = Vec::new();
        for parent in ledger.parents() {
            let folder = parents.join(parent.folder());
            let has_ledger = folder.join(files::LEDGER).exists();
            let own = has_ledger.then(|| LedgerState::read(&folder)).transpose();
            let own = own.map_err(|error| of_proof(parent, error))?;
            if own.as_ref().is_some_and(|own| own.position().sha256 != parent.sha256) {
                return Err(not_as_stated(parent));
            }
            found.push((parent, folder, own));
        }
        found.sort_by_key(|(_, _, own)| own.as_ref().map_or(0, |own| own.parents().len()));
        let mut stages = Self::default();
        for (parent, folder, own) in found {
            let proof = match own {
                Some(own) => Proof::of_run(&folder, own, &stages),
                None => Proof::of_vocabulary(&folder),
            };
            stages.0.insert(parent.sha256.clone(), proof.map_err(|error| of_proof(parent, error))?);
        }
        Ok(stages)
    }

    /// Returns the proof of a stage.
    pub fn get(&self, stage: &Parent) -> Option<&Proof> {
        self.0.get(&stage.sha256)
    }

    /// Takes the proof of a stage.
    pub fn take(&mut self, stage: &Parent) -> Option<Proof> {
        self.0.remove(&stage.sha256)
    }

    /// Returns the files of the stages' proofs, by their paths below the folder with the proofs.
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for proof in self.0.values() {
            for file in &proof.files {
                coverage.add(format!("{}/{}", proof.stage.folder(), file.name));
            }
        }
        coverage
    }
}

/// Returns the error of a stage that a run builds on.
pub(super) fn failed(name: &str, what: &str) -> RunError {
    RunError::Verification(format!("the stage {name} before this run: {what}"))
}

/// Returns the error of a stage whose proof differs from the ledger.
pub(super) fn not_as_stated(parent: &Parent) -> RunError {
    failed(&parent.name, "its proof is not what the ledger says")
}

/// Returns the error of a stage's proof, for the run that builds on it.
fn of_proof(parent: &Parent, error: RunError) -> RunError {
    match error {
        RunError::Verification(what) => failed(&parent.name, &what),
        _ => failed(&parent.name, "its proof in parents/ is missing; restore the folder that the run wrote"),
    }
}

/// Returns the digest of a checkpoint, computed from its files' digests as
/// [`network::pretrained::PretrainedCheckpoint`] does.
fn weights_digest(digests: [Option<&str>; 2]) -> Option<String> {
    let [Some(config), Some(model)] = digests else { return None };
    Some(sha256_hex(format!("{config}{model}").as_bytes()))
}

/// The fields of the statement that `dp-tokenizer train` writes beside a tokenizer, as far as they are needed here.
#[derive(Deserialize)]
struct Statement {
    id: Option<String>,
    private: bool,
    reason: String,
    event: Option<DpEvent>,
    unit: Option<String>,
    relation: Option<NeighboringRelation>,
    accountant: Option<Accountant>,
    tokenizer_sha256: Option<String>,
    /// A sketch of the stage's text, if the text is public.
    text: Option<Sketch>,
}

#[derive(Deserialize)]
struct Accountant {
    version: String,
    method: String,
}

/// Describes the mark of a private run in a folder that has no ledger.
fn mark(folder: &Path) -> Option<String> {
    let read = |name: &str| serde_json::from_slice::<Value>(&durable::read(&folder.join(name)).ok()?).ok();
    let of_config = read(files::CONFIG).as_ref().and_then(PrivacyMark::of_json);
    let marks = [of_config, PrivacyMark::read(&folder.join(files::MODEL))];
    let is_private = |mark: &PrivacyMark| !mark.promise.contains(certificate::DECLARED_PUBLIC);
    let private = marks.into_iter().flatten().find(is_private);
    let certified = || {
        let is_public = read(files::CERTIFICATE_JSON).is_some_and(|found| found["public_data"] == true);
        let certified = folder.join(files::CERTIFICATE_JSON).exists() && !is_public;
        certified.then(|| "it holds a privacy certificate".to_owned())
    };
    let said = |PrivacyMark { promise, id }| match id {
        Some(id) => format!("its model says \"{promise}\" and names the run {id}"),
        None => format!("its model says \"{promise}\""),
    };
    private.map(said).or_else(certified)
}
