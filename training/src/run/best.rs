//! Decides by public evaluation text which weights are the best and whether training goes on.

use crate::RunError;
use crate::store::RunStore;

/// The best evaluation so far.
#[derive(Debug)]
pub(super) struct BestSoFar {
    /// Number of consecutive evaluations without improvement after which training stops.
    patience: Option<u64>,
    /// The amount by which a loss must be lower to be an improvement.
    smallest_change: f64,
    nll: f64,
    /// Number of evaluations since the best one.
    since: u64,
}

impl BestSoFar {
    /// Reads the best of the run's evaluations up to its checkpoint. The best weights may be newer
    /// if a crash lost the steps after the checkpoint.
    pub fn read(plan: &plan::Plan, store: &RunStore<'_>) -> Result<Self, RunError> {
        let evaluation = plan.evaluation();
        let patience = evaluation.and_then(|evaluation| evaluation.patience);
        let smallest_change = evaluation.and_then(|evaluation| evaluation.smallest_change).unwrap_or(0.0);
        let (step, nll) = store.best()?.map_or((0, f64::INFINITY), |best| (best.step, best.nll));
        let mut so_far = Self { patience, smallest_change, nll, since: 0 };
        for metric in store.metrics().iter().filter(|metric| metric.step > step) {
            if let Some(nll) = *metric.evaluation_nll.get() {
                so_far.improves(nll);
            }
        }
        Ok(so_far)
    }

    /// Counts an evaluation. Returns whether it is the best so far.
    pub(crate) fn improves(&mut self, nll: f64) -> bool {
        let improves = nll < self.nll - self.smallest_change;
        if improves {
            (self.nll, self.since) = (nll, 0);
        } else {
            self.since += 1;
        }
        improves
    }

    /// Returns whether training stops after this evaluation.
    pub fn stops(&self) -> bool {
        self.patience.is_some_and(|patience| self.since >= patience)
    }
}
