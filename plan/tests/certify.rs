//! Tests of the figures and refusals of certification.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use accountant::{DpEvent, NeighboringRelation};
use common::{altered, certify, quickstart, refusal};
use plan::CertifiedPlan;
use serde_json::{Value, json};

const NOISE: (&str, fn() -> Value) =
    ("/privacy/noise_multipliers", || json!({"training": 1.0, "tokenizer": 4.0}));

fn training_noise(certified: &CertifiedPlan) -> f64 {
    certified.phases()[0].noise_multiplier()
}

fn steps_charged(event: &DpEvent) -> u64 {
    match event {
        DpEvent::Composed { events } => events.iter().map(steps_charged).sum(),
        DpEvent::SelfComposed { event, count } => {
            assert!(matches!(**event, DpEvent::PoissonSampledGaussian { .. }));
            *count
        }
        _ => 0,
    }
}

#[test]
fn calibrated_noise_uses_the_budget_up_and_not_more() {
    for epsilon in [0.5, 1.0, 8.0, 50.0] {
        let certified = certify(&altered(&[("/privacy/epsilon", json!(epsilon))])).unwrap();
        let upper = certified.epsilon().upper;
        assert!(upper <= epsilon && upper > epsilon * 0.999, "{upper} for {epsilon}");
    }
}

/// Oracle: the accountant, asked for the parts apart.
#[test]
fn tokenizer_and_training_are_charged_together_and_cost_less_than_their_sum() {
    let certified = certify(&quickstart()).unwrap();
    let DpEvent::Composed { events } = certified.event() else { panic!("not composed") };
    let release = certified.tokenizer_release().unwrap();
    assert_eq!(events[0], release.event);
    let ask = |event: &DpEvent| {
        accountant::epsilon(event, certified.delta(), NeighboringRelation::AddOrRemoveOne).unwrap().upper
    };
    let training = DpEvent::Composed { events: events[1..].to_vec() };
    let (tokenizer, training) = (ask(&release.event), ask(&training));
    let joint = certified.epsilon().upper;
    assert!(joint > tokenizer && joint > training, "{joint} from {tokenizer} and {training}");
    assert!(joint < tokenizer + training, "{joint} from {tokenizer} and {training}");
}

/// TRUST 3: a plan that builds on its own units is certified with what was spent before, or not at all.
#[test]
fn what_a_plan_builds_on_counts_towards_its_epsilon() {
    let same = json!({"public": {"path": "t.json", "made_from": "same_units"}});
    let plan = altered(&[("/tokenizer", same), ("/privacy/epsilon", json!(4.0))]);
    let refused = certify(&plan).unwrap_err().to_string();
    assert!(
        refused.contains("privacy.epsilon: unknown") && refused.contains("verify PLAN.json"),
        "{refused}"
    );
    let after = |noise_multiplier| {
        let earlier = vec![DpEvent::Gaussian { noise_multiplier }];
        common::read(&plan.to_string()).unwrap().after(earlier).certify()
    };
    let certified = after(2.0).unwrap();
    assert!(certified.epsilon().upper <= 4.0 && certified.epsilon().upper > 3.99);
    let alone =
        certify(&altered(&[("/tokenizer", json!("bytes")), ("/privacy/epsilon", json!(4.0))])).unwrap();
    assert!(training_noise(&certified) > training_noise(&alone), "less is left for training");
    let message = after(0.1).unwrap_err().to_string();
    assert!(message.contains("has spent ε up to"), "{message}");
}

#[test]
fn without_the_vocabulary_what_was_spent_before_still_counts() {
    let earlier = DpEvent::Gaussian { noise_multiplier: 5.0 };
    let certified =
        common::read(&quickstart().to_string()).unwrap().after(vec![earlier.clone()]).certify().unwrap();
    let release = certified.tokenizer_release().unwrap().event.clone();
    let DpEvent::Composed { events } = certified.training_event() else { panic!("not composed") };
    assert!(events.contains(&earlier) && !events.contains(&release), "{events:?}");
}

#[test]
fn a_public_vocabulary_costs_nothing() {
    let bytes = certify(&altered(&[("/tokenizer", json!("bytes"))])).unwrap();
    let file = certify(&altered(&[(
        "/tokenizer",
        json!({"public": {"path": "t.json", "made_from": "public_text"}}),
    )]))
    .unwrap();
    let trained = certify(&quickstart()).unwrap();
    assert!(bytes.tokenizer_release().is_none() && file.tokenizer_release().is_none());
    assert_eq!(training_noise(&bytes), training_noise(&file));
    assert!(training_noise(&bytes) < training_noise(&trained));
}

