//! Compares a finished run's ledger with the proofs in its folder.

use std::collections::HashMap;
use std::path::Path;

use plan::{MadeFrom, Plan};

use super::Coverage;
use super::find::check_same_units;
use super::proof::Proof;
use crate::RunError;
use crate::store::files;
use crate::store::ledger::{LedgerState, Parent};

fn failed(name: &str, what: &str) -> RunError {
    RunError::Verification(format!("the stage {name} before this run: {what}"))
}

/// The proofs of a ledger's stages, each with the declared relation of its text to the plan's.
#[derive(Default)]
pub(crate) struct Stages(HashMap<String, Proof>);

impl Stages {
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

    /// Removes a stage.
    pub fn take(&mut self, stage: &Parent) -> Option<Proof> {
        self.0.remove(&stage.sha256)
    }

    /// The files of the stages, below the folder with their proofs.
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for proof in self.0.values() {
            for file in &proof.files {
                coverage.add(format!("{}/{}", proof.stage.folder(), file.name));
            }
        }
        coverage
    }

    /// Holds a finished run's ledger against the stages, and against what the plan declares of them.
    ///
    /// # Errors
    /// [`RunError::Verification`] for a stage that is not as the ledger and the plan state it.
    pub fn check(&self, plan: &Plan, ledger: &LedgerState) -> Result<(), RunError> {
        check_declared(plan, ledger, &self.check_ledger(plan, ledger)?)
    }

    /// Holds a ledger against the stages that it names, which it returns with how it relates their texts to its own.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_ledger(
        &self,
        plan: &Plan,
        ledger: &LedgerState,
    ) -> Result<Vec<(MadeFrom, &Proof)>, RunError> {
        let mut named = Vec::new();
        for parent in ledger.parents() {
            let Some(proof) = self.0.get(&parent.sha256) else {
                return Err(failed(&parent.name, "the ledger leaves out a stage that it builds on"));
            };
            if (Parent { made_from: parent.made_from, ..proof.stage.clone() }) != *parent {
                return Err(not_as_stated(parent));
            }
            if parent.made_from == MadeFrom::SameUnits {
                check_same_units(plan, parent).map_err(|what| failed(&parent.name, &what))?;
            }
            for earlier in &proof.parents {
                let made_from = earlier.made_from_through(parent.made_from, proof.is_public);
                if ledger.parent(&earlier.sha256).is_none_or(|known| known.made_from != made_from) {
                    return Err(failed(&parent.name, "the ledger leaves out a stage that it builds on"));
                }
            }
            named.push((parent.made_from, proof));
        }
        Ok(named)
    }
}

fn not_as_stated(parent: &Parent) -> RunError {
    failed(&parent.name, "its proof is not what the ledger says")
}

/// The error of a stage's proof, for the run that builds on it.
fn of_proof(parent: &Parent, error: RunError) -> RunError {
    match error {
        RunError::Verification(what) => failed(&parent.name, &what),
        _ => failed(&parent.name, "its proof in parents/ is missing; restore the folder that the run wrote"),
    }
}

/// Compares the files that a finished run began with against the proofs.
fn check_declared(plan: &Plan, ledger: &LedgerState, proofs: &[(MadeFrom, &Proof)]) -> Result<(), RunError> {
    let named = |declared: MadeFrom, is_it: &dyn Fn(&Proof) -> bool| {
        declared == MadeFrom::PublicText
            || proofs
                .iter()
                .any(|(made_from, proof)| (*made_from == declared || proof.is_public) && is_it(proof))
    };
    let weights = ledger.initial_weights();
    let checkpoint = plan.model().made_from();
    if !named(checkpoint, &|proof| {
        weights.is_some_and(|own| proof.weights.iter().any(|digest| digest == own))
    }) {
        return Err(failed("of the checkpoint", "no proof names the weights that training began from"));
    }
    let tokenizer = plan.tokenizer().made_from();
    if !named(tokenizer, &|proof| proof.tokenizer.as_deref() == ledger.tokenizer()) {
        return Err(failed("of the tokenizer", "no proof names the tokenizer of this run"));
    }
    let text = plan.data().made_from();
    let evaluation = plan.evaluation().map_or(MadeFrom::PublicText, plan::Evaluation::made_from);
    if ![text, evaluation].iter().all(|declared| named(*declared, &|_| true)) {
        return Err(failed("that wrote the text", "no proof is of a stage that the plan relates so"));
    }
    let declared = [checkpoint, tokenizer, text, evaluation];
    let is_public = declared.iter().all(|declared| *declared == MadeFrom::PublicText);
    if is_public && !ledger.parents().is_empty() {
        return Err(failed("named by the ledger", "the plan builds on none"));
    }
    Ok(())
}
