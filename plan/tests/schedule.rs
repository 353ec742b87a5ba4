//! Epochs, and noise that grows with the batch.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use accountant::DpEvent;
use common::{altered, certify, refusal};
use plan::CertifiedPlan;
use serde_json::{Value, json};

/// Returns the quickstart with byte tokens and fixed noise, and further changes.
fn fixed(further: &[(&str, Value)]) -> Value {
    let mut changes = vec![
        ("/tokenizer", json!("bytes")),
        ("/privacy/epsilon", Value::Null),
        ("/privacy/noise_multipliers", json!({ "training": 4.0 })),
        ("/training/learning_rate/warmup_steps", json!(0)),
    ];
    changes.extend_from_slice(further);
    altered(&changes)
}

/// An epoch has ⌈N/B⌉ steps (Abadi et al. 2016; rounded up as in Igamberdiev et al. 2024, appendix B): 24 of 6,000 units in
/// batches of 256. A dealt pass is an epoch.
#[test]
fn an_epoch_is_a_pass_whatever_draws_the_batches() {
    for (sampling, relation) in [
        ("poisson", "add_or_remove_one"),
        ("balls_in_bins", "add_or_remove_one"),
        ("shuffle", "replace_one"),
        ("fixed_size", "replace_one"),
    ] {
        let scheme = [("/privacy/sampling", json!(sampling)), ("/privacy/relation", json!(relation))];
        let of = |field: &str, count: u64| {
            let mut changes = scheme.to_vec();
            changes.extend([("/training/steps", Value::Null), (field, json!(count))]);
            certify(&fixed(&changes)).unwrap()
        };
        let certified = of("/training/epochs", 3);
        assert_eq!(certified.total_steps(), 72, "{sampling}");
        assert_eq!(certified.hash(), of("/training/steps", 72).hash(), "{sampling}");
        if !certified.charges_every_step() {
            assert_eq!(certified.pass(71).unwrap().pass, 2, "{sampling}");
        }
    }
}

#[test]
fn epochs_beside_steps_or_a_schedule_are_refused() {
    let epochs = ("/training/epochs", json!(3));
    let schedule = json!([{ "steps": 5, "expected_batch_size": 8 }]);
    let cases = [
        (vec![epochs.clone()], "training.epochs: given beside steps or batch_schedule"),
        (
            vec![
                epochs.clone(),
                ("/training/steps", Value::Null),
                ("/training/expected_batch_size", Value::Null),
                ("/training/batch_schedule", schedule),
            ],
            "training.epochs: given beside steps or batch_schedule",
        ),
        (
            vec![epochs, ("/training/steps", Value::Null), ("/training/expected_batch_size", Value::Null)],
            "training.expected_batch_size: missing",
        ),
        (
            vec![
                ("/training/epochs", json!(1_000_000)),
                ("/training/steps", Value::Null),
                ("/training/expected_batch_size", json!(1)),
            ],
            "training.steps: 6000000000",
        ),
    ];
    for (changes, expected) in cases {
        let message = refusal(&fixed(&changes));
        assert!(message.contains(expected) && message.lines().count() == 1, "{expected}: {message}");
    }
}

fn growing(scale: bool, spare: u64) -> CertifiedPlan {
    let schedule = json!([
        { "steps": 10, "expected_batch_size": 64 },
        { "steps": 20, "expected_batch_size": 256 },
    ]);
    certify(&fixed(&[
        ("/training/steps", Value::Null),
        ("/training/expected_batch_size", Value::Null),
        ("/training/batch_schedule", schedule),
        ("/privacy/scale_noise_by_sqrt_batch", json!(scale)),
        ("/privacy/spare_steps", json!(spare)),
    ]))
    .unwrap()
}

/// Oracle: by hand. A batch four times as large has twice the noise.
#[test]
fn noise_grows_with_the_root_of_the_batch() {
    let noise =
        |scale| growing(scale, 0).phases().iter().map(plan::Phase::noise_multiplier).collect::<Vec<_>>();
    assert_eq!((noise(false), noise(true)), (vec![4.0, 4.0], vec![4.0, 8.0]));
    assert!(growing(true, 0).epsilon().upper < growing(false, 0).epsilon().upper);
    let event = |probability: f64, noise_multiplier, count| DpEvent::SelfComposed {
        event: Box::new(DpEvent::PoissonSampledGaussian {
            sampling_probability: probability,
            noise_multiplier,
        }),
        count,
    };
    let (small, large) = (64.0 / 6000.0, 256.0 / 6000.0);
    let events = vec![event(small, 4.0, 10), event(large, 8.0, 20)];
    assert_eq!(*growing(true, 0).event(), DpEvent::Composed { events: events.clone() });
    // Neither phase is always the more expensive one, so the spare steps are paid for at both rates.
    let spare = [event(small, 4.0, 3), event(large, 8.0, 3)];
    let all = events.into_iter().chain(spare).collect();
    assert_eq!(*growing(true, 3).event(), DpEvent::Composed { events: all });
}