#[test]
fn a_larger_share_gives_the_tokenizer_less_noise_and_training_more() {
    let of = |share: f64| certify(&altered(&[("/privacy/tokenizer_share", json!(share))])).unwrap();
    let (small, large) = (of(0.05), of(0.4));
    let tokenizer = |certified: &CertifiedPlan| certified.tokenizer_release().unwrap().noise_multiplier;
    assert!(tokenizer(&large) < tokenizer(&small));
    assert!(training_noise(&large) > training_noise(&small));
}

#[test]
fn the_histogram_of_a_paper_is_one_round_without_counts() {
    for name in ["hoory-2021", "ponomareva-2022"] {
        let words = json!({ "words": 64 });
        let plan = altered(&[("/tokenizer/train/release", json!(name)), ("/privacy/unit", words)]);
        let certified = certify(&plan).unwrap();
        let release = certified.tokenizer_release().unwrap();
        assert_eq!((release.method.name(), release.count_share), (name, 0.0));
        let (noise_multiplier, threshold_delta) = (release.noise_multiplier, release.threshold_delta);
        let events = vec![DpEvent::ThresholdedHistogram { noise_multiplier, threshold_delta }];
        assert_eq!(release.event, DpEvent::Composed { events });
    }
}

#[test]
fn the_thresholds_use_part_of_the_stated_delta() {
    let certified = certify(&quickstart()).unwrap();
    let release = certified.tokenizer_release().unwrap();
    assert!(release.threshold_delta < certified.delta().get());
    let DpEvent::Composed { events } = &release.event else { panic!("not composed") };
    let spent: f64 = events
        .iter()
        .map(|event| match event {
            DpEvent::ThresholdedHistogram { threshold_delta, .. } => *threshold_delta,
            _ => 0.0,
        })
        .sum();
    // Equal parts, summed in another order: rounding only.
    assert!((spent / release.threshold_delta - 1.0).abs() < 1e-12);
    let shares: f64 = release.round_shares.iter().sum::<f64>() + release.count_share;
    assert_eq!(shares, 1.0);
}

#[test]
fn spare_steps_are_charged_up_front() {
    let of = |spare: u64| {
        certify(&altered(&[
            ("/privacy/spare_steps", json!(spare)),
            (NOISE.0, NOISE.1()),
            ("/privacy/epsilon", Value::Null),
        ]))
        .unwrap()
    };
    let (none, some) = (of(0), of(50));
    assert_eq!((steps_charged(none.event()), steps_charged(some.event())), (150, 200));
    assert!(some.epsilon().upper > none.epsilon().upper);
    assert_eq!((none.total_steps(), some.total_steps()), (150, 150));
}

#[test]
fn a_schedule_charges_each_phase_at_its_size_and_spare_steps_at_the_dearest() {
    let schedule = json!([
        {"steps": 3, "expected_batch_size": 60},
        {"steps": 2, "expected_batch_size": 600},
        {"steps": 5, "expected_batch_size": 300},
    ]);
    let certified = certify(&altered(&[
        ("/training/batch_schedule", schedule),
        ("/training/steps", Value::Null),
        ("/training/expected_batch_size", Value::Null),
        ("/training/learning_rate/warmup_steps", json!(1)),
    ]))
    .unwrap();
    let probability = |step: u64| match certified.pass_event(step) {
        Some(DpEvent::PoissonSampledGaussian { sampling_probability, .. }) => Some(sampling_probability),
        _ => None,
    };
    let drawn: Vec<Option<f64>> = (0..11).map(probability).collect();
    let expected = [0.01, 0.01, 0.01, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05];
    assert_eq!(drawn[..10], expected.map(Some));
    assert_eq!(drawn[10], None);
    assert_eq!(certified.pass_event(u64::MAX), None);
    let DpEvent::Composed { events } = certified.event() else { panic!("not composed") };
    let DpEvent::SelfComposed { event: spare, count: 10 } = events.last().unwrap() else {
        panic!("no spare")
    };
    assert_eq!(**spare, certified.pass_event(3).unwrap());
    assert_eq!(steps_charged(certified.event()), 20);
}

/// Returns changes to a plan after which training steps with σ = 4 are its only cost.
fn steps_alone(expected_batch_size: u64, steps: u64) -> Vec<(&'static str, Value)> {
    vec![
        ("/tokenizer", json!("bytes")),
        ("/training/expected_batch_size", json!(expected_batch_size)),
        ("/training/steps", json!(steps)),
        ("/training/learning_rate/warmup_steps", json!(0)),
        ("/privacy/spare_steps", json!(0)),
        ("/privacy/epsilon", Value::Null),
        ("/privacy/noise_multipliers", json!({"training": 4.0})),
    ]
}

