//! Batches, audits of the draws, and interruptions.

use std::fs;

use accountant::audit::Positives;
use accountant::{Delta, DpEvent, NeighboringRelation};
use mechanisms::{ExponentialMechanism, TestRng};
use serde_json::json;

use super::references::Batch;
use super::*;

const KEY: &str = "key";

fn of_units(units: std::ops::Range<u64>) -> References {
    let texts: Vec<String> = units.clone().map(|unit| format!("text {unit}")).collect();
    let list: Vec<(u64, usize, &str)> =
        units.zip(&texts).map(|(unit, text)| (unit, (unit % 2) as usize, text.as_str())).collect();
    References::of(&list)
}

fn batches(references: &References, texts_by_label: &[u64]) -> Vec<Batch> {
    references.batches(texts_by_label, KEY).into_mechanism()
}

#[test]
fn a_unit_is_in_one_batch_of_its_label_and_no_other_unit_moves_it() {
    let all = batches(&of_units(0..300), &[10, 20]);
    let labels: Vec<usize> = all.iter().map(|batch| batch.label).collect();
    assert_eq!(labels, [vec![0; 10], vec![1; 20]].concat());
    assert_eq!(all.iter().map(|batch| batch.texts.len()).sum::<usize>(), 300);
    for batch in &all {
        let number = |text: &String| text["text ".len()..].parse::<usize>().unwrap();
        assert!(batch.texts.iter().all(|text| number(text) % 2 == batch.label), "{batch:?}");
    }
    let without = batches(&of_units(0..299), &[10, 20]);
    let differing: Vec<(&Batch, &Batch)> =
        all.iter().zip(&without).filter(|(with, without)| with != without).collect();
    let [(with, without)] = differing.as_slice() else { panic!("{differing:?}") };
    assert_eq!(with.texts.len(), without.texts.len() + 1);
    assert_ne!(of_units(0..300).batches(&[10, 20], "other").into_mechanism(), all);
    // A label without texts gives no reference.
    assert_eq!(
        batches(&of_units(0..300), &[0, 20]).iter().map(|batch| batch.texts.len()).sum::<usize>(),
        150
    );
}

/// The bounds are five standard deviations of a binomial.
#[test]
fn which_record_of_a_user_writes_is_random_and_one_alone_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let record = |at: u64| {
        let kind = if at.is_multiple_of(4) { "care" } else { "play" };
        format!("{}\n", json!({ "user": at / 4, "kind": kind, "text": format!("note {at}") }))
    };
    fs::write(folder.path().join("private.jsonl"), (0..2000).map(record).collect::<String>()).unwrap();
    let file = plan::ParaphraseFile::parse(
        &json!({
            "name": "notes", "labels": ["care", "play"], "label_noise_multiplier": 0.02,
            "data": {
                "source": { "path": "private.jsonl" }, "label_field": "kind", "user_field": "user", "units": 500
            },
            "privacy": { "unit": "user", "relation": "add_or_remove_one", "delta": 1e-4, "epsilon": 4.0 },
            "generator": "none", "records": 10
        })
        .to_string(),
    )
    .unwrap();
    let source = PrivateSource {
        data: &file.data,
        labels: &file.labels,
        unit: file.privacy.unit,
        base: folder.path(),
    };
    let references = References::new(source.read(&[], &[]).unwrap(), KEY).unwrap();
    let counts = references.label_counts(&file, &TestRng::from_seed(1)).unwrap();
    assert_eq!(counts.iter().sum::<i64>(), 500);
    assert!((counts[0] as f64 - 125.0).abs() < 5.0 * 93.75_f64.sqrt(), "{counts:?}");
    assert_eq!(batches(&references, &[5, 5]).iter().map(|batch| batch.texts.len()).sum::<usize>(), 500);
}

/// The fault of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nothing,
    /// Differences are not clipped.
    Unclipped,
    /// Each reference counts twice.
    CountedTwice,
    /// Twice as many tokens are drawn as are charged.
    NotCharged,
    /// Sums are divided by half of the references.
    HalfTheDivisor,
}

const TOKENS: u64 = 12;

/// Returns, for texts by a reference that wants token 1, and for public texts, how often each has token 1.
fn audited(fault: Fault, texts: u64) -> ([Vec<u64>; 2], DpEvent) {
    let right = ExponentialMechanism::new(1.0, 2.0, 1.0).unwrap();
    let used = match fault {
        Fault::Unclipped => ExponentialMechanism::new(4.0, 2.0, 1.0).unwrap(),
        Fault::HalfTheDivisor => ExponentialMechanism::new(1.0, 1.0, 1.0).unwrap(),
        _ => right,
    };
    let tokens = if fault == Fault::NotCharged { 4 * TOKENS } else { TOKENS };
    let wanted = |member: bool, text: u64| {
        let mut stream = TestRng::from_seed(2 * text + u64::from(member)).stream(Purpose::Tokens, 0, 0);
        let draw = |_: &u64| {
            let mut scores = used.scores(&[0.0, 0.0], &[0, 1]);
            let rows = match (member, fault) {
                (false, _) => 0,
                (true, Fault::CountedTwice) => 2,
                (true, _) => 1,
            };
            (0..rows).for_each(|_| scores.add(&[-9.0, 9.0]));
            used.draw(&scores, &mut stream) == Some(1)
        };
        (0..tokens).filter(draw).count() as u64
    };
    let counts = |member| (0..texts).map(|text| wanted(member, text)).collect();
    let event = DpEvent::SelfComposed { event: Box::new(right.event()), count: TOKENS };
    ([counts(true), counts(false)], event)
}

/// Returns whether the rates of true and false claims, each with Clopper–Pearson bounds, refute the certified δ(ε). α = 1e-6 for each claim.
fn refuted([inside, outside]: &[Vec<u64>; 2], event: &DpEvent) -> bool {
    let point = |log_delta: i32| {
        let delta = Delta::new(10_f64.powi(log_delta)).unwrap();
        (accountant::epsilon(event, delta, NeighboringRelation::AddOrRemoveOne).unwrap().upper, delta)
    };
    let curve: Vec<(f64, Delta)> = (-5..0).map(point).collect();
    let claims = |counts: &[u64], least: u64| Positives {
        positives: counts.iter().filter(|count| **count >= least).count() as u64,
        trials: counts.len() as u64,
    };
    (1..4 * TOKENS).any(|least| {
        let true_rate = claims(inside, least).rate_at_least(1.0 - 1e-6).unwrap();
        let false_rate = claims(outside, least).rate_at_most(1.0 - 1e-6).unwrap();
        curve.iter().any(|(epsilon, delta)| true_rate > epsilon.exp() * false_rate + delta.get())
    })
}

/// PITFALLS 60.
#[test]
fn audits_refute_broken_draws_and_no_right_ones() {
    use Fault::{CountedTwice, HalfTheDivisor, NotCharged, Nothing, Unclipped};
    for fault in [Nothing, Unclipped, CountedTwice, NotCharged, HalfTheDivisor] {
        let (counts, event) = audited(fault, 20_000);
        assert_eq!(refuted(&counts, &event), fault != Nothing, "{fault:?}");
    }
}
