//! Takes the steps of a run.

use mechanisms::PrivacyRng;

use super::finish;
use super::folder::Folder;
use super::monitor::{self, Monitor};
use super::prepare::{Prepared, Progressed};
use super::request::Job;
use crate::infer::Evaluation;
use crate::store::RunStore;
use crate::{RunError, stop};
use network::nn::Kernels;

/// Takes the remaining steps. Each is charged on the disk before its units are sampled. Returns the
/// last step's evaluation, if any step remained.
pub(super) fn train<B: Kernels>(
    job: &Job,
    prepared: &mut Prepared<B>,
    folder: &mut Folder<'_>,
    rng: &dyn PrivacyRng,
) -> Result<Option<Evaluation>, RunError> {
    let (plan, ranks, Progressed { steps_done, end, .. }) = (&job.plan, &job.ranks, prepared.progressed);
    let mut monitor = folder.on_first(|store| {
        store.begin_metrics()?;
        Monitor::start(plan, store, end)
    })?;
    let stops = |monitor: &Option<Monitor<'_>>| ranks.any(monitor.as_ref().is_some_and(Monitor::stops));
    let mut stopped = stops(&monitor);
    let (mut reached, mut evaluation) = (steps_done, None);
    while reached < end && !stopped {
        let step = reached;
        folder.on_first(|store| store.charge_step(step))?;
        take_step(job, prepared, step, rng)?;
        reached = step + 1;
        evaluation =
            if monitor::evaluates(plan.plan(), reached, end) { prepared.evaluate(ranks)? } else { None };
        folder.on_first(|store| {
            let recorded = monitor
                .as_mut()
                .map(|monitor| monitor.after_step(reached, evaluation.as_ref(), prepared, store));
            recorded.unwrap_or(Ok(()))
        })?;
        stopped = stops(&monitor);
        let is_last = reached == end || stopped;
        if !is_last && job.snapshots_at(reached) {
            folder.on_first(|store| {
                store.write_snapshot(reached, &finish::model(job, prepared, store.ledger())?)
            })?;
        }
        let interrupted = ranks.any(stop::requested()) && !is_last;
        if interrupted || is_last || job.checkpoints_at(reached) {
            let state = prepared.trainer.shared_state(reached < plan.total_steps());
            let write =
                |store: &mut RunStore<'_>| state.receive(|tensors| store.write_checkpoint(reached, tensors));
            folder.on_first_helped(write, || state.send())?;
        }
        if interrupted {
            break;
        }
    }
    monitor.iter().for_each(Monitor::finish);
    if stopped {
        folder.on_first(RunStore::charge_steps_left_out)?;
    } else if reached < end {
        return ranks.agree(Err(job.interrupted()));
    }
    Ok(evaluation)
}

/// Takes a step that the ledger has charged: samples a lot, and updates the weights with its private gradient. All ranks call
/// this together.
///
/// # Errors
/// [`RunError`] on all ranks.
fn take_step<B: Kernels>(
    job: &Job,
    prepared: &mut Prepared<B>,
    step: u64,
    rng: &dyn PrivacyRng,
) -> Result<(), RunError> {
    let Prepared { data, trainer, progressed, .. } = prepared;
    let share = job.ranks.share(trainer.physical_batch());
    let lot = data.sample_lot(&job.plan, step, share, rng).and_then(|lot| {
        trainer.check(&lot)?;
        Ok(lot)
    });
    let lot = job.ranks.agree(lot)?;
    let stepped = trainer.step(&job.plan, step, progressed.protected, &lot, rng);
    job.ranks.agree(stepped.map_err(RunError::from))
}

#[cfg(test)]
mod tests {
    use mechanisms::TestRng;

    use super::*;
    use crate::ranks::threads::{messages, on_ranks};
    use crate::run::Request;
    use crate::run::inputs::Inputs;
    use network::tensor::{Flex, FlexDevice};

    /// The estimate of a step's time counts its messages. The loop around a step exchanges seven further ones: of the charge, the record,
    /// the stop, the signal, the checkpoint and the evaluation.
    #[test]
    fn a_step_takes_as_many_messages_as_the_estimate_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mut plan: serde_json::Value =
            serde_json::from_str(include_str!("../../../plan/tests/fixtures/tiny.json")).unwrap();
        plan["data"]["source"] = serde_json::json!({ "path": "notes.txt" });
        let text: String = (0..300).map(|n| format!("note {n}\n")).collect();
        std::fs::write(folder.path().join("notes.txt"), &text).unwrap();
        std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
        let rng = TestRng::from_seed(1);
        let found = on_ranks(2, |ranks| {
            let out = Some(folder.path().join("run"));
            let request = Request { out, test_key: Some(1), ..Request::new(folder.path().join("plan.json")) };
            let job = request.check(ranks).unwrap();
            let inputs = Inputs::read::<Flex>(&job, &FlexDevice).unwrap();
            let mut folder = Folder::open(&job, &inputs).unwrap();
            let mut prepared = Prepared::<Flex>::new(&job, inputs, &mut folder, FlexDevice, &rng).unwrap();
            prepared.trainer = prepared.trainer.divide_sums_above(usize::MAX);
            let before = messages();
            take_step(&job, &mut prepared, 0, &rng).unwrap();
            messages() - before
        });
        let counted = u64::from(plan::SMALL_MESSAGES) + 2;
        assert!((found[0] + 7..found[0] + 10).contains(&counted), "{found:?} and 7, not {counted}");
    }

    /// A rank that fails must not leave the others waiting for its gradient.
    #[test]
    fn a_rank_that_can_no_longer_read_its_text_ends_all_ranks() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut plan: serde_json::Value =
            serde_json::from_str(include_str!("../../../plan/tests/fixtures/tiny.json")).unwrap();
        plan["data"]["source"] = serde_json::json!({ "path": "notes.txt" });
        let text: String = (0..300).map(|n| format!("note {n}\n")).collect();
        for folder in &folders {
            std::fs::write(folder.path().join("notes.txt"), &text).unwrap();
            std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
        }
        let rng = TestRng::from_seed(1);
        let found = on_ranks(2, |ranks| {
            let base = folders[ranks.rank()].path();
            let out = Some(base.join("run"));
            let request = Request { out, test_key: Some(1), ..Request::new(base.join("plan.json")) };
            let job = request.check(ranks).unwrap();
            let inputs = Inputs::read::<Flex>(&job, &FlexDevice).unwrap();
            let mut folder = Folder::open(&job, &inputs).unwrap();
            let mut prepared = Prepared::<Flex>::new(&job, inputs, &mut folder, FlexDevice, &rng).unwrap();
            take_step(&job, &mut prepared, 0, &rng).unwrap();
            if ranks.rank() == 1 {
                std::fs::write(base.join("notes.txt"), "").unwrap();
            }
            take_step(&job, &mut prepared, 1, &rng).unwrap_err()
        });
        let shown = found[0].to_string();
        assert!(shown.contains("rank 1 of 2") && shown.contains("notes.txt"), "{shown}");
        assert!(matches!(found[1], RunError::Elsewhere { .. }), "{}", found[1]);
    }
}