/// Without sampling, T steps at σ are one Gaussian mechanism with μ = √T/σ. Oracle: the analytic Gaussian mechanism
/// for μ = 1, δ = 1e-6 in 50 digits by mpmath 1.3.0.
#[test]
fn a_batch_of_everyone_is_the_plain_gaussian_mechanism() {
    let certified = certify(&altered(&steps_alone(6000, 16))).unwrap();
    let exact = 4.886_554_117_462_12;
    let bounds = certified.epsilon();
    assert!(bounds.lower <= exact && exact <= bounds.upper, "{bounds:?}");
    // The certified bounds of a plain Gaussian leave no more than rounding.
    assert!(bounds.upper - bounds.lower < 1e-6, "{bounds:?}");
}

/// PITFALLS 1. Oracle: the accountant, asked for shuffled batches; and shuffling costs more than Poisson sampling.
#[test]
fn shuffled_batches_are_charged_a_pass_and_never_at_the_poisson_figure() {
    let of = |sampling: Value, spare: u64| {
        certify(&altered(&[
            ("/privacy/sampling", sampling),
            ("/privacy/relation", json!("zero_out")),
            ("/tokenizer", json!("bytes")),
            ("/training/expected_batch_size", json!(250)),
            ("/training/steps", json!(100)),
            ("/training/learning_rate/warmup_steps", json!(0)),
            ("/privacy/spare_steps", json!(spare)),
            ("/privacy/epsilon", Value::Null),
            ("/privacy/noise_multipliers", json!({"training": 4.0})),
        ]))
        .unwrap()
    };
    // 6000 units in batches of 250: 24 a pass; 100 steps begin five passes, and one spare step begins one more.
    let shuffled = DpEvent::ShuffledGaussian { noise_multiplier: 4.0, batches: 24, epochs: 1 };
    for (spare, passes) in [(0, 5), (1, 6), (24, 6), (25, 7)] {
        let certified = of(json!("shuffle"), spare);
        let DpEvent::Composed { events } = certified.event() else { panic!("not composed") };
        let charged: u64 = events
            .iter()
            .map(|event| match event {
                DpEvent::SelfComposed { event, count } if **event == shuffled => *count,
                other => panic!("{other:?}"),
            })
            .sum();
        assert_eq!(charged, passes, "{spare} spare steps");
    }
    let certified = of(json!("shuffle"), 0);
    let event = DpEvent::SelfComposed { event: Box::new(shuffled), count: 5 };
    let oracle = accountant::epsilon(&event, certified.delta(), NeighboringRelation::ZeroOut).unwrap();
    assert_eq!(certified.epsilon(), oracle);
    let poisson = of(json!("poisson"), 0).epsilon();
    assert!(certified.epsilon().upper > 1.5 * poisson.upper, "{oracle:?} {poisson:?}");
    let place = |plan: &CertifiedPlan, step| plan.pass(step).map(|place| (place.pass, place.batch));
    let places = [0, 23, 24, 99, 100].map(|step| place(&certified, step));
    assert_eq!(places, [Some((0, 0)), Some((0, 23)), Some((1, 0)), Some((4, 3)), None]);
    assert!(!certified.charges_every_step());
    // Poisson steps are passes of one step.
    let poisson = of(json!("poisson"), 0);
    assert_eq!([23, 99, 100].map(|step| place(&poisson, step)), [Some((23, 0)), Some((99, 0)), None]);
    assert!(poisson.charges_every_step());
}

