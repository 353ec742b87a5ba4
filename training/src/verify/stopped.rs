//! Computes what a run without a certificate spent: one that was abandoned or killed, or refused after its ledger
//! began.

use std::path::Path;

use super::proof::{EarlierProofs, Proof};
use super::{altered, check_accountant, synthesis};
use crate::RunError;
use crate::plan_file::PlanText;
use crate::store::accounting::check_same_plan;
use crate::store::ledger::{LedgerState, events_on_same_units};
use crate::store::{files, spent_by_stopped};
use durable::sha256_hex;

impl Proof {
    /// Reads the proof of a run without a certificate, from its plan and its ledger. A torn last line is charged as the
    /// computation that it may have announced.
    ///
    /// # Errors
    /// [`RunError::Verification`] if the ledger, the plan or an earlier stage is not what the run wrote.
    pub(crate) fn of_stopped_run(folder: &Path) -> Result<Self, RunError> {
        if files::synthesis_in(folder).is_some() {
            let (stage, ledger) = synthesis::stage_of_stopped(folder)?;
            return Ok(Self::of_synthesis(stage, ledger));
        }
        let (ledger, torn_bytes) = LedgerState::read_stopped(folder)?;
        let header = ledger.header();
        let path = folder.join(files::PLAN);
        if sha256_hex(&durable::read(&path)?) != header.plan_file_sha256 {
            return altered(files::PLAN);
        }
        let earlier = EarlierProofs::read(&ledger, &folder.join(files::PARENTS))?;
        let plan = PlanText::read(&path)?.certify(&path, events_on_same_units(ledger.parents()))?;
        check_accountant(&header.accountant_version, &header.accountant_method)?;
        check_same_plan(&plan, &ledger)?;
        earlier.check_ledger(plan.plan(), &ledger)?;
        let charges = spent_by_stopped(&plan, &ledger, torn_bytes)?;
        let mut proof = Self::of_ledger(&plan, ledger, charges);
        proof.earlier = earlier;
        Ok(proof)
    }
}
