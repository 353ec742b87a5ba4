//! Asks about random events. The answer is an ordered interval or a one-line refusal, never a
//! panic.
//!
//! A few dozen random events by default; ACCOUNTANT_FULL=1 reads 10,000.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::{Delta, DpEvent, epsilon};
use proptest::prelude::*;
use serde_json::{Value, json};

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0.3..20.0_f64).prop_map(Value::from),
        2 => (0.0..=1.0_f64).prop_map(Value::from),
        2 => (0_u64..40).prop_map(Value::from),
        1 => prop::sample::select(vec![0.0, -1.0, 1e-300, 1e300, 1e-9, 1e9, f64::MAX]).prop_map(Value::from),
        1 => prop::sample::select(vec![json!(null), json!("1"), json!(u64::MAX), json!(-3), json!([])]),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        ("gaussian", vec!["noise_multiplier"]),
        ("poisson_sampled_gaussian", vec!["sampling_probability", "noise_multiplier"]),
        (
            "truncated_poisson_sampled_gaussian",
            vec!["sampling_probability", "noise_multiplier", "units", "largest_batch"],
        ),
        ("cyclic_poisson_sampled_gaussian", vec!["sampling_probability", "noise_multiplier"]),
        (
            "poisson_sampled_examples_gaussian",
            vec!["sampling_probability", "noise_multiplier", "examples_per_unit"],
        ),
        ("fixed_size_sampled_gaussian", vec!["sample_size", "population", "noise_multiplier"]),
        ("shuffled_gaussian", vec!["noise_multiplier", "batches", "epochs"]),
        ("balls_in_bins_gaussian", vec!["noise_multiplier", "batches", "epochs"]),
        ("thresholded_histogram", vec!["noise_multiplier", "threshold_delta"]),
        ("laplace", vec!["noise_multiplier"]),
        ("poisson_sampled_laplace", vec!["sampling_probability", "noise_multiplier"]),
        ("randomized_response", vec!["noise_parameter", "buckets"]),
        ("epsilon_delta", vec!["epsilon", "delta"]),
        ("discrete_gaussian", vec!["standard_deviation", "sensitivity"]),
        ("unknown", vec!["noise_multiplier"]),
    ]);
    (names, prop::collection::vec(number(), 4)).prop_map(|((name, fields), numbers)| {
        let mut event = json!({ "type": name });
        for (field, number) in fields.into_iter().zip(numbers) {
            event[field] = number;
        }
        event
    })
}

fn event() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|events| json!({ "type": "composed", "events": events })),
            (inner.clone(), number()).prop_map(
                |(event, count)| json!({ "type": "self_composed", "event": event, "count": count })
            ),
            (inner, number(), number()).prop_map(|(event, shape, stop)| {
                let trials =
                    json!({ "distribution": "truncated_negative_binomial", "shape": shape, "stop": stop });
                json!({ "type": "private_selection", "event": event, "trials": trials })
            }),
        ]
    })
}

fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("ACCOUNTANT_FULL").is_some() { 10_000 } else { 60 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_json_of_events_is_answered_or_refused(value in event()) {
        let text = value.to_string();
        let Ok(event) = serde_json::from_str::<DpEvent>(&text) else { return Ok(()) };
        for relation in [AddOrRemoveOne, ReplaceOne, ZeroOut] {
            match epsilon(&event, Delta::new(1e-6).unwrap(), relation) {
                Ok(bounds) => {
                    prop_assert!(bounds.lower >= 0.0 && bounds.lower <= bounds.upper, "{text}: {bounds:?}");
                }
                Err(refusal) => {
                    let message = refusal.to_string();
                    prop_assert!(!message.is_empty() && !message.contains('\n'), "{text}: {message}");
                }
            }
        }
        prop_assert_eq!(serde_json::from_str::<DpEvent>(&serde_json::to_string(&event).unwrap()).unwrap(), event);
    }

    #[test]
    fn any_text_is_refused_without_a_panic(text in "[\\[\\]{}:,\"a-z_0-9.e+-]{0,120}") {
        let _ = serde_json::from_str::<DpEvent>(&text);
    }
}
