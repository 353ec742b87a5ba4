//! Equal inputs give equal bits, a saved state continues to the same bits, and refused input changes nothing.

#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]

use mechanisms::{GaussianMechanism, PrivacyRng, Purpose, TestRng};
use network::tensor::{Flex, FlexDevice};
use network::tensor_file::NamedTensor;
use network::{Example, ExampleError};
use serde_json::json;
use training::dp::DpStep;
use training::train::{PlainStep, Trainer, TrainerError};

fn trainer(optimizer: &serde_json::Value, physical_batch: usize) -> Trainer<Flex> {
    let model =
        json!({ "family": "gpt2", "d_model": 16, "layers": 2, "heads": 2, "d_ff": 32, "context": 10 });
    let training = json!({
        "objective": "causal_lm", "expected_batch_size": 6, "steps": 9, "l2_clip_norm": 1.0,
        "optimizer": optimizer, "learning_rate": { "peak": 1e-3 }
    });
    let (model, training) =
        (serde_json::from_value(model).unwrap(), serde_json::from_value(training).unwrap());
    let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
    Trainer::new(Vec::new(), &model, &training, 40, &mut init, physical_batch, FlexDevice).unwrap()
}

fn lot(step: u64) -> Vec<Example> {
    let mut stream = TestRng::from_seed(1).stream(Purpose::Data, step, 0);
    // Sizes 0 to 11 cover the empty batch, full micro-batches and a partial last one.
    let mut window = || (0..stream.below(12)).map(|_| stream.below(40) as u32).collect::<Vec<_>>();
    (0..(step * 5) % 12).map(|_| Example::causal(&window())).collect()
}

fn private_step(trainer: &mut Trainer<Flex>, step: u64) {
    let figures = DpStep {
        noise: GaussianMechanism::new(0.7).unwrap(),
        l2_clip_norm: 0.5,
        expected_batch_size: 6.0,
        learning_rate: 1e-2,
        step,
    };
    trainer.dp_step(&lot(step), figures, &TestRng::from_seed(2)).unwrap();
}

fn bits(state: &[NamedTensor]) -> Vec<u32> {
    state.iter().flat_map(|tensor| tensor.data.iter().map(|value| value.to_bits())).collect()
}

#[test]
fn a_saved_state_continues_to_the_same_bits() {
    for optimizer in [json!({ "adamw": { "weight_decay": 0.1 } }), json!({ "sgd": { "momentum": 0.9 } })] {
        let mut whole = trainer(&optimizer, 4);
        let mut halfway = None;
        for step in 0..8 {
            if step == 4 {
                halfway = Some(whole.state());
            }
            private_step(&mut whole, step);
        }
        let mut resumed = trainer(&optimizer, 4);
        resumed.load_state(halfway.unwrap()).unwrap();
        for step in 4..8 {
            private_step(&mut resumed, step);
        }
        assert_eq!(bits(&whole.state()), bits(&resumed.state()), "{optimizer}");
        assert!(bits(&whole.weights()) != bits(&trainer(&optimizer, 4).weights()), "it must have moved");
    }
}

#[test]
fn training_lowers_the_loss_of_what_it_trains_on() {
    let mut trainer = trainer(&json!({ "adamw": {} }), 4);
    let row = |row: u32| (0..10).map(|at| (row + 3 * at) % 40).collect::<Vec<_>>();
    let text: Vec<Example> = (0..6).map(|at| Example::causal(&row(at))).collect();
    let (before, count) = trainer.inference().nll(&text).unwrap();
    assert!((before / count as f64 - 40.0_f64.ln()).abs() < 0.1, "the start is near uniform");
    for _ in 0..60 {
        trainer.plain_step(&text, PlainStep { expected_batch_size: 6.0, learning_rate: 1e-2 }).unwrap();
    }
    assert!(trainer.inference().nll(&text).unwrap().0 < 0.3 * before);
}

/// Oracle: the softmax of the logits, token by token.
#[test]
fn predictions_are_those_of_the_logits() {
    let mut trainer = trainer(&json!({ "adamw": {} }), 3);
    private_step(&mut trainer, 3);
    let examples = lot(2);
    assert!(examples.len() > 4 && examples.iter().any(|example| example.targets.is_empty()));
    let model = trainer.inference();
    let sums = model.nll_each(&examples).unwrap();
    let mut hits = [0, 0];
    for ((example, got), sum) in examples.iter().zip(model.predictions(&examples).unwrap()).zip(sums) {
        assert_eq!(got.len(), example.targets.len());
        assert!((got.iter().map(|prediction| prediction.nll).sum::<f64>() - sum).abs() < 1e-9);
        if example.targets.is_empty() {
            continue;
        }
        let logits = model.logits(example).unwrap();
        for ((&target, got), row) in example.targets.iter().zip(got).zip(logits) {
            let total: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
            assert!((got.nll - (total.ln() - f64::from(row[target as usize]))).abs() < 1e-5);
            let likeliest = row.iter().all(|&logit| logit <= row[target as usize]);
            assert_eq!(got.is_likeliest, likeliest);
            hits[usize::from(likeliest)] += 1;
        }
    }
    assert!(hits[0] > 0, "most random targets are missed");
}

#[test]
fn an_empty_private_lot_still_moves_the_weights_and_an_empty_baseline_lot_does_not() {
    let optimizer = json!({ "sgd": {} });
    let mut private = trainer(&optimizer, 4);
    let start = bits(&private.weights());
    private_step(&mut private, 0);
    assert!(lot(0).is_empty());
    assert_ne!(bits(&private.weights()), start);
    let mut plain = trainer(&optimizer, 4);
    plain.plain_step(&[], PlainStep { expected_batch_size: 6.0, learning_rate: 1e-2 }).unwrap();
    assert_eq!(bits(&plain.weights()), start);
}

#[test]
fn what_cannot_be_trained_on_is_refused_without_showing_tokens_and_changes_nothing() {
    let mut trainer = trainer(&json!({ "adamw": {} }), 4);
    let before = bits(&trainer.state());
    let good = DpStep {
        noise: GaussianMechanism::new(1.0).unwrap(),
        l2_clip_norm: 1.0,
        expected_batch_size: 6.0,
        learning_rate: 1e-3,
        step: 0,
    };
    let rng = TestRng::from_seed(2);
    let long = [Example::causal(&[1]), Example::causal(&[7; 12])];
    assert_eq!(
        trainer.dp_step(&long, good, &rng),
        Err(TrainerError::Example(ExampleError { problem: "is longer than the model's context" }))
    );
    let unknown = trainer.dp_step(&[Example::causal(&[1, 40])], good, &rng).unwrap_err().to_string();
    assert!(unknown.contains("an example") && !unknown.contains('0'), "{unknown}");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for figures in [DpStep { l2_clip_norm: bad, ..good }, DpStep { expected_batch_size: bad, ..good }] {
            assert!(trainer.dp_step(&lot(1), figures, &rng).is_err());
        }
    }
    assert_eq!(bits(&trainer.state()), before);
}
