//! A finished run's ledger against the proofs that its folder carries.

use std::path::Path;

use plan::{Initial, MadeFrom, Plan};

use super::Coverage;
use super::find::check_same_units;
use super::proof::Proof;
use crate::RunError;
use crate::store::ledger::{LedgerState, Parent};

/// Verifies every stage that a ledger names, from its proof in `parents`, and what the plan declares of them. Returns the files
/// of the proofs.
///
/// # Errors
/// [`RunError::Verification`] for a proof that is missing, or a stage that is not as the ledger and the plan state it.
pub(crate) fn check(plan: &Plan, ledger: &LedgerState, parents: &Path) -> Result<Coverage, RunError> {
    let mut coverage = Coverage::default();
    let failed =
        |name: &str, what: &str| RunError::Verification(format!("the stage {name} before this run: {what}"));
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
    let named = |declared: MadeFrom, is_it: &dyn Fn(&Proof) -> bool| {
        declared == MadeFrom::PublicText
            || proofs
                .iter()
                .any(|(made_from, proof)| (*made_from == declared || proof.is_public) && is_it(proof))
    };
    let weights = ledger.initial_weights();
    let checkpoint = match plan.model().initial {
        Initial::Checkpoint(_) => plan.model().checkpoint_made_from,
        Initial::Random => MadeFrom::PublicText,
    };
    if !named(checkpoint, &|proof| {
        weights.is_some_and(|own| proof.weights.iter().any(|digest| digest == own))
    }) {
        return Err(failed("of the checkpoint", "no proof names the weights that training began from"));
    }
    let tokenizer = plan.tokenizer().made_from();
    if !named(tokenizer, &|proof| proof.tokenizer.as_deref() == ledger.tokenizer()) {
        return Err(failed("of the tokenizer", "no proof names the tokenizer of this run"));
    }
    if checkpoint == MadeFrom::PublicText && tokenizer == MadeFrom::PublicText && !ledger.parents().is_empty()
    {
        return Err(failed("named by the ledger", "the plan builds on none"));
    }
    Ok(coverage)
}
