//! Compares a finished run's ledger with the proofs in its folder.

use std::path::Path;

use plan::{MadeFrom, Plan};

use super::Coverage;
use super::find::check_same_units;
use super::proof::Proof;
use crate::RunError;
use crate::store::ledger::{LedgerState, Parent};

/// Verifies every stage that a ledger names, from its proof in `parents`, and the plan's
/// declarations about them. Returns the files of the proofs.
///
/// # Errors
/// [`RunError::Verification`] for a proof that is missing, or a stage that is not as the ledger and
/// the plan state it.
pub(crate) fn check(plan: &Plan, ledger: &LedgerState, parents: &Path) -> Result<Coverage, RunError> {
    let (proofs, coverage) = check_stages(plan, ledger, parents)?;
    check_declared(plan, ledger, &proofs)?;
    Ok(coverage)
}

fn failed(name: &str, what: &str) -> RunError {
    RunError::Verification(format!("the stage {name} before this run: {what}"))
}

/// The proofs of a ledger's stages, each with the declared relation of its text to the plan's.
type Stages = Vec<(MadeFrom, Proof)>;

/// Verifies every stage that a ledger names, and returns the proofs and the files that they cover.
///
/// # Errors
/// As [`check`].
pub(super) fn check_stages(
    plan: &Plan,
    ledger: &LedgerState,
    parents: &Path,
) -> Result<(Stages, Coverage), RunError> {
    let mut coverage = Coverage::default();
    let mut proofs = Vec::new();
    for parent in ledger.parents() {
        let proof = Proof::read(&parents.join(parent.folder()), parents).map_err(|error| match error {
            RunError::Verification(what) => failed(&parent.name, &what),
            _ => failed(
                &parent.name,
                "its proof in parents/ is missing; restore the folder that the run wrote",
            ),
        })?;
        let stated = Parent { made_from: parent.made_from, ..proof.stage.clone() };
        if stated != *parent {
            return Err(failed(&parent.name, "its proof is not what the ledger says"));
        }
        if parent.made_from == MadeFrom::SameUnits {
            check_same_units(plan, parent).map_err(|what| failed(&parent.name, &what))?;
        }
        for earlier in &proof.parents {
            let seen = earlier.seen_through(parent.made_from, proof.is_public);
            if !ledger.parents().contains(&seen) {
                return Err(failed(&parent.name, "the ledger leaves out a stage that it builds on"));
            }
        }
        for file in &proof.files {
            coverage.add(format!("{}/{}", parent.folder(), file.name));
        }
        proofs.push((parent.made_from, proof));
    }
    Ok((proofs, coverage))
}

/// Compares the files that a finished run began with against the proofs.
fn check_declared(plan: &Plan, ledger: &LedgerState, proofs: &[(MadeFrom, Proof)]) -> Result<(), RunError> {
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