/// Each sampling is certified by its own event. Oracle: the accountant, asked for it under the plan's relation.
#[test]
fn every_sampling_is_certified_by_its_own_event() {
    let bins = DpEvent::BallsInBinsGaussian { noise_multiplier: 4.0, batches: 24, epochs: 1 };
    let fixed =
        DpEvent::FixedSizeSampledGaussian { sample_size: 250, population: 6000, noise_multiplier: 4.0 };
    // Five parts of 6,000 units; the last of ten rounds has three steps.
    let cyclic = DpEvent::CyclicPoissonSampledGaussian {
        sampling_probability: 1250.0 / 6000.0,
        noise_multiplier: 4.0,
    };
    let of_units = DpEvent::PoissonSampledExamplesGaussian {
        sampling_probability: 250.0 / 20_000.0,
        noise_multiplier: 4.0,
        examples_per_unit: 4,
    };
    let examples = json!({ "poisson_of_examples": { "examples": 20_000, "examples_per_unit": 4 } });
    let bands = json!({ "cyclic_poisson": { "bands": 5 } });
    let [in_bins, of_size] = [json!("balls_in_bins"), json!("fixed_size")];
    for (sampling, relation, event, count) in [
        (&in_bins, NeighboringRelation::AddOrRemoveOne, &bins, 2),
        (&in_bins, NeighboringRelation::ReplaceOne, &bins, 2),
        (&of_size, NeighboringRelation::ZeroOut, &fixed, 48),
        (&of_size, NeighboringRelation::ReplaceOne, &fixed, 48),
        (&examples, NeighboringRelation::AddOrRemoveOne, &of_units, 48),
        (&examples, NeighboringRelation::ZeroOut, &of_units, 48),
        (&bands, NeighboringRelation::AddOrRemoveOne, &cyclic, 10),
        (&bands, NeighboringRelation::ReplaceOne, &cyclic, 10),
    ] {
        let mut changes = steps_alone(250, 48);
        changes.push(("/privacy/sampling", json!(sampling)));
        changes.push(("/privacy/relation", serde_json::to_value(relation).unwrap()));
        let certified = certify(&altered(&changes)).unwrap();
        assert_eq!(certified.pass_event(0).as_ref(), Some(event), "{sampling}");
        let composed = DpEvent::SelfComposed { event: Box::new(event.clone()), count };
        let oracle = accountant::epsilon(&composed, certified.delta(), relation).unwrap();
        assert_eq!(certified.epsilon(), oracle, "{sampling} under {relation:?}");
    }
}

/// Oracle: `accountant correlated --batch-size 256 --dataset-size 6000 --steps 150 --epsilon 8 --delta 1e-6`, which has 0.7481 for
/// DP-SGD and, with eight bands, a multiplier of 1.2878 and the error of 0.5414.
#[test]
fn correlated_noise_is_calibrated_to_the_figures_of_the_comparison() {
    let noise = |bands: u64| {
        let mut changes = steps_alone(256, 150);
        changes.retain(|(field, _)| !field.starts_with("/privacy/noise_multipliers"));
        changes.push(("/privacy/noise_multipliers", Value::Null));
        changes.push(("/privacy/epsilon", json!(8.0)));
        changes.push(("/privacy/delta", json!(1e-6)));
        changes.push(("/privacy/sampling", json!({ "cyclic_poisson": { "bands": bands } })));
        training_noise(&certify(&altered(&changes)).unwrap())
    };
    assert!((noise(1) / 0.7482 - 1.0).abs() < 2e-4, "{}", noise(1));
    assert!((noise(8) / 1.2878 - 1.0).abs() < 2e-4, "{}", noise(8));
}

/// A cut at the mean costs more than one far above it, and that as much as no cut.
#[test]
fn a_truncated_batch_costs_more_the_lower_it_is_cut() {
    let noise = |sampling: Value| {
        training_noise(
            &certify(&altered(&[("/privacy/sampling", sampling), ("/privacy/relation", json!("zero_out"))]))
                .unwrap(),
        )
    };
    let cut = |largest: u64| noise(json!({"truncated_poisson": {"largest_batch": largest}}));
    let (tight, wide, none) = (cut(280), cut(1000), noise(json!("poisson")));
    assert!(tight > wide * 1.01, "{tight} {wide}");
    // Both are upper bounds of one figure, which certified intervals hold to 0.1 %.
    assert!((wide / none - 1.0).abs() < 1e-3, "{wide} {none}");
}

#[test]
fn no_knob_of_speed_reaches_an_event() {
    let fast = json!({"device": "cuda", "physical_batch": 512, "recompute": true, "precision": "bf16", "checkpoint_every": 1});
    let (slow, fast) =
        (certify(&quickstart()).unwrap(), certify(&altered(&[("/performance", fast)])).unwrap());
    let found = certify(&altered(&[("/performance/physical_batch", Value::Null)])).unwrap();
    for other in [fast, found] {
        assert_eq!(slow.event(), other.event());
        assert_eq!(slow.epsilon(), other.epsilon());
    }
}

