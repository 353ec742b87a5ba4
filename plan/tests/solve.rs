//! Tests of plans whose steps or batch are to be found, and none fits.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use common::altered;
use plan::{PlanError, PlanFile, Unknown};
use serde_json::json;

/// No change of training helps where the vocabulary is too expensive.
#[test]
fn a_vocabulary_that_exceeds_epsilon_alone_is_named() {
    let noise = json!({"training": 5.0, "tokenizer": 0.5});
    let text =
        altered(&[("/privacy/noise_multipliers", noise), ("/privacy/epsilon", json!(1.0))]).to_string();
    let refusal = PlanFile::parse(&text).unwrap().solved_for(Unknown::Steps).unwrap_err().to_string();
    assert!(refusal.contains("the release of the vocabulary alone exceeds ε = 1"), "{refusal}");
}

/// Noise, batch and reserve steps are named where they are the cause; each change alone is enough.
#[test]
fn a_plan_without_room_for_a_step_names_changes_that_make_room() {
    let plan = |spare: u64| {
        let noise = json!({"training": 0.5, "tokenizer": 20.0});
        let text = altered(&[
            ("/privacy/noise_multipliers", noise),
            ("/privacy/epsilon", json!(3.0)),
            ("/privacy/spare_steps", json!(spare)),
            ("/training/expected_batch_size", json!(3000)),
        ]);
        PlanFile::parse(&text.to_string()).unwrap()
    };
    for (spare, unknown, count) in
        [(0, Unknown::Steps, 2), (10, Unknown::Steps, 2), (0, Unknown::ExpectedBatchSize, 1)]
    {
        let mut file = plan(spare);
        if unknown == Unknown::ExpectedBatchSize {
            file.training.steps = Some(1_000_000_000);
        }
        let Err(PlanError::NothingFits { remedies, .. }) = file.solved_for(unknown) else {
            panic!("something fits")
        };
        assert!(remedies.len() >= count, "{remedies:?}");
        for remedy in remedies {
            let mut changed = file.clone();
            remedy.apply(&mut changed);
            assert!(changed.solved_for(unknown).is_ok(), "“{remedy}” is not enough");
        }
    }
}
