//! Shows and records public figures during training.

use plan::CertifiedPlan;

use super::best::BestSoFar;
use super::prepare::Prepared;
use crate::RunError;
use crate::disclosure::Released;
use crate::infer::Evaluation;
use crate::optim::learning_rate;
use crate::progress::{Progress, Status};
use crate::store::metrics::MetricsLine;
use crate::store::{BestWeights, RunStore};
use network::nn::Kernels;

/// Shows and records released figures.
pub(super) struct Monitor<'a> {
    plan: &'a CertifiedPlan,
    progress: Progress,
    end: u64,
    best: BestSoFar,
}

/// Returns whether the plan evaluates the weights after this number of steps.
pub(super) fn evaluates(plan: &plan::Plan, steps_done: u64, end: u64) -> bool {
    let every = plan.evaluation().map(|evaluation| evaluation.every);
    steps_done == end || every.is_some_and(|every| steps_done.is_multiple_of(every))
}

impl<'a> Monitor<'a> {
    pub fn start(plan: &'a CertifiedPlan, store: &RunStore<'_>, end: u64) -> Result<Self, RunError> {
        let best = BestSoFar::read(plan.plan(), store)?;
        Ok(Self { plan, progress: Progress::start(store.steps_done(), end), end, best })
    }

    /// Returns whether the plan's patience with the evaluations is exhausted.
    pub fn stops(&self) -> bool {
        self.best.stops()
    }

    /// Records the evaluation after the steps that the plan names, and shows progress every few seconds.
    pub(crate) fn after_step<B: Kernels>(
        &mut self,
        steps_done: u64,
        evaluation: Option<&Evaluation>,
        run: &Prepared<B>,
        store: &mut RunStore<'_>,
    ) -> Result<(), RunError> {
        let plan = self.plan.plan();
        let evaluates = evaluates(plan, steps_done, self.end);
        self.progress.advance(steps_done);
        if !evaluates && !self.progress.is_due() {
            return Ok(());
        }
        let epsilon = store.spent()?;
        if evaluates {
            let nll = evaluation.map(Evaluation::nll);
            let rate = learning_rate(&plan.training().learning_rate, steps_done - 1, self.plan.total_steps());
            store.append_metric(&MetricsLine {
                step: steps_done,
                learning_rate: Released::from_plan(rate),
                gradient_to_noise: Released::from_mechanism(run.trainer.gradient_to_noise()),
                l2_clip_norm: Released::from_mechanism(run.trainer.adapted_clip_norm()),
                epsilon: Released::from_plan(epsilon.map(|bounds| bounds.upper)),
                evaluation_nll: Released::from_public_text(nll),
            })?;
            if nll.is_some_and(|nll| self.best.improves(nll))
                && plan.evaluation().is_some_and(|text| text.keep_best)
            {
                let weights = run.trainer.trained();
                store.keep_best(BestWeights { step: steps_done, nll: nll.unwrap_or_default(), weights })?;
            }
            if let Some(figures) = evaluation {
                self.progress.line(&format!("step {steps_done}: held-out {figures}"));
            }
        }
        let batch = self.plan.phase(steps_done - 1).map_or(0, |phase| phase.expected_batch_size);
        let expected_tokens = Released::from_plan(batch * u64::from(plan.model().context));
        self.progress.show(&Status { steps_done, expected_tokens, epsilon: Released::from_plan(epsilon) });
        Ok(())
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.progress.finish();
    }
}