/// One of two sums clipped to C may be exchanged for its opposite, so the sensitivity is 2C. Without sampling that
/// doubles the noise; sampling hides part of it.
#[test]
fn exchanging_a_unit_needs_more_noise_than_removing_one() {
    let noise = |relation: &str, batch: u64| {
        let changes = [
            ("/privacy/relation", json!(relation)),
            ("/tokenizer", json!("bytes")),
            ("/training/expected_batch_size", json!(batch)),
        ];
        training_noise(&certify(&altered(&changes)).unwrap())
    };
    // Calibration is exact to 1e-6, relative.
    let ratio = noise("replace_one", 6000) / noise("add_or_remove_one", 6000);
    assert!((ratio - 2.0).abs() < 1e-4, "{ratio}");
    assert!(noise("replace_one", 256) > noise("add_or_remove_one", 256));
}

#[test]
fn certification_is_deterministic_and_blind_to_spelling() {
    let plan = quickstart();
    let pretty = common::read(&format!("\u{feff}\r\n{plan:#}\n")).unwrap().certify().unwrap();
    let without_defaults =
        altered(&[("/data/visibility", Value::Null), ("/privacy/tokenizer_share", Value::Null)]);
    let bare = certify(&without_defaults).unwrap();
    let again = certify(&serde_json::from_str(pretty.to_json()).unwrap()).unwrap();
    let one = certify(&plan).unwrap();
    let all_fields = |certified: &CertifiedPlan| format!("{certified:?}");
    assert_eq!([&pretty, &bare, &again].map(all_fields), [&one; 3].map(all_fields));
    assert_eq!(one.hash().len(), 64);
    assert_eq!([pretty.hash(), bare.hash(), again.hash()], [one.hash(), one.hash(), one.hash()]);
}

#[test]
fn every_field_changes_the_hash() {
    let original = certify(&quickstart()).unwrap().hash();
    let changes = [
        ("/name", json!("other")),
        ("/data/format", json!("text")),
        ("/data/text_field", json!("body")),
        ("/privacy/delta", json!(1.000_000_000_000_1e-6)),
        ("/privacy/spare_steps", json!(11)),
        ("/training/l2_clip_norm", json!(1.000_000_000_000_1)),
        ("/training/learning_rate/decay", json!("linear")),
        ("/performance/physical_batch", json!(17)),
        ("/evaluation/every", json!(51)),
    ];
    for (pointer, value) in changes {
        assert_ne!(certify(&altered(&[(pointer, value)])).unwrap().hash(), original, "{pointer}");
    }
}

/// Pinned: a change here makes every certificate written before unverifiable. Oracle: `sha256sum` of the text.
#[test]
fn the_canonical_form_is_pinned() {
    let plan = common::read(PINNED).unwrap();
    assert_eq!(plan.to_json(), PINNED);
    let hash = plan.certify().unwrap().hash();
    assert_eq!(hash, "cbfd9f3361c50e2a22e312f002d1bd6a46d4aa0a63ade891cb965e3372421fd5");
}

const PINNED: &str = concat!(
    r#"{"data":{"format":"auto","source":{"path":"a.txt"},"text_field":"text","units":1000,"visibility":"private"},"#,
    r#""model":{"context":64,"d_ff":256,"d_model":64,"family":"gpt2","heads":2,"layers":1},"name":"pinned","#,
    r#""performance":{"checkpoint_every":25,"device":"cpu","physical_batch":16,"precision":"f32"},"#,
    r#""privacy":{"delta":1e-6,"noise_multipliers":{"training":2.0},"relation":"add_or_remove_one","#,
    r#""sampling":"poisson","spare_steps":0,"tokenizer_share":0.1,"unit":"record"},"tokenizer":"bytes","#,
    r#""training":{"expected_batch_size":100,"l2_clip_norm":1.0,"learning_rate":{"decay":"cosine","peak":0.001,"#,
    r#""warmup_steps":0},"objective":"causal_lm","optimizer":{"adamw":{"beta1":0.9,"beta2":0.99,"epsilon":1e-8,"#,
    r#""weight_decay":0.01}},"steps":10},"version":1}"#,
);

#[test]
fn a_public_prior_is_refused_with_a_model_that_does_not_learn_from_it_and_costs_nothing() {
    let prior = |model: &str| {
        altered(&[("/tokenizer/train/model", json!(model)), ("/tokenizer/train/prior", json!(["t5.json"]))])
    };
    for model in ["bpe", "wordpiece", "char"] {
        let message = refusal(&prior(model));
        assert!(message.contains("tokenizer.train.prior") && message.contains("\"unigram\""), "{message}");
    }
    let certified = certify(&prior("unigram")).unwrap();
    assert_eq!(certified.event(), certify(&altered(&[])).unwrap().event());
}
