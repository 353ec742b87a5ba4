//! Steps whose noise is correlated.

use mechanisms::{OsRng, Purpose, TestRng};
use plan::{CyclicPoisson, NoiseMultipliers, Plan, PlanFile, Sampling};
use serde_json::json;

use super::*;
use network::tensor::{Flex, FlexDevice};

fn plan() -> CertifiedPlan {
    let mut file = PlanFile::parse(include_str!("../../../plan/presets/quickstart.json")).unwrap();
    file.privacy.epsilon = None;
    file.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer: Some(5.0), training: 3.0 });
    file.privacy.sampling = Sampling::CyclicPoisson(CyclicPoisson { bands: 4 });
    Plan::try_from(file).unwrap().certify().unwrap()
}

fn trainer() -> Trainer<Flex> {
    let model = json!({ "family": "gpt2", "d_model": 8, "layers": 1, "heads": 2, "d_ff": 16, "context": 6 });
    let training = json!({
        "objective": "causal_lm", "expected_batch_size": 6, "steps": 9, "l2_clip_norm": 1.0,
        "optimizer": { "sgd": {} }, "learning_rate": { "peak": 1.0 }
    });
    let (model, training) =
        (serde_json::from_value(model).unwrap(), serde_json::from_value(training).unwrap());
    let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
    Trainer::new(Vec::new(), &model, &training, 40, &mut init, 2, FlexDevice).unwrap()
}

/// A step that is taken twice, or one that is left out, would begin a block that nothing was charged for.
#[test]
fn steps_of_a_block_are_taken_in_order() {
    let (plan, rng) = (plan(), OsRng::new().unwrap());
    let mut trainer = trainer();
    let mut step = |step| trainer.step(&plan, step, true, &Private::new(Vec::new()), &rng);
    // A process that resumes in the middle of a pass has a new key, so it begins a new block.
    assert_eq!(step(5), Ok(()));
    assert_eq!(step(5), Err(TrainerError::Order { step: 5, expected: 6 }));
    assert_eq!(step(7), Err(TrainerError::Order { step: 7, expected: 6 }));
    assert_eq!(step(6), Ok(()));
}

/// Oracle: an uninterrupted trainer with the same key.
#[test]
fn a_known_key_continues_a_block_that_another_process_began() {
    let (plan, rng) = (plan(), TestRng::from_seed(4));
    let lot = || Private::new(Vec::new());
    let mut whole = trainer();
    let mut saved = None;
    for step in 0..7 {
        if step == 4 {
            saved = Some(whole.state());
        }
        whole.step(&plan, step, true, &lot(), &rng).unwrap();
    }
    let mut resumed = trainer();
    resumed.load_state(saved.unwrap()).unwrap();
    (4..7).for_each(|step| resumed.step(&plan, step, true, &lot(), &rng).unwrap());
    assert_eq!(resumed.state(), whole.state());
}
