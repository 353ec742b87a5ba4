//! Compares a finished run's ledger with the proofs in its folder.

use plan::{MadeFrom, Plan};

use super::proof::{EarlierProofs, Proof, failed, not_as_stated};
use crate::RunError;
use crate::store::ledger::{LedgerState, Parent};

impl EarlierProofs {
    /// Compares a finished run's ledger with the stages, and with what the plan declares about them.
    ///
    /// # Errors
    /// [`RunError::Verification`] for a stage that is not as the ledger and the plan state it.
    pub fn check(&self, plan: &Plan, ledger: &LedgerState) -> Result<(), RunError> {
        check_declared(plan, ledger, &self.check_ledger(plan, ledger)?)
    }

    /// Compares a ledger with the stages that it names. Returns these stages, each with the relation of its text to the
    /// run's.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_ledger(
        &self,
        plan: &Plan,
        ledger: &LedgerState,
    ) -> Result<Vec<(MadeFrom, &Proof)>, RunError> {
        // A public stage does not say how the private text before it relates to the run's. The declaration that costs most counts.
        let before_public = match declared(plan).contains(&MadeFrom::SameUnits) {
            true => MadeFrom::SameUnits,
            false => MadeFrom::DisjointUnits,
        };
        let mut named = Vec::new();
        for parent in ledger.parents() {
            let Some(proof) = self.get(parent) else {
                return Err(failed(&parent.name, "the ledger leaves out a stage that it builds on"));
            };
            if (Parent { made_from: parent.made_from, ..proof.stage.clone() }) != *parent {
                return Err(not_as_stated(parent));
            }
            if parent.made_from == MadeFrom::SameUnits {
                check_same_units(plan, parent).map_err(|what| failed(&parent.name, &what))?;
            }
            for earlier in &proof.parents {
                let made_from = match proof.is_public {
                    true => before_public,
                    false => earlier.made_from_through(parent.made_from, false),
                };
                if ledger.parent(&earlier.sha256).is_none_or(|known| known.made_from != made_from) {
                    return Err(failed(&parent.name, "the ledger leaves out a stage that it builds on"));
                }
            }
            named.push((parent.made_from, proof));
        }
        Ok(named)
    }
}

/// Returns what a plan declares of its checkpoint, its tokenizer, its text and the text that it is evaluated on.
fn declared(plan: &Plan) -> [MadeFrom; 4] {
    let evaluation = plan.evaluation().map_or(MadeFrom::PublicText, plan::Evaluation::made_from);
    [plan.model().made_from(), plan.tokenizer().made_from(), plan.data().made_from(), evaluation]
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
    let declared = declared(plan);
    let [checkpoint, tokenizer, text, evaluation] = declared;
    if !named(checkpoint, &|proof| {
        weights.is_some_and(|own| proof.weights.iter().any(|digest| digest == own))
    }) {
        return Err(failed("of the checkpoint", "no proof names the weights that training began from"));
    }
    if !named(tokenizer, &|proof| proof.tokenizer.as_deref() == ledger.tokenizer()) {
        return Err(failed("of the tokenizer", "no proof names the tokenizer of this run"));
    }
    if ![text, evaluation].iter().all(|declared| named(*declared, &|_| true)) {
        return Err(failed("that wrote the text", "no proof is of a stage that the plan relates so"));
    }
    let is_public = declared.iter().all(|declared| *declared == MadeFrom::PublicText);
    if is_public && !ledger.parents().is_empty() {
        return Err(failed("named by the ledger", "the plan builds on none"));
    }
    Ok(())
}

/// Refuses a stage that is not private, or that has another unit or relation than the plan. The ε
/// of such stages cannot be added up.
pub(super) fn check_same_units(plan: &Plan, parent: &Parent) -> Result<(), String> {
    let name = &parent.name;
    if let Some(reason) = parent.not_private_because.first() {
        return Err(format!(
            "{name} is NOT PRIVATE ({reason}), so no ε can be added up; allowed: \"disjoint_units\", if its text has no unit in \
             common with data.source (the result is marked, too); fix: use another file"
        ));
    }
    let privacy = plan.privacy();
    if parent.unit != privacy.unit || parent.relation != privacy.relation {
        let relation = |relation| serde_json::to_string(&relation).unwrap_or_default();
        return Err(format!(
            "\"same_units\", but {name} protects the unit {} under {}, and this plan {} under {}; allowed: the same unit and \
             relation; fix: change privacy.unit and privacy.relation",
            parent.unit,
            relation(parent.relation),
            privacy.unit,
            relation(privacy.relation)
        ));
    }
    Ok(())
}
